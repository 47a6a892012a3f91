// SPDX-License-Identifier: GPL-2.0

//! The slots of the hash table.

use kernel::alloc::NumaNode;
use kernel::prelude::*;
use kernel::sync::atomic::Atomic;

use super::chunks::zeroed;

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

/// The bit that [`SlotState::New`] and [`SlotState::Entry`] have: hits of the element count.
const COUNTS: u64 = 2;

/// The contents of a slot that is not empty: from the top the hash of the key (32 bits), the number of the
/// element (24), the length of the key in words without the zeros at its end (6), and its state (2).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot(u64);

impl Slot {
    /// `number` is less than [`Slot::NUMBER_END`], `len` is 63 at most.
    pub(super) const fn new(hash: u32, len: u32, number: u32, state: SlotState) -> Self {
        Self((hash as u64) << 32 | (number as u64) << 8 | (len as u64) << 2 | state as u64)
    }

    /// One more than the highest number of an element.
    pub(super) const NUMBER_END: u32 = 1 << 24;

    /// The contents of a slot from its word; `None` if it is empty.
    #[inline]
    pub(super) const fn from_raw(raw: u64) -> Option<Self> {
        match raw {
            EMPTY => None,
            raw => Some(Self(raw)),
        }
    }

    /// The same; `None` also if hits of the element are drops.
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

/// The slots of the hash table. A slot is filled once and never emptied.
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

    /// All slots, in the order of their memory.
    pub(super) fn slots(&self) -> &[Atomic<u64>] {
        &self.slots
    }

    /// The first slot on the path of a key with this hash.
    #[inline]
    pub(super) fn home(&self, hash: u32) -> &Atomic<u64> {
        let home = hash.wrapping_shr(self.shift) as usize;
        debug_assert!(home < self.slots.len());
        // SAFETY: There are 2^(32 - `shift`) slots, and no number of 32 bits without the lower `shift` of
        // them is larger.
        unsafe { self.slots.get_unchecked(home) }
    }

    /// The path of a key with this hash: all slots, each once.
    #[inline]
    pub(super) fn path(&self, hash: u32) -> impl Iterator<Item = &Atomic<u64>> {
        let slots = &self.slots[..];
        let home = hash.wrapping_shr(self.shift) as usize;
        let mask = slots.len().wrapping_sub(1);
        (home..home.wrapping_add(slots.len())).map(move |i| &slots[i & mask])
    }
}
