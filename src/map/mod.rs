// SPDX-License-Identifier: GPL-2.0

//! The tracing map: a lock-free hash table from keys to elements, updated by hits in any context.
//!
//! Open addressing with at least twice as many slots as entries, quadratic probing. All memory is
//! allocated by tasks, and never moved.
//!
//! # Index and counters
//!
//! An element has a number, which it keeps as long as the map exists. Its parts are stored in
//! chunks, by that number. The *index* (`index.rs`) has the parts that last: the slots, the key of
//! an element; *variables*, each with a value or unset, shared by all CPUs; *wide cells*, which are
//! variables of several words; and *side data*, words shared by all CPUs, in which a text may be
//! stored once. The *counters* (`counters.rs`) have the parts of one interval: *columns*, which
//! each CPU updates for itself and which are folded when they are read, and the losses.
//! An index with a clock also has the *births* of the elements: the times of their insertion.
//!
//! A hit finds both by one pointer, to the [`Generation`]. A task replaces the counters or the
//! slots by publishing the next generation; hits of the one before may go on until a grace period
//! has passed. A hit loads the pointer once for the element and its columns, so it is counted in
//! one interval, with all that it updates.
//!
//! A map may have a *second* one, with keys and columns of its own. Hits find it by the same
//! pointer, so its counters belong to the same intervals.
//!
//! # Intervals
//!
//! For readers of intervals a map has two *banks* of counters, each in a generation of its own
//! (`intervals.rs`). A *cut* takes these steps:
//!
//! 1. [`Map::cut`] publishes the other bank: that one store is the *edge*. After a grace period no
//!    hit counts in the closed bank any more.
//! 2. [`Map::fold`] adds the closed bank to the *totals* ([`Totals`]), and zeroes it for the next
//!    cut. After another grace period it is known which of its elements are entries.
//! 3. [`Map::end_cut`]: readers may take their interval, which is the difference between the totals
//!    and the ones that they took before.
//!
//! Variables and wide cells live on. (If a hit loses a variable or an action later, that is counted
//! as [`Loss::Missed`] in the interval of that time.) `view.rs` reads the counts so far: the
//! totals, the part of the closed bank that is not folded yet, and the live bank.
//!
//! # Insertion
//!
//! Key and birth are written to an element first, while no other context can see it. Then one
//! compare-and-swap publishes the element in the first empty slot on the path of the key. So no
//! slot is ever claimed but not yet usable, and no context waits for another. All lookups of a key
//! walk the same path, slots are never emptied, and the key in a full slot does not change: a key
//! can be in one slot only.
//!
//! After publishing an element, its owner takes one of the *places*, of which there are as many as
//! the map may have entries. So exactly that many different keys become entries, whatever the
//! timing. An element that gets no place stays in its slot as *excess*, and its hits are drops.
//! That takes a CPU that found a place free before, and none after its compare-and-swap: at most
//! one element for each level of nesting on each CPU.
//!
//! A key is dropped only if it is not an entry when all places are taken: after the last place is
//! known to be taken, the empty slot is loaded once more.
//!
//! # Replacing the table
//!
//! The worker takes these steps ([`Map::beat`]), with a grace period after each but the third:
//!
//! 1. A generation with both tables is published. Its hits search the next table only where a
//!    sealed slot ends the path in the first one. After the grace period all hits know both.
//! 2. All empty slots of the first table are sealed, by a compare-and-swap, as an insertion fills
//!    one. A path that ends at a sealed slot ends there for good: a key that is not before it is
//!    not in the first table, and never will be. So a key is either in the first table, where all
//!    hits find it, or in the next one only. After the grace period, each element in the first
//!    table is an entry or excess, since all hits that inserted one have ended.
//! 3. The elements of the first table are copied to the next one, where hits insert other keys
//!    meanwhile.
//! 4. A generation with the next table alone, which now has all elements, is published. After the
//!    grace period the first one is dropped.
//!
//! So no hit finds an empty slot on the path of a key that has an element: none is lost, and no key
//! gets two. A cut may come between any of these steps, and they between the steps of a cut: both
//! banks get each table.
//!
//! `Documentation/map.rst` lists all states of a slot.
//!
//! # Growth and expiry
//!
//! A map that may grow has its next table ahead. When its places are used up, a hit of a new key
//! seals the slot at which the path of the key ends, as the worker would, and inserts the key in
//! the next table: the same compare-and-swap decides between it and whoever inserts the key there.
//! The hit does that only if it knows that the next table is open: all hits know both tables then,
//! and the pool has the places. A path has at most 32 slots; where all are full, all hits of its
//! keys go on in the next table.
//!
//! The worker marks an entry that was idle as *going*. That clears the bit that fast paths test, so
//! a hit comes to the slow one, and makes it an entry again. If none does for a grace period, and
//! no hit was at work in it before, it is *dead*: hits pass over it, and its key is inserted anew.
//!
//! # Bound
//!
//! [`Generation::insert`] walks the path of a key once, in at most two tables. It tries one
//! compare-and-swap on a slot that is empty or whose entry is going, and compares keys if the
//! hashes are equal. It neither retries nor waits. In a map of fixed size a path is the whole
//! table, which has more slots than elements, so it has an empty or sealed one; with half of the
//! slots full, finding it takes 2.5 probes on average.
//!
//! # Memory ordering
//!
//! Key and birth are written before the slot (release) and read after it (acquire). A failed
//! compare-and-swap orders nothing, so the slot is loaded again. No update of a column is lost or
//! torn; once the hits are done, their sum is exact.

