// SPDX-License-Identifier: GPL-2.0

//! Buffers for the words of a hit, strings and stacks, that are not zeroed first.

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

/// Up to `N` words. Unused places are not zeroed: that would take longer than to read a short
/// string, or to walk a short stack.
///
/// # Invariants
///
/// `len` is at most `N`, and the first `len` words are initialized.
pub struct Words<const N: usize> {
    words: [MaybeUninit<u64>; N],
    len: usize,
}

impl<const N: usize> Words<N> {
    /// Creates an empty buffer.
    #[expect(clippy::new_without_default)]
    #[inline(always)]
    pub const fn new() -> Self {
        // INVARIANT: `len` is 0.
        Self {
            words: [MaybeUninit::uninit(); N],
            len: 0,
        }
    }

    /// The words.
    #[inline(always)]
    pub fn as_slice(&self) -> &[u64] {
        // SAFETY: By the type invariant `len` words are initialized.
        unsafe { slice::from_raw_parts(self.words.as_ptr().cast(), self.len) }
    }

    /// Appends a word; does nothing if the buffer is full.
    #[inline(always)]
    pub fn push(&mut self, word: u64) {
        if let Some(place) = self.words.get_mut(self.len) {
            place.write(word);
            // INVARIANT: `place` is initialized now.
            self.len += 1;
        }
    }

    /// Appends the words that `write` pushes, and returns its result. For many words, this takes
    /// less time than [`Words::push`].
    #[inline(always)]
    pub fn append<T>(&mut self, write: impl FnOnce(&mut Tail<'_>) -> T) -> T {
        let places = self.words.get_mut(self.len..).unwrap_or_default();
        let (result, more) = Tail::fill(places, write);
        // INVARIANT: So many more places are initialized.
        self.len += more;
        result
    }

    /// Replaces the words by the words of `text`, truncated if they do not fit; at least one, 0 for
    /// an empty text.
    // In place: returning a new buffer would copy all of it.
    #[inline(always)]
    pub fn set(&mut self, text: &[u8]) {
        self.len = 0;
        words_of(text).for_each(|word| self.push(word));
        if self.len == 0 {
            self.push(0);
        }
    }

    /// Replaces the words by up to `most` others. `fill` gets the places, and returns the places
    /// that it has filled, which have to start with the first one. Returns `None`, and replaces
    /// nothing, if `fill` returns `None` or other memory, or if the buffer is smaller than `most`.
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

/// The unused places of a buffer.
pub struct Tail<'a> {
    places: slice::IterMut<'a, MaybeUninit<u64>>,
}

impl Tail<'_> {
    /// Calls `write` with a tail of these places. Returns its result, and how many of the places,
    /// beginning with the first one, it has initialized.
    #[inline(always)]
    pub(super) fn fill<T>(
        places: &mut [MaybeUninit<u64>],
        write: impl FnOnce(&mut Tail<'_>) -> T,
    ) -> (T, usize) {
        let most = places.len();
        let mut tail = Tail {
            places: places.iter_mut(),
        };
        let result = write(&mut tail);
        (result, most - tail.places.len())
    }

    /// [`Words::append`] to the words that the tail belongs to.
    #[inline(always)]
    pub fn append<T>(&mut self, write: impl FnOnce(&mut Tail<'_>) -> T) -> T {
        let mut tail = Tail {
            places: mem::take(&mut self.places),
        };
        let result = write(&mut tail);
        self.places = tail.places;
        result
    }

    /// Appends a word; does nothing if the buffer is full.
    #[inline(always)]
    pub fn push(&mut self, word: u64) {
        if let Some(place) = self.places.next() {
            place.write(word);
        }
    }
}

/// The words of `text`, the last one padded with NULs.
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
        // Shift out the bytes before `rest`.
        Some(last) if cfg!(target_endian = "little") => u64::of(last) >> (64 - 8 * rest.len()),
        _ => {
            let mut word = [0; 8];
            word.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            u64::from_ne_bytes(word)
        }
    }
}
