// SPDX-License-Identifier: GPL-2.0

//! A per-CPU event counter.

use core::slice::from_ref;

use kernel::{
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
};

use super::{
    columns::increment,
    shared::Shared,
    Cpus, //
};
use crate::sync::PreemptOff;

/// The counter of one CPU, in a cache line of its own.
#[repr(align(64))]
struct Counter(Atomic<u64>);

/// Counts events on any CPU. Clones share the counters.
///
/// # Invariants
///
/// `counters` has an item for each possible CPU.
#[derive(Clone)]
pub struct Tally {
    counters: Shared<Counter>,
    /// The sum of the counters when counting began.
    begin: u64,
}

impl Tally {
    /// Begins to count, for all of `cpus`. Fails with `ENOMEM`.
    pub fn new(cpus: Cpus) -> Result<Self> {
        let mut counters = KVVec::with_capacity(cpus.count, GFP_KERNEL)?;
        for _ in 0..cpus.count {
            counters.push_within_capacity(Counter(Atomic::new(0)))?;
        }
        // INVARIANT: `cpus.count` includes all possible CPUs.
        Ok(Self {
            counters: Shared::new(counters)?,
            begin: 0,
        })
    }

    /// Returns a clone that starts counting at 0.
    pub fn fresh(&self) -> Self {
        Self {
            begin: self.sum(),
            ..self.clone()
        }
    }

    /// Returns the number of events that it counted before `next`, a clone by [`Tally::fresh`],
    /// began.
    pub fn counted_before(&self, next: &Self) -> u64 {
        next.begin.wrapping_sub(self.begin)
    }

    /// Counts one event. Any context.
    ///
    /// Three instructions without a comparison, since a hit that a filter rejects does little else.
    #[inline(always)]
    pub fn count(&self, preempt: PreemptOff<'_>) {
        debug_assert!(preempt.cpu() < self.counters.len());
        // SAFETY: By the invariants each possible CPU has a counter, and `preempt.cpu()` is the CPU
        // that runs this. The slice has one counter.
        unsafe { increment(from_ref(&self.counters.get_unchecked(preempt.cpu()).0), 0) };
    }

    /// Returns the number of hits counted since it began. Task context.
    pub fn counted(&self) -> u64 {
        self.sum().wrapping_sub(self.begin)
    }

    fn sum(&self) -> u64 {
        let counters = self.counters.iter().map(|counter| counter.0.load(Relaxed));
        counters.fold(0, u64::wrapping_add)
    }
}
