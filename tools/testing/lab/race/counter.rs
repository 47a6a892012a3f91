// SPDX-License-Identifier: GPL-2.0

//! Counts in unprotected memory.

/// Adds 1 to the counter.
///
/// # Safety
///
/// Unsafe on purpose: two threads call it at once.
#[no_mangle]
pub unsafe extern "C" fn race_count(counter: *mut u64) {
    // SAFETY: Deliberately violated: the race is the purpose.
    unsafe { *counter += 1 };
}
