// SPDX-License-Identifier: GPL-2.0

//! Waking tasks that poll `hist` files.
//!
//! Without pollers, a hit only loads one counter, which changes when a file begins or ends to be polled, and
//! executes no barrier between its counting and that load. A hit that sees no poller must not be missed by
//! a poller that reads the histogram too early. So a new poller waits for a grace period between incrementing
//! the counter and reading the histogram: hits have preemption off, so a hit that did not see the counter
//! has ended by then, and the poller sees what it counted.
//!
//! With pollers, hits execute a full barrier, as in C. They wake a queue once; to be woken again, a poller has
//! to call `poll()` again, as all users of it do. So a slow poller is not woken for each hit, and an event
//! that the wakeup itself fires (`irq_vectors:irq_work_entry`) does not loop.

use crate::ftrace::cpu;
use crate::ftrace::event::Event;
use crate::ftrace::poll::PollQueue;
use crate::ftrace::poll::PollTable;
use crate::map::load::Load;
use kernel::prelude::*;
use kernel::sync::atomic::Atomic;
use kernel::sync::atomic::Full;
use kernel::sync::atomic::Relaxed;
use kernel::sync::Arc;
use kernel::sync::SetOnce;

/// log2 of the number of wait queues.
const BITS: u32 = 4;

/// The wait queues of `hist` files.
///
/// A task may poll before its event has a hook and after, so the queues belong to no hook. An event has one of
/// a few, so a poller may also be woken by another event.
pub(crate) struct Pollers {
    /// Number of open files that are polled.
    watchers: Atomic<u32>,
    waiters: KVec<Waiters>,
}

struct Waiters {
    /// Whether a task waits that was not woken since.
    armed: Atomic<bool>,
    queue: Pin<KBox<PollQueue>>,
}

impl Pollers {
    /// Creates the queues. Fails with `ENOMEM`.
    pub(crate) fn new() -> Result<Arc<Self>> {
        let mut waiters = KVec::with_capacity(1 << BITS, GFP_KERNEL)?;
        for _ in 0..1 << BITS {
            let queue = KBox::pin_init(PollQueue::new(), GFP_KERNEL)?;
            let armed = Atomic::new(false);
            waiters.push(Waiters { armed, queue }, GFP_KERNEL)?;
        }
        let watchers = Atomic::new(0);
        Ok(Arc::new(Self { watchers, waiters }, GFP_KERNEL)?)
    }

    /// The index of an event's queue.
    pub(crate) fn index_of(event: &Event) -> usize {
        // Events defined in one file lie side by side: their addresses differ in a few bits.
        (event.id().number().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - BITS)) as usize
    }

    /// Whether any file is polled. Any context, with preemption off since before what the pollers are to see was
    /// counted.
    #[inline]
    pub(super) fn any(&self) -> bool {
        self.watchers.relaxed() != 0
    }

    /// Wakes the tasks of one queue, or of all, for what was counted before. Any context, after
    /// [`Pollers::any`].
    #[cold]
    pub(super) fn notify(&self, queue_index: Option<usize>) {
        // Pairs with the one in `look_again`.
        cpu::smp_mb();
        for (index, here) in self.waiters.iter().enumerate() {
            if queue_index.is_none_or(|queue_index| queue_index == index)
                && here.armed.load(Relaxed)
                && here.armed.xchg(false, Full)
            {
                here.queue.wake();
            }
        }
    }
}

/// Counts an open file in [`Pollers::any`].
struct Watching(Arc<Pollers>);

impl Watching {
    /// Begins to count it, and waits for a grace period.
    fn new(pollers: Arc<Pollers>) -> Self {
        pollers.watchers.fetch_add(1, Relaxed);
        cpu::synchronize_hits();
        Self(pollers)
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.watchers.fetch_sub(1, Relaxed);
    }
}

/// An open file of an event that may be polled.
pub(crate) struct Poller {
    pollers: Arc<Pollers>,
    /// Index of its queue; `None` if the event can have no hits.
    queue_index: Option<usize>,
    watching: SetOnce<Watching>,
}

impl Poller {
    /// Creates what an open file of `event` needs to be polled.
    pub(crate) fn new(pollers: Arc<Pollers>, event: Option<&Event>) -> Self {
        Self {
            pollers,
            queue_index: event.map(Pollers::index_of),
            watching: SetOnce::new(),
        }
    }

    /// Adds the caller of `poll()` to the queue: it is woken by the next hit that it does not see when it reads
    /// the histogram afterwards. The first call takes a grace period. Task context, may sleep.
    pub(crate) fn look_again(&self, table: &PollTable<'_>) {
        let Some(queue_index) = self
            .queue_index
            .and_then(|queue_index| self.pollers.waiters.get(queue_index))
        else {
            return;
        };
        if self.watching.as_ref().is_none() {
            // If another thread was faster, the file is counted twice until this one has waited, too.
            self.watching.populate(Watching::new(self.pollers.clone()));
        }
        queue_index.queue.wait(table);
        queue_index.armed.store(true, Relaxed);
        // Pairs with the one in `notify`: either the hit sees that it has to wake, or what it
        // counted is seen.
        cpu::smp_mb();
    }
}
