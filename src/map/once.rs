// SPDX-License-Identifier: GPL-2.0

//! A short text in the side data of an element, stored once, by the first hit.
//!
//! # Memory ordering
//!
//! The last word is not 0 once the text is stored. It is stored last (release) and loaded first
//! (acquire), so a reader sees the whole text or none. Hits that find none at the same time all
//! store it, and have to store the same.

use kernel::sync::atomic::{
    Acquire,
    Atomic,
    Relaxed,
    Release, //
};

use crate::text::until_nul;

/// Bytes of the text, the last of which is a NUL.
const SIZE: usize = 16;

/// The same in words.
const WORDS: usize = SIZE / size_of::<u64>();

/// A text that is stored once. Shared by all CPUs; any context.
#[derive(Clone, Copy)]
pub struct OnceText<'a>(&'a [Atomic<u64>; WORDS]);

impl<'a> OnceText<'a> {
    /// Bytes of the text, the last of which is a NUL.
    pub const SIZE: usize = SIZE;
    /// Words of side data.
    pub const WORDS: usize = WORDS;

    /// Returns the text in this side data; `None` if that does not have [`OnceText::WORDS`] words.
    #[inline]
    pub fn of(side: &'a [Atomic<u64>]) -> Option<Self> {
        side.try_into().ok().map(Self)
    }

    /// Returns whether it is stored: then all of it can be loaded.
    #[inline]
    pub fn is_stored(self) -> bool {
        self.0[1].load(Acquire) != 0
    }

    /// Stores `text` up to its NUL.
    #[inline]
    pub fn store(self, text: &[u8; SIZE]) {
        let mut bytes = [0; SIZE];
        for (to, from) in bytes.iter_mut().zip(until_nul(text)) {
            *to = *from;
        }
        // Not 0: marks the text as stored. `load()` replaces it with the NUL.
        bytes[SIZE - 1] = 1;
        let both = u128::from_le_bytes(bytes);
        self.0[0].store(both as u64, Relaxed);
        self.0[1].store((both >> 64) as u64, Release);
    }

    /// Loads the text, padded with NULs; an empty one if none is stored.
    pub fn load(self) -> [u8; SIZE] {
        match self.0[1].load(Acquire) {
            // The first word may be stored already.
            0 => [0; SIZE],
            last => Self::of_words([self.0[0].load(Relaxed), last]),
        }
    }

    /// Loads the text in this side data; an empty one if that has none, or none is stored.
    pub fn load_from(side: &'a [Atomic<u64>]) -> [u8; SIZE] {
        Self::of(side).map_or([0; SIZE], Self::load)
    }

    /// The text in these words of side data.
    pub fn of_words([first, last]: [u64; WORDS]) -> [u8; SIZE] {
        let mut text = (u128::from(first) | u128::from(last) << 64).to_le_bytes();
        text[SIZE - 1] = 0;
        text
    }
}
