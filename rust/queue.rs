// SPDX-License-Identifier: GPL-2.0

//! A workqueue of the module, so that its work is over when the module goes.

use super::bindings;
use core::ptr::NonNull;
use kernel::prelude::*;
use kernel::workqueue;

/// The workqueue. Dropping it waits for all work; not to be done from within work.
pub(crate) struct Queue(NonNull<bindings::workqueue_struct>);

// SAFETY: Any task may use a workqueue.
unsafe impl Send for Queue {}
// SAFETY: As above.
unsafe impl Sync for Queue {}

impl Queue {
    pub(crate) fn new() -> Result<Self> {
        // SAFETY: No requirements.
        let queue = unsafe { bindings::rhist_alloc_workqueue() };
        NonNull::new(queue).map(Self).ok_or(ENOMEM)
    }

    /// The queue to put work into.
    pub(crate) fn get(&self) -> &workqueue::Queue {
        // SAFETY: The queue is valid as long as this is. The type is the same one, from another
        // run of bindgen.
        unsafe { workqueue::Queue::from_raw(self.0.as_ptr().cast()) }
    }

    /// Waits until nothing is in the queue nor running.
    pub(crate) fn drain(&self) {
        // SAFETY: The queue is valid.
        unsafe { bindings::drain_workqueue(self.0.as_ptr()) }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: The queue is ours.
        unsafe { bindings::destroy_workqueue(self.0.as_ptr()) }
    }
}
