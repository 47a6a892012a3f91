// SPDX-License-Identifier: GPL-2.0

//! Errors that the kernel crate does not name in all versions.
//!
//! C header: `include/uapi/asm-generic/errno.h`

use kernel::prelude::*;

/// `ELOOP`: variables refer to each other through too many histograms, or in a circle.
pub fn eloop() -> Error {
    Error::from_errno(-40)
}

/// `EUSERS`: a histogram has as many readers of intervals as it may have.
pub fn eusers() -> Error {
    Error::from_errno(-87)
}

/// `EADDRINUSE`: the name, or the bit, is taken.
pub fn eaddrinuse() -> Error {
    Error::from_errno(-98)
}

/// `EDQUOT`: a user has reached a limit.
pub fn edquot() -> Error {
    Error::from_errno(-122)
}
