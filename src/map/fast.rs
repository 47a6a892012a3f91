// SPDX-License-Identifier: GPL-2.0

//! The fast path: hits whose key and values are plain fields of the record.
//!
//! Most keys are a few numbers or short arrays of characters: a few words that need no buffer. The
//! length of the record is checked once for all of them. The form of the key is known when the
//! histogram is built, and a hit tests it once; each form has a function of its own, so that a hit
//! saves no registers, and clears no stack, for other forms.

use core::{
    array,
    marker::PhantomData, //
};

use kernel::{
    prelude::*,
    sync::atomic::Atomic, //
};

use super::{
    columns::{
        Column,
        ColumnSet,
        Extreme, //
    },
    elt::{
        Elt,
        OwnParts, //
    },
    generation::Generation,
    text::TextField, //
};
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
    sync::PreemptOff, //
};

/// A word of a key: a number of the record, and a mask for its bits.
#[derive(Clone, Copy)]
pub struct KeyWord {
    number: Number,
    mask: u64,
}

impl KeyWord {
    /// A word that is a whole number of the record.
    pub const fn number(number: Number) -> Self {
        Self { number, mask: !0 }
    }

    /// The last eight characters of an array, at this offset. The last one is read as a NUL.
    pub const fn tail(offset: u32) -> Self {
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
struct Number32 {
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
struct KeyWords<T, const N: usize> {
    words: [T; N],
    len: usize,
}

impl<T: Copy, const N: usize> KeyWords<T, N> {
    /// Converts `words` by `f`. `None`: `words` is empty or too long, or `f` returned `None` for
    /// one.
    fn new<U>(words: &[U], f: impl Fn(&U) -> Option<T>) -> Option<Self> {
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
    fn array<const M: usize>(&self, read: impl Fn(&T) -> u64) -> [u64; M] {
        const { assert!(M <= N) }
        array::from_fn(|word| read(&self.words[word]))
    }

    /// Reads the key into `to`, each word by `read`.
    #[inline(always)]
    fn read<'a>(&self, to: &'a mut [u64; N], read: impl Fn(&T) -> u64) -> &'a [u64] {
        for (to, word) in to.iter_mut().zip(&self.words).take(self.len) {
            *to = read(word);
        }
        to.get(..self.len).unwrap_or_default()
    }
}

/// The form of a key.
// With a tag of its own, which is tested first: the compiler would begin to tell four forms apart
// in the middle.
#[repr(u32)]
enum KeyForm {
    /// One `u32` at this offset: the most common key.
    U32(u32),
    /// Any other key.
    Other(OtherForm),
}

/// The form of a key that is not a single `u32`.
#[repr(u32)]
enum OtherForm {
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
pub enum KeyFields<'a> {
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
struct BucketForm {
    first: Number,
    last: Number,
    buckets: Exponential,
}

/// The ways in which words of a short key are scaled.
#[derive(Clone, Copy)]
enum FastScale {
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
enum ScaledForm {
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
pub struct RecordFields {
    key: KeyForm,
    values: KVec<Number>,
    /// Minimum length of the record in bytes.
    end: usize,
}

impl RecordFields {
    /// Maximum number of words of a key with a form of its own.
    const KEY_MAX: usize = 4;

    /// Maximum number of words of a key with a form of its own, if all are numbers of 32 bits.
    const NUMBERS32_MAX: usize = 8;

    /// Maximum number of words of a key.
    pub const WIDE_MAX: usize = 16;

    /// Fields for this key, and sums of `values`. `None`: the key has no words, or too many. Fails
    /// with `ENOMEM`.
    pub fn new(key: &KeyFields<'_>, values: KVec<Number>) -> Result<Option<Self>> {
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
    fn of<'a>(&'a self, record: Record<'a>) -> Option<Fields<'a>> {
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
    fields: &'a RecordFields,
    _record: PhantomData<Record<'a>>,
}

impl Fields<'_> {
    /// Updates the columns of the element.
    #[inline(always)]
    pub(super) fn count(self, elt: Elt<'_>, preempt: PreemptOff<'_>) {
        // SAFETY: Only fields are read.
        let bytes = unsafe { self.unchecked() };
        // By value, so that it stays in registers.
        elt.update_sums(preempt, &self.fields.values, move |value| {
            value.read(&bytes)
        });
    }

    /// Reads this number as a word of the key.
    #[inline(always)]
    fn number(self, number: &Number) -> u64 {
        // SAFETY: It is one of the fields.
        number.read(&unsafe { self.unchecked() })
    }

    /// Reads the number of this type at this offset as a word of the key.
    #[inline(always)]
    fn number_at(self, type_: NumberType, offset: u32) -> u64 {
        // SAFETY: It is one of the fields.
        type_.read(offset, &unsafe { self.unchecked() })
    }

    /// Reads this number of 32 bits as a word of the key.
    #[inline(always)]
    fn number32(self, number: &Number32) -> u64 {
        // SAFETY: It is one of the fields.
        number.read(&unsafe { self.unchecked() })
    }

    /// Reads a word of the key.
    #[inline(always)]
    fn word(self, word: &KeyWord) -> u64 {
        // SAFETY: It is one of the fields.
        word.read(&unsafe { self.unchecked() })
    }

    /// Reads a word of the key and scales it.
    #[inline(always)]
    fn scaled(self, (word, scale): &(KeyWord, FastScale)) -> u64 {
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
pub(super) struct Unchecked(*const u8);

impl Unchecked {
    /// The number at `offset`.
    #[inline(always)]
    pub(super) fn read<T: Unaligned>(&self, offset: usize) -> T {
        // SAFETY: By the caller of [`Fields::unchecked`] this is in the record, or one of the
        // fields, which the record has by the invariants of `Fields`.
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

/// The fields of a record that make a key, and the fields that columns of any kind are updated
/// with.
///
/// # Invariants
///
/// No field reaches beyond the `end` of `key`.
pub struct ColumnFields {
    key: RecordFields,
    values: KVec<(Number, ColumnSet)>,
    /// The commonest form, tested first.
    min_max_sum: Option<MinMaxSumFields>,
}

/// A key that is one `u32`, and one value with the columns smallest, largest and sum.
#[derive(Clone, Copy)]
struct MinMaxSumFields {
    /// Offset of the key.
    key: u32,
    value: Number,
    max: Extreme,
}

/// A hit of [`MinMaxSumFields`] whose element was found.
pub struct MinMaxSumHit<'a> {
    parts: &'a [Atomic<u64>; 4],
    max: Extreme,
    /// The number of the element.
    pub element: u32,
    /// The value read from the record.
    pub value: u64,
}

impl MinMaxSumHit<'_> {
    /// Updates the columns of the element. Any context.
    #[inline(always)]
    pub fn count(self) {
        self.max.count_spread(self.parts, self.value);
    }
}

impl ColumnFields {
    /// Fields for this key, and columns that are updated with `values`. `None`: the key has no
    /// words, or too many. Fails with `ENOMEM`.
    pub fn new(key: &KeyFields<'_>, values: KVec<(Number, ColumnSet)>) -> Result<Option<Self>> {
        let Some(mut key) = RecordFields::new(key, KVec::new())? else {
            return Ok(None);
        };
        let min_max_sum = match (&key.key, &values[..]) {
            (&KeyForm::U32(key), &[(value, ColumnSet::MinMaxSum(max))]) => {
                Some(MinMaxSumFields { key, value, max })
            }
            _ => None,
        };
        // INVARIANT: `end` is the largest end of all fields.
        let ends = values.iter().map(|(value, ..)| value.end());
        key.end = ends.fold(key.end, usize::max);
        Ok(Some(Self {
            key,
            values,
            min_max_sum,
        }))
    }

    /// Whether `record` is long enough for all fields.
    #[inline(always)]
    pub fn fit(&self, record: Record<'_>) -> bool {
        self.key.of(record).is_some()
    }

    /// Updates the columns of the element. Returns true.
    #[inline(always)]
    fn count(&self, fields: Fields<'_>, elt: Elt<'_>, preempt: PreemptOff<'_>) -> bool {
        let Some(OwnParts { columns, parts }) = elt.own_parts(preempt) else {
            return self.count_shared(fields, elt, preempt);
        };
        let mut next = 1;
        for (number, set) in &self.values {
            // SAFETY: By the invariants the number is before the end of the fields, which the
            // record reaches.
            let value = number.read(&unsafe { fields.unchecked() });
            set.update(columns, parts, next, value);
            next = next.wrapping_add(set.len());
        }
        // Last: see `Counters::update()`.
        Column::count_hit(parts);
        true
    }

    /// Updates the columns of the element on a CPU that shares them. Returns true.
    #[cold]
    #[inline(never)]
    fn count_shared(&self, fields: Fields<'_>, elt: Elt<'_>, preempt: PreemptOff<'_>) -> bool {
        elt.update(preempt, &self.values, |(number, set)| {
            // SAFETY: By the invariants the number is before the end of the fields, which the
            // record reaches.
            (number.read(&unsafe { fields.unchecked() }), *set)
        });
        true
    }

    /// Calls `note` with the number of the element and each value, by its index.
    #[inline(always)]
    fn note(&self, fields: Fields<'_>, elt: Elt<'_>, note: impl Fn(usize, u32, u64)) {
        for (nth, (number, _)) in self.values.iter().enumerate() {
            // SAFETY: By the invariants the number is before the end of the fields, which the
            // record reaches.
            let value = number.read(&unsafe { fields.unchecked() });
            note(nth, elt.number(), value);
        }
    }
}

impl Generation {
    /// Counts a hit whose key and values are these fields of `record`: see
    /// [`super::Map::count_columns`].
    #[inline(always)]
    pub(super) fn count_columns(
        &self,
        columns: &ColumnFields,
        record: Record<'_>,
        preempt: PreemptOff<'_>,
    ) -> bool {
        let Some(fields) = columns.key.of(record) else {
            return false;
        };
        match self.find_spread(columns, fields, preempt) {
            Some(hit) => hit.count(),
            None => return self.count_columns_slow(columns, record, preempt),
        }
        true
    }

    /// Finds the element of a hit of [`MinMaxSumFields`] in the first slot of its path, where most
    /// are. `None`: it is not there, the fields are not [`MinMaxSumFields`], or this CPU shares its
    /// columns with others. Any context.
    #[inline(always)]
    fn find_spread<'a>(
        &'a self,
        columns: &ColumnFields,
        fields: Fields<'_>,
        preempt: PreemptOff<'_>,
    ) -> Option<MinMaxSumHit<'a>> {
        let min_max_sum = columns.min_max_sum.as_ref()?;
        // SAFETY: By the invariants key and value are before the end of the fields, which the
        // record reaches.
        let bytes = unsafe { fields.unchecked() };
        let elt = self.lookup_word_first_slot(NumberType::U32.read(min_max_sum.key, &bytes))?;
        Some(MinMaxSumHit {
            parts: elt.own_parts(preempt)?.parts.first_chunk()?,
            max: min_max_sum.max,
            element: elt.number(),
            value: min_max_sum.value.read(&bytes),
        })
    }

    /// [`Generation::find_spread`] for a record: see [`super::Map::find_spread`].
    #[inline(always)]
    pub(super) fn find_spread_of<'a>(
        &'a self,
        columns: &ColumnFields,
        record: Record<'_>,
        preempt: PreemptOff<'_>,
    ) -> Option<MinMaxSumHit<'a>> {
        self.find_spread(columns, columns.key.of(record)?, preempt)
    }

    /// Slow path of [`Generation::count_columns`]. Returns true, as its caller does, so that the
    /// call is a jump.
    #[inline(never)]
    fn count_columns_slow(
        &self,
        columns: &ColumnFields,
        record: Record<'_>,
        preempt: PreemptOff<'_>,
    ) -> bool {
        // This cannot fail: the record was found to be long enough.
        self.count_columns_with(columns, record, preempt, |_, _, _| ());
        true
    }

    /// [`Generation::count_columns`] that calls `note` with each value: see
    /// [`super::Map::count_columns_with`].
    #[inline(always)]
    pub(super) fn count_columns_with(
        &self,
        columns: &ColumnFields,
        record: Record<'_>,
        preempt: PreemptOff<'_>,
        note: impl Fn(usize, u32, u64),
    ) -> bool {
        let Some(fields) = columns.key.of(record) else {
            return false;
        };
        if let Some(elt) = self.insert_fields(fields, record, preempt) {
            columns.note(fields, elt, note);
            columns.count(fields, elt, preempt);
        }
        true
    }

    /// Counts a hit whose key and values are these fields of `record`. Returns false, and has done
    /// nothing, if the record is too short for them. Any context, NMI included.
    #[inline(always)]
    pub(super) fn count_record(
        &self,
        fields: &RecordFields,
        record: Record<'_>,
        preempt: PreemptOff<'_>,
    ) -> bool {
        let Some(fields) = fields.of(record) else {
            return false;
        };
        let key = match &fields.fields.key {
            KeyForm::U32(offset) => fields.number_at(NumberType::U32, *offset),
            KeyForm::Other(OtherForm::S32(offset)) => fields.number_at(NumberType::S32, *offset),
            KeyForm::Other(OtherForm::U64(offset)) => fields.number_at(NumberType::U64, *offset),
            KeyForm::Other(OtherForm::Single(number)) => fields.number(number),
            KeyForm::Other(OtherForm::Numbers32(words)) => {
                return self.count_numbers32(fields, preempt, words)
            }
            KeyForm::Other(OtherForm::Plain(words)) => {
                return self.count_plain(fields, preempt, words)
            }
            KeyForm::Other(OtherForm::Scaled(words)) => {
                return match words {
                    ScaledForm::Bucket(form) => self.count_by_bucket(fields, preempt, form),
                    words => self.count_scaled(fields, preempt, words),
                }
            }
            KeyForm::Other(OtherForm::Text(text)) => {
                // SAFETY: `fields` were found in `record`, and `text` is their key.
                return unsafe { self.count_text(fields.fields, record, preempt, text) };
            }
        };
        self.count_word(fields, preempt, key)
    }

    /// Counts a hit with this key, with a call only if it is not in the first slot of its path.
    /// Returns true.
    #[inline(always)]
    fn count_word(&self, fields: Fields<'_>, preempt: PreemptOff<'_>, key: u64) -> bool {
        match self.lookup_word_first_slot(key) {
            Some(elt) => {
                fields.count(elt, preempt);
                true
            }
            None => self.count_word_slow(fields, preempt, key),
        }
    }

    /// Finds the element for the key in these fields of `record`, or inserts it: see
    /// [`super::Map::insert`]. `None`: the record is too short for them, and nothing was done.
    #[inline(always)]
    pub(super) fn insert_record<'a>(
        &'a self,
        fields: &RecordFields,
        record: Record<'_>,
        preempt: PreemptOff<'a>,
    ) -> Option<Option<Elt<'a>>> {
        Some(self.insert_fields(fields.of(record)?, record, preempt))
    }

    /// [`Generation::insert_record`] for fields that were found in the record.
    #[inline(always)]
    pub(super) fn insert_fields<'a>(
        &'a self,
        fields: Fields<'_>,
        record: Record<'_>,
        preempt: PreemptOff<'a>,
    ) -> Option<Elt<'a>> {
        match &fields.fields.key {
            KeyForm::U32(offset) => {
                self.insert_word(preempt, fields.number_at(NumberType::U32, *offset))
            }
            KeyForm::Other(OtherForm::S32(offset)) => {
                self.insert_word(preempt, fields.number_at(NumberType::S32, *offset))
            }
            KeyForm::Other(OtherForm::U64(offset)) => {
                self.insert_word(preempt, fields.number_at(NumberType::U64, *offset))
            }
            KeyForm::Other(OtherForm::Single(number)) => {
                self.insert_word(preempt, fields.number(number))
            }
            KeyForm::Other(OtherForm::Numbers32(words)) => {
                self.insert_few(preempt, words, |word| fields.number32(word))
            }
            KeyForm::Other(OtherForm::Plain(words)) => {
                self.insert_few(preempt, words, |word| fields.word(word))
            }
            KeyForm::Other(OtherForm::Scaled(words)) => self.insert_scaled(fields, preempt, words),
            KeyForm::Other(OtherForm::Text(text)) => self.insert_text(record, preempt, text),
        }
    }

