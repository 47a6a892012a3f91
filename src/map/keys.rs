// SPDX-License-Identifier: GPL-2.0

//! The keys of the elements.

use core::iter;
use kernel::{
    alloc::{
        Flags,
        NumaNode, //
    },
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
};

use super::chunks::{
    zeroed,
    Chunks,
    Numbering, //
};
use crate::event::unaligned::Unaligned;

/// A key to find or insert, without the zero words at its end, except that the first word is always
/// there.
pub(super) trait Key: Copy {
    /// Whether it is one word. Comparing it is then as cheap as comparing a hash.
    const ONE_WORD: bool = false;

    /// Number of words.
    fn len(self) -> u32;

    fn words(self) -> impl Iterator<Item = u64>;
}

/// A key's bytes.
#[derive(Clone, Copy)]
pub(super) struct ByteKey<'a>(&'a [u8]);

impl<'a> ByteKey<'a> {
    /// Returns the key of `size` bytes that begins with `bytes` and is zero behind them. `None` if
    /// they are not whole words, or more than `size`.
    #[inline]
    pub(super) fn new(mut bytes: &'a [u8], size: usize) -> Option<Self> {
        if bytes.is_empty() || bytes.len() % 8 != 0 || bytes.len() > size {
            return None;
        }
        while let Some((rest, last)) = bytes.split_last_chunk() {
            if rest.is_empty() || u64::from_ne_bytes(*last) != 0 {
                break;
            }
            bytes = rest;
        }
        Some(Self(bytes))
    }
}

impl Key for ByteKey<'_> {
    #[inline]
    fn len(self) -> u32 {
        (self.0.len() / 8) as u32
    }

    #[inline]
    fn words(self) -> impl Iterator<Item = u64> {
        self.0
            .chunks_exact(8)
            .map(|chunk| chunk.first_chunk().map_or(0, u64::of))
    }
}

/// The words of a key.
#[derive(Clone, Copy)]
pub(super) struct WordKey<'a>(&'a [u64]);

impl<'a> WordKey<'a> {
    /// Returns the key of `width` words that begins with `words` and is zero behind them. `None` if
    /// `words` is empty, or longer than `width`.
    #[inline]
    pub(super) fn new(mut words: &'a [u64], width: usize) -> Option<Self> {
        if words.is_empty() || words.len() > width {
            return None;
        }
        while let [rest @ .., 0] = words {
            if rest.is_empty() {
                break;
            }
            words = rest;
        }
        Some(Self(words))
    }
}

impl Key for WordKey<'_> {
    #[inline]
    fn len(self) -> u32 {
        self.0.len() as u32
    }

    #[inline]
    fn words(self) -> impl Iterator<Item = u64> {
        self.0.iter().copied()
    }
}

/// A single word.
impl Key for u64 {
    const ONE_WORD: bool = true;

    #[inline]
    fn len(self) -> u32 {
        1
    }

    #[inline]
    fn words(self) -> impl Iterator<Item = u64> {
        iter::once(self)
    }
}

/// Words, the last of which is not zero.
impl<const N: usize> Key for [u64; N] {
    #[inline]
    fn len(self) -> u32 {
        N as u32
    }

    #[inline]
    fn words(self) -> impl Iterator<Item = u64> {
        self.into_iter()
    }
}

/// The keys of all elements.
///
/// A key is written by the context that owns the element before it publishes the element, and never
/// afterwards. A context that has found the element by an acquiring load of its slot sees the whole
/// key, which does not change any more.
#[derive(Clone)]
pub(super) struct Keys {
    words: Chunks<Atomic<u64>>,
}

impl Keys {
    /// Memory for the keys of `elements` elements of `size` bytes each, a multiple of 8. Fails with
    /// `ENOMEM`.
    pub(super) fn new(elements: usize, numbering: Numbering, size: usize) -> Result<Self> {
        let zeros = |n| zeroed(n, NumaNode::NO_NODE, GFP_KERNEL);
        Ok(Self {
            words: Chunks::new(elements, numbering, size / 8, zeros)?,
        })
    }

    /// Memory for the keys of `elements` elements, the present ones among them. Fails with
    /// `ENOMEM`.
    pub(super) fn extended(
        &self,
        elements: usize,
        numbering: Numbering,
        flags: Flags,
    ) -> Result<Self> {
        Ok(Self {
            words: self.words.extended_by_zeros(elements, numbering, flags)?,
        })
    }

    /// Bytes of memory that an extension takes. `None`: the size overflows.
    pub(super) fn step_bytes(&self, elements: usize, numbering: Numbering) -> Option<usize> {
        self.words.step_bytes(elements, numbering)
    }

    /// Bytes of memory that they take.
    pub(super) fn bytes(&self) -> usize {
        self.words.bytes()
    }

    /// Words of one key.
    #[inline]
    pub(super) fn width(&self) -> usize {
        self.words.width()
    }

    /// Bytes of one key.
    #[inline]
    pub(super) fn size(&self) -> usize {
        self.width().wrapping_mul(8)
    }

