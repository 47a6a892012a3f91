// SPDX-License-Identifier: GPL-2.0

//! Intervals of a map: two banks of counters, the totals up to the last edge, and its readers.

use kernel::{
    alloc::Flags,
    prelude::*,
    sync::Arc, //
};

use super::{
    columns::Column,
    counters::{
        Counters,
        Loss,
        Move, //
    },
    generation::{
        Generation,
        Parts, //
    },
    holds::Holds,
    totals::{
        PerMap,
        Totals, //
    },
};
use crate::{
    errno::eusers,
    event::Moment,
    limits::INTERVAL_READERS_MAX,
    sync::{
        Load,
        Store, //
    },
};

/// Number of elements that are folded while the lock of the state is held once.
const BATCH: u32 = 256;

/// The state of a map that tasks share, besides its generation.
pub(super) struct State {
    pub(super) cut: CutPhase,
    /// Made by the first reader of intervals.
    pub(super) intervals: Option<KBox<Intervals>>,
    pub(super) holds: Holds,
    pub(super) statistics: Statistics,
}

/// Statistics of the worker.
#[derive(Clone, Copy, Default)]
pub(super) struct Statistics {
    /// How long the last cycle took.
    pub(super) step_ns: u64,
    /// Entries that were taken out, because they were idle or a variable of theirs was taken; and
    /// how many of them were idle while a variable was set.
    pub(super) expired: u64,
    pub(super) expired_set: u64,
    /// Entries that were taken out to make room.
    pub(super) recycled: u64,
    /// Variables that were set when their entries were taken out.
    pub(super) set_vars: u64,
}

impl Default for State {
    fn default() -> Self {
        Self {
            cut: CutPhase::Rest,
            intervals: None,
            holds: Holds::default(),
            statistics: Statistics::default(),
        }
    }
}

impl State {
    /// Moves the counts of an element, which no hit uses any more, elsewhere: in both banks, in the
    /// totals, and for each reader. `live` is the published generation of the map, or of
    /// the second one. `row` has a number for each column.
    pub(super) fn move_counts(
        &mut self,
        second: bool,
        live: &Generation,
        from: u32,
        to: Move,
        row: &mut [u64],
    ) {
        row.fill(0);
        live.counters.take_element(from, row);
        live.counters.put(second, to, row);
        let Some(intervals) = &mut self.intervals else {
            return;
        };
        row.fill(0);
        let closed = intervals.closed().clone();
        if let Some(closed) = closed.maps().nth(usize::from(second)) {
            closed.counters.take_element(from, row);
            match self.cut {
                // Folded parts stay 0. The fold would add the others next.
                CutPhase::Folding | CutPhase::Folded => intervals.fold_row(second, to, row),
                CutPhase::Rest | CutPhase::Closed => closed.counters.put(second, to, row),
            }
        }
        intervals.move_counts(second, from, to);
    }
}

/// The step of a cut that the worker is at. It does not depend on the step of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CutPhase {
    /// None.
    Rest,
    /// It has published the other bank. Hits may still count in the closed one.
    Closed,
    /// It folds the closed bank.
    Folding,
    /// All is folded, but an element with hits in the totals may be new: neither entry nor excess.
    Folded,
}

impl CutPhase {
    /// Returns whether the totals are up to an edge, with decided elements.
    pub(super) fn is_at_edge(self) -> bool {
        matches!(self, Self::Rest | Self::Closed)
    }
}

/// Two generations with banks of their own, and the totals.
pub(super) struct Intervals {
    /// They share the index. Hits count in the one that is published.
    banks: [Arc<Generation>; 2],
    /// The index of the published one.
    live: usize,
    sums: PerMap<Sums>,
    readers: KVec<Reader>,
    /// The identity of the next reader.
    next_id: u64,
    /// The edge that the totals are up to.
    edge: Moment,
    /// The last edge: later than `edge` during a cut.
    last_edge: Moment,
    /// Number of cuts that were finished.
    cuts: u64,
}

