// SPDX-License-Identifier: GPL-2.0

//! Totals: the columns of elements, folded over all CPUs, and the losses.

use core::{
    fmt,
    ops::Range, //
};

use kernel::{
    alloc::Flags,
    prelude::*, //
};

use super::{
    chunks::Numbering,
    columns::Column,
    counters::{
        Counters,
        Loss,
        Move, //
    },
    others::Other,
    shared::Shared, //
};
use crate::sync::Load;

/// A value for a map, and one for its second map, if it has that.
pub struct PerMap<T> {
    /// Of the map.
    pub first: T,
    /// Of the second map.
    pub second: Option<T>,
}

impl<T> PerMap<T> {
    /// The values, the map's first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        Iterator::chain([&self.first].into_iter(), &self.second)
    }

    /// The values, the map's first.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        Iterator::chain([&mut self.first].into_iter(), &mut self.second)
    }
}

/// Where the hits of a map were counted, for its statistics: each once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HitCounts {
    /// Hits of entries.
    pub entries: u64,
    /// Hits without an entry: of each [`Other`], in the order of their numbers.
    pub others: [u64; Other::ALL.len()],
    /// Hits that were dropped.
    pub dropped: u64,
    /// Hits that were ignored, since a variable was not set.
    pub unresolved: u64,
}

impl HitCounts {
    /// Hits of all entries and of `other`.
    pub fn hits(&self) -> u64 {
        let others = self.others.iter().copied();
        others.fold(self.entries, u64::wrapping_add)
    }
}

impl fmt::Display for HitCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hits = self.hits();
        let Self {
            entries,
            others: [folded, expired, recycled],
            dropped,
            unresolved,
        } = self;
        write!(
            f,
            "{hits} hits, {entries} of entries, {folded} folded, {expired} expired, {recycled} recycled, \
             {dropped} dropped, {unresolved} unresolved"
        )
    }
}

/// The columns of elements and the losses: so far, of one interval, or up to an edge.
pub struct Totals {
    columns: Shared<Column>,
    numbering: Numbering,
    /// The columns of all elements, element by element, as parts: see [`Column::add`].
    parts: KVVec<u64>,
    losses: [u64; Loss::KINDS],
}

impl Totals {
    /// Totals of 0 for the first `elements` elements that `counters` are for. Fails with `ENOMEM`.
    pub(super) fn new(counters: &Counters, elements: u32, flags: Flags) -> Result<Self> {
        let columns = counters.columns().clone();
        let len = (elements as usize).checked_mul(columns.len());
        Ok(Self {
            parts: KVVec::from_elem(0, len.ok_or(ENOMEM)?, flags)?,
            columns,
            numbering: counters.numbering(),
            losses: [0; Loss::KINDS],
        })
    }

    /// Bytes of memory that totals of all elements of `counters` take. `None`: the size overflows.
    pub(super) fn bytes(counters: &Counters) -> Option<usize> {
        let words = counters.elements().checked_mul(counters.columns().len())?;
        words.checked_mul(size_of::<u64>())
    }

    /// A column of the element with this number. Without hits: 0, or the number that is below all
    /// others for a maximum, and above all others for a minimum.
    pub fn column(&self, number: u32, column: usize) -> u64 {
        let part = self.numbering.nth(number).map(|nth| self.part(nth, column));
        let kind = self.columns.get(column);
        kind.map_or(0, |kind| kind.number(part.unwrap_or(0)))
    }

    /// The part for a column of the `nth` element; 0 if these totals lack the element.
    pub(super) fn part(&self, nth: u32, column: usize) -> u64 {
        let index = nth as usize * self.columns.len() + column;
        self.parts.get(index).copied().unwrap_or(0)
    }

    /// Hits or values that were lost.
    pub fn loss(&self, loss: Loss) -> u64 {
        self.losses[loss as usize]
    }

    /// Number of elements.
    pub(super) fn elements(&self) -> u32 {
        (self.parts.len() / self.columns.len()) as u32
    }

    /// The parts of each element.
    pub(super) fn rows(&self) -> impl Iterator<Item = &[u64]> {
        self.parts.chunks_exact(self.columns.len())
    }

    /// Adds what `counters` have counted for these elements.
    pub(super) fn add(&mut self, counters: &Counters, elements: Range<u32>) {
        let first = elements.start as usize * self.columns.len();
        let parts = self.parts.get_mut(first..).unwrap_or_default();
        counters.add_parts(elements, parts, |part| part.relaxed());
    }

    /// Adds the losses that `counters` have counted.
    pub(super) fn add_losses(&mut self, counters: &Counters) {
        counters.add_losses(&mut self.losses);
    }

    /// Moves the losses from `counters`, in which no hit counts, to these totals.
    pub(super) fn take_losses(&mut self, counters: &Counters) {
        counters.add_losses(&mut self.losses);
        counters.zero_losses();
    }

    /// Adds the columns of these elements in `totals`.
    pub(super) fn add_totals(&mut self, totals: &Self, elements: Range<u32>) {
        let width = self.columns.len();
        let [begin, end] = [elements.start, elements.end].map(|nth| nth as usize * width);
        let parts = totals.parts.get(begin..end).unwrap_or_default();
        self.add_parts(elements.start, parts, |_| true);
    }

    /// Adds the losses in `totals`.
    pub(super) fn add_losses_of(&mut self, totals: &Self) {
        for (own, &loss) in self.losses.iter_mut().zip(&totals.losses) {
            *own = own.wrapping_add(loss);
        }
    }

