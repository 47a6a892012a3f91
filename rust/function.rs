// SPDX-License-Identifier: GPL-2.0

//! Functions of the kernel and their places.

use super::bindings;
use core::ffi::CStr;
use kernel::prelude::*;

/// The address of the function `name`, if it is one that could be probed. Task context, may sleep.
pub(crate) fn address(name: &CStr) -> Option<usize> {
    // SAFETY: `name` ends in a NUL.
    match unsafe { bindings::rhist_function_address(name.as_char_ptr()) } {
        0 => None,
        address => Some(address),
    }
}

/// Where the function around `address` starts, and how many bytes it has. Task context.
pub(crate) fn around(address: usize) -> Option<(usize, usize)> {
    let (mut start, mut size) = (0, 0);
    // SAFETY: Both are written to; `address` may be anything.
    let known = unsafe { bindings::rhist_function(address, &mut start, &mut size) };
    known.then_some((start, size))
}
