// SPDX-License-Identifier: GPL-2.0

//! The tracing map: a lock-free hash table from keys to elements, updated by hits in any context.
//!
//! Open addressing with twice as many slots as entries, linear probing. All memory is allocated
//! when the map is created; nothing is freed or moved before it is dropped.
//!
//! # Elements
//!
//! An element has its key; *columns*, which each CPU updates for itself and which are folded when they are
//! read; *variables*, each with a value or unset, shared by all CPUs; *wide cells*, the same for values of several
//! words; and *side data*, words shared by all CPUs, in which a text may be stored once. All are stored in
//! chunks, by the number of the element.
//!
//! # Insertion
//!
//! The key is written to an element first, while no other context can see it. Then one
//! compare-and-swap publishes the element in the first empty slot on the path of the key. So no slot
//! is ever claimed but not yet usable, and no context waits for another. All lookups of a key walk
//! the same path, slots are never emptied, and the key in a full slot does not change: a key can be
//! in one slot only.
//!
//! After publishing an element, its owner takes one of the *places*, of which there are as many as the
//! map may have entries. So exactly that many different keys become entries, whatever the timing. An
//! element that gets no place stays in its slot as *excess*, and its hits are drops. That takes a CPU
//! that found a place free before, and none after its compare-and-swap: at most one element for each
//! level of nesting on each CPU.
//!
//! A key is dropped only if it is not an entry when all places are taken: after the last place is
//! known to be taken, the empty slot is loaded once more.
//!
//! # Bound
//!
//! [`Map::insert`] visits each slot at most once, tries one compare-and-swap on it if it is empty,
//! and compares keys if the hashes are equal. It neither retries nor waits. There are more slots than
//! elements, so each path has an empty slot; with half of the slots full, finding it takes 2.5 probes
//! on average.
//!
//! # Memory ordering
//!
//! The key is written before the slot (release) and read after it (acquire). A failed
//! compare-and-swap orders nothing, so the slot is loaded again. No update of a column is lost or torn;
//! once the hits are done, their sum is exact.

mod cell;
mod chunks;
mod columns;
mod fast;
mod hash;
mod keys;
mod once;
mod pool;
mod table;
mod wide;

use core::iter;

use kernel::alloc::NumaNode;
use kernel::prelude::*;
use kernel::sync::atomic::Acquire;
use kernel::sync::atomic::Atomic;
use kernel::sync::atomic::Release;

use crate::sync::Load;
use crate::sync::PreemptOff;
pub use cell::VarCell;
pub use cell::VarMask;
use chunks::zeroed;
use chunks::Chunks;
use chunks::Numbering;
pub use columns::Column;
use columns::Columns;
pub use columns::Cpus;
pub use columns::Loss;
pub use fast::KeyWord;
pub use fast::RecordFields;
pub use hash::Hash;
use keys::ByteKey;
use keys::Key;
use keys::Keys;
use keys::WordKey;
pub use once::OnceText;
use pool::Pool;
use table::Slot;
use table::SlotState;
use table::Table;
use table::EMPTY;
pub use wide::text_to_words;
pub use wide::words_to_text;
pub use wide::Read;
pub use wide::Replace;
pub use wide::WideCell;
use wide::WideCells;

/// The size of a map and the layout of its elements.
#[derive(Clone, Copy)]
pub struct Shape<'a> {
    /// log2 of the number of entries, at most [`Shape::BITS_MAX`].
    pub bits: u32,
    /// Bytes of a key: a multiple of 8 from 8 to [`Shape::KEY_SIZE_MAX`].
    pub key_size: usize,
    /// The columns of an element, of which the first is [`Column::Hits`].
    pub columns: &'a [Column],
    /// Variables of an element.
    pub vars: usize,
    /// The wide cells of an element, by the number of words of their values.
    pub wide: &'a [usize],
    /// Words of side data of an element.
    pub side: usize,
    /// The CPUs that hits come on.
    pub cpus: Cpus,
    /// A random number, so that keys that collide cannot be made up.
    pub seed: u64,
}

