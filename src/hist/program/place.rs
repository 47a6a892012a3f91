// SPDX-License-Identifier: GPL-2.0

//! Places that contents are written to: parts of a key, and wide words.

use core::cmp::min;

use crate::{
    event::{
        address::V6,
        Stack, //
    },
    hist::spec::target::Wide,
    limits::WIDE_WORDS,
    map::{
        text_to_words,
        Read,
        WideCell, //
    },
    text::until_nul, //
};

/// A destination of a content.
pub(in crate::hist) trait Sink {
    /// Writes a number.
    fn number(&mut self, number: u64);

    /// Writes a string, which ends at its first NUL or at its end. `size` is the size of its field
    /// in the record, if that is an array.
    fn text(&mut self, text: &[u8], size: usize);

    /// Writes an IPv6 address.
    fn address(&mut self, address: &[u8; V6]);

    /// Writes a stack. `fill` adds the entries to an empty one.
    #[inline(always)]
    fn stack(&mut self, fill: impl FnOnce(&mut Stack)) {
        let mut stack = Stack::new();
        fill(&mut stack);
        self.words(stack.entries());
    }

    /// Writes the words of a stack.
    fn words(&mut self, words: &[u64]);

    /// Copies a wide cell. Returns false if the cell is unset or being replaced.
    fn cell(&mut self, cell: WideCell<'_>) -> bool;
}

/// The bytes of a key part, zero at first. Fewer than the part has, if the rest stays zero.
pub(super) struct KeyPlace<'a> {
    pub(super) bytes: &'a mut [u8],
    /// See [`KeyPart::max_chars`](super::key::KeyPart::max_chars).
    pub(super) max_chars: usize,
}

impl Sink for KeyPlace<'_> {
    fn number(&mut self, number: u64) {
        self.bytes.copy_from_slice(&number.to_ne_bytes());
    }

    /// Copies characters behind the NUL, too, as C does.
    fn text(&mut self, text: &[u8], _size: usize) {
        let len = min(text.len(), min(self.max_chars, self.bytes.len()));
        self.bytes[..len].copy_from_slice(&text[..len]);
    }

    fn address(&mut self, address: &[u8; V6]) {
        let len = min(V6, self.bytes.len());
        self.bytes[..len].copy_from_slice(&address[..len]);
    }

    #[inline(always)]
    fn words(&mut self, words: &[u64]) {
        for (bytes, word) in self.bytes.chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_ne_bytes());
        }
    }

    /// Never succeeds: keys do not refer to variables.
    fn cell(&mut self, _: WideCell<'_>) -> bool {
        false
    }
}

/// A buffer for a variable or a field of a synthetic event that is a string or a stack. Receives
/// the characters of a string, with at least one NUL behind them; or the number of return addresses
/// of a stack, and the addresses.
///
/// Contents are written in place, without a copy on the kernel's stack, since synthetic events nest
/// there.
pub(in crate::hist) struct WidePlace<'a> {
    words: &'a mut Wide,
    size: usize,
}

impl<'a> WidePlace<'a> {
    /// Clears `words`; at most the first `used` will be written to.
    pub(in crate::hist) fn new(words: &'a mut Wide, used: usize) -> Self {
        words.fill(0);
        Self {
            words,
            size: min(used, WIDE_WORDS) * size_of::<u64>(),
        }
    }
}

impl Sink for WidePlace<'_> {
    fn number(&mut self, number: u64) {
        self.words[0] = number;
    }

    fn text(&mut self, text: &[u8], size: usize) {
        let text = until_nul(text);
        let text = &text[..min(text.len(), min(size, self.size).saturating_sub(1))];
        for (to, word) in self.words.iter_mut().zip(text_to_words(text, WIDE_WORDS)) {
            *to = word;
        }
    }

    fn address(&mut self, address: &[u8; V6]) {
        for (to, word) in self.words.iter_mut().zip(text_to_words(address, V6 / 8)) {
            *to = word;
        }
    }

    fn words(&mut self, words: &[u64]) {
        let [count, places @ ..] = &mut *self.words;
        *count = min(words.len(), places.len()) as u64;
        for (place, &word) in places.iter_mut().zip(words) {
            *place = word;
        }
    }

    fn cell(&mut self, cell: WideCell<'_>) -> bool {
        cell.read(self.words) == Read::Done
    }
}