    /// Counts a hit whose key is not in the first slot of its path.
    ///
    /// Returns true, as its caller does, so that the call is a jump.
    #[inline(never)]
    fn count_word_slow(&self, fields: Fields<'_>, preempt: PreemptOff<'_>, key: u64) -> bool {
        if let Some(elt) = self.insert_word(preempt, key) {
            fields.count(elt, preempt);
        }
        true
    }

    /// Counts a hit whose key is [`OtherForm::Numbers32`]. Returns true.
    #[inline(never)]
    fn count_numbers32(
        &self,
        fields: Fields<'_>,
        preempt: PreemptOff<'_>,
        words: &KeyWords<Number32, { RecordFields::NUMBERS32_MAX }>,
    ) -> bool {
        match words.len > RecordFields::KEY_MAX {
            true => self.count_many32(fields, preempt, words),
            false => self.count_few(fields, preempt, words, |word| fields.number32(word)),
        }
    }

    /// Counts a hit whose key is [`OtherForm::Numbers32`], with five or more of them. Returns true.
    #[inline(never)]
    fn count_many32(
        &self,
        fields: Fields<'_>,
        preempt: PreemptOff<'_>,
        words: &KeyWords<Number32, { RecordFields::NUMBERS32_MAX }>,
    ) -> bool {
        let read = |word: &Number32| fields.number32(word);
        match words.len {
            5 => self.count_array(fields, preempt, words.array::<5>(read)),
            6 => self.count_array(fields, preempt, words.array::<6>(read)),
            7 => self.count_array(fields, preempt, words.array::<7>(read)),
            _ => self.count_array(fields, preempt, words.array::<8>(read)),
        }
    }