impl Shape<'_> {
    /// log2 of the most entries a map can have (`TRACING_MAP_BITS_MAX`).
    pub const BITS_MAX: u32 = 17;
    /// Most bytes of a key (`HIST_KEY_SIZE_MAX`).
    pub const KEY_SIZE_MAX: usize = 504;

    /// Words of the widest part of an element. `None`: more than there can be.
    fn widest(&self) -> Option<usize> {
        let wide = WideCells::width(self.wide)?;
        let parts = [
            self.key_size / 8,
            self.columns.len(),
            self.vars,
            wide,
            self.side,
        ];
        parts.into_iter().max()
    }

    /// Bytes of memory that the elements of a map take, which is nearly all of it. `None`: more than there can be.
    pub fn size_bytes(&self) -> Option<usize> {
        let parts = self.columns.len().checked_mul(self.cpus.sets())?;
        let words = parts.checked_add(self.vars)?.checked_add(self.side)?;
        let words = words.checked_add(WideCells::width(self.wide)?)?;
        let element = words.checked_mul(8)?.checked_add(self.key_size)?;
        let elements = Pool::elements(1 << self.bits, self.cpus.count)?;
        element.checked_mul(elements as usize)
    }
}

/// A map from keys to elements.
pub struct Map {
    hash: Hash,
    table: Table,
    keys: Keys,
    columns: Columns,
    vars: Chunks<VarCell>,
    mask: VarMask,
    wide: WideCells,
    side: Chunks<Atomic<u64>>,
    pool: Pool,
}

/// An element of a map: a key, and what is kept of its hits.
///
/// # Invariants
///
/// `number` is that of an element in a slot of `map`, found there by an acquiring load.
#[derive(Clone, Copy)]
pub struct Elt<'a> {
    map: &'a Map,
    number: u32,
}

impl Map {
    /// Creates an empty map. May sleep. Fails with `EINVAL` for a shape out of range and with `ENOMEM`.
    pub fn new(shape: Shape<'_>) -> Result<Self> {
        if shape.bits > Shape::BITS_MAX
            || shape.key_size == 0
            || shape.key_size > Shape::KEY_SIZE_MAX
            || shape.key_size % 8 != 0
            || shape.columns.first() != Some(&Column::Hits)
            || shape.cpus.own == 0
            || shape.cpus.own > shape.cpus.count
        {
            return Err(EINVAL);
        }
        let numbering = Numbering::new(shape.widest().ok_or(ENOMEM)?);
        let pool = Pool::new(1 << shape.bits, numbering, shape.cpus.count)?;
        if !numbering.fits(pool.size(), Slot::NUMBER_END) {
            return Err(EINVAL);
        }
        let elements = pool.size() as usize;
        // Twice the entries, and an empty slot even if all elements are in the table.
        let bits = (shape.bits + 1).max((elements + 1).next_power_of_two().ilog2());
        Ok(Self {
            hash: Hash::new(shape.seed),
            table: Table::new(bits)?,
            keys: Keys::new(elements, numbering, shape.key_size)?,
            columns: Columns::new(elements, numbering, shape.columns, shape.cpus)?,
            vars: Chunks::new(elements, numbering, shape.vars, cell::unset)?,
            mask: VarMask::new(hash::scramble(shape.seed, 4)),
            wide: WideCells::new(elements, numbering, shape.wide)?,
            side: Chunks::new(elements, numbering, shape.side, |n| {
                zeroed(n, NumaNode::NO_NODE)
            })?,
            pool,
        })
    }

