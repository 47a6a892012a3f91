// SPDX-License-Identifier: GPL-2.0

//! A generation of a map: the index and the counters that hits use until one of them is replaced.

use kernel::{
    prelude::*,
    sync::atomic::{
        Acquire,
        Atomic, //
    },
};

use super::{
    counters::{
        Counters,
        Loss, //
    },
    elt::Elt,
    index::{
        FirstSlot,
        Index, //
    },
    keys::{
        ByteKey,
        Key,
        WordKey, //
    },
    table::{
        Slot,
        SlotState,
        Table, //
    },
    wide::WideCell, //
};
use crate::sync::PreemptOff;

/// The index and the counters that a hit uses, behind one pointer.
///
/// Parts of both are embedded, so that they need no pointers of their own. Large parts are shared
/// with other generations. A task that holds a generation can read its counts even after the map
/// has replaced it.
///
/// # Invariants
///
/// The index and the counters are for the same elements.
#[repr(C)]
pub struct Generation {
    pub(super) index: Index,
    pub(super) counters: Counters,
}

impl Generation {
    /// The next generation, with fresh counters. Fails with `ENOMEM`.
    pub(super) fn with_fresh_counters(&self) -> Result<Self> {
        // INVARIANT: The counters are for the same elements.
        Ok(Self {
            index: self.index.clone(),
            counters: self.counters.fresh()?,
        })
    }

    /// The next generation, with these tables.
    pub(super) fn with_tables(&self, table: &Table, next: Option<&Table>) -> Self {
        // INVARIANT: The elements stay.
        Self {
            index: self.index.with_tables(table, next),
            counters: self.counters.clone(),
        }
    }

    /// Finds the element of `key`, or inserts it: see [`super::Map::insert`].
    #[inline]
    pub(super) fn insert<'a>(&'a self, preempt: PreemptOff<'_>, key: &[u8]) -> Option<Elt<'a>> {
        match ByteKey::new(key, self.index.keys.size()) {
            Some(key) => self.insert_key(preempt, key),
            None => self.dropped(preempt),
        }
    }

    /// Finds or inserts the element of a key of one word.
    #[inline(always)]
    pub(super) fn insert_word<'a>(&'a self, preempt: PreemptOff<'_>, key: u64) -> Option<Elt<'a>> {
        self.insert_key(preempt, key)
    }

    /// Finds or inserts the element of a key of these words.
    #[inline(always)]
    pub(super) fn insert_words<'a>(
        &'a self,
        preempt: PreemptOff<'_>,
        key: &[u64],
    ) -> Option<Elt<'a>> {
        match WordKey::new(key, self.index.keys.width()) {
            Some(key) => self.insert_key(preempt, key),
            None => self.dropped(preempt),
        }
    }

    /// Finds or inserts the element of a key of `N` words. The compiler unrolls its loops, which
    /// saves some 20 instructions a hit.
    #[inline(always)]
    pub(super) fn insert_array<'a, const N: usize>(
        &'a self,
        preempt: PreemptOff<'_>,
        key: [u64; N],
    ) -> Option<Elt<'a>> {
        let whole = key.last().is_some_and(|&last| last != 0) && N <= self.index.keys.width();
        match whole {
            true => self.insert_key(preempt, key),
            false => self.insert_words(preempt, &key),
        }
    }

    #[inline(always)]
    fn insert_key<'a>(&'a self, preempt: PreemptOff<'_>, key: impl Key) -> Option<Elt<'a>> {
        match self.index.insert(preempt, key) {
            Some(number) => Some(Elt::new(self, number)),
            None => self.dropped(preempt),
        }
    }

    #[cold]
    fn dropped(&self, preempt: PreemptOff<'_>) -> Option<Elt<'_>> {
        self.counters.lose(preempt, Loss::Dropped);
        None
    }

    /// Finds the element of a key of one word in the first slot of its path, where most are. `None`
    /// if it is not there, or its hits are drops. Any context.
    #[inline(always)]
    pub fn lookup_word_first_slot(&self, key: u64) -> Option<Elt<'_>> {
        let number = self.index.lookup_word_first_slot(key)?;
        Some(Elt::new(self, number))
    }

    /// Looks for the element of a key of one word in the first slot of its path. Any context.
    #[inline(always)]
    pub(super) fn lookup_first_slot(&self, key: u64) -> FirstSlot<Elt<'_>> {
        match self.index.lookup_first_slot(key) {
            FirstSlot::Hit(number) => FirstSlot::Hit(Elt::new(self, number)),
            FirstSlot::Empty => FirstSlot::Empty,
            FirstSlot::Other => FirstSlot::Other,
        }
    }

    /// Finds the element of a key of `N` words in the first slot of its path: see
    /// [`Index::lookup_array_first_slot`]. Any context.
    #[inline(always)]
    pub(super) fn lookup_array_first_slot<const N: usize>(&self, key: [u64; N]) -> Option<Elt<'_>> {
        let number = self.index.lookup_array_first_slot(key)?;
        Some(Elt::new(self, number))
    }

    /// Finds the element of `key`, if it has one. Any context.
    #[inline]
    pub fn lookup(&self, key: &[u8]) -> Option<Elt<'_>> {
        let key = ByteKey::new(key, self.index.keys.size())?;
        Some(Elt::new(self, self.index.lookup(key)?))
    }

    /// Finds the element of a key of one word, if it has one. Any context.
    #[inline]
    pub fn lookup_word(&self, key: u64) -> Option<Elt<'_>> {
        Some(Elt::new(self, self.index.lookup(key)?))
    }

    /// A wide cell of the element with this [number](Elt::number).
    #[inline]
    pub(super) fn wide_at(&self, number: u32, cell: usize) -> Option<WideCell<'_>> {
        match self.index.pool.has(number) {
            // SAFETY: The pool has this number, so an element has it.
            true => unsafe { self.index.wide.of(number, cell) },
            false => None,
        }
    }

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

    /// Whether it has two tables: see [`super::Map::replace_table`].
    pub fn is_being_replaced(&self) -> bool {
        self.index.next.is_some()
    }

    /// Hits of all entries: the calls of [`super::Map::insert`] that returned one. The sum of their
    /// hitcounts, so a hit is counted once only. Visits all slots.
    pub fn hits(&self) -> u64 {
        self.elts()
            .fold(0, |hits, elt| hits.wrapping_add(elt.column(0)))
    }

    /// Losses of this kind that were counted.
    pub fn losses(&self, loss: Loss) -> u64 {
        self.counters.losses(loss)
    }

    /// Hits that were dropped: the calls of [`super::Map::insert`] that returned no entry.
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
