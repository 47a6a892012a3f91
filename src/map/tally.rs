// SPDX-License-Identifier: GPL-2.0

//! A number that each CPU counts up for itself.

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

/// Counts what happens on any CPU. Its clones count in the same counters.
///
/// # Invariants
///
/// There is a counter for each CPU that there may be.
#[derive(Clone)]
pub struct Tally {
    counters: Shared<Counter>,
    /// The sum of the counters when it began.
    begin: u64,
}

impl Tally {
    /// Begins to count, for all of `cpus`. Fails with `ENOMEM`.
    pub fn new(cpus: Cpus) -> Result<Self> {
        let mut counters = KVVec::with_capacity(cpus.count, GFP_KERNEL)?;
        for _ in 0..cpus.count {
            counters.push_within_capacity(Counter(Atomic::new(0)))?;
        }
        // INVARIANT: `count` is that of all CPUs.
        Ok(Self {
            counters: Shared::new(counters)?,
            begin: 0,
        })
    }

    /// A clone that begins now, with 0.
    pub fn fresh(&self) -> Self {
        Self {
            begin: self.sum(),
            ..self.clone()
        }
    }

    /// Counts one. Any context.
    ///
    /// Three instructions, as nothing is compared: a hit that a filter rejects does not much more.
    #[inline(always)]
    pub fn count(&self, preempt: PreemptOff<'_>) {
        debug_assert!(preempt.cpu() < self.counters.len());
        // SAFETY: By the invariants each CPU has a counter, and `preempt` is the number of the one
        // that runs this. There is one counter in the slice.
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
