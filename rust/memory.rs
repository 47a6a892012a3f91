// SPDX-License-Identifier: GPL-2.0

//! Access to memory behind unchecked pointers.

use super::bindings;
use core::ffi::CStr;
use kernel::{
    error::from_err_ptr,
    iov::IovIterSource,
    page::PAGE_SIZE,
    prelude::*, //
};

/// Copies kernel memory at `address` to `to` (`copy_from_kernel_nofault()`). Returns false if not
/// all of it can be read. Any context, NMI included.
pub(crate) fn read_kernel(to: &mut [u8], address: usize) -> bool {
    // SAFETY: `to` is valid for its length. The function handles faults at `address`.
    unsafe { bindings::rhist_read_kernel(to.as_mut_ptr().cast(), address as *const _, to.len()) }
}

/// Copies user memory of the running task at `address` to `to` (`copy_from_user_nofault()`).
/// Returns false if not all of it can be read without a page fault. Any context, NMI included.
pub(crate) fn read_user(to: &mut [u8], address: usize) -> bool {
    // SAFETY: `to` is valid for its length. The function checks the range at `address` and handles
    // faults.
    unsafe { bindings::rhist_read_user(to.as_mut_ptr().cast(), address, to.len()) }
}

/// Returns whether the range is in user space (`access_ok()`).
pub(crate) fn is_user(address: usize, size: usize) -> bool {
    // SAFETY: The function only compares addresses.
    unsafe { bindings::rhist_access_ok(address, size) }
}

/// Returns the number of bytes of memory that can be allocated without swapping, as far as the
/// kernel knows.
pub(crate) fn available() -> usize {
    // SAFETY: The function only reads counters, in any context.
    let pages = unsafe { bindings::rhist_available_pages() };
    usize::try_from(pages)
        .unwrap_or(0)
        .saturating_mul(PAGE_SIZE)
}

/// Reads a number from `source` and advances it; `None` if it cannot be read. Task context, may
/// sleep.
pub(crate) fn read_number(source: &mut IovIterSource<'_>) -> Option<i32> {
    let mut number = 0;
    // SAFETY: `source` is a valid source iterator, borrowed exclusively. The type is the same one,
    // from another run of bindgen.
    unsafe { bindings::rhist_read_number(source.as_raw().cast(), &mut number) }.then_some(number)
}

/// Copies the string at `address` in user memory of the running task, without its NUL. Task
/// context, may sleep.
///
/// # Errors
///
/// `EFAULT`, `EINVAL` if it is longer than `max` bytes including its NUL, `ENOMEM`.
pub(crate) fn user_string(address: usize, max: isize) -> Result<KVec<u8>> {
    let mut copy = KVec::new();
    // SAFETY: `strndup_user()` checks `address` as a user pointer.
    let text = from_err_ptr(unsafe { bindings::strndup_user(address as *const _, max) })?;
    // SAFETY: `text` is not an `ERR_PTR`, so it is a string that ends in a NUL.
    let bytes = unsafe { CStr::from_char_ptr(text) }.to_bytes();
    let copied = copy.extend_from_slice(bytes, GFP_KERNEL_ACCOUNT);
    // SAFETY: `text` was allocated by `strndup_user()`, and is not used afterwards.
    unsafe { bindings::kfree(text.cast()) };
    copied?;
    Ok(copy)
}
