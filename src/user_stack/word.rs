// SPDX-License-Identifier: GPL-2.0

//! The words of a stack.

use super::End;

/// Where an address is, in a form that is the same in all processes, and still means something when
/// they are gone.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Place {
    /// A file that is mapped.
    File {
        /// Its number in the list of objects.
        object: u32,
        /// The offset in it in bytes.
        offset: u64,
    },
    /// Executable memory without a file, such as the code of a JIT compiler.
    Memory {
        /// A number for the mapping.
        mapping: u32,
        /// The offset in it in bytes.
        offset: u64,
    },
    /// The code that the kernel maps into each program (vDSO).
    Vdso {
        /// The offset in it in bytes.
        offset: u64,
    },
    /// A file without a number, since too many files have one; or an address without code that the
    /// program has called.
    Unlisted,
}

impl Place {
    /// The place so many bytes further.
    #[inline(always)]
    pub(super) fn plus(self, more: u64) -> Self {
        match self {
            Self::File { object, offset } => Self::File {
                object,
                offset: offset.saturating_add(more),
            },
            Self::Memory { mapping, offset } => Self::Memory {
                mapping,
                offset: offset.saturating_add(more),
            },
            Self::Vdso { offset } => Self::Vdso {
                offset: offset.saturating_add(more),
            },
            Self::Unlisted => Self::Unlisted,
        }
    }
}

/// A [`Place`] in a word: 20 bits for the number, 40 for the offset, 4 for the kind. Never 0, which
/// ends a stack in a key; and no link between the pieces of a stack has the same lowest bits
/// (`hist/stacks.rs`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Word(u64);

const KIND_BITS: u32 = 4;
const OFFSET_BITS: u32 = 40;
const NUMBER_BITS: u32 = 20;

/// An address that is not a return address: of the instruction that was to run next.
const EXACT: u64 = 1 << (KIND_BITS - 1);
const FILE: u64 = 1;
const MEMORY: u64 = 2;
const VDSO: u64 = 3;
const UNLISTED: u64 = 4;
const END: u64 = 5;

impl Word {
    /// Numbers are smaller.
    pub const NUMBERS: u32 = 1 << NUMBER_BITS;

    /// Offsets are smaller.
    pub const OFFSETS: u64 = 1 << OFFSET_BITS;

    /// The word for a place; an exact address is not a return address. A place whose number or
    /// offset does not fit is unlisted.
    pub fn new(place: Place, exact: bool) -> Self {
        let (kind, number, offset) = match place {
            Place::File { object, offset } => (FILE, object, offset),
            Place::Memory { mapping, offset } => (MEMORY, mapping, offset),
            Place::Vdso { offset } => (VDSO, 0, offset),
            Place::Unlisted => (UNLISTED, 0, 0),
        };
        let exact = if exact { EXACT } else { 0 };
        if number >= Self::NUMBERS || offset >= Self::OFFSETS {
            return Self(UNLISTED | exact);
        }
        let number = u64::from(number) << OFFSET_BITS;
        Self((number | offset) << KIND_BITS | kind | exact)
    }

    /// A word, as [`Word::to_u64`] has returned it; or plus [`Word::bytes`], if the offset still
    /// fits.
    #[inline(always)]
    pub(super) fn of(word: u64) -> Self {
        Self(word)
    }

    /// The difference between the words of two places, so many bytes apart.
    #[inline(always)]
    pub(super) fn bytes(more: u64) -> u64 {
        more << KIND_BITS
    }

    /// The word as it is in a key.
    pub const fn to_u64(self) -> u64 {
        self.0
    }

    /// The word for the end of a stack: its last one. Stacks that are whole, or as deep as was
    /// wanted, have none.
    pub const fn end(end: End) -> Self {
        Self((end.number() as u64) << (KIND_BITS + OFFSET_BITS) | END)
    }

    /// The end of a stack, if the word is that.
    pub fn as_end(word: u64) -> Option<End> {
        let number = (word >> (KIND_BITS + OFFSET_BITS)) as u32;
        let end = End::of_number(number)?;
        (Self::end(end).0 == word).then_some(end)
    }

    /// The place, and whether the address is exact; `None`: the word is an end, or no walk has made
    /// it.
    pub fn place(word: u64) -> Option<(Place, bool)> {
        let offset = word >> KIND_BITS & (Self::OFFSETS - 1);
        let number = (word >> (KIND_BITS + OFFSET_BITS)) as u32;
        let kind = word & ((1 << KIND_BITS) - 1);
        let place = match (kind & !EXACT, number, offset) {
            (FILE, object, offset) => Place::File { object, offset },
            (MEMORY, mapping, offset) => Place::Memory { mapping, offset },
            (VDSO, 0, offset) => Place::Vdso { offset },
            (UNLISTED, 0, 0) => Place::Unlisted,
            _ => return None,
        };
        Some((place, kind & EXACT != 0))
    }
}
