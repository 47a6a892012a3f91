// SPDX-License-Identifier: GPL-2.0

//! Hits whose key and values are plain fields of the record.
//!
//! A hit tests the form of its key once; each form has a function of its own, so that a hit saves
//! no registers, and clears no stack, for other forms.

use super::{
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
    text::count_text,
};
use crate::{
    event::{
        NumberType,
        Record,
        Scale, //
    },
    map::{
        Elt,
        Generation, //
    },
    sync::PreemptOff, //
};

impl RecordFields {
    /// Counts a hit whose key and values are these fields of `record`. Returns false, and has done
    /// nothing, if the record is too short for them. Any context, NMI included.
    #[inline(always)]
    pub(super) fn count(
        &self,
        generation: &Generation,
        record: Record<'_>,
        preempt: PreemptOff<'_>,
    ) -> bool {
        let Some(fields) = self.of(record) else {
            return false;
        };
        let key = match &self.key {
            KeyForm::U32(offset) => fields.number_at(NumberType::U32, *offset),
            KeyForm::Other(OtherForm::S32(offset)) => fields.number_at(NumberType::S32, *offset),
            KeyForm::Other(OtherForm::U64(offset)) => fields.number_at(NumberType::U64, *offset),
            KeyForm::Other(OtherForm::Single(number)) => fields.number(number),
            KeyForm::Other(OtherForm::Numbers32(words)) => {
                return count_numbers32(generation, fields, preempt, words)
            }
            KeyForm::Other(OtherForm::Plain(words)) => {
                return count_plain(generation, fields, preempt, words)
            }
            KeyForm::Other(OtherForm::Scaled(words)) => {
                return match words {
                    ScaledForm::Bucket(form) => count_by_bucket(generation, fields, preempt, form),
                    words => count_scaled(generation, fields, preempt, words),
                }
            }
            KeyForm::Other(OtherForm::Text(text)) => {
                // SAFETY: `fields` were found in `record`, and `text` is their key.
                return unsafe { count_text(generation, self, record, preempt, text) };
            }
        };
        count_word(generation, fields, preempt, key)
    }

    /// Finds the element for the key in these fields of `record`, or inserts it: see
    /// [`Generation::insert`]. `None`: the record is too short for them, and nothing was done.
    #[inline(always)]
    pub(in crate::hist) fn insert<'a>(
        &self,
        generation: &'a Generation,
        record: Record<'_>,
        preempt: PreemptOff<'a>,
    ) -> Option<Option<Elt<'a>>> {
        Some(insert(generation, self.of(record)?, record, preempt))
    }
}

/// Counts a hit with this key, with a call only if it is not in the first slot of its path.
/// Returns true.
#[inline(always)]
fn count_word(
    generation: &Generation,
    fields: Fields<'_>,
    preempt: PreemptOff<'_>,
    key: u64,
) -> bool {
    match generation.lookup_word_first_slot(key) {
        Some(elt) => {
            fields.count(elt, preempt);
            true
        }
        None => count_word_slow(generation, fields, preempt, key),
    }
}

/// [`RecordFields::insert`] for fields that were found in the record.
#[inline(always)]
pub(super) fn insert<'a>(
    generation: &'a Generation,
    fields: Fields<'_>,
    record: Record<'_>,
    preempt: PreemptOff<'a>,
) -> Option<Elt<'a>> {
    match &fields.fields.key {
        KeyForm::U32(offset) => {
            generation.insert_word(preempt, fields.number_at(NumberType::U32, *offset))
        }
        KeyForm::Other(OtherForm::S32(offset)) => {
            generation.insert_word(preempt, fields.number_at(NumberType::S32, *offset))
        }
        KeyForm::Other(OtherForm::U64(offset)) => {
            generation.insert_word(preempt, fields.number_at(NumberType::U64, *offset))
        }
        KeyForm::Other(OtherForm::Single(number)) => {
            generation.insert_word(preempt, fields.number(number))
        }
        KeyForm::Other(OtherForm::Numbers32(words)) => {
            insert_few(generation, preempt, words, |word| fields.number32(word))
        }
        KeyForm::Other(OtherForm::Plain(words)) => {
            insert_few(generation, preempt, words, |word| fields.word(word))
        }
        KeyForm::Other(OtherForm::Scaled(words)) => {
            insert_scaled(generation, fields, preempt, words)
        }
        KeyForm::Other(OtherForm::Text(text)) => text.insert(generation, record, preempt),
    }
}

