// SPDX-License-Identifier: GPL-2.0

//! Waking those who poll a histogram.
//!
//! A hit must not pay for pollers that are not there, so it looks at one number, which changes only
//! when somebody begins or ends to watch, and puts no barrier between its counting and that look.
//! What could go wrong then is that the hit sees no watcher while the watcher sees no hit, each
//! having missed what the other did last. It does not, since whoever begins to watch waits for a
//! grace period between raising the number and looking at the histogram: a hit has preemption off,
//! so one that missed the number began before the grace period, and has ended, and is seen.
//!
//! As long as somebody watches anything, hits are ordered by a full barrier, as in C. They wake
//! once; whoever wants to be woken again has to look again first, as all users of `poll()` do. So
//! one that cannot keep up is not woken for each hit, and an event that waking itself fires
//! (`irq_vectors:irq_work_entry`) does not go on for ever.

use crate::ftrace::cpu;
use crate::ftrace::event::Event;
use crate::ftrace::poll::PollQueue;
use crate::ftrace::poll::PollTable;
use crate::map::load::Load;
use kernel::prelude::*;
use kernel::sync::atomic::Atomic;
use kernel::sync::atomic::Full;
use kernel::sync::atomic::Relaxed;
use kernel::sync::barrier::smp_mb;
use kernel::sync::Arc;
use kernel::sync::SetOnce;

/// log2 of the number of wait queues.
const BITS: u32 = 4;

/// The wait queues of all who poll `hist` files.
///
/// A poller may wait before its event has a hook and after, so the queues belong to no hook. Each
/// event has one of a few: who shares one is woken in vain now and then.
pub(crate) struct Pollers {
    /// How many open files are polled.
    watchers: Atomic<u32>,
    waiters: KVec<Waiters>,
}

struct Waiters {
    /// Somebody has looked at a histogram, and was not woken since.
    armed: Atomic<bool>,
    queue: Pin<KBox<PollQueue>>,
}

impl Pollers {
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

    /// The queue of an event.
    pub(crate) fn index_of(event: &Event) -> usize {
        // Events of one file lie behind each other, so their addresses differ in a few bits.
        (event.id().number().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - BITS)) as usize
    }

    /// Whether anybody polls anything. Any context, with preemption off since before what the pollers are to
    /// see.
    #[inline]
    pub(super) fn any(&self) -> bool {
        self.watchers.relaxed() != 0
    }

    /// Wakes those who wait at one queue, or at all, for what was counted before. Any context, after
    /// [`Pollers::any`].
    #[cold]
    pub(super) fn notify(&self, queue_index: Option<usize>) {
        // Pairs with the one in `look_again`.
        smp_mb(Full);
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

/// One of the open files that [`Pollers::any`] tells hits of.
struct Watching(Arc<Pollers>);

impl Watching {
    /// May sleep.
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
    /// Its queue; `None` if the event can have no hits.
    queue_index: Option<usize>,
    watching: SetOnce<Watching>,
}

impl Poller {
    pub(crate) fn new(pollers: Arc<Pollers>, event: Option<&Event>) -> Self {
        Self {
            pollers,
            queue_index: event.map(Pollers::index_of),
            watching: SetOnce::new(),
        }
    }

    /// Queues the caller of `poll()`, so that it is woken by the next hit that it does not see when it looks at
    /// the histogram afterwards. The first call takes a grace period. Task context, may sleep.
    pub(crate) fn look_again(&self, table: &PollTable<'_>) {
        let Some(queue_index) = self
            .queue_index
            .and_then(|queue_index| self.pollers.waiters.get(queue_index))
        else {
            return;
        };
        if self.watching.as_ref().is_none() {
            // If another thread is faster, this one is counted twice until it has waited, too.
            self.watching.populate(Watching::new(self.pollers.clone()));
        }
        queue_index.queue.wait(table);
        queue_index.armed.store(true, Relaxed);
        // Pairs with the one in `notify`: either the hit sees that it has to wake, or what it
        // counted is seen.
        smp_mb(Full);
    }
}
