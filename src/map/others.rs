// SPDX-License-Identifier: GPL-2.0

//! The elements of `other`, which are in no slot.

/// An element for hits without an entry. A map has them if its shape says so (`Room::others`). They
/// are its first elements, so their numbers are below the length of the shortest chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Other {
    /// Hits that found no place: `full(other)`.
    Folded = 0,
    /// Hits of entries that were idle: `expire()`.
    Expired = 1,
    /// Hits of entries that gave way to others: `full(recycle)`.
    Recycled = 2,
}

impl Other {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::Folded, Self::Expired, Self::Recycled];

    /// The number of the element.
    pub const fn number(self) -> u32 {
        self as u32
    }
}
