// SPDX-License-Identifier: GPL-2.0

//! Allocations that fail on demand. Only the host has this.
//!
//! Counts are per thread: a test that uses them allocates and frees in one thread.

use std::cell::Cell;

use crate::alloc::AllocError;

std::thread_local! {
    /// Allocations until one fails; `None` for never.
    static COUNTDOWN: Cell<Option<usize>> = const { Cell::new(None) };
    /// Allocations requested so far.
    static MADE: Cell<usize> = const { Cell::new(0) };
    /// Allocations not freed yet.
    static LIVE: Cell<isize> = const { Cell::new(0) };
}

/// Called by the containers before they allocate or grow.
pub(crate) fn allocate(new: bool) -> Result<(), AllocError> {
    MADE.set(MADE.get() + 1);
    if let Some(left) = COUNTDOWN.get() {
        if left == 0 {
            return Err(AllocError);
        }
        COUNTDOWN.set(Some(left - 1));
    }
    LIVE.set(LIVE.get() + isize::from(new));
    Ok(())
}

/// Called by the containers when they free.
pub(crate) fn free() {
    // A value in thread-local storage may be dropped after the counter is gone.
    let _ = LIVE.try_with(|live| live.set(live.get() - 1));
}

/// Runs `f` while all its allocations after the first `n` fail.
pub fn after<T>(n: usize, f: impl FnOnce() -> T) -> T {
    struct Reset;
    impl Drop for Reset {
        fn drop(&mut self) {
            COUNTDOWN.set(None);
        }
    }
    let _reset = Reset;
    COUNTDOWN.set(Some(n));
    f()
}

/// Runs `f` with all its allocations failing, then with all but the first, and so on until none
/// fails. Hands each result but the last to `failed`, and returns the last with the number of
/// allocations it took.
///
/// # Panics
///
/// If a run in which an allocation failed left another one behind.
pub fn each<T>(mut f: impl FnMut() -> T, mut failed: impl FnMut(T)) -> (T, usize) {
    for n in 0.. {
        let (made, live) = (MADE.get(), LIVE.get());
        let result = after(n, &mut f);
        if MADE.get() - made <= n {
            return (result, n);
        }
        failed(result);
        assert_eq!(LIVE.get(), live, "leak after failure of allocation {n}");
    }
    unreachable!()
}

/// Number of allocations made in this thread and not freed.
pub fn live() -> isize {
    LIVE.get()
}
