// SPDX-License-Identifier: GPL-2.0

//! The slots of the hash table.

use kernel::alloc::NumaNode;
use kernel::prelude::*;
use kernel::sync::atomic::Atomic;

use super::chunks::zeroed;

/// What became of the element in a slot.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotState {
    /// It came when all places were taken. Its hits are drops.
    Excess = 1,
    /// It has the slot. Whether it has a place among the entries is being decided.
    New = 2,
    /// It is an entry.
    Entry = 3,
}

/// The bit of a word that says that hits of its element count: not in an empty slot.
const COUNTS: u64 = 2;

/// The contents of a slot: the upper half is the hash of the key, then the index of the element in
/// 24 bits, the words of the key that are not zeros at its end in 6, and its state. An empty slot is 0.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot(u64);

impl Slot {
    /// `index` is less than [`Slot::INDEX_END`], `len` is 63 at most.
    pub(super) const fn new(hash: u32, len: u32, index: u32, state: SlotState) -> Self {
        Self((hash as u64) << 32 | (index as u64) << 8 | (len as u64) << 2 | state as u64)
    }

    /// One more than the highest index of an element.
    pub(super) const INDEX_END: u32 = 1 << 24;

    /// The word as it lies in a slot, unless that is empty.
    #[inline]
    pub(super) const fn from_raw(raw: u64) -> Option<Self> {
        match raw {
            EMPTY => None,
            raw => Some(Self(raw)),
        }
    }

    /// The same, if hits of its element count.
    #[inline(always)]
    pub(super) const fn that_counts(raw: u64) -> Option<Self> {
        match raw & COUNTS {
            0 => None,
            _ => Some(Self(raw)),
        }
    }

    #[inline]
    pub(super) const fn raw(self) -> u64 {
        self.0
    }

    #[inline]
    pub(super) const fn hash(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline]
    pub(super) const fn index(self) -> u32 {
        self.0 as u32 >> 8
    }

    /// How many words of the key are not zeros at its end.
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

/// An empty slot.
pub(super) const EMPTY: u64 = 0;

/// The slots. A slot is filled once and never emptied.
pub(super) struct Table {
    slots: KVVec<Atomic<u64>>,
    /// 32 - log2 of the number of slots.
    shift: u32,
}

impl Table {
    /// A table with 2^`bits` slots, where `bits` is 1 to 31. Fails with `ENOMEM`.
    pub(super) fn new(bits: u32) -> Result<Self> {
        Ok(Self {
            slots: zeroed(1 << bits, NumaNode::NO_NODE)?,
            shift: 32 - bits,
        })
    }

    /// All slots in memory order.
    pub(super) fn slots(&self) -> &[Atomic<u64>] {
        &self.slots
    }

    /// The first slot that a key with this hash tries.
    #[inline]
    pub(super) fn home(&self, hash: u32) -> &Atomic<u64> {
        let home = hash.wrapping_shr(self.shift) as usize;
        debug_assert!(home < self.slots.len());
        // SAFETY: There are 2^(32 - `shift`) slots, and no number of 32 bits without the lower `shift` of
        // them is larger.
        unsafe { self.slots.get_unchecked(home) }
    }

    /// All slots, once each, in the order in which a key with this hash tries them.
    #[inline]
    pub(super) fn path(&self, hash: u32) -> impl Iterator<Item = &Atomic<u64>> {
        let slots = &self.slots[..];
        let home = hash.wrapping_shr(self.shift) as usize;
        let mask = slots.len().wrapping_sub(1);
        (home..home.wrapping_add(slots.len())).map(move |i| &slots[i & mask])
    }
}