    /// Counts a hit whose key is [`OtherForm::Plain`]. Returns true.
    #[inline(never)]
    fn count_plain(
        &self,
        fields: Fields<'_>,
        preempt: PreemptOff<'_>,
        words: &KeyWords<KeyWord, { RecordFields::KEY_MAX }>,
    ) -> bool {
        self.count_few(fields, preempt, words, |word| fields.word(word))
    }

    /// Counts a hit whose key is these words, at most [`RecordFields::KEY_MAX`], each read by
    /// `read`. Returns true.
    #[inline(always)]
    fn count_few<T: Copy, const N: usize>(
        &self,
        fields: Fields<'_>,
        preempt: PreemptOff<'_>,
        words: &KeyWords<T, N>,
        read: impl Fn(&T) -> u64,
    ) -> bool {
        match words.len {
            2 => self.count_array(fields, preempt, words.array::<2>(read)),
            3 => self.count_array(fields, preempt, words.array::<3>(read)),
            4 => self.count_array(fields, preempt, words.array::<4>(read)),
            _ => {
                let [key] = words.array(read);
                self.count_word(fields, preempt, key)
            }
        }
    }

    /// Counts a hit with this key, with a call only if it is not in the first slot of its path.
    /// Returns true.
    #[inline(always)]
    fn count_array<const N: usize>(
        &self,
        fields: Fields<'_>,
        preempt: PreemptOff<'_>,
        key: [u64; N],
    ) -> bool {
        match self.lookup_array_first_slot(key) {
            Some(elt) => fields.count(elt, preempt),
            None => return self.count_array_slow(fields, preempt, key),
        }
        true
    }

