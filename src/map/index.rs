// SPDX-License-Identifier: GPL-2.0

//! The index of a map: it maps keys to elements, and keeps the parts of elements that outlive an
//! interval.

use core::iter;

use kernel::{
    alloc::NumaNode,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Release, //
        },
        Arc, //
    },
};

use super::{
    cell::{
        self,
        VarCell,
        VarMask, //
    },
    chunks::{
        zeroed,
        Chunks,
        Numbering, //
    },
    hash::{
        self,
        Hash, //
    },
    keys::{
        Key,
        Keys, //
    },
    pool::Pool,
    table::{
        Slot,
        SlotState,
        Table,
        EMPTY,
        SEALED, //
    },
    wide::WideCells,
    Shape, //
};
use crate::sync::{
    Load,
    PreemptOff, //
};

/// The hash table, the keys, and the parts of elements other than columns. Generations share all of
/// it; only the table differs if it was replaced.
///
/// Fields that each hit reads come first, on two cache lines.
#[derive(Clone)]
#[repr(C)]
pub(super) struct Index {
    hash: Hash,
    pub(super) table: Table,
    pub(super) keys: Keys,
    /// The next table, while the table is being replaced. It takes the keys that a sealed slot
    /// keeps out of the first one.
    pub(super) next: Option<Table>,
    pub(super) vars: Chunks<VarCell>,
    pub(super) mask: VarMask,
    pub(super) wide: WideCells,
    pub(super) side: Chunks<Atomic<u64>>,
    pub(super) pool: Arc<Pool>,
}

/// Result of a lookup in the first slot of a key's path, where most keys are.
pub enum FirstSlot<T> {
    /// The key's element.
    Hit(T),
    /// The slot is empty: the key has no element.
    Empty,
    /// The slot has another element, or an element whose hits are drops: the key may be on the rest
    /// of the path.
    Other,
}

impl Index {
    /// Creates an empty index. Fails with `ENOMEM`.
    pub(super) fn new(shape: &Shape<'_>, pool: Pool, numbering: Numbering) -> Result<Self> {
        let elements = pool.size() as usize;
        let zeros = |n| zeroed(n, NumaNode::NO_NODE);
        Ok(Self {
            hash: Hash::new(shape.seed),
            table: Table::new(Table::bits_for(pool.capacity(), pool.size()))?,
            keys: Keys::new(elements, numbering, shape.key_size)?,
            next: None,
            vars: Chunks::new(elements, numbering, shape.vars, cell::unset)?,
            mask: VarMask::new(hash::scramble(shape.seed, 4)),
            wide: WideCells::new(elements, numbering, shape.wide)?,
            side: Chunks::new(elements, numbering, shape.side, zeros)?,
            pool: Arc::new(pool, GFP_KERNEL)?,
        })
    }

    /// This index with other tables.
    pub(super) fn with_tables(&self, table: &Table, next: Option<&Table>) -> Self {
        Self {
            table: table.clone(),
            next: next.cloned(),
            ..self.clone()
        }
    }

    /// The tables that keys are in, in the order in which they are searched.
    pub(super) fn tables(&self) -> impl Iterator<Item = &Table> {
        Iterator::chain(iter::once(&self.table), &self.next)
    }

    /// Finds the element of a key of one word in the first slot of its path, where most are. `None`
    /// if it is not there, or its hits are drops. Any context.
    #[inline(always)]
    pub(super) fn lookup_word_first_slot(&self, key: u64) -> Option<u32> {
        let hash = self.hash.of(iter::once(key));
        let word = Slot::counting(self.table.home(hash).acquire())?;
        // SAFETY: The word comes from an acquiring load of a slot.
        unsafe { self.keys.is_word(word.number(), key) }.then_some(word.number())
    }

    /// Finds the element of a key of `N` words in the first slot of its path, where most are.
    /// `None` if it is not there, or its hits are drops, or its last word is zero. Any context.
    #[inline(always)]
    pub(super) fn lookup_array_first_slot<const N: usize>(&self, key: [u64; N]) -> Option<u32> {
        let hash = self.hash.of(key.words());
        // No key in a slot ends with a zero, so if this one does, it has another length.
        let word = Slot::counting_with(self.table.home(hash).acquire(), N as u32)?;
        // SAFETY: The word comes from an acquiring load of a slot, and the key of its element has
        // `N` words at least.
        unsafe { self.keys.is_array(word.number(), key) }.then_some(word.number())
    }

