// SPDX-License-Identifier: GPL-2.0

//! The slots of the hash table.

use core::ops::Range;

use kernel::{
    alloc::NumaNode,
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
    chunks::zeroed,
    others::Other,
    shared::Shared, //
};

/// The state of the element in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotState {
    /// It is an entry that was idle. A hit makes it an entry again.
    Going = 0,
    /// It was published when all places were taken. Its hits are drops.
    Excess = 1,
    /// It was just published, and its owner is taking a place. Its hits count already.
    New = 2,
    /// It is an entry.
    Entry = 3,
    /// It was an entry that was idle. No hit finds it any more. Its slot is passed over.
    Dead,
}

/// The bits of a word with the state of an element that is not dead.
const STATE: u64 = 3;

/// The bit that is set in [`SlotState::New`] and [`SlotState::Entry`], but neither in [`EMPTY`] nor
/// in [`SEALED`]: hits of the element count.
const COUNTS: u64 = 2;

/// The bits of a word with the length of the key: 0 without a key.
const LEN: u64 = 0x3f << 2;

/// The lower byte of [`SlotState::Dead`]: length 0, like [`SEALED`].
const DEAD: u64 = 1;

/// The contents of a slot that has an element: from the top the hash of the key (32 bits), the
/// number of the element (24), the length of the key in words without the zeros at its end (6), and
/// its state (2). Keys have one word at least; the length is 0 in state [`SlotState::Dead`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot(u64);

impl Slot {
    /// A new element. `number` is less than [`Slot::NUMBER_END`], `len` is 1 to 63.
    pub(super) const fn new(hash: u64, len: u32, number: u32) -> Self {
        Self(hash & Self::HASH | (number as u64) << 8 | (len as u64) << 2 | SlotState::New as u64)
    }

    /// The bits of a hash that are in a slot.
    const HASH: u64 = 0xffff_ffff << 32;

    /// One more than the highest number of an element.
    pub(super) const NUMBER_END: u32 = 1 << 24;

    /// Decodes the word of a slot; `None` if the slot has no element.
    #[inline]
    pub(super) const fn from_raw(raw: u64) -> Option<Self> {
        match raw {
            EMPTY | SEALED => None,
            raw => Some(Self(raw)),
        }
    }

    /// Decodes the word of a slot, if hits of its element count and are not drops.
    #[inline(always)]
    pub(super) const fn counting(raw: u64) -> Option<Self> {
        match raw & COUNTS {
            0 => None,
            _ => Some(Self(raw)),
        }
    }

    /// Decodes the word of a slot, if hits of its element count, and its key has `len` words
    /// without the zeros at its end.
    #[inline(always)]
    pub(super) const fn counting_with(raw: u64, len: u32) -> Option<Self> {
        match raw as u32 & (LEN | COUNTS) as u32 == len << 2 | COUNTS as u32 {
            true => Some(Self(raw)),
            false => None,
        }
    }

    #[inline]
    pub(super) const fn raw(self) -> u64 {
        self.0
    }

    /// The bits of the key's hash that are in the slot.
    #[inline]
    pub(super) const fn hash(self) -> u64 {
        self.0 & Self::HASH
    }

    /// Returns whether the slot has the bits of this hash.
    #[inline]
    pub(super) const fn has_hash(self, hash: u64) -> bool {
        (self.0 ^ hash) & Self::HASH == 0
    }

    #[inline]
    pub(super) const fn number(self) -> u32 {
        self.0 as u32 >> 8
    }

    /// Words of the key without the zeros at its end; 0 if it is dead.
    #[inline]
    pub(super) const fn len(self) -> u32 {
        self.0 as u32 >> 2 & 0x3f
    }

    #[inline]
    pub(super) const fn state(self) -> SlotState {
        match self.0 & STATE {
            _ if self.0 & LEN == 0 => SlotState::Dead,
            0 => SlotState::Going,
            1 => SlotState::Excess,
            2 => SlotState::New,
            _ => SlotState::Entry,
        }
    }

    /// This element in another state. A dead one stays dead.
    pub(super) const fn with(self, state: SlotState) -> Self {
        match state {
            SlotState::Dead => Self(self.0 & !(LEN | STATE) | DEAD),
            state => Self(self.0 & !STATE | state as u64),
        }
    }

    /// Lets this entry, which is in `slot`, go (E1). Returns false if the slot has changed.
    pub(super) fn let_go(self, slot: &Atomic<u64>) -> bool {
        self.change(slot, SlotState::Going).is_ok()
    }

    /// Makes this element, which is going in `slot`, an entry again (E2, E4). Returns whether it is
    /// one now, whoever has done it; if not, it is dead. Any context.
    pub(super) fn rescue(self, slot: &Atomic<u64>) -> bool {
        match self.change(slot, SlotState::Entry) {
            Ok(()) => true,
            Err(now) => now == self.with(SlotState::Entry),
        }
    }

