// SPDX-License-Identifier: GPL-2.0

//! RCU-protected pointers that hits read and tasks replace (like `rcu_assign_pointer()`).

use super::{
    Load,
    PreemptOff, //
};
use kernel::sync::{
    atomic::{
        Acquire,
        Atomic,
        Full, //
    },
    rcu,
    Arc,
    ArcBorrow, //
};

/// An [`Arc`] that can be replaced while readers use the old value.
pub struct Published<T: Send + Sync> {
    /// From [`Arc::into_raw`]; the reference to an old value is dropped a grace period after the
    /// replacement.
    value: Atomic<*mut T>,
}

impl<T: Send + Sync> Published<T> {
    /// Publishes `value`.
    pub fn new(value: Arc<T>) -> Self {
        Self {
            value: Atomic::new(Arc::into_raw(value).cast_mut()),
        }
    }

    /// Returns the value, for a hit. Any context.
    #[inline(always)]
    pub fn read<'a>(&'a self, _preempt: PreemptOff<'a>) -> &'a T {
        // SAFETY: A replaced value is kept for a grace period, which does not end before
        // preemption is on again.
        unsafe { &*self.value.acquire() }
    }

    /// Returns a reference to the value. Task context.
    pub fn get(&self) -> Arc<T> {
        let _guard = rcu::read_lock();
        // SAFETY: Within the read-side critical section a replaced value keeps its reference, so
        // the count is not 0 and can be increased.
        unsafe { ArcBorrow::from_raw(self.value.load(Acquire)) }.into()
    }

    /// Replaces the value, and waits until hits have stopped using the old one. Task context.
    pub fn replace(&self, value: Arc<T>) {
        drop(self.swap(value));
    }

    /// Replaces the value. Dropping the result waits until hits have stopped using the old one.
    /// Task context.
    pub fn swap(&self, value: Arc<T>) -> Retired<T> {
        let old = self.value.xchg(Arc::into_raw(value).cast_mut(), Full);
        // SAFETY: The pointer came from `Arc::into_raw`, and the exchange has taken over its
        // reference.
        Retired(Some(unsafe { Arc::from_raw(old) }))
    }
}

/// A value that was replaced. Hits may still use it until this is dropped.
pub struct Retired<T>(Option<Arc<T>>);

impl<T> Retired<T> {
    /// Drops several values after a single grace period. Task context.
    pub fn drop_all(list: impl IntoIterator<Item = Self>) {
        let mut list = list.into_iter().peekable();
        if list.peek().is_some() {
            Self::drop_after_wait(list);
        }
    }

    /// Waits for a grace period, and drops several values, or none, after it. Task context.
    pub fn drop_after_wait(list: impl IntoIterator<Item = Self>) {
        rcu::synchronize_rcu();
        list.into_iter()
            .for_each(|mut retired| drop(retired.0.take()));
    }
}

impl<T> Drop for Retired<T> {
    fn drop(&mut self) {
        if self.0.is_some() {
            // Only then may the reference be dropped.
            rcu::synchronize_rcu();
        }
    }
}

impl<T: Send + Sync> Drop for Published<T> {
    fn drop(&mut self) {
        // SAFETY: The pointer came from `Arc::into_raw`, and `self`, which has its reference, is
        // going away.
        drop(unsafe { Arc::from_raw(self.value.load(Acquire)) });
    }
}
