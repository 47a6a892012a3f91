// SPDX-License-Identifier: GPL-2.0

//! How many entries a map has room for, at first and later.

use super::others::Other;

/// How many entries a map has room for beyond its first size, and what becomes of hits and entries
/// without room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// log2 of the number of entries that it may grow to. It does not grow if this is not above
    /// [`super::Shape::bits`].
    pub bits_max: u32,
    /// It has the elements of [`Other`].
    pub others: bool,
    /// Hits that find no place count in [`Other::Folded`]. Otherwise they are drops.
    pub folds: bool,
    /// Entries are taken out, and their numbers used again. So it has a quarter more places: while
    /// some entries are on their way out, the others are as many as were asked for.
    pub forgets: bool,
    /// Tables have eight slots for an entry instead of two. So known keys are found within a few
    /// slots, also in the next table: the dearest hit does not take much longer than others.
    pub sparse: bool,
    /// Somebody keeps the numbers of its elements, which another context may have found before it
    /// was decided whether they get a place: all get one, some beyond the last.
    pub numbered: bool,
}

impl Room {
    /// Room for 2^`bits` entries for good: other keys are dropped, and no entry is taken out.
    pub const fn fixed(bits: u32) -> Self {
        Self {
            bits_max: bits,
            others: false,
            folds: false,
            forgets: false,
            sparse: false,
            numbered: false,
        }
    }

    /// Returns whether a map grows whose present table is for 2^`bits` entries.
    pub const fn grows(&self, bits: u32) -> bool {
        self.bits_max > bits
    }

    /// log2 of the number of entries of the next table after one for 2^`bits`: four times as many.
    pub(super) fn next_bits(&self, bits: u32) -> u32 {
        self.bits_max.min(bits.saturating_add(2)).max(bits)
    }

    /// The number of places of a map whose last table is for 2^`bits` entries. `None`: too many.
    pub(super) fn places(&self, bits: u32) -> Option<u32> {
        let entries = 1u32.checked_shl(bits)?;
        entries.checked_add(if self.forgets { entries / 4 } else { 0 })
    }

    /// The least number of slots of a table for each place. As the number of all slots is a power
    /// of two, a sparse table has eight for each entry, with and without a quarter more places.
    pub(super) fn slots_per_place(&self) -> u32 {
        if self.sparse {
            6
        } else {
            2
        }
    }

    /// Number of elements that are in no slot.
    pub(super) fn others(&self) -> u32 {
        if self.others {
            Other::ALL.len() as u32
        } else {
            0
        }
    }
}
