// SPDX-License-Identifier: GPL-2.0

//! Character classes of the kernel: Latin-1 (`lib/ctype.c`).

/// `isspace()`, which includes the no-break space.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t'..=b'\r' | b' ' | 0xa0)
}

/// `isalnum()`, which includes the letters of Latin-1.
pub(super) fn is_alnum(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || (byte >= 0xc0 && byte != 0xd7 && byte != 0xf7)
}