    /// Ends this entry, which is going in `slot` (E3). Returns false if a hit has rescued it.
    pub(super) fn bury(self, slot: &Atomic<u64>) -> bool {
        self.change(slot, SlotState::Dead).is_ok()
    }

    /// Ends this entry of a map of buckets, which is in `slot` (E5). No hit has its key any more.
    /// Its counts move elsewhere, and its number is free soon.
    pub(super) fn forget(self, slot: &Atomic<u64>) {
        let dead = Self::new(self.hash(), 0, Self::NO_NUMBER).with(SlotState::Dead);
        slot.store(dead.0, Release);
    }

    /// The number of an element that is in no slot: see [`Slot::forget`]. It is not 0, so no dead
    /// slot is like [`SEALED`].
    pub(super) const NO_NUMBER: u32 = Other::Expired.number();

    /// Puts this element, which is in `slot`, in another state. Fails with the word that the slot
    /// has instead.
    fn change(self, slot: &Atomic<u64>, to: SlotState) -> Result<(), Self> {
        // Release: a lookup that loads this word sees the key and the birth.
        let changed = slot.cmpxchg(self.0, self.with(to).0, Release);
        changed.map(drop).map_err(Self)
    }
}

/// The word of an empty slot.
pub(super) const EMPTY: u64 = 0;

/// The word of an empty slot of a table that takes no more keys. It stays empty: insertions that
/// end here go to the next table. Dead elements have other numbers: where some are dead, number 0
/// belongs to [`Other`](super::Other).
pub(super) const SEALED: u64 = DEAD;

/// The slots of the hash table. A slot is filled once, or sealed, and never emptied.
#[derive(Clone)]
pub(super) struct Table {
    slots: Shared<Atomic<u64>>,
    /// 64 - log2 of the number of slots.
    shift: u32,
    /// Number of slots on the path of a key.
    path_max: u32,
    /// Number of places that are taken when it takes no more keys.
    limit: u32,
    /// Number of places that are taken when hits seal slots of the table before and insert in this
    /// one. Only a next table has this.
    opens_at: Option<Arc<Atomic<u32>>>,
}

impl Table {
    /// Number of slots on the path of a key, in maps that may grow.
    pub(super) const PATH_MAX: u32 = 32;

    /// The value of `opens_at` in a next table that is not open.
    const CLOSED: u32 = u32::MAX;

    /// A table with 2^`bits` slots, where `bits` is 1 to 31, that takes keys until `limit` places
    /// are taken. Paths have `path_max` slots, or all if these are less. Fails with `ENOMEM`.
    pub(super) fn new(bits: u32, limit: u32, path_max: u32) -> Result<Self> {
        Ok(Self {
            slots: Shared::new(zeroed(1 << bits, NumaNode::NO_NODE, GFP_KERNEL)?)?,
            shift: u64::BITS - bits,
            path_max: path_max.min(1 << bits),
            limit,
            opens_at: None,
        })
    }

    /// [`Table::new`], for a next table, which is not open at first. Fails with `ENOMEM`.
    pub(super) fn new_next(bits: u32, limit: u32, path_max: u32) -> Result<Self> {
        Ok(Self {
            opens_at: Some(Arc::new(Atomic::new(Self::CLOSED), GFP_KERNEL)?),
            ..Self::new(bits, limit, path_max)?
        })
    }

    /// This table with another limit and other paths, which are not shorter.
    pub(super) fn with(&self, limit: u32, path_max: u32) -> Self {
        Self {
            path_max: path_max.min(self.slots.len() as u32),
            limit,
            ..self.clone()
        }
    }

    /// Returns log2 of the number of slots for `capacity` entries and `elements` elements in all:
    /// at least `each` slots for an entry, and one more than elements.
    pub(super) fn bits_for(capacity: u32, each: u32, elements: u32) -> u32 {
        let slots = (u64::from(each) * u64::from(capacity)).max(u64::from(elements) + 1);
        slots.next_power_of_two().ilog2()
    }

    /// Bytes of memory of a table with 2^`bits` slots.
    pub(super) fn size_bytes(bits: u32) -> usize {
        size_of::<Atomic<u64>>() << bits
    }

    /// log2 of the number of slots.
    pub(super) fn bits(&self) -> u32 {
        u64::BITS - self.shift
    }

    /// All slots, in the order of their memory.
    pub(super) fn slots(&self) -> &[Atomic<u64>] {
        &self.slots
    }

    /// Number of places that are taken when it takes no more keys.
    pub(super) fn limit(&self) -> u32 {
        self.limit
    }

    /// Number of slots on the path of a key.
    pub(super) fn path_max(&self) -> u32 {
        self.path_max
    }

    /// Opens this next table: when so many places are taken, hits seal slots of the table before
    /// and insert in this one. Called a grace period after both were published, when the pool has
    /// the places and the elements.
    pub(super) fn open(&self, places: u32) {
        if let Some(opens_at) = &self.opens_at {
            opens_at.store(places, Release);
        }
    }

