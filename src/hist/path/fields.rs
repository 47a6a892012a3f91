// SPDX-License-Identifier: GPL-2.0

//! The fields of a record that are the key and the values of a hit.
//!
//! Most keys are a few numbers or short arrays of characters: a few words that need no buffer. The
//! length of the record is checked once for all of them. The form of the key is chosen when the
//! histogram is built.

use core::{
    array,
    marker::PhantomData, //
};

use kernel::prelude::*;

use crate::{
    event::{
        number::Numbers,
        unaligned::Unaligned,
        Exponential,
        Number,
        NumberType,
        Record,
        Scale, //
    },
    map::Elt,
    sync::PreemptOff, //
};

/// A word of a key: a number of the record, and a mask for its bits.
#[derive(Clone, Copy)]
pub(in crate::hist) struct KeyWord {
    number: Number,
    mask: u64,
}

impl KeyWord {
    /// A word that is a whole number of the record.
    pub(in crate::hist) const fn number(number: Number) -> Self {
        Self { number, mask: !0 }
    }

    /// The last eight characters of an array, at this offset. The last one is read as a NUL.
    pub(in crate::hist) const fn tail(offset: u32) -> Self {
        Self {
            number: Number::new(NumberType::U64, offset),
            mask: u64::from_ne_bytes([!0, !0, !0, !0, !0, !0, !0, 0]),
        }
    }

    /// Returns its offset if it is a full number of this type, unmasked.
    fn offset_of(&self, type_: NumberType) -> Option<u32> {
        (self.number.type_() == type_ && self.mask == !0).then_some(self.number.offset())
    }

    #[inline(always)]
    fn read(&self, from: &impl Numbers) -> u64 {
        self.number.read(from) & self.mask
    }
}

/// A number of 32 bits, with or without a sign: the most common key part. It is read without
/// testing its type.
#[derive(Clone, Copy)]
pub(super) struct Number32 {
    offset: u32,
    /// The sign bit; 0 if the number is unsigned.
    sign: u32,
}

impl Number32 {
    /// The word of a key, if it is such a number.
    fn new(word: &KeyWord) -> Option<Self> {
        let unsigned = word.offset_of(NumberType::U32);
        let signed = word.offset_of(NumberType::S32);
        Some(Self {
            offset: unsigned.or(signed)?,
            sign: signed.map_or(0, |_| 1 << 31),
        })
    }

    /// Reads it, its sign extended to 64 bits if it has one.
    #[inline(always)]
    fn read(&self, from: &impl Numbers) -> u64 {
        u64::from(from.u32(self.offset) ^ self.sign).wrapping_sub(self.sign.into())
    }
}

/// Words of a key, from 1 to `N`.
pub(super) struct KeyWords<T, const N: usize> {
    words: [T; N],
    pub(super) len: usize,
}

impl<T: Copy, const N: usize> KeyWords<T, N> {
    /// Converts `words` by `f`. `None`: `words` is empty or too long, or `f` returned `None` for
    /// one.
    pub(super) fn new<U>(words: &[U], f: impl Fn(&U) -> Option<T>) -> Option<Self> {
        let mut all = [f(words.first()?)?; N];
        for (to, word) in all.get_mut(..words.len())?.iter_mut().zip(words) {
            *to = f(word)?;
        }
        Some(Self {
            words: all,
            len: words.len(),
        })
    }

    /// Reads the first `M` words, each by `read`.
    #[inline(always)]
    pub(super) fn array<const M: usize>(&self, read: impl Fn(&T) -> u64) -> [u64; M] {
        const { assert!(M <= N) }
        array::from_fn(|word| read(&self.words[word]))
    }

    /// Reads the key into `to`, each word by `read`.
    #[inline(always)]
    pub(super) fn read<'a>(&self, to: &'a mut [u64; N], read: impl Fn(&T) -> u64) -> &'a [u64] {
        for (to, word) in to.iter_mut().zip(&self.words).take(self.len) {
            *to = read(word);
        }
        to.get(..self.len).unwrap_or_default()
    }
}

/// A string field: a word of the record with the string's position (low half) and length in bytes
/// (high half).
#[derive(Clone, Copy)]
pub(in crate::hist) struct TextField {
    pub(super) offset: u32,
    /// The offset in the record that positions are relative to.
    base: usize,
    /// Maximum number of bytes of the string that are in a key.
    pub(super) max_bytes: usize,
}