/// Counts a hit whose key is not in the first slot of its path.
///
/// Returns true, as its caller does, so that the call is a jump.
#[inline(never)]
fn count_word_slow(
    generation: &Generation,
    fields: Fields<'_>,
    preempt: PreemptOff<'_>,
    key: u64,
) -> bool {
    if let Some(elt) = generation.insert_word_on_path(preempt, key) {
        fields.count(elt, preempt);
    }
    true
}

/// Counts a hit whose key is [`OtherForm::Numbers32`]. Returns true.
#[inline(never)]
fn count_numbers32(
    generation: &Generation,
    fields: Fields<'_>,
    preempt: PreemptOff<'_>,
    words: &KeyWords<Number32, { RecordFields::NUMBERS32_MAX }>,
) -> bool {
    match words.len > RecordFields::KEY_MAX {
        true => count_many32(generation, fields, preempt, words),
        false => count_few(generation, fields, preempt, words, |word| {
            fields.number32(word)
        }),
    }
}

/// Counts a hit whose key is [`OtherForm::Numbers32`], with five or more of them. Returns true.
#[inline(never)]
fn count_many32(
    generation: &Generation,
    fields: Fields<'_>,
    preempt: PreemptOff<'_>,
    words: &KeyWords<Number32, { RecordFields::NUMBERS32_MAX }>,
) -> bool {
    let read = |word: &Number32| fields.number32(word);
    match words.len {
        5 => count_array(generation, fields, preempt, words.array::<5>(read)),
        6 => count_array(generation, fields, preempt, words.array::<6>(read)),
        7 => count_array(generation, fields, preempt, words.array::<7>(read)),
        _ => count_array(generation, fields, preempt, words.array::<8>(read)),
    }
}

/// Counts a hit whose key is [`OtherForm::Plain`]. Returns true.
#[inline(never)]
fn count_plain(
    generation: &Generation,
    fields: Fields<'_>,
    preempt: PreemptOff<'_>,
    words: &KeyWords<KeyWord, { RecordFields::KEY_MAX }>,
) -> bool {
    count_few(generation, fields, preempt, words, |word| fields.word(word))
}

/// Counts a hit whose key is these words, at most [`RecordFields::KEY_MAX`], each read by
/// `read`. Returns true.
#[inline(always)]
fn count_few<T: Copy, const N: usize>(
    generation: &Generation,
    fields: Fields<'_>,
    preempt: PreemptOff<'_>,
    words: &KeyWords<T, N>,
    read: impl Fn(&T) -> u64,
) -> bool {
    match words.len {
        2 => count_array(generation, fields, preempt, words.array::<2>(read)),
        3 => count_array(generation, fields, preempt, words.array::<3>(read)),
        4 => count_array(generation, fields, preempt, words.array::<4>(read)),
        _ => {
            let [key] = words.array(read);
            count_word(generation, fields, preempt, key)
        }
    }
}

/// Counts a hit with this key, with a call only if it is not in the first slot of its path.
/// Returns true.
#[inline(always)]
fn count_array<const N: usize>(
    generation: &Generation,
    fields: Fields<'_>,
    preempt: PreemptOff<'_>,
    key: [u64; N],
) -> bool {
    match generation.lookup_array_first_slot(key) {
        Some(elt) => fields.count(elt, preempt),
        None => return count_array_slow(generation, fields, preempt, key),
    }
    true
}

/// Finds or inserts the element of a key of these words, each read by `read`.
#[inline(always)]
fn insert_few<'a, T: Copy, const N: usize>(
    generation: &'a Generation,
    preempt: PreemptOff<'a>,
    words: &KeyWords<T, N>,
    read: impl Fn(&T) -> u64,
) -> Option<Elt<'a>> {
    let mut buffer = [0; N];
    match *words.read(&mut buffer, read) {
        [key] => generation.insert_word(preempt, key),
        [a, b] => generation.insert_array(preempt, [a, b]),
        [a, b, c] => generation.insert_array(preempt, [a, b, c]),
        ref key => generation.insert_words(preempt, key),
    }
}

