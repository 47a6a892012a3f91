// SPDX-License-Identifier: GPL-2.0

//! The index of a map: it maps keys to elements, and keeps the parts of elements that outlive an
//! interval.

use core::{
    iter,
    mem,
    ptr, //
};

use kernel::{
    alloc::{
        Flags,
        NumaNode, //
    },
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
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
    others::Other,
    pool::Pool,
    request::Request,
    shape::{
        Shape,
        TableSize, //
    },
    table::{
        Slot,
        SlotState,
        Table,
        EMPTY,
        SEALED, //
    },
    wide::WideCells, //
};
use crate::sync::{
    Load,
    PreemptOff, //
};

/// The hash table, the keys, and the parts of elements other than columns. Generations share all of
/// it; only the tables differ if one was replaced.
///
/// Fields that each hit reads come first, on two cache lines.
#[derive(Clone)]
#[repr(C)]
pub(super) struct Index {
    hash: Hash,
    pub(super) table: Table,
    pub(super) keys: Keys,
    /// The next table, if the map may grow, or while the table is being replaced. It takes the keys
    /// that a sealed slot, or a full path, keeps out of the first one.
    pub(super) next: Option<Table>,
    pub(super) vars: Chunks<VarCell>,
    pub(super) mask: VarMask,
    pub(super) wide: WideCells,
    pub(super) side: Chunks<Atomic<u64>>,
    /// The birth of each element, by the clock. Written before the slot, like the key.
    births: Chunks<Atomic<u64>>,
    clock: Option<fn() -> u64>,
    pub(super) pool: Arc<Pool>,
    request: Option<Arc<Request>>,
}

/// How a key is looked for on its path.
trait Mode: Copy {
    /// A missing key is inserted, and a going entry is rescued.
    const INSERTS: bool = true;

    /// An element gets a place also while all are taken. The caller is about to free another.
    const BEYOND_LIMIT: bool = false;

    /// Calls `offer` with an element for the key: see [`Pool::offer`].
    fn offer(self, pool: &Pool, offer: impl FnOnce(u32) -> bool) -> Option<bool>;
}

/// Changes nothing.
#[derive(Clone, Copy)]
struct Lookup;

impl Mode for Lookup {
    const INSERTS: bool = false;

    fn offer(self, _pool: &Pool, _offer: impl FnOnce(u32) -> bool) -> Option<bool> {
        None
    }
}

/// A hit.
impl Mode for PreemptOff<'_> {
    #[inline(always)]
    fn offer(self, pool: &Pool, offer: impl FnOnce(u32) -> bool) -> Option<bool> {
        pool.offer(self, offer)
    }
}

/// The worker of the map, with preemption on.
#[derive(Clone, Copy)]
struct Worker;

impl Mode for Worker {
    const BEYOND_LIMIT: bool = true;

    fn offer(self, pool: &Pool, offer: impl FnOnce(u32) -> bool) -> Option<bool> {
        pool.offer_from_worker(offer)
    }
}