    /// Finds the element of `key`, or inserts it. Words that `key` lacks at its end are zero. `None`:
    /// no place is left for another key, or `key` has a wrong size; counted as a drop.
    ///
    /// Any context, NMI included. The caller [updates](Elt::update) the columns of the element, so that hits and
    /// drops add up to the calls.
    #[inline]
    pub fn insert(&self, preempt: PreemptOff<'_>, key: &[u8]) -> Option<Elt<'_>> {
        match ByteKey::new(key, self.keys.size()) {
            Some(key) => self.insert_key(preempt, key),
            None => self.dropped(preempt),
        }
    }

    /// As [`Map::insert`], for a key of one word.
    #[inline(always)]
    pub fn insert_word(&self, preempt: PreemptOff<'_>, key: u64) -> Option<Elt<'_>> {
        self.insert_key(preempt, key)
    }

    /// As [`Map::insert`], for a key of these words.
    #[inline(always)]
    pub fn insert_words(&self, preempt: PreemptOff<'_>, key: &[u64]) -> Option<Elt<'_>> {
        match WordKey::new(key, self.keys.width()) {
            Some(key) => self.insert_key(preempt, key),
            None => self.dropped(preempt),
        }
    }

    /// As [`Map::insert`], for a key of `N` words. The compiler unrolls its loops, which saves some 20
    /// instructions a hit.
    #[inline(always)]
    pub fn insert_array<const N: usize>(
        &self,
        preempt: PreemptOff<'_>,
        key: [u64; N],
    ) -> Option<Elt<'_>> {
        let whole = key.last().is_some_and(|&last| last != 0) && N <= self.keys.width();
        match whole {
            true => self.insert_key(preempt, key),
            false => self.insert_words(preempt, &key),
        }
    }

    #[inline(always)]
    fn insert_key(&self, preempt: PreemptOff<'_>, key: impl Key) -> Option<Elt<'_>> {
        let elt = self.find(key, move |slot, hash| self.fill(slot, preempt, hash, key));
        elt.or_else(|| self.dropped(preempt))
    }

    #[cold]
    fn dropped(&self, preempt: PreemptOff<'_>) -> Option<Elt<'_>> {
        self.lose(preempt, Loss::Dropped);
        None
    }

    /// Finds the element of a key of one word in the first slot of its path, where most are. `None` if it is
    /// not there, or its hits are drops. Any context.
    #[inline(always)]
    pub fn lookup_word_at_home(&self, key: u64) -> Option<Elt<'_>> {
        let hash = self.hash.of(iter::once(key));
        let word = Slot::that_counts(self.table.home(hash).acquire())?;
        // SAFETY: The word comes from an acquiring load of a slot.
        unsafe { self.keys.is_word(word.number(), key) }.then_some(self.elt(word))
    }

    /// Finds the element of `key`, if it has one. Any context.
    #[inline]
    pub fn lookup(&self, key: &[u8]) -> Option<Elt<'_>> {
        self.lookup_key(ByteKey::new(key, self.keys.size())?)
    }

    /// As [`Map::lookup`], for a key of one word.
    #[inline]
    pub fn lookup_word(&self, key: u64) -> Option<Elt<'_>> {
        self.lookup_key(key)
    }

    #[inline(always)]
    fn lookup_key(&self, key: impl Key) -> Option<Elt<'_>> {
        let hash = self.hash.of(key.words());
        // Most keys are in the first slot of their path, or it is empty.
        let word = Slot::from_raw(self.table.home(hash).acquire())?;
        match Slot::that_counts(word.raw()) {
            Some(word) if self.is(word, hash, key) => Some(self.elt(word)),
            _ => self.find_on_path(key, hash, |_, _| None),
        }
    }