/// Counts a hit whose key is [`OtherForm::Scaled`]. Returns true.
#[inline(never)]
fn count_scaled(
    generation: &Generation,
    fields: Fields<'_>,
    preempt: PreemptOff<'_>,
    words: &ScaledForm,
) -> bool {
    if let ScaledForm::Few(words) = words {
        return count_few(generation, fields, preempt, words, |word| {
            fields.scaled(word)
        });
    }
    if let Some(elt) = insert_scaled(generation, fields, preempt, words) {
        fields.count(elt, preempt);
    }
    true
}

#[inline(always)]
fn insert_scaled<'a>(
    generation: &'a Generation,
    fields: Fields<'_>,
    preempt: PreemptOff<'a>,
    words: &ScaledForm,
) -> Option<Elt<'a>> {
    match words {
        ScaledForm::Few(words) => {
            insert_few(generation, preempt, words, |word| fields.scaled(word))
        }
        ScaledForm::Bucket(form) => insert_by_bucket(generation, fields, preempt, form),
        ScaledForm::Wide(words) => insert_wide(generation, fields, preempt, words),
    }
}

/// Counts a hit whose key is [`ScaledForm::Bucket`], with a call only if it is not in the first
/// slot of its path, or the bucket needs one. Returns true.
#[inline(never)]
fn count_by_bucket(
    generation: &Generation,
    fields: Fields<'_>,
    preempt: PreemptOff<'_>,
    form: &BucketForm,
) -> bool {
    let Some(code) = form.buckets.code_inline(fields.number(&form.last)) else {
        return count_by_slow_bucket(generation, fields, preempt, form);
    };
    count_array(
        generation,
        fields,
        preempt,
        [fields.number(&form.first), code.into()],
    )
}

/// Counts a hit whose key is [`ScaledForm::Bucket`]. Returns true.
#[inline(never)]
fn count_by_slow_bucket(
    generation: &Generation,
    fields: Fields<'_>,
    preempt: PreemptOff<'_>,
    form: &BucketForm,
) -> bool {
    if let Some(elt) = insert_by_bucket(generation, fields, preempt, form) {
        fields.count(elt, preempt);
    }
    true
}

/// Counts a hit whose key is not in the first slot of its path. Returns true.
#[inline(never)]
fn count_array_slow<const N: usize>(
    generation: &Generation,
    fields: Fields<'_>,
    preempt: PreemptOff<'_>,
    key: [u64; N],
) -> bool {
    if let Some(elt) = generation.insert_array_on_path(preempt, key) {
        fields.count(elt, preempt);
    }
    true
}

#[inline(never)]
fn insert_by_bucket<'a>(
    generation: &'a Generation,
    fields: Fields<'_>,
    preempt: PreemptOff<'a>,
    form: &BucketForm,
) -> Option<Elt<'a>> {
    let code = form.buckets.code(fields.number(&form.last));
    generation.insert_array(preempt, [fields.number(&form.first), code.into()])
}

#[inline(never)]
fn insert_wide<'a>(
    generation: &'a Generation,
    fields: Fields<'_>,
    preempt: PreemptOff<'a>,
    words: &[(KeyWord, Scale)],
) -> Option<Elt<'a>> {
    match words.len() {
        0..=2 => insert_scaled_words::<2>(generation, fields, preempt, words),
        3..=8 => insert_scaled_words::<8>(generation, fields, preempt, words),
        _ => insert_scaled_words::<{ RecordFields::WIDE_MAX }>(generation, fields, preempt, words),
    }
}

#[inline(always)]
fn insert_scaled_words<'a, const N: usize>(
    generation: &'a Generation,
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
        [key] => generation.insert_word(preempt, key),
        [a, b] => generation.insert_array(preempt, [a, b]),
        ref key => generation.insert_words(preempt, key),
    }
}
