// SPDX-License-Identifier: GPL-2.0

//! A value that hits read and tasks replace (as `rcu_assign_pointer()` does).

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

/// An [`Arc`] that can be replaced while others use what is in it.
pub struct Published<T: Send + Sync> {
    /// From [`Arc::into_raw`]; the reference is dropped a grace period after it was replaced.
    value: Atomic<*mut T>,
}

impl<T: Send + Sync> Published<T> {
    /// Publishes `value`.
    pub fn new(value: Arc<T>) -> Self {
        Self {
            value: Atomic::new(Arc::into_raw(value).cast_mut()),
        }
    }

    /// The value, for a hit. Any context.
    #[inline(always)]
    pub fn read<'a>(&'a self, _preempt: PreemptOff<'a>) -> &'a T {
        // SAFETY: A replaced value is kept for a grace period, which does not end before
        // preemption is on again.
        unsafe { &*self.value.acquire() }
    }

    /// The value, to keep. Task context.
    pub fn get(&self) -> Arc<T> {
        let _guard = rcu::read_lock();
        // SAFETY: Within the read-side critical section a replaced value keeps its reference, so
        // there is one to be shared.
        unsafe { ArcBorrow::from_raw(self.value.load(Acquire)) }.into()
    }

    /// Replaces the value, and waits until no hit uses the old one. Task context.
    pub fn replace(&self, value: Arc<T>) {
        drop(self.swap(value));
    }

    /// Replaces the value. Dropping the result waits until no hit uses the old one. Task context.
    pub fn swap(&self, value: Arc<T>) -> Retired<T> {
        let old = self.value.xchg(Arc::into_raw(value).cast_mut(), Full);
        // SAFETY: The pointer came from `Arc::into_raw`, and the exchange has taken over its reference.
        Retired(Some(unsafe { Arc::from_raw(old) }))
    }
}

/// A value that was replaced. Hits may still use it until this is dropped.
pub struct Retired<T>(Option<Arc<T>>);

impl<T> Retired<T> {
    /// Drops several, and waits once for all of them. Task context.
    pub fn drop_all(list: impl IntoIterator<Item = Self>) {
        let mut list = list.into_iter().peekable();
        if list.peek().is_some() {
            rcu::synchronize_rcu();
        }
        list.for_each(|mut retired| drop(retired.0.take()));
    }
}

impl<T> Drop for Retired<T> {
    fn drop(&mut self) {
        if self.0.is_some() {
            // The reference is dropped after this.
            rcu::synchronize_rcu();
        }
    }
}

impl<T: Send + Sync> Drop for Published<T> {
    fn drop(&mut self) {
        // SAFETY: The pointer came from `Arc::into_raw`, and `self`, which has its reference, is going away.
        drop(unsafe { Arc::from_raw(self.value.load(Acquire)) });
    }
}
