// SPDX-License-Identifier: GPL-2.0

//! Counts in memory that nobody guards.

/// Adds 1 to the counter.
///
/// # Safety
///
/// There is none: it is called by two threads at once.
#[no_mangle]
pub unsafe extern "C" fn race_count(counter: *mut u64) {
    // SAFETY: Not given. That is the point.
    unsafe { *counter += 1 };
}
