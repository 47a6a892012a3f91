// SPDX-License-Identifier: GPL-2.0

//! The slots of the hash table.

use kernel::{
    alloc::NumaNode,
    prelude::*,
    sync::atomic::{
        Acquire,
        Atomic,
        Relaxed,
        Release, //
    },
};

use super::{
    chunks::zeroed,
    shared::Shared, //
};

/// The state of the element in a slot.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotState {
    /// It was published when all places were taken. Its hits are drops.
    Excess = 1,
    /// It was just published, and its owner is taking a place. Its hits count already.
    New = 2,
    /// It is an entry.
    Entry = 3,
}

/// The bit that is set in [`SlotState::New`] and [`SlotState::Entry`], but neither in [`EMPTY`] nor
/// in [`SEALED`]: hits of the element count.
const COUNTS: u64 = 2;

/// The contents of a slot that is not empty: from the top the hash of the key (32 bits), the number
/// of the element (24), the length of the key in words without the zeros at its end (6), and its
/// state (2).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot(u64);

impl Slot {
    /// `number` is less than [`Slot::NUMBER_END`], `len` is 63 at most.
    pub(super) const fn new(hash: u64, len: u32, number: u32, state: SlotState) -> Self {
        Self(hash & Self::HASH | (number as u64) << 8 | (len as u64) << 2 | state as u64)
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
        match raw as u32 & (0x3f << 2 | COUNTS as u32) == len << 2 | COUNTS as u32 {
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

    /// Words of the key without the zeros at its end.
    #[inline]
    pub(super) const fn len(self) -> u32 {
        self.0 as u32 >> 2 & 0x3f
    }

    #[inline]
    pub(super) const fn state(self) -> SlotState {
        match self.0 & 3 {
            1 => SlotState::Excess,
            2 => SlotState::New,
            _ => SlotState::Entry,
        }
    }
}

/// The word of an empty slot.
pub(super) const EMPTY: u64 = 0;

/// The word of an empty slot of a table that is being replaced. It stays empty: insertions that end
/// here go to the next table.
pub(super) const SEALED: u64 = 4;

/// The slots of the hash table. A slot is filled once, or sealed, and never emptied.
#[derive(Clone)]
pub(super) struct Table {
    slots: Shared<Atomic<u64>>,
    /// 64 - log2 of the number of slots.
    shift: u32,
}

impl Table {
    /// A table with 2^`bits` slots, where `bits` is 1 to 31. Fails with `ENOMEM`.
    pub(super) fn new(bits: u32) -> Result<Self> {
        Ok(Self {
            slots: Shared::new(zeroed(1 << bits, NumaNode::NO_NODE)?)?,
            shift: u64::BITS - bits,
        })
    }

    /// Returns log2 of the number of slots for `capacity` entries and `elements` elements in all:
    /// twice as many slots as entries, and at least one more than elements.
    pub(super) fn bits_for(capacity: u32, elements: u32) -> u32 {
        let slots = (2 * u64::from(capacity)).max(u64::from(elements) + 1);
        slots.next_power_of_two().ilog2()
    }

    /// Bytes of memory of a table with 2^`bits` slots.
    pub(super) fn size_bytes(bits: u32) -> usize {
        size_of::<Atomic<u64>>() << bits
    }

    /// All slots, in the order of their memory.
    pub(super) fn slots(&self) -> &[Atomic<u64>] {
        &self.slots
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

    /// The path of a key with this hash: all slots, each once.
    #[inline]
    pub(super) fn path(&self, hash: u64) -> impl Iterator<Item = &Atomic<u64>> {
        let slots = &self.slots[..];
        let home = hash.wrapping_shr(self.shift) as usize;
        let mask = slots.len().wrapping_sub(1);
        (home..home.wrapping_add(slots.len())).map(move |i| &slots[i & mask])
    }

    /// Seals all empty slots: no element is inserted in this table any more.
    pub(super) fn seal(&self) {
        for slot in self.slots() {
            if slot.load(Relaxed) == EMPTY {
                // If it fails, the slot was filled.
                let _ = slot.cmpxchg(EMPTY, SEALED, Relaxed);
            }
        }
    }

    /// Inserts all elements of this table, which is sealed, in `next`. Hits do not insert the same
    /// keys there, since they find them in this table, but may insert others meanwhile.
    pub(super) fn copy_to(&self, next: &Self) {
        let elements = self.slots().iter().map(|slot| slot.load(Acquire));
        for element in elements.filter_map(Slot::from_raw) {
            for slot in next.path(element.hash()) {
                // Release: a lookup that finds the element there sees its key.
                if slot.load(Relaxed) == EMPTY
                    && slot.cmpxchg(EMPTY, element.raw(), Release).is_ok()
                {
                    break;
                }
            }
        }
    }

    /// Returns whether the element in `slot` of another table is in this one.
    pub(super) fn has(&self, element: Slot) -> bool {
        let path = self.path(element.hash()).map(|slot| slot.load(Acquire));
        let mut elements = path.map_while(Slot::from_raw);
        elements.any(|other| other.number() == element.number())
    }
}
