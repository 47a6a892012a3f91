// SPDX-License-Identifier: GPL-2.0

//! A workqueue of the module's own, so that all work is finished before the module is unloaded.

use super::bindings;
use core::ptr::NonNull;
use kernel::{
    prelude::*,
    sync::Arc,
    workqueue::{
        self,
        HasDelayedWork,
        Work,
        WorkItem, //
    },
};

/// An unbound workqueue. Dropping it waits for all work and sleeps, so it must not be dropped by
/// work on it.
pub(crate) struct Queue(NonNull<bindings::workqueue_struct>);

// SAFETY: Any task may destroy a workqueue.
unsafe impl Send for Queue {}
// SAFETY: The workqueue functions lock the queue themselves, so any task may queue work or drain
// it.
unsafe impl Sync for Queue {}

impl Queue {
    /// Allocates a workqueue. May sleep. Fails with `ENOMEM`.
    pub(crate) fn new() -> Result<Self> {
        // SAFETY: Takes no arguments, and the result is checked for null.
        let queue = unsafe { bindings::rhist_alloc_workqueue() };
        NonNull::new(queue).map(Self).ok_or(ENOMEM)
    }

    /// The queue for [`workqueue::Queue::enqueue`].
    pub(crate) fn get(&self) -> &workqueue::Queue {
        // SAFETY: The queue is valid as long as `self`, which the result borrows. The cast is
        // between two bindings of `struct workqueue_struct`.
        unsafe { workqueue::Queue::from_raw(self.0.as_ptr().cast()) }
    }

    /// Queues delayed work, or makes it run now if it is waiting. Task or interrupt context, but
    /// not NMI.
    pub(crate) fn enqueue_now<T, const ID: u64>(&self, item: Arc<T>)
    where
        T: WorkItem<ID, Pointer = Arc<T>> + HasDelayedWork<T, ID>,
    {
        let item = Arc::into_raw(item);
        // SAFETY: The queue is valid as long as `self`, and the item as long as its work is queued:
        // the work owns a reference, which `run()` gets. If the work was queued already, it owns
        // one of its own, and this one is dropped.
        unsafe {
            let work = Work::raw_get(T::raw_get_work(item.cast_mut()));
            if bindings::rhist_queue_now(self.0.as_ptr(), work.cast()) {
                drop(Arc::from_raw(item));
            }
        }
    }

    /// Cancels delayed work, and waits for it if it is running: it cannot queue itself again then.
    /// Sleeps. Nobody else may queue it meanwhile.
    pub(crate) fn cancel<T, const ID: u64>(item: &Arc<T>)
    where
        T: WorkItem<ID, Pointer = Arc<T>> + HasDelayedWork<T, ID>,
    {
        let item = Arc::as_ptr(item);
        // SAFETY: The work is valid as long as the item. If it was queued or waiting, it owned a
        // reference, which nobody else gets any more.
        unsafe {
            let work = Work::raw_get(T::raw_get_work(item.cast_mut()));
            if bindings::rhist_cancel_work(work.cast()) {
                drop(Arc::from_raw(item));
            }
        }
    }

    /// Waits until no work is queued or running. Sleeps. Only work on this queue may queue more
    /// work meanwhile.
    pub(crate) fn drain(&self) {
        // SAFETY: The queue is valid as long as `self`.
        unsafe { bindings::drain_workqueue(self.0.as_ptr()) }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: `new` has allocated the queue. `self` is not borrowed, so nothing queues work any
        // more.
        unsafe { bindings::destroy_workqueue(self.0.as_ptr()) }
    }
}
