// SPDX-License-Identifier: GPL-2.0

//! Memory behind pointers that nobody vouches for.

use super::bindings;

/// Fills `to` from the kernel's memory at `address`, or returns false
/// (`copy_from_kernel_nofault()`). Any context, NMI included.
pub(crate) fn read_kernel(to: &mut [u8], address: usize) -> bool {
    // SAFETY: `to` is valid for its length; `address` may be anything.
    unsafe { bindings::rhist_read_kernel(to.as_mut_ptr().cast(), address as *const _, to.len()) }
}

/// Fills `to` from the memory of the running task at `address`, or returns false
/// (`copy_from_user_nofault()`). Any context, NMI included.
pub(crate) fn read_user(to: &mut [u8], address: usize) -> bool {
    // SAFETY: `to` is valid for its length; `address` may be anything.
    unsafe { bindings::rhist_read_user(to.as_mut_ptr().cast(), address, to.len()) }
}