/// The totals of one map, and how far its closed bank was folded.
pub(super) struct Sums {
    pub(super) totals: Totals,
    /// Number of elements whose parts in the closed bank were folded; [`Sums::ALL`]: the losses,
    /// too, so the bank is all 0.
    pub(super) folded: u32,
    /// Number of elements that may have hits in the totals.
    used: u32,
    /// The parts of a batch of elements.
    batch: KVVec<u64>,
}

impl Sums {
    const ALL: u32 = u32::MAX;

    /// Fails with `ENOMEM`.
    fn new(generation: &Generation) -> Result<Self> {
        let counters = &generation.counters;
        Ok(Self {
            totals: Totals::new(counters, counters.elements() as u32, GFP_KERNEL)?,
            folded: Self::ALL,
            used: 0,
            batch: KVVec::from_elem(0, Self::batch_len(counters), GFP_KERNEL)?,
        })
    }

    /// Number of parts of a batch of elements.
    fn batch_len(counters: &Counters) -> usize {
        BATCH as usize * counters.columns().len()
    }

    /// Bytes of memory that [`Sums::new`] takes. `None`: the size overflows.
    fn bytes(counters: &Counters) -> Option<usize> {
        Totals::bytes(counters)?.checked_add(Self::batch_len(counters) * size_of::<u64>())
    }

    /// Returns whether the closed bank has the parts of the `nth` element.
    pub(super) fn has_closed(&self, nth: u32) -> bool {
        nth >= self.folded
    }

    /// Returns whether the closed bank has losses.
    pub(super) fn has_closed_losses(&self) -> bool {
        self.folded != Self::ALL
    }
}

/// The totals of a reader, of one map.
pub(super) struct Since {
    /// Its own totals: sums up to its last interval, extremes since then.
    pub(super) totals: Totals,
    /// Where the counts of each element went since the last interval was taken, or settled: 0 if
    /// they stayed, [`Since::DROPPED`], or the index of an element plus 1. Later moves are of
    /// another entry.
    /// Empty if elements are never taken out.
    moves: KVVec<u32>,
}

impl Since {
    const DROPPED: u32 = u32::MAX;

    /// Of all 0. Fails with `ENOMEM`.
    pub(super) fn new(map: &Generation, elements: usize, flags: Flags) -> Result<Self> {
        let moves = match map.is_fixed() {
            true => 0,
            false => elements,
        };
        Ok(Self {
            totals: Totals::new(&map.counters, elements as u32, flags)?,
            moves: KVVec::from_elem(0, moves, flags)?,
        })
    }

    /// Bytes of memory that it takes for so many elements. `None`: the size overflows.
    pub(super) fn bytes(map: &Generation, elements: usize) -> Option<usize> {
        let moves = match map.is_fixed() {
            true => 0,
            false => size_of::<u32>(),
        };
        let totals = map.counters.columns().len() * size_of::<u64>();
        elements.checked_mul(totals + moves)
    }

    /// Follows a move of counts.
    fn move_counts(&mut self, from: u32, to: Move) {
        self.totals.move_to(from, to);
        match self.moves.get_mut(from as usize) {
            Some(moved) if *moved == 0 => {
                *moved = match to {
                    Move::Element(to) => to + 1,
                    Move::Dropped => Self::DROPPED,
                }
            }
            _ => (),
        }
    }

    /// Where the counts of an element went, by these moves.
    fn moved(moves: &[u32], from: u32) -> Move {
        match moves.get(from as usize) {
            None | Some(0) => Move::Element(from),
            Some(&Self::DROPPED) => Move::Dropped,
            Some(to) => Move::Element(to - 1),
        }
    }

    /// Returns whether `totals` have all elements that counts were moved to.
    fn fits(&self, totals: &Totals) -> bool {
        let mut moves = self.moves.iter();
        moves.all(|&to| to == Self::DROPPED || to <= totals.elements())
    }

    /// Moves the counts in an interval that was taken, as they were moved since, to `zeros`, which
    /// are all 0 and [fit](Since::fits); and exchanges both.
    ///
    /// All at once: the number of a bucket that was taken out may be a bucket of `other` by now.
    /// So a row that was moved to this number must not follow the move from it.
    fn settle(&mut self, interval: &mut Totals, zeros: &mut Totals) {
        for (from, row) in (0..).zip(interval.rows()) {
            match Self::moved(&self.moves, from) {
                Move::Element(to) => zeros.add_parts(to, row, |_| true),
                Move::Dropped => zeros.add_loss(Loss::Dropped, row[0]),
            }
        }
        zeros.add_losses_of(interval);
        core::mem::swap(interval, zeros);
        self.moves.fill(0);
    }

