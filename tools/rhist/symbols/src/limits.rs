// SPDX-License-Identifier: MIT OR Apache-2.0

//! Limits against hostile files.

/// Most symbols of a file, of all its tables and procedure linkage tables together.
pub const MOST_SYMBOLS: usize = 1 << 22;
/// Most bytes of a name in a file; the rest is left out, and such a name is not demangled.
pub const MOST_RAW: usize = 16 << 10;
/// Most bytes of a name that is shown, apart from an ellipsis and `@plt`.
pub const MOST_SHOWN: usize = 4 << 10;
/// Most bytes of a perf map; the rest is left out.
pub const MOST_MAP_BYTES: usize = 64 << 20;
/// Most lines of a perf map; the rest is left out.
pub const MOST_LINES: usize = 1 << 20;

/// Most bytes by which names of the same place are compared.
pub(crate) const MOST_COMPARED: usize = 256;