    /// Looks for the element of `key` in the first slot of its path. Any context.
    #[inline(always)]
    pub(super) fn lookup_first_slot(&self, key: impl Key) -> FirstSlot<u32> {
        self.first_slot(self.hash.of(key.words()), key)
    }

    #[inline(always)]
    fn first_slot(&self, hash: u64, key: impl Key) -> FirstSlot<u32> {
        let raw = self.table.home(hash).acquire();
        match Slot::counting(raw) {
            _ if raw == EMPTY => FirstSlot::Empty,
            Some(word) if self.is(word, hash, key) => FirstSlot::Hit(word.number()),
            _ => FirstSlot::Other,
        }
    }

    /// Finds the element of `key`, unless its hits are drops. Any context.
    #[inline(always)]
    pub(super) fn lookup(&self, key: impl Key) -> Option<u32> {
        let hash = self.hash.of(key.words());
        match self.first_slot(hash, key) {
            FirstSlot::Hit(number) => Some(number),
            FirstSlot::Empty => None,
            FirstSlot::Other => self.find_on_path(key, hash, |_, _| EMPTY),
        }
    }

    /// Finds the element of `key`, or inserts one. `None`: the map is full, or the hits of this key
    /// are drops. Any context.
    #[inline(always)]
    pub(super) fn insert(&self, preempt: PreemptOff<'_>, key: impl Key) -> Option<u32> {
        let hash = self.hash.of(key.words());
        // Most keys are in the first slot of their path.
        match Slot::counting(self.table.home(hash).acquire()) {
            Some(word) if self.is(word, hash, key) => Some(word.number()),
            _ => self.find_on_path(key, hash, move |slot, hash| {
                self.fill(slot, preempt, hash, key)
            }),
        }
    }

    /// Finds the element of `key` on its path. Calls `empty` for the first empty slot, which
    /// returns the word that is in the slot now. If that is empty, the key is not in the map. If it
    /// is sealed, the key is in the next table, or in none.
    #[inline(never)]
    fn find_on_path(
        &self,
        key: impl Key,
        hash: u64,
        empty: impl Fn(&Atomic<u64>, u64) -> u64,
    ) -> Option<u32> {
        for table in self.tables() {
            for slot in table.path(hash) {
                let raw = match slot.acquire() {
                    EMPTY => empty(slot, hash),
                    raw => raw,
                };
                let word = match Slot::from_raw(raw) {
                    Some(word) => word,
                    None if raw == SEALED => break,
                    None => return None,
                };
                if self.is(word, hash, key) {
                    return Slot::counting(word.raw()).map(Slot::number);
                }
            }
        }
        None
    }

    /// Returns whether `word` is the slot of `key`, which has this hash. `word` was loaded from a
    /// slot (acquire), or stored there by this context.
    #[inline(always)]
    fn is<K: Key>(&self, word: Slot, hash: u64, key: K) -> bool {
        let alike = word.len() == key.len() && (K::ONE_WORD || word.has_hash(hash));
        // SAFETY: The element was found by an acquiring load, or this context wrote its key.
        alike && unsafe { self.keys.is(word.number(), key) }
    }

    /// Publishes an element with `key` in `slot`, which was empty. Returns the word that the slot
    /// has now: of this element, or of one that another context has published; empty if all places
    /// are taken.
    #[cold]
    #[inline(never)]
    fn fill(&self, slot: &Atomic<u64>, preempt: PreemptOff<'_>, hash: u64, key: impl Key) -> u64 {
        if self.pool.places() >= self.pool.capacity() {
            // All entries are in their slots by now. If the key is one of them, it is in this one,
            // or this one is sealed.
            return slot.load(Acquire);
        }
        let mut word = EMPTY;
        let offered = self.pool.offer(preempt, |number| {
            // SAFETY: The pool only gives numbers of elements.
            unsafe { self.keys.set(number, key) };
            let new = Slot::new(hash, key.len(), number, SlotState::New);
            if slot.cmpxchg(EMPTY, new.raw(), Release).is_err() {
                return false;
            }
            let state = if self.pool.place() {
                SlotState::Entry
            } else {
                SlotState::Excess
            };
            let decided = Slot::new(hash, key.len(), number, state);
            // No other context writes to a full slot. Release: a lookup that loads this word sees
            // the key.
            slot.store(decided.raw(), Release);
            word = decided.raw();
            true
        });
        match offered {
            Some(false) => slot.load(Acquire),
            _ => word,
        }
    }
}