    /// Moves all to `zeros`, which are of more elements and all 0, and exchanges both.
    fn grow(&mut self, zeros: &mut Self) {
        self.totals.grow(&mut zeros.totals);
        for (to, &from) in zeros.moves.iter_mut().zip(&self.moves) {
            *to = from;
        }
        core::mem::swap(&mut self.moves, &mut zeros.moves);
    }
}

/// A reader of intervals.
struct Reader {
    id: u64,
    since: PerMap<Since>,
    joins: Joins,
    /// The edge at which its next interval begins.
    begin: Moment,
}

/// When the first interval of a reader begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Joins {
    /// At the next edge.
    Next,
    /// At the last edge, when its bank is folded.
    Last,
    /// It has begun.
    Done,
}

/// An interval that a reader takes.
pub struct Interval {
    /// Columns and losses in it.
    pub totals: PerMap<Totals>,
    /// The edge at which it begins.
    pub begin: Moment,
    /// The edge at which it ends.
    pub end: Moment,
}

impl Intervals {
    /// Makes the other bank for `live`, the published generation. Fails with `ENOMEM`.
    pub(super) fn new(live: Arc<Generation>, begin: Moment) -> Result<Self> {
        let other = live.with_fresh_counters()?;
        Ok(Self {
            sums: live.per_map(Sums::new)?,
            banks: [live, other],
            live: 0,
            readers: KVec::with_capacity(INTERVAL_READERS_MAX, GFP_KERNEL)?,
            next_id: 0,
            edge: begin,
            last_edge: begin,
            cuts: 0,
        })
    }

    /// Bytes of memory for the other bank and the totals. `None`: the size overflows.
    pub(super) fn bytes(live: &Generation) -> Option<usize> {
        let mut maps = live.maps();
        maps.try_fold(INTERVAL_READERS_MAX * size_of::<Reader>(), |sum, map| {
            sum.checked_add(map.counters.bytes()?)?
                .checked_add(Sums::bytes(&map.counters)?)
        })
    }

    /// Bytes of memory for the totals of a reader. `None`: the size overflows.
    pub(super) fn reader_bytes(live: &Generation) -> Option<usize> {
        let mut maps = live.maps();
        maps.try_fold(0usize, |sum, map| {
            sum.checked_add(Since::bytes(map, map.elements())?)
        })
    }

    /// Number of readers, and of cuts so far.
    pub(super) fn counts(&self) -> (usize, u64) {
        (self.readers.len(), self.cuts)
    }

    /// The other generation: the one whose bank is closed during a cut.
    pub(super) fn closed(&self) -> &Arc<Generation> {
        &self.banks[1 - self.live]
    }

    /// The totals of the map, and of the second map.
    pub(super) fn sums(&self, second: bool) -> Option<&Sums> {
        self.sums.iter().nth(usize::from(second))
    }

    /// The generations, each with its bank.
    pub(super) fn banks(&self) -> &[Arc<Generation>; 2] {
        &self.banks
    }

    /// Replaces the generations by others with the same banks. Returns the one to publish.
    pub(super) fn set_banks(&mut self, banks: [Arc<Generation>; 2]) -> Arc<Generation> {
        self.banks = banks;
        self.banks[self.live].clone()
    }

    /// Notes that the other bank is published from now on: `edge` is now.
    pub(super) fn published(&mut self, edge: Moment) {
        self.live = 1 - self.live;
        self.last_edge = edge;
        self.sums.iter_mut().for_each(|sums| sums.folded = 0);
        for reader in &mut self.readers {
            if reader.joins == Joins::Next {
                reader.joins = Joins::Last;
            }
        }
    }

