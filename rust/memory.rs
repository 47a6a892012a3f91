// SPDX-License-Identifier: GPL-2.0

//! Access to memory behind unchecked pointers.

use super::bindings;
use core::ffi::CStr;
use kernel::error::from_err_ptr;
use kernel::iov::IovIterSource;
use kernel::prelude::*;

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

/// Whether the range is in user space (`access_ok()`).
pub(crate) fn is_user(address: usize, size: usize) -> bool {
    // SAFETY: No requirements.
    unsafe { bindings::rhist_access_ok(address, size) }
}

/// Takes a number from the beginning of what was written, if it can be read. Task context.
pub(crate) fn read_number(source: &mut IovIterSource<'_>) -> Option<i32> {
    let mut number = 0;
    // SAFETY: The source is one while we have it. The type is the same one, from another run of
    // bindgen.
    unsafe { bindings::rhist_read_number(source.as_raw().cast(), &mut number) }.then_some(number)
}

/// The text of the running task at `address`, which a NUL ends. Task context.
///
/// # Errors
///
/// `EFAULT`, `EINVAL` if it is longer than `max` bytes with its NUL, `ENOMEM`.
pub(crate) fn user_string(address: usize, max: isize) -> Result<KVec<u8>> {
    let mut copy = KVec::new();
    // SAFETY: `address` may be anything.
    let text = from_err_ptr(unsafe { bindings::strndup_user(address as *const _, max) })?;
    // SAFETY: The text ends in a NUL.
    let bytes = unsafe { CStr::from_char_ptr(text) }.to_bytes();
    let copied = copy.extend_from_slice(bytes, GFP_KERNEL);
    // SAFETY: It was allocated for us, and is not used any more.
    unsafe { bindings::kfree(text.cast()) };
    copied?;
    Ok(copy)
}
