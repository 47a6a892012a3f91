// SPDX-License-Identifier: GPL-2.0

//! A histogram: the map with its entries, and what they mean.

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
    Program,
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

/// How many slots are visited until it is asked whether to go on.
const BATCH: usize = 1024;

/// A histogram of an event (`struct hist_trigger_data`).
#[repr(C)]
pub struct Histogram {
    /// Comes first, so that a hit has its address and needs no register for another.
    pub(in crate::hist) map: Map,
    pub(in crate::hist) spec: Arc<Spec>,
    pub(in crate::hist) program: Arc<Program>,
    /// The buckets of all distributions: see [`super::buckets`].
    pub(in crate::hist) buckets: Option<Buckets>,
    /// The words of a wide cell for the last snapshot that was taken: the value, the key, the comm.
    last_snapshot: KVec<Atomic<u64>>,
    rejected: Tally,
}

impl Histogram {
    /// Creates an empty histogram of `spec`, from which `program` was compiled, for hits on `cpus`. `seed` is a random
    /// number that keeps the slots of keys in the map from being guessed. May sleep. Fails with `ENOMEM`, also if it
    /// would take more than `max_bytes`.
    pub fn new(
        spec: Arc<Spec>,
        program: Arc<Program>,
        seed: u64,
        cpus: Cpus,
        max_bytes: usize,
    ) -> Result<Arc<Self>> {
        let rejected = Tally::new(cpus)?;
        Self::with_tally(spec, program, seed, cpus, max_bytes, rejected)
    }

    // Not inlined, as it needs much of the kernel's stack.
    #[inline(never)]
    fn with_tally(
        spec: Arc<Spec>,
        program: Arc<Program>,
        seed: u64,
        cpus: Cpus,
        max_bytes: usize,
        rejected: Tally,
    ) -> Result<Arc<Self>> {
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
        let left = max_bytes.checked_sub(shape.size_bytes().ok_or(ENOMEM)?);
        let buckets = Buckets::new(&spec, seed, cpus, left.ok_or(ENOMEM)?)?;
        let map = Map::new(shape)?;
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
            program,
            buckets,
            last_snapshot,
            rejected,
        };
        Ok(Arc::new(histogram, GFP_KERNEL)?)
    }

    /// Creates an empty histogram of the same trigger: see [`Histogram::new`].
    pub fn new_empty(&self, seed: u64, cpus: Cpus, max_bytes: usize) -> Result<Arc<Self>> {
        let (spec, program) = (self.spec.clone(), self.program.clone());
        let rejected = self.rejected.fresh();
        Self::with_tally(spec, program, seed, cpus, max_bytes, rejected)
    }

    /// What was stored when the last snapshot was taken. `None`: it takes none.
    pub(in crate::hist) fn last_snapshot(&self) -> Option<WideCell<'_>> {
        WideCell::new(&self.last_snapshot)
    }

    /// Hits that did not count, because a variable of another histogram was not set.
    pub fn unresolved(&self) -> u64 {
        self.map.losses(Loss::Unresolved)
    }

    /// Variables that were not set, and actions that were not done, because too many others were at work.
    pub fn missed(&self) -> u64 {
        self.map.losses(Loss::Missed)
    }

    /// Values that are in no bucket of a distribution, because there is no room for more buckets. 0 if it has no
    /// distribution.
    pub fn without_bucket(&self) -> u64 {
        self.buckets.as_ref().map_or(0, Buckets::lost)
    }

    /// Counts the hits that the filters of its triggers reject. The histogram that takes its place
    /// when it is cleared goes on in the same counters, from 0.
    pub fn rejected(&self) -> &Tally {
        &self.rejected
    }

    /// Where its elements have variable `number`. `None`: it is one that no other histogram can refer to.
    pub(in crate::hist) fn cell_of(&self, number: usize) -> Option<Cell> {
        self.program.cells.get(number).copied()
    }

    /// What its trigger is.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// What a hit of the event executes for which it was made.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Hits counted so far. Visits all slots, and adds up what each CPU has counted. Task context.
    /// Fails with the error of `go_on`, which is called now and then.
    pub fn count_hits(&self, go_on: &dyn Fn() -> Result) -> Result<u64> {
        let contents = self.map.contents();
        let mut hits = 0u64;
        for (slot, entry) in (0..).map_while(|slot| Some((slot, contents.slot(slot)?))) {
            if slot as usize % BATCH == 0 {
                go_on()?;
            }
            hits = hits.wrapping_add(entry.map_or(0, |entry| entry.column(0)));
        }
        Ok(hits)
    }

    /// Hits dropped so far because the map was full.
    pub fn drops(&self) -> u64 {
        self.map.drops()
    }
}
