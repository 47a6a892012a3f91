// SPDX-License-Identifier: GPL-2.0

//! Hits whose key is a string at an offset given by the record.

use core::array;

use super::fields::{
    Fields,
    KeyForm,
    OtherForm,
    RecordFields,
    TextField,
    Unchecked, //
};
use crate::{
    event::{
        Record,
        Words, //
    },
    limits::WIDE_WORDS,
    map::{
        Elt,
        Generation, //
    },
    sync::PreemptOff, //
};

/// The words of a string.
///
/// # Safety
///
/// The string ends at `end` of the record. Its length is more than 8 * (`N` - 1) bytes and at most
/// 8 * `N`, and the record has at least 8 bytes before `end`.
#[inline(always)]
unsafe fn words<const N: usize>(record: &Unchecked, end: usize, len: usize) -> [u64; N] {
    let start = end.wrapping_sub(len);
    array::from_fn(|n| {
        if n + 1 < N {
            return record.read(start + 8 * n);
        }
        let last: u64 = record.read(end.wrapping_sub(8));
        // Shift out the bytes before the string.
        let shift = (8 * N).wrapping_sub(len).wrapping_mul(8) as u32;
        match cfg!(target_endian = "little") {
            true => last.wrapping_shr(shift),
            false => last.wrapping_shl(shift),
        }
    })
}

/// Counts a hit whose key is a string. The element of one of up to four words is found without
/// a call if it is in the first slot of its path. Returns true, as its caller does, so that the
/// call is a jump.
///
/// # Safety
///
/// The record has all of `fields`, of which `field` is the key.
#[inline(never)]
pub(super) unsafe fn count_text(
    generation: &Generation,
    fields: &RecordFields,
    record: Record<'_>,
    preempt: PreemptOff<'_>,
    field: &TextField,
) -> bool {
    // SAFETY: The caller guarantees that the record has all of `fields`.
    let fields = unsafe { fields.of_whole(record) };
    // SAFETY: Only the field is read, and the string after a test that it is in the record.
    let bytes = unsafe { fields.unchecked() };
    let (start, len) = field.place(bytes.read(field.offset as usize));
    let end = start.wrapping_add(len);
    if len == 0 || len > field.max_bytes || start < 8 || end > record.as_bytes().len() {
        return count_text_slow(generation, fields, record, preempt);
    }
    // Ignore a NUL at the end.
    let nul = usize::from(bytes.read::<u8>(end.wrapping_sub(1)) == 0);
    let (end, len) = (end.wrapping_sub(nul), len.wrapping_sub(nul));
    // SAFETY: The string is in the record, behind its first 8 bytes, and the match limits its
    // length.
    let elt = unsafe {
        match len {
            1..=8 => generation.lookup_array_first_slot::<1>(words(&bytes, end, len)),
            9..=16 => generation.lookup_array_first_slot::<2>(words(&bytes, end, len)),
            17..=24 => generation.lookup_array_first_slot::<3>(words(&bytes, end, len)),
            25..=32 => generation.lookup_array_first_slot::<4>(words(&bytes, end, len)),
            _ => None,
        }
    };
    match elt {
        Some(elt) => fields.count(elt, preempt),
        None => return count_text_slow(generation, fields, record, preempt),
    }
    true
}

/// Counts a hit whose key is a string that is longer, or not in the first slot of its path. Returns
/// true.
#[inline(never)]
fn count_text_slow(
    generation: &Generation,
    fields: Fields<'_>,
    record: Record<'_>,
    preempt: PreemptOff<'_>,
) -> bool {
    if let KeyForm::Other(OtherForm::Text(text)) = &fields.fields.key {
        if let Some(elt) = text.insert(generation, record, preempt) {
            fields.count(elt, preempt);
        }
    }
    true
}

impl TextField {
    /// Finds the element of a key that is this string, or inserts it.
    #[inline(never)]
    pub(super) fn insert<'a>(
        &self,
        generation: &'a Generation,
        record: Record<'_>,
        preempt: PreemptOff<'a>,
    ) -> Option<Elt<'a>> {
        let mut words = Words::<WIDE_WORDS>::new();
        words.set(self.of(record));
        generation.insert_words(preempt, words.as_slice())
    }
}
