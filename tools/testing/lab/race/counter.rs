// SPDX-License-Identifier: GPL-2.0

//! Counts in memory that nobody guards.

/// Adds 1 to the counter.
///
/// # Safety
///
/// Unsafe on purpose: two threads call it at once.
#[no_mangle]
pub unsafe extern "C" fn race_count(counter: *mut u64) {
    // SAFETY: Not given. That is the point.
    unsafe { *counter += 1 };
}