impl TextField {
    /// The string of the word at `offset`: see [`Record::data_loc`], and [`Record::rel_loc`] if
    /// `is_relative`. Only its first `max_bytes` are in a key.
    pub(in crate::hist) const fn new(offset: u32, is_relative: bool, max_bytes: usize) -> Self {
        let base = match is_relative {
            true => offset as usize + size_of::<u32>(),
            false => 0,
        };
        Self {
            offset,
            base,
            max_bytes,
        }
    }

    /// Minimum length of the record in bytes.
    fn end(&self) -> usize {
        self.offset as usize + size_of::<u32>()
    }

    /// Returns the string's offset in the record and its length in bytes, from the field's word.
    #[inline(always)]
    pub(super) fn place(&self, word: u32) -> (usize, usize) {
        let start = self.base.wrapping_add((word & 0xffff) as usize);
        (start, (word >> 16) as usize)
    }

    /// Returns the string of a record, cut at the end of the record and after `max_bytes`. Bytes
    /// after a NUL are included, as in C.
    pub(super) fn of<'a>(&self, record: Record<'a>) -> &'a [u8] {
        let (start, len) = self.place(record.u32(self.offset));
        record.bytes(start, len.min(self.max_bytes))
    }
}

/// The form of a key.
// With a tag of its own, which is tested first: the compiler would begin to tell four forms apart
// in the middle.
#[repr(u32)]
pub(super) enum KeyForm {
    /// One `u32` at this offset: the most common key.
    U32(u32),
    /// Any other key.
    Other(OtherForm),
}

/// The form of a key that is not a single `u32`.
#[repr(u32)]
pub(super) enum OtherForm {
    /// It is one `s32`, at this offset.
    S32(u32),
    /// It is one number of 64 bits, at this offset.
    U64(u32),
    /// It is one number.
    Single(Number),
    /// Several numbers of 32 bits.
    Numbers32(KeyWords<Number32, { RecordFields::NUMBERS32_MAX }>),
    /// Several words.
    Plain(KeyWords<KeyWord, { RecordFields::KEY_MAX }>),
    /// Words, some of which are scaled first; or more words.
    Scaled(ScaledForm),
    /// A string.
    Text(TextField),
}

/// The part of a record that is the key.
pub(in crate::hist) enum KeyFields<'a> {
    /// Words at fixed places, and how they are scaled.
    Words(&'a [(KeyWord, Scale)]),
    /// A string.
    Text(TextField),
}

impl KeyFields<'_> {
    /// Minimum length of the record in bytes.
    fn end(&self) -> usize {
        match self {
            Self::Words(words) => {
                let ends = words.iter().map(|(word, _)| word.number.end());
                ends.max().unwrap_or(0)
            }
            Self::Text(text) => text.end(),
        }
    }
}

/// The form of a key of two numbers, the last of which is put into exponential buckets.
pub(super) struct BucketForm {
    pub(super) first: Number,
    pub(super) last: Number,
    pub(super) buckets: Exponential,
}

/// The ways in which words of a short key are scaled.
#[derive(Clone, Copy)]
pub(super) enum FastScale {
    One,
    Log2,
    Bucket(u64),
}

impl FastScale {
    fn new(scale: Scale) -> Option<Self> {
        Some(match scale {
            Scale::One => Self::One,
            Scale::Log2 => Self::Log2,
            Scale::Bucket(width) => Self::Bucket(width),
            Scale::Exponential(_) => return None,
        })
    }

    #[inline(always)]
    fn apply(self, number: u64) -> u64 {
        match self {
            Self::One => number,
            Self::Log2 => Scale::Log2.apply(number),
            Self::Bucket(width) => Scale::Bucket(width).apply(number),
        }
    }
}

/// The form of a key with words that are scaled, or with many words.
#[repr(u32)]
pub(super) enum ScaledForm {
    /// Few words.
    Few(KeyWords<(KeyWord, FastScale), { RecordFields::KEY_MAX }>),
    /// Two numbers, the last of which is put into exponential buckets.
    Bucket(BucketForm),
    /// More words, or words that are scaled in another way.
    Wide(KVec<(KeyWord, Scale)>),
}