/// Where the search for a known key has failed.
struct PathEnd<'a> {
    /// Number of slots of the path before that.
    passed: usize,
    /// The slot; `None` at the end of the path.
    slot: Option<&'a Atomic<u64>>,
    /// The word of the slot; [`EMPTY`] at the end of the path.
    raw: u64,
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
        let zeros = |n| zeroed(n, NumaNode::NO_NODE, GFP_KERNEL);
        let unset = |n| cell::unset(n, GFP_KERNEL);
        let wide = WideCells::new(elements, numbering, shape.wide)?;
        if shape.room.others {
            for other in Other::ALL {
                // SAFETY: `other` has the first elements, which every such map has.
                unsafe { wide.block(other.number()) };
            }
        }
        let next = shape.next_table();
        let next = next.map(|size| size.next_table()).transpose()?;
        if let Some(next) = &next {
            // The pool has its places and elements, and all hits will know it.
            next.open(shape.table(shape.bits).ok_or(ENOMEM)?.limit);
        }
        Ok(Self {
            hash: Hash::new(shape.seed),
            table: shape.table(shape.bits).ok_or(ENOMEM)?.table()?,
            keys: Keys::new(elements, numbering, shape.key_size)?,
            next,
            vars: Chunks::new(elements, numbering, shape.vars, unset)?,
            mask: VarMask::new(hash::scramble(shape.seed, 4)),
            wide,
            side: Chunks::new(elements, numbering, shape.side, zeros)?,
            births: Chunks::new(elements, numbering, shape.births(), zeros)?,
            clock: shape.clock,
            pool: Arc::new(pool, GFP_KERNEL)?,
            request: shape.request.cloned(),
        })
    }

    /// This index for `elements` elements, the present ones among them, whose parts are shared.
    /// Fails with `ENOMEM`.
    pub(super) fn extended(&self, elements: usize, flags: Flags) -> Result<Self> {
        let numbering = self.pool.numbering();
        let unset = |n| cell::unset(n, flags);
        Ok(Self {
            keys: self.keys.extended(elements, numbering, flags)?,
            vars: self.vars.extended(elements, numbering, flags, unset)?,
            wide: self.wide.extended(elements, numbering, flags)?,
            side: self.side.extended_by_zeros(elements, numbering, flags)?,
            births: self.births.extended_by_zeros(elements, numbering, flags)?,
            ..self.clone()
        })
    }

    /// Bytes of memory that [`Index::extended`] takes. `None`: the size overflows.
    pub(super) fn step_bytes(&self, elements: usize) -> Option<usize> {
        let numbering = self.pool.numbering();
        let parts = [
            self.keys.step_bytes(elements, numbering)?,
            self.vars.step_bytes(elements, numbering)?,
            self.wide.step_bytes(elements, numbering)?,
            self.side.step_bytes(elements, numbering)?,
            self.births.step_bytes(elements, numbering)?,
        ];
        parts.into_iter().try_fold(0usize, usize::checked_add)
    }

    /// Bytes of memory that it takes, with its tables.
    pub(super) fn bytes(&self) -> usize {
        let parts = [
            self.pool.bytes(),
            self.keys.bytes(),
            self.vars.bytes(),
            self.wide.bytes(),
            self.side.bytes(),
            self.births.bytes(),
        ];
        let tables = self.tables().map(|table| size_of_val(table.slots()));
        Iterator::chain(parts.into_iter(), tables).sum()
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
            FirstSlot::Other => self.find_on_path(key, hash, Lookup),
        }
    }

    /// Finds the element of `key`, or inserts one. `None`: it finds no place, or its hits are
    /// drops. Any context.
    #[inline(always)]
    pub(super) fn insert(&self, preempt: PreemptOff<'_>, key: impl Key) -> Option<u32> {
        let hash = self.hash.of(key.words());
        // Most keys are in the first slot of their path.
        match Slot::counting(self.table.home(hash).acquire()) {
            Some(word) if self.is(word, hash, key) => Some(word.number()),
            _ => self.find_on_path(key, hash, preempt),
        }
    }

    /// [`Index::insert`] without the test of the first slot, for a key that the caller has not
    /// found there. Any context.
    #[inline(always)]
    pub(super) fn insert_on_path(&self, preempt: PreemptOff<'_>, key: impl Key) -> Option<u32> {
        self.find_on_path(key, self.hash.of(key.words()), preempt)
    }

    /// Finds the element of `key` on its path. The first slot is loaded once more: to pass its word
    /// on would cost hits that find their key there.
    #[inline(never)]
    fn find_on_path<M: Mode>(&self, key: impl Key, hash: u64, mode: M) -> Option<u32> {
        let end = match self.find_known(&self.table, key, hash) {
            Ok(number) => return Some(number),
            Err(end) => end,
        };
        if end.raw == SEALED {
            if let Some(next) = &self.next {
                if let Ok(number) = self.find_known(next, key, hash) {
                    return Some(number);
                }
            }
        }
        let going = Slot::from_raw(end.raw).filter(|word| word.state() == SlotState::Going);
        match (going, end.slot) {
            (Some(_), Some(slot)) if M::INSERTS => self.find_going(slot, key, hash, mode),
            _ => self.find_behind(end.passed, key, hash, mode),
        }
    }

    /// Finds the element of `key` on its path in `table`. Fails at the first slot that is empty,
    /// sealed, or has an element with the same hash, but another key, or hits that do not count.
    #[inline(always)]
    fn find_known<'a>(
        &self,
        table: &'a Table,
        key: impl Key,
        hash: u64,
    ) -> Result<u32, PathEnd<'a>> {
        let mut passed = 0usize;
        for slot in table.path(hash) {
            let raw = slot.acquire();
            // Most other keys have another hash.
            if Slot::from_raw(raw).is_some_and(|word| !word.has_hash(hash)) {
                passed = passed.wrapping_add(1);
                continue;
            }
            return match Slot::counting(raw) {
                Some(word) if self.is(word, hash, key) => Ok(word.number()),
                _ => Err(PathEnd {
                    passed,
                    slot: Some(slot),
                    raw,
                }),
            };
        }
        Err(PathEnd {
            passed,
            slot: None,
            raw: EMPTY,
        })
    }

    /// Finds the element of `key`, which is not before `slot` on its path. That has an entry that
    /// is going, most likely the key's: a hit that rescues one costs little more than others.
    #[inline(never)]
    fn find_going<M: Mode>(
        &self,
        slot: &Atomic<u64>,
        key: impl Key,
        hash: u64,
        mode: M,
    ) -> Option<u32> {
        let word = Slot::from_raw(slot.acquire());
        let going = word.filter(|word| word.state() == SlotState::Going);
        match going.filter(|&word| self.is(word, hash, key)) {
            Some(word) if word.rescue(slot) => Some(word.number()),
            _ => self.find_behind(0, key, hash, mode),
        }
    }

    /// Finds the element of `key`, which is not in the first `passed` slots of its path. Where the
    /// path ends in the first table, at a sealed slot or without an empty one, the key is in the
    /// next table, or in none.
    #[inline(never)]
    fn find_behind<M: Mode>(
        &self,
        mut passed: usize,
        key: impl Key,
        hash: u64,
        mode: M,
    ) -> Option<u32> {
        let mut is_path_full = false;
        'tables: for table in self.tables() {
            for slot in table.path_behind(mem::take(&mut passed), hash) {
                let raw = match slot.acquire() {
                    EMPTY if !M::INSERTS => EMPTY,
                    EMPTY if mem::take(&mut is_path_full) => {
                        self.ask_for_path();
                        // A full path ends without a seal. Behind it, too, the next table takes
                        // keys only when it is open: the pool has the places then.
                        table.opens_at()?;
                        self.fill(table, slot, mode, hash, key)
                    }
                    EMPTY => self.fill(table, slot, mode, hash, key),
                    raw => raw,
                };
                let word = match Slot::from_raw(raw) {
                    Some(word) => word,
                    None if raw == SEALED => {
                        debug_assert!(self.next.is_some(), "no next table");
                        is_path_full = false;
                        continue 'tables;
                    }
                    None => return None,
                };
                // A dead one has another length.
                if !self.is(word, hash, key) {
                    continue;
                }
                match word.state() {
                    SlotState::New | SlotState::Entry => return Some(word.number()),
                    SlotState::Going if M::INSERTS && !word.rescue(slot) => (),
                    SlotState::Going => return Some(word.number()),
                    SlotState::Excess | SlotState::Dead => return None,
                }
            }
            is_path_full = true;
        }
        if M::INSERTS {
            self.ask_for_path();
        }
        None
    }

    /// Finds the element of a key of one word, or inserts one, also while all places are taken.
    /// `None`: all elements are used. Called by the worker, before it frees another element; no hit
    /// has this key.
    pub(super) fn insert_from_worker(&self, key: u64) -> Option<u32> {
        let hash = self.hash.of(iter::once(key));
        self.find_on_path(key, hash, Worker)
    }

    /// The first word of the key of the element with this number.
    ///
    /// # Safety
    ///
    /// The caller has found the element through an acquiring load of a slot.
    pub(super) unsafe fn first_word(&self, number: u32) -> u64 {
        // SAFETY: The caller has found the element by an acquiring load, so its key was written.
        unsafe { self.keys.first_word(number) }
    }

    /// Clears the element with this number, which belongs to no entry any more: its variables, wide
    /// cells and side data.
    ///
    /// # Safety
    ///
    /// An element has this number.
    pub(super) unsafe fn clear(&self, number: u32) {
        // SAFETY: The caller guarantees that an element has this number.
        let (vars, side) = unsafe { (self.vars.of(number), self.side.of(number)) };
        vars.iter().for_each(VarCell::clear);
        // SAFETY: The caller guarantees that an element has this number.
        unsafe { self.wide.clear(number) };
        // The last word of a text tells whether it is stored.
        for word in side.iter().rev() {
            word.store(0, Relaxed);
        }
    }

    /// The size of the table after one for 2^`bits` entries: a larger one, unless that is the
    /// largest. `None`: too many.
    pub(super) fn next_size(&self, bits: u32) -> Option<TableSize> {
        TableSize::new(
            self.pool.room(),
            self.pool.room().next_bits(bits),
            self.pool.cpus(),
        )
    }

    /// Requests of hits to the worker.
    pub(super) fn request(&self) -> Option<&Request> {
        self.request.as_deref()
    }

    /// Notes whether the worker lacks memory.
    pub(super) fn set_no_memory(&self, no_memory: bool) {
        if let Some(request) = &self.request {
            request.set_no_memory(no_memory);
        }
    }

    /// Returns whether its size is fixed and its entries stay: the worker does not tend it.
    pub(super) fn is_fixed(&self) -> bool {
        self.request.is_none()
    }

    /// Asks the worker. Any context.
    fn ask(&self, what: u32) {
        if let Some(request) = &self.request {
            request.ask(what);
        }
    }

    /// Asks the worker for a table in which the path of a new key has room. Any context.
    #[cold]
    fn ask_for_path(&self) {
        if let Some(request) = &self.request {
            request.ask_for_path();
        }
    }

    /// Returns whether the worker lacks memory for more places. Any context.
    pub(super) fn has_no_memory(&self) -> bool {
        let request = self.request.as_ref();
        request.is_some_and(|request| request.has_no_memory())
    }

    /// The time at which the element with this number was inserted; `None` without a clock.
    ///
    /// # Safety
    ///
    /// An element has this number.
    pub(super) unsafe fn birth(&self, number: u32) -> Option<&Atomic<u64>> {
        // SAFETY: The caller guarantees that an element has this number.
        unsafe { self.births.of(number) }.first()
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
    /// has now: of this element, or of one that another context has published; empty or sealed if
    /// the table takes no more keys.
    #[cold]
    #[inline(never)]
    fn fill<M: Mode>(
        &self,
        table: &Table,
        slot: &Atomic<u64>,
        mode: M,
        hash: u64,
        key: impl Key,
    ) -> u64 {
        let places = self.pool.places();
        let is_full = || places >= table.limit() || self.next_takes(table, places);
        if !M::BEYOND_LIMIT && is_full() {
            return self.end_path(table, slot, places);
        }
        let is_beyond = M::BEYOND_LIMIT || self.pool.room().numbered;
        // Before the element is taken: the driver of the kernel's clock may be probed, and a hit
        // there would need an element of the next level.
        let now = self.clock.map(|clock| clock());
        let mut word = EMPTY;
        let offered = mode.offer(&self.pool, |number| {
            // SAFETY: The pool only gives numbers of elements.
            unsafe { self.keys.set(number, key) };
            // SAFETY: The pool only gives numbers of elements.
            let birth = unsafe { self.birth(number) };
            if let (Some(birth), Some(now)) = (birth, now) {
                birth.store(now, Relaxed);
            }
            let new = Slot::new(hash, key.len(), number);
            if slot.cmpxchg(EMPTY, new.raw(), Release).is_err() {
                return false;
            }
            let decided = new.with(match self.pool.place(is_beyond) {
                true => SlotState::Entry,
                false => SlotState::Excess,
            });
            // No other context writes to a slot with a new element. Release: a lookup that loads
            // this word sees the key and the birth.
            slot.store(decided.raw(), Release);
            word = decided.raw();
            true
        });
        match offered {
            Some(false) => slot.load(Acquire),
            _ => {
                self.ask_for_sweep();
                word
            }
        }
    }

    /// Returns whether keys that `table` lacks go to the next table when so many places are taken.
    fn next_takes(&self, table: &Table, places: u32) -> bool {
        let next = self.next.as_ref();
        let next = next.filter(|_| ptr::eq(table, &self.table));
        let opens_at = next.and_then(Table::opens_at);
        opens_at.is_some_and(|opens_at| places >= opens_at)
    }

    /// Ends the path of a key at `slot`, which was empty, since `table` takes no more keys: seals
    /// the slot if the next table takes keys. Returns the word that the slot has now.
    fn end_path(&self, table: &Table, slot: &Atomic<u64>, places: u32) -> u64 {
        // All entries are in their slots by now. If the key is one of them, it is in this one, or
        // this one is sealed.
        let (word, what) = match self.next_takes(table, places) {
            true => (Table::seal_slot(slot), Request::GROW),
            false => (slot.load(Acquire), Request::RECYCLE),
        };
        self.ask(what);
        word
    }

    /// Asks the worker for a sweep if most places are taken, and entries may be taken out.
    fn ask_for_sweep(&self) {
        let capacity = self.pool.capacity();
        if self.pool.room().forgets && self.pool.places() > capacity - capacity / 8 {
            self.ask(Request::SWEEP);
        }
    }
}