mod cell;
mod chunks;
mod columns;
mod counters;
mod elt;
mod entries;
#[cfg(not(loom))]
mod entry_list;
mod generation;
mod hash;
mod held;
mod holds;
mod index;
mod intervals;
mod keys;
mod lookup;
mod once;
mod others;
mod pool;
mod request;
mod room;
mod shape;
mod shared;
// For tests.
#[cfg(not(MODULE))]
#[path = "../../tools/testing/host/rhist/src/steps.rs"]
pub mod steps;
#[cfg(not(MODULE))]
#[path = "../../tools/testing/host/rhist/src/storage.rs"]
pub mod storage;
mod table;
mod tally;
mod tend;
mod tickets;
mod totals;
mod view;
mod wide;

use kernel::{
    alloc::Flags,
    prelude::*,
    sync::{
        Arc,
        CondVar,
        Mutex, //
    },
};

pub use cell::{
    VarCell,
    VarMask, //
};
pub use columns::{
    Column,
    ColumnSet,
    Extreme, //
};
pub use counters::{
    Cpus,
    Loss, //
};
pub use elt::{
    Elt,
    MinMaxSumParts, //
};
#[cfg(not(loom))]
pub use entry_list::{
    EntryList,
    ListedEntry, //
};
pub use generation::Generation;
use generation::{
    growth_flags,
    Parts, //
};
pub use hash::Hash;
pub use held::Held;
pub use index::FirstSlot;
pub use intervals::Interval;
use intervals::{
    CutPhase,
    Intervals,
    Since,
    State, //
};
pub use once::OnceText;
pub use others::Other;
pub use request::{
    Request,
    Wake, //
};
pub use room::Room;
pub use shape::Shape;
pub use tally::Tally;
pub use tend::{
    Beat,
    Policy,
    RoomCounts,
    Tending,
    ELEMENT_SHIFT, //
};
pub use totals::{
    HitCounts,
    PerMap,
    Totals, //
};
use view::View;
pub use wide::{
    text_to_words,
    words_to_text,
    Read,
    Replace,
    WideCell, //
};

use crate::{
    event::Moment,
    sync::{
        PreemptOff,
        Published,
        Retired, //
    },
};

/// Number of slots or elements that are read while the state is locked once.
const BATCH: u32 = 1024;

/// A map from keys to elements.
pub struct Map {
    generation: Published<Generation>,
    /// Locked while the generation is replaced, and while counts are moved or read; never while
    /// waiting for hits.
    state: Pin<KBox<Mutex<State>>>,
    /// Notified when counts have moved.
    moved: Pin<KBox<CondVar>>,
}

impl Map {
    /// Creates an empty map. May sleep. Fails with `EINVAL` for a shape out of range and with
    /// `ENOMEM`.
    pub fn new(shape: Shape<'_>) -> Result<Self> {
        Self::with_second(shape, None)
    }

    /// Creates an empty map, and a [second](Generation::second) one if that has a shape: see
    /// [`Map::new`].
    pub fn with_second(shape: Shape<'_>, second: Option<Shape<'_>>) -> Result<Self> {
        let second = match second {
            Some(shape) => Some(Arc::new(Generation::new(&shape, None)?, GFP_KERNEL)?),
            None => None,
        };
        let generation = Generation::new(&shape, second)?;
        Ok(Self {
            generation: Published::new(Arc::new(generation, GFP_KERNEL)?),
            state: KBox::pin_init(kernel::new_mutex!(State::default()), GFP_KERNEL)?,
            moved: KBox::pin_init(kernel::new_condvar!("rhist::Map::moved"), GFP_KERNEL)?,
        })
    }