impl KeyForm {
    /// Chooses the form of this key. `None`: it has no words, or too many.
    fn new(key: &KeyFields<'_>) -> Result<Option<Self>> {
        let key = match *key {
            KeyFields::Words(key) => key,
            KeyFields::Text(text) => return Ok(Some(Self::Other(OtherForm::Text(text)))),
        };
        if let [(first, Scale::One), (last, Scale::Exponential(buckets))] = *key {
            if first.mask == !0 && last.mask == !0 {
                let (first, last) = (first.number, last.number);
                let form = BucketForm {
                    first,
                    last,
                    buckets,
                };
                return Ok(Some(Self::Other(OtherForm::Scaled(ScaledForm::Bucket(
                    form,
                )))));
            }
        }
        if let [(word, Scale::One)] = key {
            if let Some(offset) = word.offset_of(NumberType::U32) {
                return Ok(Some(Self::U32(offset)));
            }
        }
        Ok(OtherForm::new(key)?.map(Self::Other))
    }
}

impl OtherForm {
    /// The form of a key of these words: see [`KeyForm::new`].
    fn new(key: &[(KeyWord, Scale)]) -> Result<Option<Self>> {
        let plain = |(word, scale): &(KeyWord, Scale)| (*scale == Scale::One).then_some(*word);
        if let [(word, Scale::One)] = key {
            if let Some(offset) = word.offset_of(NumberType::S32) {
                return Ok(Some(Self::S32(offset)));
            }
            let unsigned = word.offset_of(NumberType::U64);
            if let Some(offset) = unsigned.or(word.offset_of(NumberType::S64)) {
                return Ok(Some(Self::U64(offset)));
            }
            if word.mask == !0 {
                return Ok(Some(Self::Single(word.number)));
            }
        }
        if let Some(words) = KeyWords::new(key, |word| Number32::new(&plain(word)?)) {
            return Ok(Some(Self::Numbers32(words)));
        }
        if let Some(words) = KeyWords::new(key, plain) {
            return Ok(Some(Self::Plain(words)));
        }
        let fast = |&(word, scale): &(KeyWord, Scale)| Some((word, FastScale::new(scale)?));
        if let Some(words) = KeyWords::new(key, fast) {
            return Ok(Some(Self::Scaled(ScaledForm::Few(words))));
        }
        if !(1..=RecordFields::WIDE_MAX).contains(&key.len()) {
            return Ok(None);
        }
        let mut words = KVec::with_capacity(key.len(), GFP_KERNEL)?;
        words.extend_from_slice(key, GFP_KERNEL)?;
        Ok(Some(Self::Scaled(ScaledForm::Wide(words))))
    }
}

/// The fields of a record that make a key, and the fields that are added to the sums of its
/// element. For maps whose columns are the hitcount and sums.
///
/// # Invariants
///
/// No field reaches beyond `end`.
pub(in crate::hist) struct RecordFields {
    pub(super) key: KeyForm,
    values: KVec<Number>,
    /// Minimum length of the record in bytes.
    pub(super) end: usize,
}

impl RecordFields {
    /// Maximum number of words of a key with a form of its own.
    pub(super) const KEY_MAX: usize = 4;

    /// Maximum number of words of a key with a form of its own, if all are numbers of 32 bits.
    pub(super) const NUMBERS32_MAX: usize = 8;

    /// Maximum number of words of a key.
    pub(in crate::hist) const WIDE_MAX: usize = 16;

    /// Fields for this key, and sums of `values`. `None`: the key has no words, or too many. Fails
    /// with `ENOMEM`.
    pub(in crate::hist) fn new(key: &KeyFields<'_>, values: KVec<Number>) -> Result<Option<Self>> {
        let ends = values.iter().map(|value| value.end());
        let end = ends.fold(key.end(), usize::max);
        let Some(key) = KeyForm::new(key)? else {
            return Ok(None);
        };
        // INVARIANT: `end` is the largest end of all fields.
        Ok(Some(Self { key, end, values }))
    }

