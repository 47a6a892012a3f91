// SPDX-License-Identifier: GPL-2.0

//! Lookup of kernel functions by name and by address.

use super::bindings;
use core::ffi::CStr;
use kernel::prelude::*;

/// Looks up the addresses of the functions `names`; 0 for functions that are not found. Task
/// context, sleeps. Fails with `ENOMEM`.
pub(crate) fn addresses<const N: usize>(names: &[&CStr; N]) -> Result<[usize; N]> {
    let pointers = names.map(|name| name.as_char_ptr());
    let mut addresses = [0; N];
    // SAFETY: `pointers` has `N` strings that end in a NUL, and `addresses` has `N` items.
    let done =
        unsafe { bindings::rhist_function_addresses(pointers.as_ptr(), addresses.as_mut_ptr(), N) };
    done.then_some(addresses).ok_or(ENOMEM)
}

/// Looks up the address of the function `name`; `None` if it is not found or an allocation fails.
/// Task context, sleeps.
pub(crate) fn address(name: &CStr) -> Option<usize> {
    match addresses(&[name]) {
        Ok([0]) | Err(_) => None,
        Ok([address]) => Some(address),
    }
}

/// Returns start and size in bytes of the function that contains `address`. Task context.
pub(crate) fn around(address: usize) -> Option<(usize, usize)> {
    let (mut start, mut size) = (0, 0);
    // SAFETY: `start` and `size` are valid for writes. `address` is looked up, and not accessed.
    let known = unsafe { bindings::rhist_function(address, &mut start, &mut size) };
    known.then_some((start, size))
}

/// Returns whether the name of the function that contains `address` begins with `prefix`. Any
/// context; takes about as long as a hit.
pub(crate) fn begins(address: usize, prefix: &CStr) -> bool {
    // SAFETY: `prefix` ends in a NUL. `address` is looked up, and not accessed.
    unsafe { bindings::rhist_function_begins(address, prefix.as_char_ptr()) }
}
