// SPDX-License-Identifier: GPL-2.0

//! The fast path: hits whose key and values are plain fields of the record.
//!
//! A hit tests the form of its key once; each form has a function of its own, so that a hit saves
//! no registers, and clears no stack, for other forms.

use super::{
    elt::Elt,
    fields::{
        BucketForm,
        Fields,
        KeyForm,
        KeyWord,
        KeyWords,
        Number32,
        OtherForm,
        RecordFields,
        ScaledForm, //
    },
    generation::Generation, //
};
use crate::{
    event::{
        NumberType,
        Record,
        Scale, //
    },
    sync::PreemptOff, //
};

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