    /// Returns the fields of `record`; `None` if it is too short for one of them.
    #[inline(always)]
    pub(super) fn of<'a>(&'a self, record: Record<'a>) -> Option<Fields<'a>> {
        let bytes = record.as_bytes();
        // SAFETY: The record has `end` bytes.
        (bytes.len() >= self.end).then(|| unsafe { self.of_whole(record) })
    }

    /// Returns the fields of `record`.
    ///
    /// # Safety
    ///
    /// The record is long enough for all of them.
    #[inline(always)]
    pub(super) unsafe fn of_whole<'a>(&'a self, record: Record<'a>) -> Fields<'a> {
        // INVARIANT: The caller guarantees that the record has `end` bytes.
        Fields {
            fields: self,
            start: record.as_bytes().as_ptr(),
            _record: PhantomData,
        }
    }
}

/// The fields of one record.
///
/// # Invariants
///
/// `start` points to `fields.end` bytes, which do not change for `'a`.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a> {
    start: *const u8,
    pub(super) fields: &'a RecordFields,
    _record: PhantomData<Record<'a>>,
}

impl Fields<'_> {
    /// Updates the columns of the element, which are the hitcount and sums.
    #[inline(always)]
    pub(super) fn count(self, elt: Elt<'_>, preempt: PreemptOff<'_>) {
        // By value, so that it stays in registers.
        elt.update_sums(preempt, &self.fields.values, move |value| {
            self.number(value)
        });
    }

    /// Reads one of the numbers.
    #[inline(always)]
    pub(super) fn number(self, number: &Number) -> u64 {
        debug_assert!(number.end() <= self.fields.end);
        // SAFETY: It is one of the fields.
        number.read(&unsafe { self.unchecked() })
    }

    /// Reads the number of this type at this offset as a word of the key.
    #[inline(always)]
    pub(super) fn number_at(self, type_: NumberType, offset: u32) -> u64 {
        // SAFETY: It is one of the fields.
        type_.read(offset, &unsafe { self.unchecked() })
    }

    /// Reads this number of 32 bits as a word of the key.
    #[inline(always)]
    pub(super) fn number32(self, number: &Number32) -> u64 {
        // SAFETY: It is one of the fields.
        number.read(&unsafe { self.unchecked() })
    }

    /// Reads a word of the key.
    #[inline(always)]
    pub(super) fn word(self, word: &KeyWord) -> u64 {
        // SAFETY: It is one of the fields.
        word.read(&unsafe { self.unchecked() })
    }

    /// Reads a word of the key and scales it.
    #[inline(always)]
    pub(super) fn scaled(self, (word, scale): &(KeyWord, FastScale)) -> u64 {
        scale.apply(self.word(word))
    }

    /// Returns the bytes of the record, for reads without bounds checks.
    ///
    /// # Safety
    ///
    /// The caller only reads the fields, or other bytes that it knows to be in the record.
    #[inline(always)]
    pub(super) unsafe fn unchecked(self) -> Unchecked {
        Unchecked(self.start)
    }
}

/// The bytes of a record, read without checking its length.
#[derive(Clone, Copy)]
pub(super) struct Unchecked(*const u8);

impl Unchecked {
    /// The bytes of `record`.
    ///
    /// # Safety
    ///
    /// The caller only reads bytes that the record has, while it does not change.
    #[inline(always)]
    pub(super) unsafe fn of(record: Record<'_>) -> Self {
        Self(record.as_bytes().as_ptr())
    }

    /// The number at `offset`.
    #[inline(always)]
    pub(super) fn read<T: Unaligned>(&self, offset: usize) -> T {
        // SAFETY: The callers of [`Fields::unchecked`] and [`Unchecked::of`] know this to be in the
        // record. So are all fields, by the invariants of `Fields`.
        T::of(unsafe { &*self.0.add(offset).cast() })
    }
}

impl Numbers for Unchecked {
    #[inline(always)]
    fn u8(&self, offset: u32) -> u8 {
        self.read(offset as usize)
    }

    #[inline(always)]
    fn u16(&self, offset: u32) -> u16 {
        self.read(offset as usize)
    }

    #[inline(always)]
    fn u32(&self, offset: u32) -> u32 {
        self.read(offset as usize)
    }

    #[inline(always)]
    fn u64(&self, offset: u32) -> u64 {
        self.read(offset as usize)
    }
}
