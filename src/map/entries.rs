// SPDX-License-Identifier: GPL-2.0

//! The entries of a generation, for readers.

use kernel::sync::atomic::{
    Acquire,
    Atomic, //
};

use super::{
    counters::Loss,
    elt::Elt,
    generation::Generation,
    table::{
        Slot,
        SlotState, //
    },
};

impl Generation {
    /// The entries, each once, in the order of their slots. Elements that become entries during the
    /// iteration may be missing.
    pub fn elts(&self) -> impl Iterator<Item = Elt<'_>> {
        (0..).map_while(|slot| self.slot(slot)).flatten()
    }

    /// The entry in a slot. `Some(None)`: the slot holds no entry yet; an entry never changes.
    /// `None`: the map has fewer slots.
    pub fn slot(&self, number: u32) -> Option<Option<Elt<'_>>> {
        let (number, table) = (number as usize, &self.index.table);
        if let Some(slot) = table.slots().get(number) {
            return Some(self.in_state(slot, SlotState::Entry));
        }
        let next = self.index.next.as_ref()?;
        let slot = next.slots().get(number - table.slots().len())?;
        Some(self.only_in_next(slot, SlotState::Entry))
    }

    /// The element in a slot, if it is in this state.
    fn in_state(&self, slot: &Atomic<u64>, state: SlotState) -> Option<Elt<'_>> {
        let word = Slot::from_raw(slot.load(Acquire))?;
        (word.state() == state).then(|| Elt::new(self, word.number()))
    }

    /// The element in a slot of the next table, if it is in this state, and not in the first table,
    /// too.
    fn only_in_next(&self, slot: &Atomic<u64>, state: SlotState) -> Option<Elt<'_>> {
        let elt = self.in_state(slot, state)?;
        let word = Slot::from_raw(slot.load(Acquire))?;
        (!self.index.table.has(word)).then_some(elt)
    }

    /// Hits of all entries: the calls of [`Generation::insert`] that returned one. The sum of their
    /// hitcounts, so a hit is counted once only. Visits all slots.
    pub fn hits(&self) -> u64 {
        self.elts()
            .fold(0, |hits, elt| hits.wrapping_add(elt.column(0)))
    }

    /// Hits that were dropped: the calls of [`Generation::insert`] that returned no entry.
    pub fn drops(&self) -> u64 {
        let counted = self.losses(Loss::Dropped);
        self.in_excess()
            .fold(counted, |drops, elt| drops.wrapping_add(elt.column(0)))
    }

    /// Number of excess elements: inserted while another context took the last place. Their hits
    /// are drops.
    pub fn excess(&self) -> usize {
        self.in_excess().count()
    }

    fn in_excess(&self) -> impl Iterator<Item = Elt<'_>> {
        let pool = &self.index.pool;
        let any = pool.places() > pool.capacity();
        let first = self.index.table.slots().iter();
        let next = self.index.next.iter().flat_map(|table| table.slots());
        let first = first.filter_map(|slot| self.in_state(slot, SlotState::Excess));
        let next = next.filter_map(|slot| self.only_in_next(slot, SlotState::Excess));
        any.then_some(Iterator::chain(first, next))
            .into_iter()
            .flatten()
    }
}