    /// Loads the words of the key of element `number`, also while another key replaces it.
    ///
    /// # Safety
    ///
    /// An element has this number.
    pub(super) unsafe fn load(&self, number: u32) -> impl Iterator<Item = u64> + '_ {
        // SAFETY: The caller guarantees that an element has this number.
        let words = unsafe { self.words.of(number) };
        words.iter().map(|word| word.load(Relaxed))
    }

    /// The key of element `number`, in a map whose elements stay.
    ///
    /// # Safety
    ///
    /// The caller has found the element through an acquiring load of a slot, and the number is
    /// never used again.
    #[cfg(not(loom))]
    pub(super) unsafe fn get(&self, number: u32) -> &[u8] {
        // SAFETY: The caller found the element, so it exists.
        let words = unsafe { self.words.of(number) };
        // SAFETY: All stores to the key happened before the element got into its slot, so before
        // the caller's load that found it there, and none follows as long as `self` is borrowed.
        // `Atomic<u64>` has the representation of `u64`, which has no padding.
        unsafe { core::slice::from_raw_parts(words.as_ptr().cast::<u8>(), size_of_val(words)) }
    }

    /// The first word of the key of element `number`.
    ///
    /// # Safety
    ///
    /// The caller has found the element through an acquiring load of a slot.
    pub(super) unsafe fn first_word(&self, number: u32) -> u64 {
        // SAFETY: The caller found the element, so it exists.
        let words = unsafe { self.words.of(number) };
        words.first().map_or(0, |word| word.load(Relaxed))
    }

    /// Returns whether `key` is the key of element `number`, which has as many words.
    ///
    /// # Safety
    ///
    /// The caller has found the element through an acquiring load of a slot.
    #[inline(always)]
    pub(super) unsafe fn is<K: Key>(&self, number: u32, key: K) -> bool {
        if let (true, Some(word)) = (K::ONE_WORD, key.words().next()) {
            // SAFETY: The caller has found the element through an acquiring load of a slot.
            return unsafe { self.is_word(number, word) };
        }
        // SAFETY: The caller found the element, so it exists.
        let mut both = unsafe { self.words.of(number) }.iter().zip(key.words());
        // SAFETY: All stores happened before the caller's load of the slot, and there will be no
        // more.
        both.all(|(word, part)| unsafe { read_plain(word) } == part)
    }

    /// Returns whether these bytes are the key of element `number`, all of it.
    ///
    /// # Safety
    ///
    /// The caller has found the element through an acquiring load of a slot.
    pub(super) unsafe fn is_bytes(&self, number: u32, key: &[u8]) -> bool {
        // SAFETY: The caller has found the element through an acquiring load of a slot.
        key.len() == self.size() && unsafe { self.is(number, ByteKey(key)) }
    }

    /// Returns whether the first word of the key of element `number`, which may be all of it, is
    /// `key`.
    ///
    /// # Safety
    ///
    /// The caller has found the element through an acquiring load of a slot.
    #[inline(always)]
    pub(super) unsafe fn is_word(&self, number: u32, key: u64) -> bool {
        // SAFETY: The caller has found the element through an acquiring load, so it exists and its
        // key does not change; and a key has at least one word.
        unsafe { read_plain(self.words.of(number).get_unchecked(0)) == key }
    }

    /// Returns whether `key` is the key of element `number`.
    ///
    /// # Safety
    ///
    /// The caller has found the element through an acquiring load of a slot, and its key has `N`
    /// words at least.
    #[inline(always)]
    pub(super) unsafe fn is_array<const N: usize>(&self, number: u32, key: [u64; N]) -> bool {
        // SAFETY: The caller has found the element, so it exists, and guarantees that its key has
        // `N` words.
        let words = unsafe { self.words.of(number).get_unchecked(..N) };
        let mut both = words.iter().zip(key);
        // SAFETY: All stores happened before the caller's load of the slot, and there will be no
        // more.
        both.all(|(word, part)| unsafe { read_plain(word) } == part)
    }

    /// Makes `key` the key of element `number`, which the caller owns.
    ///
    /// # Safety
    ///
    /// An element has this number.
    pub(super) unsafe fn set(&self, number: u32, key: impl Key) {
        // The element may be a spare that another key was written to.
        let parts = Iterator::chain(key.words(), iter::repeat(0));
        // SAFETY: The caller guarantees that an element has this number.
        for (word, part) in unsafe { self.words.of(number) }.iter().zip(parts) {
            word.store(part, Relaxed);
        }
    }
}

/// Reads a word that does not change any more. A plain load: the kernel's atomic ones are calls.
///
/// # Safety
///
/// All stores to it happened before, and there will be no more.
#[inline]
unsafe fn read_plain(word: &Atomic<u64>) -> u64 {
    #[cfg(loom)]
    // SAFETY: The caller guarantees that no store is concurrent; loom checks it.
    return unsafe { word.unsync_load() };
    #[cfg(not(loom))]
    // SAFETY: The memory is valid, and the caller guarantees that no store to it is concurrent.
    return unsafe { word.as_ptr().read() };
}
