// SPDX-License-Identifier: GPL-2.0

//! The fast path: hits whose key and values are plain fields of the record.
//!
//! Most keys are a few numbers or short arrays of characters: a few words that need no buffer. The length of
//! the record is checked once for all of them. The form of the key is known when the histogram is built; each
//! form has a function of its own, so that none saves registers, or clears stack, that only another one
//! needs.

use core::marker::PhantomData;

use kernel::prelude::*;

use super::{
    elt::Elt,
    generation::Generation, //
};
use crate::{
    event::{
        number::Numbers,
        unaligned::Unaligned,
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
    /// A number.
    pub const fn number(number: Number) -> Self {
        Self { number, mask: !0 }
    }

    /// The last eight characters of an array, at this offset. The last one counts as a NUL.
    pub const fn tail(offset: u32) -> Self {
        Self {
            number: Number::new(NumberType::U64, offset),
            mask: u64::from_ne_bytes([!0, !0, !0, !0, !0, !0, !0, 0]),
        }
    }

    /// Whether it is a `u32`, with all its bits.
    fn is_u32(&self) -> bool {
        self.number.type_() == NumberType::U32 && self.mask == !0
    }

    #[inline(always)]
    fn read(&self, from: &impl Numbers) -> u64 {
        self.number.read(from) & self.mask
    }
}

/// The form of a key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KeyForm {
    /// It is one number.
    Single,
    /// Several words.
    Plain,
    /// Words, some of which are scaled first.
    Scaled,
}

/// The fields of a record that make a key, and the fields that are added to the sums of its element. For maps whose
/// columns are the count of hits and sums.
///
/// # Invariants
///
/// No field reaches beyond `end`.
pub struct RecordFields {
    form: KeyForm,
    /// Whether the key is one `u32`, as most are. Tested first, before its form and type.
    is_u32: bool,
    key: [(KeyWord, Scale); Self::KEY_MAX],
    /// Words of the key, at least 1.
    key_len: usize,
    values: KVec<Number>,
    /// Bytes that a record has to have.
    end: usize,
}

impl RecordFields {
    /// Most words of a key.
    pub const KEY_MAX: usize = 4;

    /// Fields that no record has, for histograms that read something else.
    pub const fn none() -> Self {
        let word = KeyWord::number(Number::new(NumberType::U32, 0));
        // INVARIANT: No field of a record reaches as far.
        Self {
            form: KeyForm::Single,
            is_u32: true,
            key: [(word, Scale::One); Self::KEY_MAX],
            key_len: 1,
            values: KVec::new(),
            end: usize::MAX,
        }
    }

    /// Fields for a key of these words, and sums of `values`. `None`: there are no words, or too many.
    pub fn new(key: &[(KeyWord, Scale)], values: KVec<Number>) -> Option<Self> {
        let mut fields = Self::none();
        fields.key.get_mut(..key.len())?.copy_from_slice(key);
        fields.key_len = key.len();
        fields.form = match *key {
            _ if key.iter().any(|&(_, scale)| scale != Scale::One) => KeyForm::Scaled,
            [(word, _)] if word.mask == !0 => KeyForm::Single,
            _ => KeyForm::Plain,
        };
        fields.is_u32 = matches!(*key, [(word, Scale::One)] if word.is_u32());
        // INVARIANT: No field ends behind the last one.
        fields.end = Iterator::chain(
            key.iter().map(|(word, _)| word.number.end()),
            values.iter().map(|value| value.end()),
        )
        .max()?;
        fields.values = values;
        (!key.is_empty()).then_some(fields)
    }

    /// The fields as they are in `record`; `None` if it is too short for one of them.
    #[inline(always)]
    fn of<'a>(&'a self, record: Record<'a>) -> Option<Fields<'a>> {
        let bytes = record.as_bytes();
        // INVARIANT: The record has `end` bytes.
        (bytes.len() >= self.end).then_some(Fields {
            fields: self,
            start: bytes.as_ptr(),
            _record: PhantomData,
        })
    }
}

/// The fields of one record.
///
/// # Invariants
///
/// At `start` there are `fields.end` bytes, which do not change for `'a`.
#[derive(Clone, Copy)]
struct Fields<'a> {
    fields: &'a RecordFields,
    start: *const u8,
    _record: PhantomData<Record<'a>>,
}