    /// Folds a batch of the closed bank, in which no hit counts any more, and zeroes it there.
    /// Returns false if nothing was left.
    pub(super) fn fold_batch(&mut self) -> bool {
        let closed = &self.banks[1 - self.live];
        for (nth_map, (sums, closed)) in self.sums.iter_mut().zip(closed.maps()).enumerate() {
            if sums.folded == Sums::ALL {
                continue;
            }
            let begin = sums.folded;
            let end = closed.index.pool.used().min(begin + BATCH);
            if begin >= end {
                sums.totals.take_losses(&closed.counters);
                sums.folded = Sums::ALL;
                return true;
            }
            let len = (end - begin) as usize * closed.counters.columns().len();
            let batch = &mut sums.batch[..len];
            batch.fill(0);
            closed.counters.add_parts(begin..end, batch, |part| {
                let counted = part.relaxed();
                // Most parts of most CPUs are 0: their cache lines stay clean.
                if counted != 0 {
                    part.release(0);
                }
                counted
            });
            sums.totals.add_parts(begin, batch, |_| true);
            let has_extremes = closed.counters.columns().iter().any(|c| c.is_extreme());
            let readers = self.readers.iter_mut().filter(|_| has_extremes);
            for reader in readers {
                if let Some(since) = reader.since.iter_mut().nth(nth_map) {
                    since.totals.add_parts(begin, batch, Column::is_extreme);
                }
            }
            sums.folded = end;
            sums.used = sums.used.max(end);
            return true;
        }
        false
    }

    /// Ends a cut: the totals are up to its edge.
    pub(super) fn finished(&mut self) {
        self.edge = self.last_edge;
        self.cuts += 1;
        for reader in &mut self.readers {
            if reader.joins == Joins::Last {
                for (since, sums) in reader.since.iter_mut().zip(self.sums.iter()) {
                    since.totals.join(&sums.totals);
                }
                reader.begin = self.edge;
                reader.joins = Joins::Done;
            }
        }
    }

    /// Adds a reader, whose own totals are `since`: all 0. Its first interval begins at the next
    /// edge; or when the map was created, at `created`. Returns its identity. Fails with `EUSERS`
    /// above [`INTERVAL_READERS_MAX`].
    pub(super) fn add_reader(
        &mut self,
        mut since: PerMap<Since>,
        created: Option<Moment>,
    ) -> Result<u64> {
        if created.is_some() {
            for (since, sums) in since.iter_mut().zip(self.sums.iter()) {
                since.totals.add_extremes(&sums.totals);
            }
        }
        let reader = Reader {
            id: self.next_id,
            since,
            joins: match created {
                Some(_) => Joins::Done,
                None => Joins::Next,
            },
            begin: created.unwrap_or(self.last_edge),
        };
        self.readers
            .push_within_capacity(reader)
            .map_err(|_| eusers())?;
        self.next_id += 1;
        Ok(self.next_id - 1)
    }

    /// Removes a reader, and returns its totals, for the caller to free without the lock.
    pub(super) fn remove_reader(&mut self, id: u64) -> Option<PerMap<Since>> {
        let nth = self.readers.iter().position(|reader| reader.id == id)?;
        let reader = self.readers.remove(nth).ok()?;
        Some(reader.since)
    }

    fn reader(&mut self, id: u64) -> Option<(&mut Reader, &PerMap<Sums>)> {
        let reader = self.readers.iter_mut().find(|reader| reader.id == id)?;
        Some((reader, &self.sums))
    }

    /// Adds the interval of a reader up to the edge of the totals to `out`. Its own totals follow,
    /// by the interval and by the former contents of `out`. Returns the edges. Fails with `EAGAIN`
    /// if the first interval of the reader has not begun.
    pub(super) fn take(&mut self, id: u64, out: &mut PerMap<Totals>) -> Result<(Moment, Moment)> {
        let edge = self.edge;
        let (reader, sums) = self.reader(id).ok_or(EINVAL)?;
        let lack = |(out, sums): (&Totals, &Sums)| out.elements() < sums.used;
        if reader.joins != Joins::Done || out.iter().zip(sums.iter()).any(lack) {
            return Err(EAGAIN);
        }
        let maps = out.iter_mut().zip(reader.since.iter_mut()).zip(sums.iter());
        for ((out, since), sums) in maps {
            since.moves.fill(0);
            out.take_since(&mut since.totals, &sums.totals);
        }
        let begin = core::mem::replace(&mut reader.begin, edge);
        Ok((begin, edge))
    }

