// SPDX-License-Identifier: GPL-2.0

//! Kinds of characters as the kernel has them: Latin-1 (`lib/ctype.c`).

/// `isspace()`: with the no-break space.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t'..=b'\r' | b' ' | 0xa0)
}

/// `isalnum()`: with the letters of Latin-1, so without its signs of multiplication and division.
pub(super) fn is_alnum(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || (byte >= 0xc0 && byte != 0xd7 && byte != 0xf7)
}