impl Fields<'_> {
    /// The key, if it is [`KeyForm::Single`].
    #[inline(always)]
    fn single(self) -> u64 {
        let (word, _) = &self.fields.key[0];
        // SAFETY: Only the number of a key's word is read.
        word.number.read(&unsafe { self.unchecked() })
    }

    /// The key, if it is a `u32`.
    #[inline(always)]
    fn single_u32(self) -> u64 {
        let (word, _) = &self.fields.key[0];
        // SAFETY: It is one of the fields.
        NumberType::U32.read(word.number.offset(), &unsafe { self.unchecked() })
    }

    /// Reads the key into `to`, if none of its words is scaled.
    #[inline(always)]
    fn plain(self, to: &mut [u64; RecordFields::KEY_MAX]) -> &[u64] {
        let key = self.fields.key.iter().take(self.fields.key_len);
        for (to, (word, _)) in to.iter_mut().zip(key) {
            // SAFETY: It is one of the fields.
            *to = word.read(&unsafe { self.unchecked() });
        }
        to.get(..self.fields.key_len).unwrap_or_default()
    }

    /// Reads the key into `to`.
    #[inline(always)]
    fn scaled(self, to: &mut [u64; RecordFields::KEY_MAX]) -> &[u64] {
        let key = self.fields.key.iter().take(self.fields.key_len);
        for (to, (word, scale)) in to.iter_mut().zip(key) {
            // SAFETY: It is one of the fields.
            *to = scale.apply(word.read(&unsafe { self.unchecked() }));
        }
        to.get(..self.fields.key_len).unwrap_or_default()
    }

    /// Updates the columns of its element.
    #[inline(always)]
    fn count(self, elt: Elt<'_>, preempt: PreemptOff<'_>) {
        // Moved, so that it stays in registers.
        elt.update_sums(preempt, &self.fields.values, move |value| {
            // SAFETY: It is one of the fields.
            value.read(&unsafe { self.unchecked() })
        });
    }

    /// The bytes of the record.
    ///
    /// # Safety
    ///
    /// Nothing but the fields is read from them.
    #[inline(always)]
    unsafe fn unchecked(self) -> Unchecked {
        Unchecked(self.start)
    }
}

/// The bytes of a record, read without checking its length.
struct Unchecked(*const u8);

impl Unchecked {
    #[inline(always)]
    fn read<T: Unaligned>(&self, offset: u32) -> T {
        // SAFETY: By the caller of [`Fields::unchecked`] this is one of the fields, which the record has by the
        // invariants of `Fields`.
        T::of(unsafe { &*self.0.add(offset as usize).cast() })
    }
}

impl Numbers for Unchecked {
    #[inline(always)]
    fn u8(&self, offset: u32) -> u8 {
        self.read(offset)
    }

    #[inline(always)]
    fn u16(&self, offset: u32) -> u16 {
        self.read(offset)
    }

    #[inline(always)]
    fn u32(&self, offset: u32) -> u32 {
        self.read(offset)
    }

    #[inline(always)]
    fn u64(&self, offset: u32) -> u64 {
        self.read(offset)
    }
}

impl Generation {
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
        let key = match fields.fields.form {
            _ if fields.fields.is_u32 => fields.single_u32(),
            KeyForm::Single => fields.single(),
            KeyForm::Plain | KeyForm::Scaled => return self.count_elsewhere(fields, preempt),
        };
        match self.lookup_word_at_home(key) {
            Some(elt) => {
                fields.count(elt, preempt);
                true
            }
            None => self.count_elsewhere(fields, preempt),
        }
    }

    /// Counts a hit whose key is not in the first slot of its path, or is not one number.
    ///
    /// Returns true, as its caller does, so that the call is a jump.
    #[inline(never)]
    fn count_elsewhere(&self, fields: Fields<'_>, preempt: PreemptOff<'_>) -> bool {
        match fields.fields.form {
            KeyForm::Single => self.count_single(fields, preempt),
            KeyForm::Plain => self.count_plain(fields, preempt),
            KeyForm::Scaled => self.count_scaled(fields, preempt),
        }
        true
    }

    #[inline(never)]
    fn count_single(&self, fields: Fields<'_>, preempt: PreemptOff<'_>) {
        if let Some(elt) = self.insert_word(preempt, fields.single()) {
            fields.count(elt, preempt);
        }
    }

    #[inline(never)]
    fn count_plain(&self, fields: Fields<'_>, preempt: PreemptOff<'_>) {
        let elt = match *fields.plain(&mut [0; RecordFields::KEY_MAX]) {
            [a, b] => self.insert_array(preempt, [a, b]),
            [a, b, c] => self.insert_array(preempt, [a, b, c]),
            ref key => self.insert_words(preempt, key),
        };
        if let Some(elt) = elt {
            fields.count(elt, preempt);
        }
    }

    #[inline(never)]
    fn count_scaled(&self, fields: Fields<'_>, preempt: PreemptOff<'_>) {
        let elt = match *fields.scaled(&mut [0; RecordFields::KEY_MAX]) {
            [key] => self.insert_word(preempt, key),
            [a, b] => self.insert_array(preempt, [a, b]),
            ref key => self.insert_words(preempt, key),
        };
        if let Some(elt) = elt {
            fields.count(elt, preempt);
        }
    }
}
