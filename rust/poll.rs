// SPDX-License-Identifier: GPL-2.0

//! Wait queues for `poll(2)`, `select(2)` and epoll.
//!
//! C headers: `include/linux/poll.h`, `include/linux/wait.h`, `include/linux/irq_work.h`.

use super::bindings;
use core::marker::PhantomData;
use kernel::{
    prelude::*,
    types::Opaque, //
};

/// Events of `poll(2)` (`EPOLL*`).
pub(crate) type Mask = u32;

/// The data changed since it was last read.
pub(crate) const IN: Mask = bindings::RHIST_EPOLLIN | bindings::RHIST_EPOLLRDNORM;
/// The data changed since it was last read or this was last reported.
pub(crate) const PRI: Mask = bindings::RHIST_EPOLLPRI;
/// The event of the file was removed.
pub(crate) const ERR: Mask = bindings::RHIST_EPOLLERR;

/// Nothing will come any more.
pub(crate) const HUP: Mask = bindings::RHIST_EPOLLHUP;

/// The arguments of one call of a file's `poll()`, to put the caller on wait queues.
///
/// # Invariants
///
/// `file` and `table` are the arguments of a call of `poll()` that does not return before the end
/// of `'a`.
pub(crate) struct PollTable<'a> {
    file: *mut bindings::file,
    table: *mut bindings::poll_table_struct,
    _call: PhantomData<&'a ()>,
}

impl PollTable<'_> {
    /// # Safety
    ///
    /// Both must be the arguments of a call of `poll()` that does not return while the result
    /// exists.
    pub(super) unsafe fn new(
        file: *mut bindings::file,
        table: *mut bindings::poll_table_struct,
    ) -> Self {
        // INVARIANT: The caller does not return from `poll()` while the result exists.
        Self {
            file,
            table,
            _call: PhantomData,
        }
    }

    pub(super) fn as_ptr(&self) -> *mut bindings::poll_table_struct {
        self.table
    }
}

/// A wait queue for tasks in `poll(2)`, which can be woken from any context.
///
/// A task waits here only while the file is open whose `poll()` has queued it. The file must keep
/// the queue.
///
/// # Invariants
///
/// `queue` was initialised by `rhist_poll_queue_init()`.
#[pin_data(PinnedDrop)]
pub(crate) struct PollQueue {
    #[pin]
    queue: Opaque<bindings::rhist_poll_queue>,
}

// SAFETY: Any task may use and free the queue: the wait queue has its own lock.
unsafe impl Send for PollQueue {}
// SAFETY: The wait queue has its own lock, and an irq_work may be queued concurrently from any
// context.
unsafe impl Sync for PollQueue {}

impl PollQueue {
    /// Creates an empty queue.
    pub(crate) fn new() -> impl PinInit<Self> {
        // INVARIANT: `rhist_poll_queue_init()` initialises the queue.
        pin_init!(Self {
            // SAFETY: `ffi_init` passes valid memory, which is pinned from now on.
            queue <- Opaque::ffi_init(|queue| unsafe { bindings::rhist_poll_queue_init(queue) }),
        })
    }

    /// Queues the caller of `poll()`. If it is going to wait, this ends in a full memory barrier
    /// (`poll_wait()`): then check the condition.
    pub(crate) fn wait(&self, table: &PollTable<'_>) {
        // SAFETY: The queue is initialised by the type invariant, and kept by the file. By the
        // invariant of `PollTable`, `file` and `table` are valid.
        unsafe { bindings::rhist_poll_wait(table.file, self.queue.get(), table.table) }
    }

    /// Wakes all waiting tasks, from an interrupt soon after (`irq_work`). Any context, NMI
    /// included.
    pub(crate) fn wake(&self) {
        // SAFETY: The queue is initialised by the type invariant, and `drop` waits for the work.
        unsafe { bindings::rhist_poll_wake(self.queue.get()) };
    }
}

#[pinned_drop]
impl PinnedDrop for PollQueue {
    /// Waits for a wakeup that is still running. Task context, may sleep.
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: The queue is initialised by the type invariant. `self` is the last reference, so
        // it cannot be woken any more; and no open file keeps it, so no task waits.
        unsafe { bindings::rhist_poll_queue_end(self.queue.get()) };
    }
}