    /// Returns the current generation, for a hit. Any context.
    #[inline(always)]
    pub fn read<'a>(&'a self, preempt: PreemptOff<'a>) -> &'a Generation {
        self.generation.read(preempt)
    }

    /// Returns the current generation, to find elements. Task context.
    pub fn contents(&self) -> Arc<Generation> {
        self.generation.get()
    }

    /// Losses of this kind so far. Task context, may sleep.
    pub fn losses(&self, loss: Loss) -> u64 {
        self.view().loss(false, loss)
    }

    /// Hits that were dropped so far: the calls of [`Generation::insert`] that returned no entry.
    /// Task context, may sleep.
    pub fn drops(&self) -> u64 {
        self.view().drops(false)
    }

    /// [`Map::drops`] of the second map; 0 without one.
    pub fn second_drops(&self) -> u64 {
        self.view().drops(true)
    }

    /// Hits of all entries and of `other` so far: the calls of [`Generation::insert`] that returned
    /// an element. Visits all slots. Task context, may sleep. Fails with the error of
    /// `check_signal`, which is called now and then.
    pub fn hits(&self, check_signal: &dyn Fn() -> Result) -> Result<u64> {
        let counts = self.whole(|_| self.count_hits(check_signal))?;
        Ok(counts.hits())
    }

    /// [`Map::hits`], by where they were counted, with drops and unresolved hits.
    pub fn hit_counts(&self, check_signal: &dyn Fn() -> Result) -> Result<HitCounts> {
        self.whole(|_| {
            let counts = self.count_hits(check_signal)?;
            let view = self.view();
            Ok(HitCounts {
                dropped: view.drops(false),
                unresolved: view.loss(false, Loss::Unresolved),
                ..counts
            })
        })
    }

    /// The hits of all entries and of `other`, while the map is held.
    fn count_hits(&self, check_signal: &dyn Fn() -> Result) -> Result<HitCounts> {
        let contents = self.contents();
        let mut counts = HitCounts::default();
        for (hits, other) in counts.others.iter_mut().zip(contents.others()) {
            *hits = self.view().column(false, other, 0);
        }
        for entries in contents.batches(BATCH as usize) {
            check_signal()?;
            let view = self.view();
            for entry in entries {
                let hits = view.column(false, entry, 0);
                counts.entries = counts.entries.wrapping_add(hits);
            }
        }
        Ok(counts)
    }

    /// The counts so far: see [`Held::totals`].
    pub fn totals(
        &self,
        flags: Flags,
        check_signal: &dyn Fn() -> Result,
    ) -> Result<PerMap<Totals>> {
        self.whole(|held| held.totals(flags, check_signal))
    }

    /// [`Held::totals`] of one map.
    fn totals_of(
        &self,
        contents: &Generation,
        second: bool,
        flags: Flags,
        check_signal: &dyn Fn() -> Result,
    ) -> Result<Totals> {
        let used = contents.index.pool.used();
        let mut totals = Totals::new(&contents.counters, used, flags)?;
        self.view().add_losses_to(second, &mut totals);
        for begin in (0..used).step_by(BATCH as usize) {
            check_signal()?;
            let end = used.min(begin + BATCH);
            self.view().add_to(second, &mut totals, begin..end);
        }
        Ok(totals)
    }

