// SPDX-License-Identifier: GPL-2.0

//! Symbols, hashed pointers, times and random numbers for text that users see.

use super::bindings;
use core::ffi::CStr;
use kernel::prelude::*;

/// What the kernel printed into `N` bytes.
pub(crate) struct Printed<const N: usize> {
    text: [u8; N],
    len: usize,
}

impl<const N: usize> Printed<N> {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.text.get(..self.len).unwrap_or_default()
    }
}

/// Hashes a pointer for users to see (`%p`).
pub(crate) fn hash_pointer<T>(pointer: *const T) -> Printed<24> {
    let mut text = [0; 24];
    // SAFETY: `text` is valid for its length; the pointer is only hashed.
    let len = unsafe {
        bindings::rhist_hash_pointer(text.as_mut_ptr().cast(), text.len(), pointer.cast())
    };
    Printed { text, len }
}

/// The name of what is at `address` (`%ps`), and where in it that is if `offset` is true (`%pS`).
pub(crate) fn symbol(address: u64, offset: bool) -> Printed<{ bindings::RHIST_SYMBOL_LEN }> {
    let mut text = [0; bindings::RHIST_SYMBOL_LEN];
    // SAFETY: `text` is valid for its length; the address is only looked up.
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

/// The name of the system call `number`, if there is one (`sys_…`).
pub(crate) fn syscall(number: u64) -> Option<&'static CStr> {
    // SAFETY: No requirements; what is not null is a string that stays.
    unsafe {
        let name = bindings::rhist_syscall_name(number);
        (!name.is_null()).then(|| CStr::from_char_ptr(name))
    }
}

/// The local trace clock in nanoseconds, as the kernel's own `error_log` has it.
pub(crate) fn local_clock_ns() -> u64 {
    // SAFETY: No requirements.
    unsafe { bindings::rhist_local_clock() }
}

/// 64 random bits.
pub(crate) fn random() -> u64 {
    // SAFETY: No requirements.
    unsafe { bindings::get_random_u64() }
}
