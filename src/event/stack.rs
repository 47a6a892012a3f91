// SPDX-License-Identifier: GPL-2.0

//! The stack of a hit.

use core::mem::MaybeUninit;

use super::{
    Tail,
    Words, //
};
use crate::limits::STACK_DEPTH;

/// Return addresses, the innermost first, and at most [`STACK_DEPTH`] of them.
pub struct Stack {
    words: Words<{ Stack::BEFORE + STACK_DEPTH }>,
    /// Number of words before the first entry.
    before: usize,
}

impl Stack {
    /// Maximum number of functions above the traced one, on top of the stack: the buffer holds
    /// these, too.
    pub const BEFORE: usize = 24;

    /// Creates an empty stack.
    #[expect(clippy::new_without_default)]
    #[inline(always)]
    pub const fn new() -> Self {
        Self {
            words: Words::new(),
            before: 0,
        }
    }

    /// The entries.
    #[inline(always)]
    pub fn entries(&self) -> &[u64] {
        let entries = self.words.as_slice().get(self.before..);
        let entries = entries.unwrap_or_default();
        entries.get(..STACK_DEPTH).unwrap_or(entries)
    }

    /// Appends entries until the buffer is full.
    pub fn extend(&mut self, entries: impl IntoIterator<Item = u64>) {
        for entry in entries {
            self.words.push(entry);
        }
    }

    /// Appends the entries that `write` pushes: see [`Words::append`].
    #[inline(always)]
    pub fn append<T>(&mut self, write: impl FnOnce(&mut Tail<'_>) -> T) -> T {
        self.words.append(write)
    }

    /// Replaces the entries by up to `most` others, the first of which may have to be skipped (see
    /// [`Stack::begin_at`]): see [`Words::fill`]. Returns them.
    #[inline(always)]
    pub fn fill<F>(&mut self, most: usize, fill: F) -> Option<&[u64]>
    where
        F: for<'a> FnOnce(&'a mut [MaybeUninit<u64>]) -> Option<&'a mut [u64]>,
    {
        self.words.fill(most, fill)?;
        self.before = 0;
        Some(self.words.as_slice())
    }

    /// Skips the first `before` of the filled entries.
    #[inline(always)]
    pub fn begin_at(&mut self, before: usize) {
        self.before = before;
    }
}
