// SPDX-License-Identifier: GPL-2.0

//! Lookup of kernel functions by name and by address.

use super::bindings;
use core::ffi::CStr;
use kernel::prelude::*;

/// The addresses of the functions `names`, 0 for those that are not known. Task context, sleeps.
///
/// # Errors
///
/// `ENOMEM`.
pub(crate) fn addresses<const N: usize>(names: &[&CStr; N]) -> Result<[usize; N]> {
    let pointers = names.map(|name| name.as_char_ptr());
    let mut addresses = [0; N];
    // SAFETY: The names end in a NUL; there are as many addresses as names.
    let done =
        unsafe { bindings::rhist_function_addresses(pointers.as_ptr(), addresses.as_mut_ptr(), N) };
    done.then_some(addresses).ok_or(ENOMEM)
}

/// The address of the function `name`. Task context, sleeps.
pub(crate) fn address(name: &CStr) -> Option<usize> {
    match addresses(&[name]) {
        Ok([0]) | Err(_) => None,
        Ok([address]) => Some(address),
    }
}

/// Where the function around `address` starts, and how many bytes it has. Task context.
pub(crate) fn around(address: usize) -> Option<(usize, usize)> {
    let (mut start, mut size) = (0, 0);
    // SAFETY: Both are written to; `address` may be anything.
    let known = unsafe { bindings::rhist_function(address, &mut start, &mut size) };
    known.then_some((start, size))
}

/// Whether the name of the function around `address` begins with `prefix`. Any context; takes about
/// as long as a hit.
pub(crate) fn begins(address: usize, prefix: &CStr) -> bool {
    // SAFETY: `prefix` ends in a NUL; `address` may be anything.
    unsafe { bindings::rhist_function_begins(address, prefix.as_char_ptr()) }
}
