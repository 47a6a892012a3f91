// SPDX-License-Identifier: GPL-2.0

//! Sizes of keys: limits of the C implementation (trace_events_hist.c), kept for compatibility. How many keys and
//! values a trigger may have is checked by its parser.

use crate::event::hit::STACK_DEPTH;

/// Bytes that a string key takes at most, NUL included (`MAX_FILTER_STR_VAL`).
pub const STRING: u32 = 256;

/// Bytes of a stored stack (`HIST_STACKTRACE_SIZE`).
pub const STACK: u32 = STACK_DEPTH as u32 * 8;

/// Bytes of all keys together, each padded (`HIST_KEY_SIZE_MAX`).
pub const KEY_SIZE: u32 = STRING + STACK;

/// Most histograms of which each refers to the next. C has no such limit. Dropping the first may drop all of them, each
/// within the other, for which the stack of the kernel has to do.
pub const CHAIN: usize = 16;

/// Each key takes a multiple of this many bytes.
pub const KEY_ALIGN: u32 = 8;
