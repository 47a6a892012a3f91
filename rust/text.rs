// SPDX-License-Identifier: GPL-2.0

//! Small things that end up in text for users.

use super::bindings;

/// The kernel's hashed form of a pointer (`%p`).
pub(crate) struct PointerText {
    text: [u8; 24],
    len: usize,
}

impl PointerText {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.text.get(..self.len).unwrap_or_default()
    }
}

/// Hashes a pointer for users to see.
pub(crate) fn hash_pointer<T>(pointer: *const T) -> PointerText {
    let mut text = [0; 24];
    // SAFETY: `text` is valid for its length; the pointer is only hashed.
    let len = unsafe {
        bindings::rhist_hash_pointer(text.as_mut_ptr().cast(), text.len(), pointer.cast())
    };
    PointerText { text, len }
}

/// The local trace clock in nanoseconds, as the kernel's own `error_log` has it.
pub(crate) fn local_clock_ns() -> u64 {
    // SAFETY: No requirements.
    unsafe { bindings::local_clock() }
}

/// 64 random bits.
pub(crate) fn random() -> u64 {
    // SAFETY: No requirements.
    unsafe { bindings::get_random_u64() }
}
