// SPDX-License-Identifier: GPL-2.0

//! Words at fixed places of a record: what most triggers count by.
//!
//! Whether a record is long enough is asked once for all of them, not for each.

use super::record::Record;
use crate::hist::field::Scale;
use crate::map::Elt;
use core::marker::PhantomData;
use kernel::prelude::*;

/// A word, with the offset of what it is made from.
///
/// That of the commonest kind is known from the others by one comparison, of a byte of its own.
#[derive(Clone, Copy)]
#[repr(u8)]
pub enum Word {
    /// A number of 32 bits without a sign.
    U32(u32),
    /// Anything else.
    Other(Kind, u32),
}

/// What a word is made from that is no [`Word::U32`].
#[derive(Clone, Copy)]
pub enum Kind {
    /// A number of 32 bits with a sign.
    S32,
    /// A number of 64 bits, with a sign or without.
    U64,
    /// A number of 16 bits without a sign.
    U16,
    /// One with a sign.
    S16,
    /// A number of 8 bits without a sign.
    U8,
    /// One with a sign.
    S8,
    /// Eight characters, of which the last one is taken for a NUL.
    Text,
}

/// The bytes of a word that are characters, if the last one is none.
const CHARACTERS: u64 = u64::from_ne_bytes([!0, !0, !0, !0, !0, !0, !0, 0]);

impl Word {
    /// Where what it is made from ends.
    fn end(self) -> usize {
        let (at, len) = match self {
            Self::U32(at) => (at, 4),
            Self::Other(kind, at) => match kind {
                Kind::S32 => (at, 4),
                Kind::U64 | Kind::Text => (at, 8),
                Kind::U16 | Kind::S16 => (at, 2),
                Kind::U8 | Kind::S8 => (at, 1),
            },
        };
        at as usize + len
    }

    /// Makes the word, with its sign extended if it has one.
    ///
    /// # Safety
    ///
    /// At `start` there is a record that goes as far as its [end](Word::end).
    #[inline(always)]
    unsafe fn read(&self, start: *const u8) -> u64 {
        // SAFETY: By the contract.
        unsafe {
            match *self {
                Self::U32(at) => at_offset::<u32>(start, at).into(),
                Self::Other(kind, at) => match kind {
                    Kind::S32 => at_offset::<i32>(start, at) as u64,
                    Kind::U64 => at_offset(start, at),
                    Kind::U16 => at_offset::<u16>(start, at).into(),
                    Kind::S16 => at_offset::<i16>(start, at) as u64,
                    Kind::U8 => at_offset::<u8>(start, at).into(),
                    Kind::S8 => at_offset::<i8>(start, at) as u64,
                    Kind::Text => at_offset::<u64>(start, at) & CHARACTERS,
                },
            }
        }
    }
}

/// The number at `offset` from `start`.
///
/// # Safety
///
/// It has to be there.
#[inline(always)]
unsafe fn at_offset<T: Copy>(start: *const u8, offset: u32) -> T {
    // SAFETY: By the contract; `T` is one of the integers, which may have any bits.
    unsafe { start.add(offset as usize).cast::<T>().read_unaligned() }
}

/// How a key is made from its words. Each form has a function of its own in the hit path.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum KeyForm {
    /// One word of the record.
    Single,
    /// Several words of the record.
    Plain,
    /// Words of the record, some of which are scaled first.
    Scaled,
}

/// The words of a key, and those that its sums grow by.
pub struct Words {
    form: KeyForm,
    key: [(Word, Scale); Self::KEY_MAX],
    /// How many words the key has, at least 1.
    key_len: usize,
    values: KVec<Word>,
    /// What a record has to have so that all are in it, in bytes.
    end: usize,
}

impl Words {
    /// Most words of a key.
    pub const KEY_MAX: usize = 4;

    /// Those of a key that is something else: no record has them.
    pub const fn none() -> Self {
        Self {
            form: KeyForm::Single,
            key: [(Word::U32(0), Scale::One); Self::KEY_MAX],
            key_len: 1,
            values: KVec::new(),
            end: usize::MAX,
        }
    }

    /// `None`: so many words are no key.
    pub fn new(key: &[(Word, Scale)], values: KVec<Word>) -> Option<Self> {
        let mut all = [*key.first()?; Self::KEY_MAX];
        all.get_mut(..key.len())?.copy_from_slice(key);
        let form = match *key {
            _ if key.iter().any(|&(_, scale)| scale != Scale::One) => KeyForm::Scaled,
            [_] => KeyForm::Single,
            _ => KeyForm::Plain,
        };
        let words = Iterator::chain(key.iter().map(|(word, _)| word), &values);
        Some(Self {
            form,
            end: words.map(|word| word.end()).max()?,
            key: all,
            key_len: key.len(),
            values,
        })
    }

    /// They, in `record`; `None` if it is too short for one of them.
    #[inline(always)]
    pub fn within<'a>(&'a self, record: Record<'a>) -> Option<Within<'a>> {
        let bytes = record.as_bytes();
        (bytes.len() >= self.end).then_some(Within {
            words: self,
            start: bytes.as_ptr(),
            _record: PhantomData,
        })
    }
}

/// The words of a record, which has all of them.
#[derive(Clone, Copy)]
pub struct Within<'a> {
    words: &'a Words,
    start: *const u8,
    _record: PhantomData<Record<'a>>,
}

impl Within<'_> {
    #[inline(always)]
    fn read(self, word: &Word) -> u64 {
        // SAFETY: `word` is one of `words`, and the record goes as far as the last of them.
        unsafe { word.read(self.start) }
    }

    /// The key, if it is [`KeyForm::Single`].
    #[inline(always)]
    pub fn number(self) -> Option<u64> {
        (self.words.form == KeyForm::Single).then(|| self.read(&self.words.key[0].0))
    }

    /// How the key is made.
    #[inline(always)]
    pub fn form(self) -> KeyForm {
        self.words.form
    }

    /// The words of the key, put into `to`, without scaling them.
    #[inline(always)]
    pub fn key(self, to: &mut [u64; Words::KEY_MAX]) -> &[u64] {
        let key = self.words.key.iter().take(self.words.key_len);
        for (to, (word, _)) in to.iter_mut().zip(key) {
            *to = self.read(word);
        }
        to.get(..self.words.key_len).unwrap_or_default()
    }

    /// The words of the key, scaled and put into `to`.
    #[inline(always)]
    pub fn scaled_key(self, to: &mut [u64; Words::KEY_MAX]) -> &[u64] {
        let key = self.words.key.iter().take(self.words.key_len);
        for (to, (word, scale)) in to.iter_mut().zip(key) {
            *to = scale.apply(self.read(word));
        }
        to.get(..self.words.key_len).unwrap_or_default()
    }

    /// Counts a hit for `entry`, on CPU `cpu`: see [`Elt::count`].
    #[inline(always)]
    pub fn count(self, entry: Elt<'_>, cpu: usize) {
        entry.count(cpu, &self.words.values, |word| self.read(word));
    }
}
