// SPDX-License-Identifier: GPL-2.0

//! The stack of a hit.

use core::mem::MaybeUninit;

use super::Words;
use crate::limits::STACK_DEPTH;

/// Return addresses, the innermost first, and at most [`STACK_DEPTH`] of them.
pub struct Stack {
    words: Words<{ Stack::BEFORE + STACK_DEPTH }>,
    /// How many of the words come before them.
    before: usize,
}

impl Stack {
    /// How many functions there may be before the one whose stack it is: room for those, too.
    pub const BEFORE: usize = 24;

    /// Without entries.
    #[expect(clippy::new_without_default)]
    #[inline(always)]
    pub const fn new() -> Self {
        Self {
            words: Words::new(),
            before: 0,
        }
    }

    /// Its entries.
    #[inline(always)]
    pub fn entries(&self) -> &[u64] {
        let entries = self.words.as_slice().get(self.before..);
        let entries = entries.unwrap_or_default();
        entries.get(..STACK_DEPTH).unwrap_or(entries)
    }

    /// Appends entries, as far as there is room.
    pub fn extend(&mut self, entries: impl IntoIterator<Item = u64>) {
        for entry in entries {
            self.words.push(entry);
        }
    }

    /// Replaces the entries by up to `most` others, of which some come [before](Stack::begin_at) its own: see
    /// [`Words::fill`]. Returns them.
    #[inline(always)]
    pub fn fill<F>(&mut self, most: usize, fill: F) -> Option<&[u64]>
    where
        F: for<'a> FnOnce(&'a mut [MaybeUninit<u64>]) -> Option<&'a mut [u64]>,
    {
        self.words.fill(most, fill)?;
        self.before = 0;
        Some(self.words.as_slice())
    }

    /// Leaves out the first `before` of those that were filled.
    #[inline(always)]
    pub fn begin_at(&mut self, before: usize) {
        self.before = before;
    }
}
