// SPDX-License-Identifier: GPL-2.0

//! Interrupts at a chosen point. Only the host has this.
//!
//! An interrupt makes a difference only at atomic operations, so one comes just before an atomic
//! operation of this thread. Its handler runs to the end before the thread goes on, as on a CPU.

use std::boxed::Box;
use std::cell::Cell;
use std::cell::RefCell;

// Loom's macro does not know `const`.
#[cfg_attr(not(loom), allow(clippy::missing_const_for_thread_local))]
mod local {
    use super::*;

    #[cfg(loom)]
    use loom::thread_local;

    thread_local! {
        /// Atomic operations up to and with the interrupted one; 0 for no interrupt.
        pub(super) static COUNTDOWN: Cell<usize> = Cell::new(0);
        pub(super) static HANDLER: RefCell<Option<Box<dyn FnOnce()>>> = RefCell::new(None);
    }
}
use local::COUNTDOWN;
use local::HANDLER;

#[cfg(loom)]
loom::lazy_static! {
    static ref ORDER: loom::sync::atomic::AtomicUsize = Default::default();
}

/// Runs `f`, and `handler` just before the `n`-th atomic operation of `f` in this thread, counted
/// from 0. `handler` may call `at` itself. Returns the result of `f`, and whether the interrupt
/// came.
pub fn at<T>(n: usize, handler: impl FnOnce() + 'static, f: impl FnOnce() -> T) -> (T, bool) {
    let outer = HANDLER.with(|h| h.replace(Some(Box::new(handler))));
    let left = COUNTDOWN.with(|c| c.replace(n + 1));
    let result = f();
    COUNTDOWN.with(|c| c.set(left));
    (result, HANDLER.with(|h| h.replace(outer)).is_none())
}

/// Called before each atomic operation.
#[inline]
pub(crate) fn point() {
    if cfg!(feature = "uninterrupted") {
        return;
    }
    // Loom tries only orders of operations that depend on each other, and to find these keeps the
    // last access to each atomic. So it forgets a load when another one follows, and never tries a
    // later store of the other thread before it. One atomic that all operations write makes it try
    // all orders. Relaxed, it orders nothing in the model.
    #[cfg(loom)]
    ORDER.fetch_add(1, loom::sync::atomic::Ordering::Relaxed);

    let left = COUNTDOWN.with(|c| {
        let left = c.get();
        c.set(left.saturating_sub(1));
        left
    });
    if left == 1 {
        let handler = HANDLER.with(|h| h.take());
        handler.expect("set with the countdown")();
    }
}