    /// Number of places that are taken when this next table takes keys, if it is open. Acquire: if
    /// so, the caller sees its places. Any context.
    pub(super) fn opens_at(&self) -> Option<u32> {
        let opens_at = self.opens_at.as_ref()?.load(Acquire);
        (opens_at != Self::CLOSED).then_some(opens_at)
    }

    /// The elements in all slots. Calls `step` for each slot.
    pub(super) fn elements<'a>(
        &'a self,
        mut step: impl FnMut() + 'a,
    ) -> impl Iterator<Item = Slot> + 'a {
        self.slots().iter().filter_map(move |slot| {
            step();
            Slot::from_raw(slot.load(Acquire))
        })
    }

    /// The first slot on the path of a key with this hash.
    #[inline(always)]
    pub(super) fn home(&self, hash: u64) -> &Atomic<u64> {
        let home = hash.wrapping_shr(self.shift) as usize;
        debug_assert!(home < self.slots.len());
        // SAFETY: The table has 2^(64 - `shift`) slots, and a 64-bit number shifted right by
        // `shift` is less than that.
        unsafe { self.slots.get_unchecked(home) }
    }

    /// The path of a key with this hash: so many slots, each once.
    #[inline]
    pub(super) fn path(&self, hash: u64) -> impl Iterator<Item = &Atomic<u64>> {
        self.path_behind(0, hash)
    }

    /// The path of a key with this hash, without its first `passed` slots.
    ///
    /// The second slot follows the first one, the third is 2 further on, the next one 3, and so on,
    /// until all are on the path, as their number is a power of two. If each were next to the one
    /// before, paths would run into each other: with half of the slots full, the longest of 100,000
    /// would have some 30 slots instead of 15.
    #[inline]
    pub(super) fn path_behind(
        &self,
        passed: usize,
        hash: u64,
    ) -> impl Iterator<Item = &Atomic<u64>> {
        let slots = &self.slots[..];
        let mask = slots.len().wrapping_sub(1);
        let home = hash.wrapping_shr(self.shift) as usize;
        // The sum of the steps to the last slot that was passed.
        let steps = passed.wrapping_mul(passed.wrapping_sub(1)) / 2;
        let mut index = home.wrapping_add(steps);
        (passed..self.path_max as usize).map(move |step| {
            index = index.wrapping_add(step) & mask;
            debug_assert!(index < slots.len());
            // SAFETY: The number of slots is a power of two, so one less is a mask for indexes.
            unsafe { slots.get_unchecked(index) }
        })
    }

    /// Seals a slot, if it is empty. Release: a lookup that finds the seal sees the places of the
    /// next table, which this context has seen. Returns the word that the slot has now.
    pub(super) fn seal_slot(slot: &Atomic<u64>) -> u64 {
        match slot.cmpxchg(EMPTY, SEALED, Release) {
            Ok(_) => SEALED,
            // A failed one orders nothing.
            Err(_) => slot.load(Acquire),
        }
    }

    /// Seals all empty slots: no element is inserted in this table any more. Calls `step` for each
    /// slot.
    pub(super) fn seal(&self, mut step: impl FnMut()) {
        for slot in self.slots() {
            step();
            if slot.load(Relaxed) == EMPTY {
                Self::seal_slot(slot);
            }
        }
    }

    /// Inserts the entries in these slots of this table, which is sealed, in `next`: if need be,
    /// behind the end of their path there. Hits do not insert the same keys there, since they find
    /// them in this table, but may insert others meanwhile. Returns the number of slots that a path
    /// needs there to have all of them.
    pub(super) fn copy_to(&self, next: &Self, slots: Range<usize>) -> u32 {
        let entries = self.slots[slots].iter().filter_map(|slot| {
            Slot::from_raw(slot.load(Acquire)).filter(|word| word.state() == SlotState::Entry)
        });
        entries.map(|entry| next.copy(entry)).max().unwrap_or(0)
    }

    /// Inserts a copy of `element`, which is in another table. Returns the number of slots of its
    /// path up to there.
    fn copy(&self, element: Slot) -> u32 {
        let all = self.with(self.limit, u32::MAX);
        let copied = all.path(element.hash()).position(|slot| {
            // Release: a lookup that finds the element there sees its key.
            slot.load(Relaxed) == EMPTY && slot.cmpxchg(EMPTY, element.raw(), Release).is_ok()
        });
        // A table has more slots than elements.
        copied.map_or(0, |nth| nth as u32 + 1)
    }

    /// Returns whether the element in `slot` of another table is in this one.
    pub(super) fn has(&self, element: Slot) -> bool {
        let words = self.path(element.hash()).map(|slot| slot.load(Acquire));
        let mut elements = words.map_while(Slot::from_raw);
        elements.any(|other| other.number() == element.number())
    }
}
