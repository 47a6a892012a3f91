// SPDX-License-Identifier: GPL-2.0

//! The stack of a hit.

use core::{
    mem::MaybeUninit,
    ptr,
    slice, //
};

use crate::limits::STACK_DEPTH;

/// Return addresses, the innermost first, and at most [`STACK_DEPTH`] of them. New ones are not zeroed: that would take longer
/// than to walk a short stack.
///
/// # Invariants
///
/// `begin <= end <= places.len()`, and the places before `end` are initialized.
pub struct Stack {
    places: [MaybeUninit<u64>; Stack::BEFORE + STACK_DEPTH],
    begin: usize,
    end: usize,
}

impl Stack {
    /// How many functions there may be before the one whose stack it is: room for those, too.
    pub const BEFORE: usize = 24;

    /// Without entries.
    #[inline(always)]
    pub const fn new() -> Self {
        // INVARIANT: None is initialized.
        Self {
            places: [MaybeUninit::uninit(); Stack::BEFORE + STACK_DEPTH],
            begin: 0,
            end: 0,
        }
    }

    /// Its entries.
    #[inline(always)]
    pub fn entries(&self) -> &[u64] {
        // SAFETY: By the type invariant these places are there, and initialized.
        unsafe {
            let begin = self.places.as_ptr().add(self.begin);
            slice::from_raw_parts(begin.cast(), self.end.unchecked_sub(self.begin))
        }
    }

    /// Adds entries, as far as there is room.
    pub fn extend(&mut self, entries: impl IntoIterator<Item = u64>) {
        for (place, entry) in self.places.iter_mut().skip(self.end).zip(entries) {
            place.write(entry);
            // INVARIANT: One more is initialized.
            self.end += 1;
        }
        self.leave_out(0);
    }

    /// Has `fill` make up to `most` entries: it gets places for them, and returns those that it has filled, from the first
    /// one. `None` if it does, or returns others.
    #[inline(always)]
    pub fn fill<F>(&mut self, most: usize, fill: F) -> Option<()>
    where
        F: for<'a> FnOnce(&'a mut [MaybeUninit<u64>]) -> Option<&'a mut [u64]>,
    {
        let places = self.places.get_mut(..most)?;
        let first = places.as_ptr();
        let filled = fill(places)?;
        if filled.len() > most || !ptr::eq(filled.as_ptr().cast(), first) {
            return None;
        }
        // INVARIANT: A slice of numbers is initialized.
        (self.begin, self.end) = (0, filled.len());
        Some(())
    }

    /// Leaves the first `n` entries out, and those that are too many then.
    #[inline(always)]
    pub fn leave_out(&mut self, n: usize) {
        // INVARIANT: Fewer than before.
        self.begin = self.end.min(self.begin.saturating_add(n));
        self.end = self.end.min(self.begin.saturating_add(STACK_DEPTH));
    }
}

impl Default for Stack {
    fn default() -> Self {
        Self::new()
    }
}
