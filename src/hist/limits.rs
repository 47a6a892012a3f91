// SPDX-License-Identifier: GPL-2.0

//! Sizes of keys. They are limits of compatibility with the C implementation
//! (trace_events_hist.c), not of this one: nothing else depends on their being small. The numbers
//! of keys, values and so on that a trigger may have are limits of its language, and are there.

use crate::event::hit::STACK_DEPTH;

/// Bytes that a string key takes at most, NUL included (`MAX_FILTER_STR_VAL`).
pub const STRING: u32 = 256;

/// Bytes of a stored stack (`HIST_STACKTRACE_SIZE`).
pub const STACK: u32 = STACK_DEPTH as u32 * 8;

/// Bytes of all keys together, each padded (`HIST_KEY_SIZE_MAX`).
pub const KEY_SIZE: u32 = STRING + STACK;

/// Each key takes a multiple of this many bytes.
pub const KEY_ALIGN: u32 = 8;
