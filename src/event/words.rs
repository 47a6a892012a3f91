// SPDX-License-Identifier: GPL-2.0

//! Words of a hit: strings and stacks, in memory that is not zeroed first.

use core::{
    iter,
    mem::{
        self,
        MaybeUninit, //
    },
    ptr,
    slice, //
};

use super::unaligned::Unaligned;

/// Up to `N` words. Places that are not used are not zeroed: that would take longer than to read a short string, or to walk
/// a short stack.
///
/// # Invariants
///
/// The first `len` words are initialized, and there are so many.
pub struct Words<const N: usize> {
    words: [MaybeUninit<u64>; N],
    len: usize,
}

impl<const N: usize> Words<N> {
    /// No words yet.
    #[expect(clippy::new_without_default)]
    #[inline(always)]
    pub const fn new() -> Self {
        // INVARIANT: None is initialized.
        Self {
            words: [MaybeUninit::uninit(); N],
            len: 0,
        }
    }

    /// All of them.
    #[inline(always)]
    pub fn as_slice(&self) -> &[u64] {
        // SAFETY: By the type invariant there are so many, which are initialized.
        unsafe { slice::from_raw_parts(self.words.as_ptr().cast(), self.len) }
    }

    /// Appends a word, if there is room for it.
    #[inline(always)]
    pub fn push(&mut self, word: u64) {
        if let Some(place) = self.words.get_mut(self.len) {
            place.write(word);
            // INVARIANT: One more is initialized.
            self.len += 1;
        }
    }

    /// Replaces them by those of `text`, of which at least one is there. What does not fit is left out.
    // Not made and returned: that would be a copy of the whole.
    #[inline(always)]
    pub fn set(&mut self, text: &[u8]) {
        self.len = 0;
        words_of(text).for_each(|word| self.push(word));
        if self.len == 0 {
            self.push(0);
        }
    }

    /// Replaces them by up to `most` others. `fill` gets the places for them, and returns those that it has filled, from the
    /// first one. `None`, and nothing is replaced, if it does, or returns others, or there are not so many places.
    #[inline(always)]
    pub fn fill<F>(&mut self, most: usize, fill: F) -> Option<()>
    where
        F: for<'a> FnOnce(&'a mut [MaybeUninit<u64>]) -> Option<&'a mut [u64]>,
    {
        let places = self.words.get_mut(..most)?;
        let first = places.as_ptr();
        let filled = fill(places)?;
        if filled.len() > most || !ptr::eq(filled.as_ptr().cast(), first) {
            return None;
        }
        // INVARIANT: A slice of numbers is initialized.
        self.len = filled.len();
        Some(())
    }
}

/// The words of `text`, with NULs behind it in the last one.
#[inline(always)]
pub fn words_of(text: &[u8]) -> impl Iterator<Item = u64> + '_ {
    let mut rest = text;
    iter::from_fn(move || match rest.split_first_chunk() {
        Some((word, behind)) => {
            rest = behind;
            Some(u64::of(word))
        }
        None if rest.is_empty() => None,
        None => Some(tail(text, mem::take(&mut rest))),
    })
}

/// The last word of `text`, which ends with `rest`, of 1 to 7 bytes.
#[inline(always)]
fn tail(text: &[u8], rest: &[u8]) -> u64 {
    match text.last_chunk() {
        // Bytes before `rest` are shifted out.
        Some(last) if cfg!(target_endian = "little") => u64::of(last) >> (64 - 8 * rest.len()),
        _ => {
            let mut word = [0; 8];
            word.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            u64::from_ne_bytes(word)
        }
    }
}