    /// Finds the element of `key`. Calls `empty` for the first empty slot on the path, which returns what the
    /// slot has now; if that is nothing, the key is not in the map.
    #[inline(always)]
    fn find(
        &self,
        key: impl Key,
        empty: impl Fn(&Atomic<u64>, u32) -> Option<Slot>,
    ) -> Option<Elt<'_>> {
        let hash = self.hash.of(key.words());
        // Most keys are in the first slot of their path.
        match Slot::that_counts(self.table.home(hash).acquire()) {
            Some(word) if self.is(word, hash, key) => Some(self.elt(word)),
            _ => self.find_on_path(key, hash, empty),
        }
    }

    #[inline(never)]
    fn find_on_path(
        &self,
        key: impl Key,
        hash: u32,
        empty: impl Fn(&Atomic<u64>, u32) -> Option<Slot>,
    ) -> Option<Elt<'_>> {
        for slot in self.table.path(hash) {
            let word = match Slot::from_raw(slot.acquire()) {
                Some(word) => word,
                None => empty(slot, hash)?,
            };
            if self.is(word, hash, key) {
                return self.found(word);
            }
        }
        None
    }

    /// Whether `word` is that of `key`, which has this hash. `word` was loaded from a slot (acquire), or
    /// stored there by this context.
    #[inline(always)]
    fn is<K: Key>(&self, word: Slot, hash: u32, key: K) -> bool {
        let alike = word.len() == key.len() && (K::ONE_WORD || word.hash() == hash);
        // SAFETY: The element was found by an acquiring load, or this context wrote its key.
        alike && unsafe { self.keys.is(word.number(), key) }
    }

    /// The element in a slot with `word`, unless its hits are drops.
    #[inline(always)]
    fn found(&self, word: Slot) -> Option<Elt<'_>> {
        Slot::that_counts(word.raw()).map(|word| self.elt(word))
    }

    /// Publishes an element with `key` in `slot`, which was empty. Returns what is in the slot now: this key, or
    /// what another context has published there. `None`: it is still empty, and all places are taken.
    #[cold]
    #[inline(never)]
    fn fill(
        &self,
        slot: &Atomic<u64>,
        preempt: PreemptOff<'_>,
        hash: u32,
        key: impl Key,
    ) -> Option<Slot> {
        if self.pool.places() >= self.pool.capacity() {
            // All entries are in their slots by now. If the key is one of them it is in this one.
            return Slot::from_raw(slot.load(Acquire));
        }
        let mut word = None;
        self.pool.offer(preempt, |number| {
            // SAFETY: The pool has no number that is no element's.
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
            // No other context writes to a full slot. Release: the key is visible to whoever loads this.
            slot.store(decided.raw(), Release);
            word = Some(decided);
            true
        })?;
        word.or_else(|| Slot::from_raw(slot.load(Acquire)))
    }

    /// The entries, each once, in the order of their slots. Elements that become entries during the iteration
    /// may be missing.
    pub fn elts(&self) -> impl Iterator<Item = Elt<'_>> {
        (0..).map_while(|slot| self.slot(slot)).flatten()
    }

    /// The entry in a slot, if there is one, which never changes then. `None`: there are no more slots.
    pub fn slot(&self, number: u32) -> Option<Option<Elt<'_>>> {
        let slot = self.table.slots().get(number as usize)?;
        Some(self.in_state(slot, SlotState::Entry))
    }

    fn in_state(&self, slot: &Atomic<u64>, state: SlotState) -> Option<Elt<'_>> {
        let word = Slot::from_raw(slot.load(Acquire))?;
        (word.state() == state).then(|| self.elt(word))
    }

    /// The element in a slot that `word` was loaded from (acquire).
    #[inline]
    fn elt(&self, word: Slot) -> Elt<'_> {
        // INVARIANT: By the caller.
        Elt {
            map: self,
            number: word.number(),
        }
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.pool.places().min(self.pool.capacity()) as usize
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The maximum number of entries.
    pub fn capacity(&self) -> usize {
        self.pool.capacity() as usize
    }

    /// Hits of all entries: the calls of [`Map::insert`] that returned one. The sum of their hitcounts, so a hit
    /// is counted once only. Visits all slots.
    pub fn hits(&self) -> u64 {
        self.elts()
            .fold(0, |hits, elt| hits.wrapping_add(elt.column(0)))
    }

    /// Counts a loss. Any context.
    pub fn lose(&self, preempt: PreemptOff<'_>, loss: Loss) {
        self.columns.lose(preempt, loss);
    }

    /// Losses of this kind that were counted.
    pub fn losses(&self, loss: Loss) -> u64 {
        self.columns.losses(loss)
    }

    /// Hits that were dropped: the calls of [`Map::insert`] that returned no entry.
    pub fn drops(&self) -> u64 {
        let mut drops = self.losses(Loss::Dropped);
        if self.pool.places() > self.pool.capacity() {
            let slots = self.table.slots().iter();
            for elt in slots.filter_map(|slot| self.in_state(slot, SlotState::Excess)) {
                drops = drops.wrapping_add(elt.column(0));
            }
        }
        drops
    }

    /// A wide cell of the element with this [number](Elt::number).
    #[inline]
    pub fn wide_at(&self, number: u32, cell: usize) -> Option<WideCell<'_>> {
        match self.pool.has(number) {
            // SAFETY: There is such an element.
            true => unsafe { self.wide.of(number, cell) },
            false => None,
        }
    }

    /// Bytes of a key.
    pub fn key_size(&self) -> usize {
        self.keys.size()
    }

    /// Bytes of memory.
    pub fn size_bytes(&self) -> usize {
        size_of::<Self>()
            + size_of_val(self.table.slots())
            + self.keys.size_bytes()
            + self.columns.size_bytes()
            + self.vars.size_bytes()
            + self.wide.size_bytes()
            + self.side.size_bytes()
            + self.pool.size_bytes()
    }
}

