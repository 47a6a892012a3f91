// SPDX-License-Identifier: GPL-2.0

//! Requests to the worker of a map, which hits make.

use kernel::{
    prelude::*,
    sync::atomic::{
        Atomic,
        Full,
        Relaxed, //
    },
};

/// Something that wakes the worker.
pub trait Wake: Send + Sync {
    /// Wakes the worker, which [takes](Request::take) the requests. Any context, NMI included.
    fn wake(&self);
}

/// Requests of a map to its worker, for steps that allocate memory or wait for hits.
pub struct Request {
    /// One for each kind, the first for bit 0: 1 if it was asked for.
    asked: [Atomic<u32>; Request::KINDS],
    /// 1 if the worker lacks memory for it.
    no_memory: Atomic<u32>,
    /// Hits that found all slots on the path of a new key full.
    full_paths: Atomic<u64>,
    wake: KBox<dyn Wake>,
}

impl Request {
    /// The next table: the first one takes no more keys.
    pub const GROW: u32 = 1 << 0;
    /// The next table: all slots on the path of a new key are full.
    pub const PATH: u32 = 1 << 1;
    /// A sweep for idle entries: most places are taken.
    pub const SWEEP: u32 = 1 << 2;
    /// Places of the entries that were idle for longest: all places are taken.
    pub const RECYCLE: u32 = 1 << 3;

    const KINDS: usize = 4;

    /// Creates one in which nothing is asked for. `wake` wakes the worker.
    pub fn new(wake: KBox<dyn Wake>) -> Self {
        Self {
            asked: core::array::from_fn(|_| Atomic::new(0)),
            no_memory: Atomic::new(0),
            full_paths: Atomic::new(0),
            wake,
        }
    }

    /// Asks for all bits in `what`, and wakes the worker if one of them was not asked for since it
    /// has taken them. Any context. The wakeup may be traced, and that hit the same map.
    pub fn ask(&self, what: u32) {
        let mut is_new = false;
        for (bit, asked) in self.asked.iter().enumerate() {
            // Most hits only load. If the worker has just taken it, the next such hit asks.
            if what >> bit & 1 != 0 && asked.load(Relaxed) == 0 {
                is_new |= asked.xchg(1, Full) == 0;
            }
        }
        if is_new {
            self.wake.wake();
        }
    }

    /// Counts a hit that found all slots on the path of a new key full, and asks for
    /// [`Request::PATH`]. Any context.
    pub(super) fn ask_for_path(&self) {
        self.full_paths.fetch_add(1, Relaxed);
        self.ask(Self::PATH);
    }

    /// Number of hits that found all slots on the path of a new key full.
    pub fn full_paths(&self) -> u64 {
        self.full_paths.load(Relaxed)
    }

    /// Returns the bits of `what` that were asked for since they were taken. Called by the worker,
    /// which sees all that hits did before they asked. Hits do not wake it for others again.
    pub fn take(&self, what: u32) -> u32 {
        let asked = self.asked.iter().enumerate();
        let asked = asked.filter(|(bit, _)| what >> bit & 1 != 0);
        asked.fold(0, |bits, (bit, asked)| bits | asked.xchg(0, Full) << bit)
    }

    /// Returns whether one of these requests was made and not taken.
    pub(super) fn has(&self, what: u32) -> bool {
        let mut asked = self.asked.iter().enumerate();
        asked.any(|(bit, asked)| what >> bit & 1 != 0 && asked.load(Relaxed) != 0)
    }

    /// Notes whether the worker lacks memory. Hits that find no place then count
    /// [`Loss::NoMemory`](super::Loss::NoMemory), too.
    pub fn set_no_memory(&self, no_memory: bool) {
        self.no_memory.store(u32::from(no_memory), Relaxed);
    }

    /// Returns whether the worker lacks memory. Any context.
    pub(super) fn has_no_memory(&self) -> bool {
        self.no_memory.load(Relaxed) != 0
    }
}
