// SPDX-License-Identifier: MIT OR Apache-2.0

//! Limits of a table, which the module checks.

/// Most rows of a table.
pub const MOST_ROWS: usize = 1 << 22;
/// Most rules of a table.
pub const MOST_RULES: usize = u16::MAX as usize;
/// Most pages of a table, each for 64 KiB of the file.
pub const MOST_PAGES: usize = 1 << 16;