    /// Moves the counts in an interval that a reader has taken, as they were moved since then.
    /// `zeros` are all 0, and of no fewer elements. Returns false, and does nothing, if counts were
    /// moved to elements that these lack.
    pub(super) fn settle(
        &mut self,
        id: u64,
        interval: &mut Interval,
        zeros: &mut PerMap<Totals>,
    ) -> bool {
        let Some((reader, _)) = self.reader(id) else {
            return true;
        };
        let fits = {
            let mut since = reader.since.iter().zip(zeros.iter());
            since.all(|(since, zeros)| since.fits(zeros))
        };
        if !fits {
            return false;
        }
        let totals = interval.totals.iter_mut().zip(zeros.iter_mut());
        for (since, (totals, zeros)) in reader.since.iter_mut().zip(totals) {
            since.settle(totals, zeros);
        }
        true
    }

    /// Takes an interval back that was not shown.
    pub(super) fn put_back(&mut self, id: u64, interval: &Interval) {
        if let Some((reader, _)) = self.reader(id) {
            let maps = reader.since.iter_mut().zip(interval.totals.iter());
            for (since, totals) in maps {
                let Since { totals: own, moves } = since;
                totals.put_back(own, |from| Since::moved(moves, from));
            }
            reader.begin = interval.begin;
        }
    }

    /// Number of elements of the totals of the map, and of the second one.
    pub(super) fn lens(&self) -> [u32; 2] {
        let second = self.sums.second.as_ref();
        let second = second.map_or(0, |sums| sums.totals.elements());
        [self.sums.first.totals.elements(), second]
    }

    /// Number of totals that get more elements with these parts, in the map and in the second one:
    /// none, or one, and one of each reader.
    pub(super) fn grows_to(&self, parts: &PerMap<Parts>) -> [usize; 2] {
        let mut parts = parts.iter();
        self.lens().map(|len| match parts.next() {
            Some(parts) if parts.elements > len as usize => 1 + self.readers.len(),
            _ => 0,
        })
    }

    /// Gives the totals of a map and of its readers more elements, by the memory in `zeros`. Leaves
    /// their former memory there.
    pub(super) fn grow(&mut self, second: bool, zeros: &mut [Since]) {
        let nth = usize::from(second);
        let Some((for_sums, zeros)) = zeros.split_first_mut() else {
            return;
        };
        if let Some(sums) = self.sums.iter_mut().nth(nth) {
            sums.totals.grow(&mut for_sums.totals);
        }
        for (reader, zeros) in self.readers.iter_mut().zip(zeros) {
            if let Some(since) = reader.since.iter_mut().nth(nth) {
                since.grow(zeros);
            }
        }
    }

    /// Adds a row of the closed bank to the totals, as a fold does.
    fn fold_row(&mut self, second: bool, to: Move, row: &[u64]) {
        let nth = usize::from(second);
        let Some(sums) = self.sums.iter_mut().nth(nth) else {
            return;
        };
        match to {
            Move::Element(to) => {
                sums.totals.add_parts(to, row, |_| true);
                sums.used = sums.used.max(to + 1);
                for reader in &mut self.readers {
                    if let Some(since) = reader.since.iter_mut().nth(nth) {
                        since.totals.add_parts(to, row, Column::is_extreme);
                    }
                }
            }
            Move::Dropped => sums.totals.add_loss(Loss::Dropped, row[0]),
        }
    }

    /// Moves counts in the totals of a map and of its readers.
    fn move_counts(&mut self, second: bool, from: u32, to: Move) {
        let nth = usize::from(second);
        if let Some(sums) = self.sums.iter_mut().nth(nth) {
            sums.totals.move_to(from, to);
            if let Move::Element(to) = to {
                sums.used = sums.used.max(to + 1);
            }
        }
        for reader in &mut self.readers {
            if let Some(since) = reader.since.iter_mut().nth(nth) {
                since.move_counts(from, to);
            }
        }
    }
}
