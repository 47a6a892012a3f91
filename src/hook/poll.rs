// SPDX-License-Identifier: GPL-2.0

//! Wait queues for tasks that poll `hist` files.
//!
//! Without pollers, a hit only loads one counter, which changes when a file begins or ends to be
//! polled; it executes no barrier between its counting and that load. A poller that reads the
//! histogram too early must not miss a hit that did not see it. So a new poller waits for a grace
//! period between incrementing the counter and reading the histogram: hits have preemption off, so
//! a hit that did not see the counter has ended by then, and the poller sees its counts.
//!
//! With pollers, hits execute a full barrier, as in C. They wake a queue once; to be woken again, a
//! poller has to call `poll()` again, as all its users do. So a slow poller is not woken for each
//! hit, and an event that the wakeup itself fires (`irq_vectors:irq_work_entry`) does not loop.
//!
//! Counting the hits of a histogram takes a look at all entries. So each queue counts its wakeups:
//! while it stays armed, no hit has come.

use crate::{
    rust::{
        cpu,
        event::EventId,
        poll::{
            PollQueue,
            PollTable, //
        },
    },
    sync::Load, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full,
            Relaxed, //
        },
        rcu,
        Arc,
        SetOnce, //
    },
};

/// Number of open files that are polled. One for the whole module, so that a hit reads it without
/// following a pointer.
static WATCHERS: Atomic<u32> = Atomic::new(0);

/// log2 of the number of wait queues.
const BITS: u32 = 4;

/// The wait queues of `hist` files.
///
/// A task may poll both before and after its event gets a hook, so the queues do not belong to
/// hooks. Events share a few queues, so a poller may also be woken by another event.
pub(crate) struct Pollers {
    waiters: KVec<Waiters>,
}

struct Waiters {
    /// Number of wakeups by hits, and [`ARMED`]. Both change in one step.
    state: Atomic<u64>,
    queue: Pin<KBox<PollQueue>>,
}

/// Flag in the state of a queue: a task may be waiting that was not woken since. The next hit has
/// to wake it.
const ARMED: u64 = 1;

/// The unit of the number of wakeups.
const WOKEN: u64 = 2;

impl Pollers {
    /// Creates the queues. Fails with `ENOMEM`.
    pub(crate) fn new() -> Result<Arc<Self>> {
        let mut waiters = KVec::with_capacity(1 << BITS, GFP_KERNEL)?;
        for _ in 0..1 << BITS {
            let queue = KBox::pin_init(PollQueue::new(), GFP_KERNEL)?;
            let state = Atomic::new(0);
            waiters.push(Waiters { state, queue }, GFP_KERNEL)?;
        }
        Ok(Arc::new(Self { waiters }, GFP_KERNEL)?)
    }

    /// The index of an event's queue.
    pub(crate) fn index_of(event: EventId) -> usize {
        // Events defined in one file are adjacent: their addresses differ in a few bits.
        (event.number().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - BITS)) as usize
    }

    /// Returns whether any file is polled. Any context, with preemption off since before the hit
    /// was counted.
    #[inline]
    pub(super) fn any() -> bool {
        WATCHERS.relaxed() != 0
    }

    /// Wakes the tasks of one queue, or of all, after a hit was counted. Any context, after
    /// [`Pollers::any`].
    #[cold]
    pub(super) fn notify(&self, queue_index: Option<usize>) {
        // Pairs with the one in `look_again`.
        cpu::smp_mb();
        for (index, here) in self.waiters.iter().enumerate() {
            let state = here.state.load(Relaxed);
            if queue_index.is_none_or(|queue_index| queue_index == index)
                && state & ARMED != 0
                // If it fails, another hit has done it, and wakes.
                && here.state.cmpxchg(state, state - ARMED + WOKEN, Full).is_ok()
            {
                here.queue.wake();
            }
        }
    }
}

impl Waiters {
    /// Makes the next hit wake the queue.
    fn arm(&self) {
        let state = self.state.load(Relaxed);
        if state & ARMED == 0 {
            // If it fails, another task has done it.
            let _ = self.state.cmpxchg(state, state + ARMED, Relaxed);
        }
    }
}

/// A call of `poll()`: the states of the queue before and after it was armed.
#[derive(Clone, Copy, Default)]
pub(crate) struct Look {
    before: u64,
    after: u64,
}

impl Look {
    /// Returns whether no hit came between `earlier`, a call for the same file, and this one. If
    /// so, the counts have not changed since that call: the queue was armed all the time, and the
    /// first hit would have changed its state.
    pub(crate) fn is_quiet_since(&self, earlier: &Self) -> bool {
        // A hit may also come during this call, before the queue is armed once more.
        self.before == earlier.after && self.after == self.before && self.before & ARMED != 0
    }
}

/// The share of an open file in [`Pollers::any`].
struct Watching;

impl Watching {
    /// Starts counting the file, and waits for a grace period.
    fn new() -> Self {
        WATCHERS.fetch_add(1, Relaxed);
        rcu::synchronize_rcu();
        Self
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        WATCHERS.fetch_sub(1, Relaxed);
    }
}

/// An open file of an event that may be polled.
pub(crate) struct Poller {
    pollers: Arc<Pollers>,
    /// Index of its queue; `None` if the event cannot have hits.
    queue_index: Option<usize>,
    watching: SetOnce<Watching>,
}

impl Poller {
    /// Creates the poll state of an open file of `event`.
    pub(crate) fn new(pollers: Arc<Pollers>, event: Option<EventId>) -> Self {
        Self {
            pollers,
            queue_index: event.map(Pollers::index_of),
            watching: SetOnce::new(),
        }
    }

    /// Adds the caller of `poll()` to the queue: it is woken by the next hit that it does not see
    /// when it reads the histogram afterwards. The first call takes a grace period. Task context,
    /// may sleep.
    pub(crate) fn look_again(&self, table: &PollTable<'_>) -> Look {
        let Some(here) = self
            .queue_index
            .and_then(|queue_index| self.pollers.waiters.get(queue_index))
        else {
            return Look::default();
        };
        if self.watching.as_ref().is_none() {
            // If another thread was faster, the file is counted twice until this one has waited,
            // too.
            self.watching.populate(Watching::new());
        }
        here.queue.wait(table);
        let before = here.state.load(Acquire);
        here.arm();
        // Pairs with the one in `notify`: either the hit sees that it has to wake, or the poller
        // sees its counts.
        cpu::smp_mb();
        let after = here.state.load(Acquire);
        Look { before, after }
    }
}
