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
    spec::Room,
    stacks::Stacks,
    Code,
    Spec, //
};
use crate::{
    event::{
        Clocks,
        GroupNodes,
        Groups,
        Moment, //
    },
    limits::STACK_DEPTH,
    map::{
        Cpus,
        Generation,
        HitCounts,
        Loss,
        Map,
        Request,
        RoomCounts,
        Shape,
        Tally,
        Wake,
        WideCell, //
    },
    sync::Retired,
};

/// The environment of a new histogram.
pub struct Setup<'a> {
    /// A random number that keeps the slots of keys in the map from being guessed.
    pub seed: u64,
    /// The CPUs that hits come on.
    pub cpus: Cpus,
    /// The clocks of its begin.
    pub clocks: Clocks,
    /// Returns the maximum number of bytes that it may take now.
    pub max_bytes: fn() -> usize,
    /// The nodes of control groups.
    pub group_nodes: &'static dyn GroupNodes,
    /// Makes something that wakes the worker.
    pub waker: &'a dyn Fn() -> Result<KBox<dyn Wake>>,
}

impl Setup<'_> {
    /// Makes what hits of a map ask its worker by. Fails with `ENOMEM`.
    fn request(&self) -> Result<Arc<Request>> {
        Ok(Arc::new(Request::new((self.waker)()?), GFP_KERNEL)?)
    }
}

/// Has the worker tend a histogram until it is dropped.
pub type Tenancy = KBox<dyn Send + Sync>;

/// A histogram of an event (`struct hist_trigger_data`).
#[repr(C)]
pub struct Histogram {
    /// First, so that its address is the histogram's, and a hit needs no register for another.
    pub(in crate::hist) map: Map,
    /// The stacks in keys. `None`: keys have their words, if any.
    pub(in crate::hist) stacks: Option<Stacks>,
    pub(in crate::hist) spec: Arc<Spec>,
    pub(in crate::hist) code: Arc<Code>,
    /// The words of a wide cell for the last snapshot: value, key and comm.
    last_snapshot: KVec<Atomic<u64>>,
    rejected: Tally,
    /// Number of triggers that are not paused; shared with these.
    active: Arc<Atomic<u32>>,
    begin: Moment,
    /// The control groups whose ids it has stored; `None` if it stores none.
    pub(in crate::hist) groups: Option<Groups>,
}

impl Histogram {
    /// Creates an empty histogram of `spec`, from which `code` was compiled. May sleep. Fails with
    /// `ENOMEM`, also if it would take more than `setup` allows; and with `E2BIG` if its entries
    /// are too wide to be as many as it may grow to.
    pub fn new(spec: Arc<Spec>, code: Arc<Code>, setup: &Setup<'_>) -> Result<Arc<Self>> {
        let rejected = Tally::new(setup.cpus)?;
        let active = Arc::new(Atomic::new(0), GFP_KERNEL)?;
        Self::of_triggers(spec, code, setup, rejected, active)
    }

    // Not inlined, as it needs much of the kernel's stack.
    #[inline(never)]
    fn of_triggers(
        spec: Arc<Spec>,
        code: Arc<Code>,
        setup: &Setup<'_>,
        rejected: Tally,
        active: Arc<Atomic<u32>>,
    ) -> Result<Arc<Self>> {
        let &Setup {
            seed, cpus, clocks, ..
        } = setup;
        let program = &code.program;
        let room = spec.map_room();
        let requests = match spec.is_tended() {
            true => {
                let request = || setup.request().map(Some);
                [request()?, request()?, request()?]
            }
            false => [None, None, None],
        };
        let stacks = || program.stacks().filter(|_| spec.interns());
        let has_stacks = stacks().next().is_some();
        let shape = Shape {
            bits: spec.bits,
            key_size: match program.interned.last() {
                Some(last) if has_stacks => last.at + last.len,
                _ => program.key_size,
            },
            columns: &program.columns,
            vars: spec.vars.len(),
            wide: &program.wide,
            side: program.side(),
            clock: Some(clocks.boot),
            cpus,
            seed,
            room,
            request: requests[0].as_ref(),
        };
        if room.bits_max > shape.bits_max_of() {
            return Err(E2BIG);
        }
        let buckets = Buckets::shape(&spec, &shape, requests[1].as_ref());
        let is_long = stacks().any(|words| words > STACK_DEPTH);
        let stacks = has_stacks.then(|| Stacks::shape(stacks(), &shape, requests[2].as_ref()));
        let mut left = (setup.max_bytes)();
        let groups = match program.groups.is_empty() {
            true => None,
            false => {
                left = left.checked_sub(Groups::BYTES).ok_or(ENOMEM)?;
                Some(Groups::new(setup.group_nodes)?)
            }
        };
        let shapes = Iterator::chain(iter::once(&shape), &buckets);
        for shape in Iterator::chain(shapes, &stacks) {
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
            stacks: stacks
                .map(|shape| Stacks::new(shape, is_long))
                .transpose()?,
            spec,
            code,
            last_snapshot,
            rejected,
            active,
            begin: clocks.now(),
            groups,
        };
        Ok(Arc::new(histogram, GFP_KERNEL)?)
    }