    /// Adds these parts, of elements from the `nth` on: of the columns that `of` chooses.
    pub(super) fn add_parts(&mut self, nth: u32, parts: &[u64], of: impl Fn(Column) -> bool) {
        let begin = nth as usize * self.columns.len();
        let width = self.columns.len();
        let own = self.parts.get_mut(begin..).unwrap_or_default();
        for (own, parts) in own.chunks_exact_mut(width).zip(parts.chunks_exact(width)) {
            for ((own, &part), &column) in own.iter_mut().zip(parts).zip(&*self.columns) {
                if of(column) {
                    column.add(own, part);
                }
            }
        }
    }

    /// Moves these totals to `zeros`, which are of more elements and all 0, and exchanges both.
    pub(super) fn grow(&mut self, zeros: &mut Self) {
        for (to, &part) in zeros.parts.iter_mut().zip(&self.parts) {
            *to = part;
        }
        zeros.losses = self.losses;
        core::mem::swap(self, zeros);
    }

    /// Adds `n` losses of this kind.
    pub(super) fn add_loss(&mut self, loss: Loss, n: u64) {
        let loss = &mut self.losses[loss as usize];
        *loss = loss.wrapping_add(n);
    }

    /// Moves the counts of the element `from`, counted from 0, to the element `to`; its hits to the
    /// drops, if these totals lack that.
    pub(super) fn move_element(&mut self, from: u32, to: u32) {
        if to >= self.elements() {
            return self.move_to_loss(from, Loss::Dropped);
        }
        for column in 0..self.columns.len() {
            let part = self.take_part(from, column);
            let index = to as usize * self.columns.len() + column;
            if let Some(own) = self.parts.get_mut(index) {
                self.columns[column].add(own, part);
            }
        }
    }

    /// Moves the counts of the element `from`, counted from 0, elsewhere.
    pub(super) fn move_to(&mut self, from: u32, to: Move) {
        match to {
            Move::Element(to) => self.move_element(from, to),
            Move::Dropped => self.move_to_loss(from, Loss::Dropped),
        }
    }

    /// Moves the hits of the element `from`, counted from 0, to the losses of this kind.
    pub(super) fn move_to_loss(&mut self, from: u32, loss: Loss) {
        for column in 0..self.columns.len() {
            let part = self.take_part(from, column);
            if column == 0 {
                let loss = &mut self.losses[loss as usize];
                *loss = loss.wrapping_add(part);
            }
        }
    }

    /// Takes the part for a column of the `nth` element: 0 if these totals lack the element.
    fn take_part(&mut self, nth: u32, column: usize) -> u64 {
        let index = nth as usize * self.columns.len() + column;
        self.parts.get_mut(index).map_or(0, core::mem::take)
    }

    /// Adds the extremes of `totals`.
    pub(super) fn add_extremes(&mut self, totals: &Self) {
        self.add_parts(0, &totals.parts, Column::is_extreme);
    }

    /// Makes these the own totals of a reader that begins at the edge of `totals`: with the same
    /// sums, and extremes without a hit.
    pub(super) fn join(&mut self, totals: &Self) {
        let columns = self.columns.iter().cycle();
        for ((own, &total), column) in self.parts.iter_mut().zip(&totals.parts).zip(columns) {
            *own = if column.is_extreme() { 0 } else { total };
        }
        self.losses = totals.losses;
    }

    /// Adds the interval of a reader, from its own totals `since` to `totals`. Then adds all of
    /// `self`, whether it was there before or not, to the sums of `since`.
    pub(super) fn take_since(&mut self, since: &mut Self, totals: &Self) {
        let own = self.parts.iter_mut().zip(&mut since.parts);
        let columns = self.columns.iter().cycle();
        for (((own, since), &total), column) in own.zip(&totals.parts).zip(columns) {
            if column.is_extreme() {
                column.add(own, core::mem::take(since));
            } else {
                *own = own.wrapping_add(total.wrapping_sub(*since));
                *since = since.wrapping_add(*own);
            }
        }
        let losses = self.losses.iter_mut().zip(&mut since.losses);
        for ((own, since), &total) in losses.zip(&totals.losses) {
            *own = own.wrapping_add(total.wrapping_sub(*since));
            *since = since.wrapping_add(*own);
        }
    }

    /// Gives these totals, an interval that was not shown, back to its reader: the next interval
    /// has its hits, too. `moved` returns where the counts of an element went since it was taken.
    pub(super) fn put_back(&self, since: &mut Self, moved: impl Fn(u32) -> Move) {
        let width = self.columns.len();
        for (nth, row) in (0..).zip(self.rows()) {
            let nth = match moved(nth) {
                Move::Element(nth) => nth,
                Move::Dropped => {
                    let loss = &mut since.losses[Loss::Dropped as usize];
                    *loss = loss.wrapping_sub(row[0]);
                    continue;
                }
            };
            let since = since.parts.get_mut(nth as usize * width..);
            let since = since.unwrap_or_default().iter_mut();
            for ((&own, since), column) in row.iter().zip(since).zip(self.columns.iter()) {
                if column.is_extreme() {
                    column.add(since, own);
                } else {
                    *since = since.wrapping_sub(own);
                }
            }
        }
        for (&own, since) in self.losses.iter().zip(&mut since.losses) {
            *since = since.wrapping_sub(own);
        }
    }
}