    /// Finds or inserts the element of a key of these words, each read by `read`.
    #[inline(always)]
    fn insert_few<'a, T: Copy, const N: usize>(
        &'a self,
        preempt: PreemptOff<'a>,
        words: &KeyWords<T, N>,
        read: impl Fn(&T) -> u64,
    ) -> Option<Elt<'a>> {
        let mut buffer = [0; N];
        match *words.read(&mut buffer, read) {
            [key] => self.insert_word(preempt, key),
            [a, b] => self.insert_array(preempt, [a, b]),
            [a, b, c] => self.insert_array(preempt, [a, b, c]),
            ref key => self.insert_words(preempt, key),
        }
    }

    /// Counts a hit whose key is [`OtherForm::Scaled`]. Returns true.
    #[inline(never)]
    fn count_scaled(
        &self,
        fields: Fields<'_>,
        preempt: PreemptOff<'_>,
        words: &ScaledForm,
    ) -> bool {
        if let ScaledForm::Few(words) = words {
            return self.count_few(fields, preempt, words, |word| fields.scaled(word));
        }
        if let Some(elt) = self.insert_scaled(fields, preempt, words) {
            fields.count(elt, preempt);
        }
        true
    }

    #[inline(always)]
    fn insert_scaled<'a>(
        &'a self,
        fields: Fields<'_>,
        preempt: PreemptOff<'a>,
        words: &ScaledForm,
    ) -> Option<Elt<'a>> {
        match words {
            ScaledForm::Few(words) => self.insert_few(preempt, words, |word| fields.scaled(word)),
            ScaledForm::Bucket(form) => self.insert_by_bucket(fields, preempt, form),
            ScaledForm::Wide(words) => self.insert_wide(fields, preempt, words),
        }
    }

    /// Counts a hit whose key is [`ScaledForm::Bucket`], with a call only if it is not in the first
    /// slot of its path, or the bucket needs one. Returns true.
    #[inline(never)]
    fn count_by_bucket(
        &self,
        fields: Fields<'_>,
        preempt: PreemptOff<'_>,
        form: &BucketForm,
    ) -> bool {
        // SAFETY: They are two of the fields.
        let bytes = unsafe { fields.unchecked() };
        let Some(code) = form.buckets.code_inline(form.last.read(&bytes)) else {
            return self.count_by_slow_bucket(fields, preempt, form);
        };
        self.count_array(fields, preempt, [form.first.read(&bytes), code.into()])
    }

    /// Counts a hit whose key is [`ScaledForm::Bucket`]. Returns true.
    #[inline(never)]
    fn count_by_slow_bucket(
        &self,
        fields: Fields<'_>,
        preempt: PreemptOff<'_>,
        form: &BucketForm,
    ) -> bool {
        if let Some(elt) = self.insert_by_bucket(fields, preempt, form) {
            fields.count(elt, preempt);
        }
        true
    }

    /// Counts a hit whose key is not in the first slot of its path. Returns true.
    #[inline(never)]
    fn count_array_slow<const N: usize>(
        &self,
        fields: Fields<'_>,
        preempt: PreemptOff<'_>,
        key: [u64; N],
    ) -> bool {
        if let Some(elt) = self.insert_array(preempt, key) {
            fields.count(elt, preempt);
        }
        true
    }

    #[inline(never)]
    fn insert_by_bucket<'a>(
        &'a self,
        fields: Fields<'_>,
        preempt: PreemptOff<'a>,
        form: &BucketForm,
    ) -> Option<Elt<'a>> {
        // SAFETY: They are two of the fields.
        let bytes = unsafe { fields.unchecked() };
        let code = form.buckets.code(form.last.read(&bytes));
        self.insert_array(preempt, [form.first.read(&bytes), code.into()])
    }

    #[inline(never)]
    fn insert_wide<'a>(
        &'a self,
        fields: Fields<'_>,
        preempt: PreemptOff<'a>,
        words: &[(KeyWord, Scale)],
    ) -> Option<Elt<'a>> {
        match words.len() {
            0..=2 => self.insert_scaled_words::<2>(fields, preempt, words),
            3..=8 => self.insert_scaled_words::<8>(fields, preempt, words),
            _ => self.insert_scaled_words::<{ RecordFields::WIDE_MAX }>(fields, preempt, words),
        }
    }

    #[inline(always)]
    fn insert_scaled_words<'a, const N: usize>(
        &'a self,
        fields: Fields<'_>,
        preempt: PreemptOff<'a>,
        words: &[(KeyWord, Scale)],
    ) -> Option<Elt<'a>> {
        let mut buffer = [0; N];
        for (to, (word, scale)) in buffer.iter_mut().zip(words) {
            let number = fields.word(word);
            *to = match *scale {
                Scale::One => number,
                scale => scale.apply(number),
            };
        }
        match *buffer.get(..words.len())? {
            [key] => self.insert_word(preempt, key),
            [a, b] => self.insert_array(preempt, [a, b]),
            ref key => self.insert_words(preempt, key),
        }
    }
}