    /// Creates an empty histogram of the same triggers: see [`Histogram::new`].
    pub fn new_empty(&self, setup: &Setup<'_>) -> Result<Arc<Self>> {
        let (spec, code) = (self.spec.clone(), self.code.clone());
        let (rejected, active) = (self.rejected.fresh(), self.active.clone());
        Self::of_triggers(spec, code, setup, rejected, active)
    }

    /// The cell for the last snapshot. `None`: the trigger takes none.
    pub(in crate::hist) fn last_snapshot(&self) -> Option<WideCell<'_>> {
        WideCell::new(&self.last_snapshot)
    }

    /// Number of hits that did not count, because a variable of another histogram was not set.
    pub fn unresolved(&self) -> u64 {
        self.map.losses(Loss::Unresolved)
    }

    /// Number of variables that were not set, and of actions that were not run, because too many
    /// contexts used the same.
    pub fn missed(&self) -> u64 {
        self.map.losses(Loss::Missed)
    }

    /// Number of values that are in no bucket of a distribution, because the buckets were full. 0
    /// without a distribution.
    pub fn without_bucket(&self) -> u64 {
        self.map.second_drops()
    }

    /// Number of stacks in its keys, and of hits whose stack lacked a place. `None`: stacks are not
    /// interned.
    pub fn interned(&self) -> Option<(usize, u64)> {
        let stacks = self.stacks.as_ref()?;
        Some((stacks.len(), stacks.lost()))
    }

    /// The counter of hits that the filters of its triggers reject. The histogram that replaces it
    /// when it is cleared counts in the same counters, from 0.
    pub fn rejected(&self) -> &Tally {
        &self.rejected
    }

    /// When it began to count: when it was created. A histogram that is cleared is replaced by
    /// another one.
    pub fn begin(&self) -> Moment {
        self.begin
    }

    /// The place of variable `number` in its elements. `None`: other histograms cannot refer to it.
    pub(in crate::hist) fn cell_of(&self, number: usize) -> Option<Cell> {
        self.code.program.cells.get(number).copied()
    }

    /// Number of its triggers that are not paused. These change it.
    pub fn active(&self) -> &Arc<Atomic<u32>> {
        &self.active
    }

    /// The edge of a cut of its intervals: see [`Map::cut`].
    pub fn cut(&self, edge: Moment) -> Result<Retired<Generation>> {
        self.map.cut(edge)
    }

    /// Folds the closed bank of a cut: see [`Map::fold`].
    pub fn fold(&self, between: impl Fn()) {
        self.map.fold(between);
    }

    /// Ends a cut: see [`Map::end_cut`].
    pub fn end_cut(&self) {
        self.map.end_cut();
    }

    /// Its map. For tests.
    #[cfg(not(MODULE))]
    pub fn map(&self) -> &Map {
        &self.map
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
        self.map.hits(check_signal)
    }

    /// The control groups whose ids it has stored; `None` if it stores none.
    pub fn groups(&self) -> Option<&Groups> {
        self.groups.as_ref()
    }

    /// Returns whether its trigger has clauses that make room for new keys.
    pub fn has_room(&self) -> bool {
        self.spec.room() != Room::default()
    }

    /// Where its hits were counted so far: see [`Map::hit_counts`].
    pub fn hit_counts(&self, check_signal: &dyn Fn() -> Result) -> Result<HitCounts> {
        self.map.hit_counts(check_signal)
    }

    /// The room in it, and in the map of its stacks: see [`Map::room`]. The places are its own
    /// map's.
    pub fn room(&self) -> Option<RoomCounts> {
        let mut room = self.map.room()?;
        if let Some(stacks) = self.stacks.as_ref().and_then(Stacks::room) {
            room.ahead = room.ahead.min(stacks.ahead);
            room.path += stacks.path;
            room.no_memory += stacks.no_memory;
            room.bytes += stacks.bytes;
        }
        Some(room)
    }

    /// Number of hits dropped so far because the map was full.
    pub fn drops(&self) -> u64 {
        self.map.drops()
    }
}