impl<'a> Elt<'a> {
    /// Updates the columns for a hit: the first counts it, and each of the others is updated with what `read`
    /// makes of one of `values`. Any context.
    #[inline(always)]
    pub fn update<V>(self, preempt: PreemptOff<'_>, values: &[V], read: impl Fn(&V) -> u64) {
        // SAFETY: By the invariants there is such an element.
        unsafe { self.map.columns.update(preempt, self.number, values, read) }
    }

    /// As [`Elt::update`], if all columns but the first are [sums](Column::Sum).
    #[inline(always)]
    fn update_sums<V>(self, preempt: PreemptOff<'_>, values: &[V], read: impl Fn(&V) -> u64) {
        // SAFETY: By the invariants there is such an element.
        unsafe {
            self.map
                .columns
                .update_sums(preempt, self.number, values, read)
        }
    }

    /// Folds the parts of all CPUs of a column.
    pub fn column(self, column: usize) -> u64 {
        // SAFETY: By the invariants there is such an element.
        unsafe { self.map.columns.fold(self.number, column) }
    }

    /// Sets variable `number`. False: it cannot hold this value, and is now unset; see [`VarCell::set`]. Any
    /// context.
    #[must_use]
    #[inline]
    pub fn set_var(self, number: usize, value: u64) -> bool {
        let var = self.vars().get(number);
        var.is_some_and(|var| var.set(self.map.mask, value))
    }

    /// The value of variable `number`, if it is set. Any context.
    #[inline]
    pub fn var(self, number: usize) -> Option<u64> {
        self.vars().get(number)?.get(self.map.mask)
    }

    /// As [`Elt::var`], and unsets it: each value that was set is returned at most once. Any context.
    #[inline]
    pub fn take_var(self, number: usize) -> Option<u64> {
        self.vars().get(number)?.take(self.map.mask)
    }

    #[inline]
    fn vars(self) -> &'a [VarCell] {
        // SAFETY: By the invariants there is such an element.
        unsafe { self.map.vars.of(self.number) }
    }

    /// Its number, for [`Map::wide_at`].
    #[inline]
    pub fn number(self) -> u32 {
        self.number
    }

    /// Wide cell `number`, if it has so many.
    #[inline]
    pub fn wide(self, number: usize) -> Option<WideCell<'a>> {
        // SAFETY: By the invariants there is such an element.
        unsafe { self.map.wide.of(self.number, number) }
    }

    /// The side data, all zero when the element is new.
    #[inline]
    pub fn side(self) -> &'a [Atomic<u64>] {
        // SAFETY: By the invariants there is such an element.
        unsafe { self.map.side.of(self.number) }
    }

    /// Whether `key` is its key.
    pub fn is(self, key: &[u8]) -> bool {
        // SAFETY: By the invariants it was found by an acquiring load.
        key.len() == self.map.keys.size() && unsafe { self.map.keys.is(self.number, ByteKey(key)) }
    }

    /// The key.
    #[cfg(not(loom))]
    pub fn key(self) -> &'a [u8] {
        // SAFETY: By the invariants it was found by an acquiring load.
        unsafe { self.map.keys.get(self.number) }
    }
}
