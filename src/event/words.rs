// SPDX-License-Identifier: GPL-2.0

//! A string in words.

use core::{
    mem::MaybeUninit,
    slice, //
};

use super::unaligned::Unaligned;
use crate::limits::WIDE_WORDS;

/// The words of a string, with NULs behind it in the last one. New ones are not zeroed: that would take longer than to
/// read a short string.
///
/// # Invariants
///
/// The first `len` words are initialized, and there are so many.
pub struct Words {
    words: [MaybeUninit<u64>; WIDE_WORDS],
    len: usize,
}

impl Words {
    /// No words yet.
    #[inline(always)]
    pub const fn new() -> Self {
        // INVARIANT: None is initialized.
        Self {
            words: [MaybeUninit::uninit(); WIDE_WORDS],
            len: 0,
        }
    }

    /// Replaces them by those of `text`, of which at least one is there. What does not fit is left out.
    // Not made and returned: that would be a copy of the whole.
    #[inline(always)]
    pub fn set(&mut self, text: &[u8]) {
        self.len = 0;
        let mut rest = text;
        while let Some((chunk, behind)) = rest.split_first_chunk() {
            self.push(u64::of(chunk));
            rest = behind;
        }
        if !rest.is_empty() || self.len == 0 {
            self.push(tail(text, rest));
        }
    }

    #[inline(always)]
    fn push(&mut self, word: u64) {
        if let Some(place) = self.words.get_mut(self.len) {
            place.write(word);
            // INVARIANT: One more is initialized.
            self.len += 1;
        }
    }

    /// All of them.
    #[inline(always)]
    pub fn as_slice(&self) -> &[u64] {
        // SAFETY: By the type invariant there are so many, which are initialized.
        unsafe { slice::from_raw_parts(self.words.as_ptr().cast(), self.len) }
    }
}

/// The last word of `text`, which ends with `rest`, of fewer than 8 bytes.
#[inline(always)]
fn tail(text: &[u8], rest: &[u8]) -> u64 {
    let missing = 8 * (8 - rest.len() as u32);
    match text.last_chunk() {
        // Bytes before `rest` are shifted out.
        Some(last) if cfg!(target_endian = "little") => {
            u64::of(last).checked_shr(missing).unwrap_or(0)
        }
        _ => {
            let mut word = [0; 8];
            word.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            u64::from_ne_bytes(word)
        }
    }
}

impl Default for Words {
    fn default() -> Self {
        Self::new()
    }
}
