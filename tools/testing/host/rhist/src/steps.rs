// SPDX-License-Identifier: GPL-2.0

//! The worker's steps on the table of a map, one by one, so that tests can put hits beside each. A
//! part of the map, whose tables nothing else can reach.

use kernel::{
    prelude::*,
    sync::atomic::{
        Acquire,
        Atomic, //
    },
};

use super::{
    index::Index,
    table::{
        Slot,
        SlotState,
        Table,
        EMPTY, //
    },
    Elt,
    Generation,
    Map, //
};
use crate::sync::Retired;

/// The size of a table.
#[derive(Clone, Copy)]
pub struct Slots {
    /// log2 of the number of slots.
    pub bits: u32,
    /// Number of slots on a path.
    pub path_max: u32,
    /// Number of places that are taken when it takes no more keys.
    pub limit: u32,
}

impl Slots {
    fn table(self) -> Table {
        Table::new_next(self.bits, self.limit, self.path_max).expect("memory")
    }
}

impl Map {
    /// Returns whether it has one table, without SEALED, Going and Dead slots.
    pub fn is_plain(&self) -> bool {
        let is_plain = |word| match Slot::from_raw(word).map(Slot::state) {
            Some(state) => !matches!(state, SlotState::Going | SlotState::Dead),
            None => word == EMPTY,
        };
        self.contents().maps().all(|map| {
            let mut slots = map.index.table.slots().iter();
            map.index.next.is_none() && slots.all(|slot| is_plain(slot.load(Acquire)))
        })
    }

    /// Gives a map without elements another first table.
    pub fn set_table(&self, slots: Slots) {
        self.open_places(slots.limit);
        drop(self.set_tables(|_| (slots.table(), None)));
    }

    /// Publishes a next table, which is not open.
    pub fn publish_next(&self, slots: Slots) -> Retired<Generation> {
        self.set_tables(|index| (index.table.clone(), Some(slots.table())))
    }

    /// Opens the next table, with its places.
    pub fn open_next(&self) {
        let contents = self.contents();
        let next = contents.index.next.as_ref().expect("a next table");
        self.open_places(next.limit());
        next.open(contents.index.table.limit());
    }

    fn open_places(&self, places: u32) {
        let contents = self.contents();
        contents.index.pool.open(places, contents.elements() as u32);
    }

    /// W1: seals the first table.
    pub fn seal(&self) {
        self.contents().index.table.seal(|| ());
    }

    /// W2: copies the first table. Returns the numbers of the elements that are left.
    pub fn copy(&self) -> KVVec<u32> {
        let contents = self.contents();
        let Index { table, next, .. } = &contents.index;
        let next = next.as_ref().expect("a next table");
        table.copy_to(next, 0..table.slots().len());
        let mut left = KVVec::new();
        for element in table.elements(|| ()) {
            if matches!(element.state(), SlotState::Excess | SlotState::Dead) {
                left.push(element.number(), GFP_KERNEL).expect("memory");
            }
        }
        left
    }

    /// Publishes the next table alone.
    pub fn publish_next_alone(&self) -> Retired<Generation> {
        self.set_tables(|index| (index.next.clone().expect("a next table"), None))
    }

    /// Hits of an element so far, in all banks.
    pub fn hits_of(&self, number: u32) -> u64 {
        let contents = self.contents();
        self.view().column(false, Elt::new(&contents, number), 0)
    }

    /// E1: lets an entry of the first table go.
    pub fn let_go(&self, number: u32) -> bool {
        self.at(number, |word, slot| word.let_go(slot))
    }

    /// E3 or E4 for an entry that is going and had so many hits. Returns whether it is dead.
    pub fn judge(&self, number: u32, hits: u64) -> bool {
        let moved = self.hits_of(number) != hits;
        self.at(number, |word, slot| match word.state() {
            SlotState::Going if moved => !word.rescue(slot),
            SlotState::Going => word.bury(slot),
            _ => false,
        })
    }

    /// Calls `f` with the slot of an element of the first table.
    fn at<T>(&self, number: u32, f: impl FnOnce(Slot, &Atomic<u64>) -> T) -> T {
        let contents = self.contents();
        let mut slots = contents.index.table.slots().iter();
        let found = slots.find_map(|slot| {
            let word = Slot::from_raw(slot.load(Acquire))?;
            (word.number() == number).then_some((word, slot))
        });
        let (word, slot) = found.expect("in a slot");
        f(word, slot)
    }

    fn set_tables(&self, tables: impl Fn(&Index) -> (Table, Option<Table>)) -> Retired<Generation> {
        let parts = self.contents().per_map(|map| {
            let (table, next) = tables(&map.index);
            map.parts_with(&table, next.as_ref())
        });
        self.publish(&parts.expect("memory"), false)
            .expect("memory")
    }
}
