// SPDX-License-Identifier: GPL-2.0

//! A histogram: a map, and the trigger that gives its entries a meaning.

use core::iter;

use kernel::{
    prelude::*,
    sync::{
        atomic::Atomic,
        Arc, //
    },
};

use super::{
    buckets::Buckets,
    program::Cell,
    Code,
    Spec, //
};
use crate::map::{
    Cpus,
    Loss,
    Map,
    Shape,
    Tally,
    WideCell, //
};

/// Number of slots visited between calls of `check_signal`.
const BATCH: usize = 1024;

/// A histogram of an event (`struct hist_trigger_data`).
#[repr(C)]
pub struct Histogram {
    /// First, so that its address is the histogram's, and a hit needs no register for another.
    pub(in crate::hist) map: Map,
    pub(in crate::hist) spec: Arc<Spec>,
    pub(in crate::hist) code: Arc<Code>,
    /// The words of a wide cell for the last snapshot: value, key and comm.
    last_snapshot: KVec<Atomic<u64>>,
    rejected: Tally,
}

impl Histogram {
    /// Creates an empty histogram of `spec`, from which `code` was compiled, for hits on `cpus`.
    /// `seed` is a random number that keeps the slots of keys in the map from being guessed. May
    /// sleep. Fails with `ENOMEM`, also if it would take more than `max_bytes`.
    pub fn new(
        spec: Arc<Spec>,
        code: Arc<Code>,
        seed: u64,
        cpus: Cpus,
        max_bytes: usize,
    ) -> Result<Arc<Self>> {
        let rejected = Tally::new(cpus)?;
        Self::with_tally(spec, code, seed, cpus, max_bytes, rejected)
    }

    // Not inlined, as it needs much of the kernel's stack.
    #[inline(never)]
    fn with_tally(
        spec: Arc<Spec>,
        code: Arc<Code>,
        seed: u64,
        cpus: Cpus,
        max_bytes: usize,
        rejected: Tally,
    ) -> Result<Arc<Self>> {
        let program = &code.program;
        let shape = Shape {
            bits: spec.bits,
            key_size: program.key_size,
            columns: &program.columns,
            vars: spec.vars.len(),
            wide: &program.wide,
            side: program.side(),
            cpus,
            seed,
        };
        let buckets = Buckets::shape(&spec, seed, cpus);
        let mut left = max_bytes;
        for shape in Iterator::chain(iter::once(&shape), &buckets) {
            let size = shape.size_bytes().ok_or(ENOMEM)?;
            left = left.checked_sub(size).ok_or(ENOMEM)?;
        }
        let map = Map::with_second(shape, buckets)?;
        let mut last_snapshot = KVec::new();
        if spec.snapshot_action().is_some() {
            let words = 1 + program.key_size / size_of::<u64>() + program.side();
            for _ in 0..WideCell::size(words).ok_or(ENOMEM)? {
                last_snapshot.push(Atomic::new(0), GFP_KERNEL)?;
            }
        }
        let histogram = Self {
            map,
            spec,
            code,
            last_snapshot,
            rejected,
        };
        Ok(Arc::new(histogram, GFP_KERNEL)?)
    }

    /// Creates an empty histogram of the same trigger: see [`Histogram::new`].
    pub fn new_empty(&self, seed: u64, cpus: Cpus, max_bytes: usize) -> Result<Arc<Self>> {
        let (spec, code) = (self.spec.clone(), self.code.clone());
        let rejected = self.rejected.fresh();
        Self::with_tally(spec, code, seed, cpus, max_bytes, rejected)
    }

    /// The cell for the last snapshot. `None`: the trigger takes none.
    pub(in crate::hist) fn last_snapshot(&self) -> Option<WideCell<'_>> {
        WideCell::new(&self.last_snapshot)
    }

    /// Number of hits that did not count, because a variable of another histogram was not set.
    pub fn unresolved(&self) -> u64 {
        self.map.contents().losses(Loss::Unresolved)
    }

    /// Number of variables that were not set, and of actions that were not run, because too many
    /// contexts used the same.
    pub fn missed(&self) -> u64 {
        self.map.contents().losses(Loss::Missed)
    }

    /// Number of values that are in no bucket of a distribution, because the buckets were full. 0
    /// without a distribution.
    pub fn without_bucket(&self) -> u64 {
        let contents = self.map.contents();
        Buckets::of(&contents).map_or(0, Buckets::lost)
    }

    /// The counter of hits that the filters of its triggers reject. The histogram that replaces it
    /// when it is cleared counts in the same counters, from 0.
    pub fn rejected(&self) -> &Tally {
        &self.rejected
    }

    /// The place of variable `number` in its elements. `None`: other histograms cannot refer to it.
    pub(in crate::hist) fn cell_of(&self, number: usize) -> Option<Cell> {
        self.code.program.cells.get(number).copied()
    }

    /// The spec of its trigger.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The code of the trigger that it was created for.
    pub fn code(&self) -> &Code {
        &self.code
    }

    /// Counts the hits so far. Visits all slots, and adds up the counts of all CPUs. Task context.
    /// Fails with the error of `check_signal`, which is called now and then.
    pub fn count_hits(&self, check_signal: &dyn Fn() -> Result) -> Result<u64> {
        let contents = self.map.contents();
        let mut hits = 0u64;
        for (slot, entry) in (0..).map_while(|slot| Some((slot, contents.slot(slot)?))) {
            if slot as usize % BATCH == 0 {
                check_signal()?;
            }
            hits = hits.wrapping_add(entry.map_or(0, |entry| entry.column(0)));
        }
        Ok(hits)
    }

    /// Number of hits dropped so far because the map was full.
    pub fn drops(&self) -> u64 {
        self.map.contents().drops()
    }
}
