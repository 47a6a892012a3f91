// SPDX-License-Identifier: GPL-2.0

//! Tasks that wait for a file in `poll(2)` and its relatives.
//!
//! C headers: `include/linux/poll.h`, `include/linux/wait.h`, `include/linux/irq_work.h`.

use super::bindings;
use core::marker::PhantomData;
use kernel::prelude::*;
use kernel::types::Opaque;

/// What a file may be ready for (`EPOLL*`).
pub(crate) type Mask = u32;

/// There is something new to be read.
pub(crate) const IN: Mask = bindings::RHIST_EPOLLIN | bindings::RHIST_EPOLLRDNORM;
/// Something happened that does not end until it has been looked at.
pub(crate) const PRI: Mask = bindings::RHIST_EPOLLPRI;
/// What the file stood for is gone.
pub(crate) const ERR: Mask = bindings::RHIST_EPOLLERR;

/// Where one call of a file's `poll()` has the caller put on queues.
pub(crate) struct PollTable<'a> {
    file: *mut bindings::file,
    table: *mut bindings::poll_table_struct,
    _call: PhantomData<&'a ()>,
}

impl PollTable<'_> {
    /// # Safety
    ///
    /// Both must be what the VFS gave to `poll()`, which must not have returned while the result
    /// exists.
    pub(super) unsafe fn new(
        file: *mut bindings::file,
        table: *mut bindings::poll_table_struct,
    ) -> Self {
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

/// Tasks that wait, and what wakes them.
///
/// Whoever waits has the file open whose `poll()` put him here; it must keep the queue.
#[pin_data(PinnedDrop)]
pub(crate) struct PollQueue {
    #[pin]
    queue: Opaque<bindings::rhist_poll_queue>,
}

// SAFETY: The queue has a lock of its own; the work may be queued from anywhere.
unsafe impl Send for PollQueue {}
// SAFETY: As above.
unsafe impl Sync for PollQueue {}

impl PollQueue {
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            // SAFETY: The memory is valid, and pinned from now on.
            queue <- Opaque::ffi_init(|queue| unsafe { bindings::rhist_poll_queue_init(queue) }),
        })
    }

    /// Has the caller of `poll()` wait here too. A full memory barrier follows if it waits at all.
    pub(crate) fn wait(&self, table: &PollTable<'_>) {
        // SAFETY: The queue is initialised, and kept by the file; the rest is as `PollTable::new`
        // demands.
        unsafe { bindings::rhist_poll_wait(table.file, self.queue.get(), table.table) }
    }

    /// Wakes all that wait, soon: in an interrupt of its own. Any context, NMI included.
    pub(crate) fn wake(&self) {
        // SAFETY: The queue is initialised, and stays until the work has run: `drop` waits.
        unsafe { bindings::rhist_poll_wake(self.queue.get()) };
    }
}

#[pinned_drop]
impl PinnedDrop for PollQueue {
    /// Task context, may sleep.
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: The queue is initialised; nobody can wake it any more.
        unsafe { bindings::rhist_poll_queue_end(self.queue.get()) };
    }
}