    /// The counts so far. Task context, may sleep.
    fn view(&self) -> View<'_> {
        let state = self.state.lock();
        View::new(state, self.contents())
    }

    /// Publishes generations with these parts, of the map and of the second one, and with the
    /// present banks; totals get as many elements. With `moves`, counts are about to move. Dropping
    /// the result waits until hits use these generations. Fails with `ENOMEM`.
    fn publish(&self, parts: &PerMap<Parts>, moves: bool) -> Result<Retired<Generation>> {
        loop {
            // Without the lock: chunks of new elements may take long.
            let state = self.state.lock();
            let banks = state.intervals.as_ref().map(|i| i.banks().clone());
            let mut zeros = PerMap {
                first: KVec::new(),
                second: parts.second.as_ref().map(|_| KVec::new()),
            };
            let grows = match &state.intervals {
                Some(intervals) => intervals.grows_to(parts),
                None => [0; 2],
            };
            drop(state);
            let next = match &banks {
                Some([a, b]) => Next::Banks([a.with_parts(parts)?, b.with_parts(parts)?]),
                None => Next::Live(self.contents().with_parts(parts)?),
            };
            for ((zeros, map), n) in zeros.iter_mut().zip(next.any().maps()).zip(grows) {
                for _ in 0..n {
                    let since = Since::new(map, map.elements(), growth_flags())?;
                    zeros.push(since, growth_flags())?;
                }
            }
            let mut state = self.state.lock();
            let next = match (next, &mut state.intervals) {
                (Next::Banks(banks), Some(intervals)) if intervals.grows_to(parts) == grows => {
                    for (zeros, second) in zeros.iter_mut().zip([false, true]) {
                        intervals.grow(second, zeros);
                    }
                    intervals.set_banks(banks)
                }
                (Next::Live(live), None) => live,
                // A reader of intervals has come or gone.
                _ => continue,
            };
            if moves {
                state.holds.turn();
            }
            return Ok(self.generation.swap(next));
        }
    }

    /// Bytes of memory that another reader of intervals takes, with the bank and the totals that
    /// the first one makes. `None`: the size overflows. Task context, may sleep.
    pub fn reader_bytes(&self) -> Option<usize> {
        let live = self.contents();
        let made = self.state.lock().intervals.is_some();
        let common = if made { 0 } else { Intervals::bytes(&live)? };
        Intervals::reader_bytes(&live)?.checked_add(common)
    }

    /// Bytes of memory for the totals of an interval: see [`Map::zero_totals`]. Task context.
    pub fn totals_bytes(&self) -> usize {
        let live = self.contents();
        let bytes = |map: &Generation| {
            let width = map.counters.columns().len() * size_of::<u64>();
            map.index.pool.used() as usize * width
        };
        live.maps().map(bytes).sum()
    }

    /// Bytes of memory that intervals take; 0 before the first reader. Task context, may sleep.
    pub fn interval_bytes(&self) -> usize {
        let (live, counts) = (self.contents(), self.readers_and_cuts());
        let readers = counts.map_or(0, |(readers, _)| readers);
        let common = counts.and_then(|_| Intervals::bytes(&live)).unwrap_or(0);
        common + Intervals::reader_bytes(&live).unwrap_or(0) * readers
    }

    /// Number of readers of intervals, and of cuts so far; `None` if it never had a reader. Task
    /// context, may sleep.
    pub fn readers_and_cuts(&self) -> Option<(usize, u64)> {
        let state = self.state.lock();
        state.intervals.as_ref().map(|intervals| intervals.counts())
    }

    /// Makes another bank of counters and the totals, unless a reader of intervals has done so.
    /// `created` is the time at which the map was created. Task context, may sleep. Fails with
    /// `ENOMEM`.
    pub fn begin_intervals(&self, created: Moment) -> Result {
        while self.state.lock().intervals.is_none() {
            // Without the lock: this may take long.
            let made = KBox::new(Intervals::new(self.contents(), created)?, GFP_KERNEL)?;
            let mut state = self.state.lock();
            let is_current = Arc::ptr_eq(&made.banks()[0], &self.contents());
            // Otherwise another reader was faster, or the worker has published other tables.
            if state.intervals.is_none() && is_current {
                state.intervals = Some(made);
            }
        }
        Ok(())
    }

    /// The edge of a cut: hits count in the other bank from now on. Nothing is allocated. Task
    /// context, may sleep; called by the worker. When the result is dropped, which waits for hits,
    /// the closed bank does not change any more. Fails with `EBUSY` if a cut is at work, and with
    /// `EINVAL` without [`Map::begin_intervals`].
    pub fn cut(&self, edge: Moment) -> Result<Retired<Generation>> {
        let mut state = self.state.lock();
        if state.cut != CutPhase::Rest {
            return Err(EBUSY);
        }
        let intervals = state.intervals.as_mut().ok_or(EINVAL)?;
        let retired = self.generation.swap(intervals.closed().clone());
        intervals.published(edge);
        state.cut = CutPhase::Closed;
        Ok(retired)
    }

    /// Moves the counts of the closed bank to the totals, after the result of [`Map::cut`] was
    /// dropped. Calls `between` now and then, without a lock. Task context, may sleep.
    pub fn fold(&self, between: impl Fn()) {
        loop {
            let mut state = self.state.lock();
            state.cut = CutPhase::Folding;
            let more = state.intervals.as_mut().is_some_and(|i| i.fold_batch());
            if !more {
                state.cut = CutPhase::Folded;
                return;
            }
            drop(state);
            between();
        }
    }

    /// Ends a cut, a grace period after [`Map::fold`]: each element that has hits in the totals is
    /// an entry or in excess now. A hit of the next interval may have inserted it.
    pub fn end_cut(&self) {
        let mut state = self.state.lock();
        if let Some(intervals) = &mut state.intervals {
            intervals.finished();
        }
        state.cut = CutPhase::Rest;
    }

    /// Adds a reader of intervals. The first one begins at the next edge; or at `created`, when the
    /// map was created. Returns the identity of the reader. Task context, may sleep. Fails with
    /// `ENOMEM`, with `EUSERS` above [`crate::limits::INTERVAL_READERS_MAX`], and with `EINVAL`
    /// without [`Map::begin_intervals`].
    pub fn add_reader(&self, created: Option<Moment>, flags: Flags) -> Result<u64> {
        loop {
            let mut lens = match &self.state.lock().intervals {
                Some(intervals) => intervals.lens(),
                None => return Err(EINVAL),
            }
            .into_iter();
            let since = self.contents().per_map(|map| {
                let elements = lens.next().unwrap_or(0);
                Since::new(map, elements as usize, flags)
            })?;
            let mut state = self.state.lock();
            let intervals = state.intervals.as_mut().ok_or(EINVAL)?;
            // Otherwise the map has grown meanwhile.
            if since
                .iter()
                .zip(intervals.lens())
                .all(|(since, len)| since.totals.elements() == len)
            {
                return intervals.add_reader(since, created);
            }
        }
    }

    /// Removes a reader. Task context, may sleep.
    pub fn remove_reader(&self, id: u64) {
        let mut state = self.state.lock();
        let removed = state
            .intervals
            .as_mut()
            .map(|intervals| intervals.remove_reader(id));
        drop(state);
        drop(removed);
    }

    /// Takes the interval of a reader since its last one: up to the edge of the totals; or with all
    /// counts, if `until` is the time after which no hit counts. `totals` are all 0, from
    /// [`Map::zero_totals`]. Task context, may sleep. Fails with `EAGAIN` while a cut moves counts
    /// to the totals, if a cut has added elements that `totals` lack, and if the first interval of
    /// the reader has not begun.
    pub fn take_interval(
        &self,
        id: u64,
        mut totals: PerMap<Totals>,
        until: Option<Moment>,
    ) -> Result<Interval> {
        let mut view = self.view();
        if until.is_some() {
            view.add_banks_to(&mut totals);
        } else if !view.state.cut.is_at_edge() {
            return Err(EAGAIN);
        }
        let intervals = view.state.intervals.as_mut().ok_or(EINVAL)?;
        let (begin, edge) = intervals.take(id, &mut totals)?;
        Ok(Interval {
            totals,
            begin,
            // The last cut may have come after the last hit.
            end: until.map_or(edge, |until| until.later(begin)),
        })
    }

    /// Gives an interval back that was not shown: the next one begins where it does, and has its
    /// hits, too. Task context, may sleep.
    pub fn put_back(&self, id: u64, interval: &Interval) {
        if let Some(intervals) = &mut self.state.lock().intervals {
            intervals.put_back(id, interval);
        }
    }

    /// Moves the counts in an interval as they were moved since it was taken: of entries that were
    /// taken out to `other`. To be called before it is shown, while the map is
    /// [held](Map::hold). Task context, may sleep. Fails with `ENOMEM`.
    pub fn settle(&self, id: u64, interval: &mut Interval, flags: Flags) -> Result {
        if self.contents().is_fixed() {
            return Ok(());
        }
        loop {
            let mut zeros = self.zero_totals(flags)?;
            let mut state = self.state.lock();
            let intervals = state.intervals.as_mut();
            // Otherwise buckets of `other` were made meanwhile.
            if intervals.is_none_or(|intervals| intervals.settle(id, interval, &mut zeros)) {
                return Ok(());
            }
        }
    }

    /// Totals of 0 for the elements that were ever used. Fails with `ENOMEM`.
    pub fn zero_totals(&self, flags: Flags) -> Result<PerMap<Totals>> {
        let new = |map: &Generation| Totals::new(&map.counters, map.index.pool.used(), flags);
        self.contents().per_map(new)
    }
}

/// Generations to publish.
enum Next {
    /// Of a map without readers of intervals.
    Live(Arc<Generation>),
    /// One for each bank.
    Banks([Arc<Generation>; 2]),
}

impl Next {
    /// One of them: all have the same elements.
    fn any(&self) -> &Generation {
        match self {
            Self::Live(generation) | Self::Banks([generation, _]) => generation,
        }
    }
}
