// SPDX-License-Identifier: GPL-2.0

//! The entries of a generation, for readers.

use kernel::sync::atomic::Atomic;

use super::{
    counters::Loss,
    elt::Elt,
    generation::Generation,
    others::Other,
    table::{
        Slot,
        SlotState, //
    },
    totals::Totals, //
};
use crate::sync::Load;

impl Generation {
    /// The entries, each once, in the order of their slots. Elements that become entries during the
    /// iteration may be missing.
    pub fn elts(&self) -> impl Iterator<Item = Elt<'_>> {
        self.batches(usize::MAX).flatten()
    }

    /// An element of `other`, if the map has these. Task context.
    pub fn other(&self, other: Other) -> Option<Elt<'_>> {
        let has = self.index.pool.room().others;
        has.then(|| Elt::new(self, other.number()))
    }

    /// The elements of `other`, if the map has them. Task context.
    pub fn others(&self) -> impl Iterator<Item = Elt<'_>> {
        Other::ALL.into_iter().filter_map(|other| self.other(other))
    }

    /// The entry in a slot. `Some(None)`: the slot holds no entry yet; an entry stays in its slot.
    /// `None`: the map has fewer slots.
    pub fn slot(&self, number: u32) -> Option<Option<Elt<'_>>> {
        let (number, table) = (number as usize, &self.index.table);
        if let Some(slot) = table.slots().get(number) {
            return Some(self.in_state(slot, Self::IS_ROW));
        }
        let next = self.index.next.as_ref()?;
        let slot = next.slots().get(number - table.slots().len())?;
        Some(self.only_in_next(slot, Self::IS_ROW))
    }

    /// The entries, as [`Generation::elts`] has them, in batches from so many `slots`.
    pub(super) fn batches(
        &self,
        slots: usize,
    ) -> impl Iterator<Item = impl Iterator<Item = Elt<'_>>> {
        let first = self.index.table.slots().chunks(slots);
        let next = self.index.next.iter();
        let next = next.flat_map(move |table| table.slots().chunks(slots));
        let both = Iterator::chain(
            first.map(|slots| (slots, false)),
            next.map(|slots| (slots, true)),
        );
        both.map(move |(slots, is_next)| {
            slots.iter().filter_map(move |slot| match is_next {
                false => self.in_state(slot, Self::IS_ROW),
                true => self.only_in_next(slot, Self::IS_ROW),
            })
        })
    }

    /// Returns whether readers show an element in this state. A dead one has its counts until the
    /// table is replaced.
    const IS_ROW: fn(SlotState) -> bool =
        |state| matches!(state, SlotState::Entry | SlotState::Going | SlotState::Dead);

    /// The element in a slot, if it is in such a state.
    #[inline]
    fn in_state(&self, slot: &Atomic<u64>, is: fn(SlotState) -> bool) -> Option<Elt<'_>> {
        let word = Slot::from_raw(slot.acquire())?;
        let is_forgotten = word.state() == SlotState::Dead && word.number() == Slot::NO_NUMBER;
        let found = is(word.state()) && !is_forgotten && self.has(word.number());
        found.then(|| Elt::new(self, word.number()))
    }

    /// The element in a slot of the next table, if it is in such a state, and not in the first
    /// table, too.
    fn only_in_next(&self, slot: &Atomic<u64>, is: fn(SlotState) -> bool) -> Option<Elt<'_>> {
        let elt = self.in_state(slot, is)?;
        let word = Slot::from_raw(slot.acquire())?;
        (!self.index.table.has(word)).then_some(elt)
    }

    /// Excess elements: inserted while another context took the last place. Their hits are drops.
    pub fn in_excess(&self) -> impl Iterator<Item = Elt<'_>> {
        let is_excess = |state| state == SlotState::Excess;
        let any = self.index.pool.excess() > 0;
        let first = self.index.table.slots().iter();
        let next = self.index.next.iter().flat_map(|table| table.slots());
        let first = first.filter_map(move |slot| self.in_state(slot, is_excess));
        let next = next.filter_map(move |slot| self.only_in_next(slot, is_excess));
        any.then_some(Iterator::chain(first, next))
            .into_iter()
            .flatten()
    }
}

impl Totals {
    /// Hits that were dropped: the calls of [`Generation::insert`] that returned no entry.
    /// `contents` has the elements.
    pub fn drops(&self, contents: &Generation) -> u64 {
        let excess = contents.in_excess().map(|elt| self.column(elt.number(), 0));
        excess.fold(self.loss(Loss::Dropped), u64::wrapping_add)
    }
}
