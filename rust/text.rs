// SPDX-License-Identifier: GPL-2.0

//! Symbols, hashed pointers, times and random numbers for text that users see.

use super::bindings;
use core::ffi::CStr;
use kernel::prelude::*;

/// Text printed by the kernel, in a buffer of `N` bytes.
pub(crate) struct Printed<const N: usize> {
    text: [u8; N],
    len: usize,
}

impl<const N: usize> Printed<N> {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.text.get(..self.len).unwrap_or_default()
    }
}

/// Formats the hash of a pointer, for text that users see (`%p`).
pub(crate) fn hash_pointer<T>(pointer: *const T) -> Printed<24> {
    let mut text = [0; 24];
    // SAFETY: `text` is valid for its length. `pointer` is hashed, and not accessed.
    let len = unsafe {
        bindings::rhist_hash_pointer(text.as_mut_ptr().cast(), text.len(), pointer.cast())
    };
    Printed { text, len }
}

/// Formats the symbol at `address` (`%ps`), with offset and size if `offset` is true (`%pS`). Task
/// context.
pub(crate) fn symbol(address: u64, offset: bool) -> Printed<{ bindings::RHIST_SYMBOL_LEN }> {
    let mut text = [0; bindings::RHIST_SYMBOL_LEN];
    // SAFETY: `text` is valid for its length. `address` is looked up, and not accessed.
    let len = unsafe {
        bindings::rhist_symbol(
            text.as_mut_ptr().cast(),
            text.len(),
            address as usize as *const _,
            offset,
        )
    };
    Printed { text, len }
}

/// Returns the name of the system call `number` (`sys_…`); `None` for unknown numbers.
pub(crate) fn syscall(number: u64) -> Option<&'static CStr> {
    // SAFETY: The function accepts any number. It returns null or a static string, which ends in a
    // NUL.
    unsafe {
        let name = bindings::rhist_syscall_name(number);
        (!name.is_null()).then(|| CStr::from_char_ptr(name))
    }
}

/// Reads `local_clock()` in nanoseconds, as the kernel's `error_log` does. Any context.
pub(crate) fn local_clock_ns() -> u64 {
    // SAFETY: The function may be called in any context.
    unsafe { bindings::rhist_local_clock() }
}

/// Returns 64 random bits. Not for NMI context.
pub(crate) fn random() -> u64 {
    // SAFETY: The function takes no arguments, and callers are not in NMI context.
    unsafe { bindings::get_random_u64() }
}
