// SPDX-License-Identifier: GPL-2.0

//! Keys of triggers with one variable: a few numbers of the record, or the CPU.

use super::fields::{
    KeyWords,
    RecordFields, //
};
use crate::{
    event::{
        Number,
        Record, //
    },
    hist::program::{
        key::KeyPart,
        number::recorded_number, //
    },
    map::{
        Elt,
        Generation, //
    },
    sync::PreemptOff, //
};

/// The numbers that are a key.
#[repr(u32)]
pub(super) enum VarKey {
    /// One number of the record: the most common key.
    Number(Number),
    /// The number of the CPU.
    Cpu,
    /// Several numbers of the record.
    Numbers(Numbers),
}

/// The numbers of a key with several ones.
pub(super) type Numbers = KeyWords<Number, { RecordFields::KEY_MAX }>;

impl VarKey {
    /// The key of these parts. `None`: it is another one, or has too many numbers.
    pub(super) fn new(parts: &[KeyPart]) -> Option<Self> {
        match parts {
            [part] if part.is_cpu() => Some(Self::Cpu),
            [part] => Some(Self::Number(part.number()?)),
            parts => Some(Self::Numbers(Numbers::new(parts, KeyPart::number)?)),
        }
    }

    /// Finds the element of this key of `record`, or inserts it: see [`Generation::insert`].
    #[inline(always)]
    pub(super) fn insert<'a>(
        &self,
        generation: &'a Generation,
        record: Record<'_>,
        preempt: PreemptOff<'_>,
    ) -> Option<Elt<'a>> {
        let key = match self {
            Self::Number(number) => recorded_number(number, record),
            Self::Cpu => preempt.cpu() as u64,
            Self::Numbers(numbers) => return insert_numbers(generation, record, preempt, numbers),
        };
        match generation.lookup_word_first_slot(key) {
            Some(elt) => Some(elt),
            None => insert_slow(generation, preempt, key),
        }
    }

    /// Finds the element of this key of `record`, if it has one. If the keys of the map are
    /// shorter, only the first numbers count.
    #[inline(always)]
    pub(super) fn lookup<'a>(
        &self,
        generation: &'a Generation,
        record: Record<'_>,
        preempt: PreemptOff<'_>,
    ) -> Option<Elt<'a>> {
        match self {
            Self::Number(number) => generation.lookup_word(recorded_number(number, record)),
            Self::Cpu => generation.lookup_word(preempt.cpu() as u64),
            Self::Numbers(numbers) => lookup_numbers(generation, record, numbers),
        }
    }
}

/// Slow path: the element is new, or not in the first slot of its path.
#[inline(never)]
fn insert_slow<'a>(
    generation: &'a Generation,
    preempt: PreemptOff<'_>,
    key: u64,
) -> Option<Elt<'a>> {
    generation.insert_word_on_path(preempt, key)
}

/// [`VarKey::insert`] for several numbers.
#[inline(never)]
fn insert_numbers<'a>(
    generation: &'a Generation,
    record: Record<'_>,
    preempt: PreemptOff<'_>,
    numbers: &Numbers,
) -> Option<Elt<'a>> {
    let read = |number: &Number| number.read(&record);
    match numbers.len {
        2 => insert_array(generation, preempt, numbers.array::<2>(read)),
        3 => insert_array(generation, preempt, numbers.array::<3>(read)),
        _ => insert_array(generation, preempt, numbers.array::<4>(read)),
    }
}

/// Finds or inserts an element, with a call only if it is not in the first slot of its path.
#[inline(always)]
fn insert_array<'a, const N: usize>(
    generation: &'a Generation,
    preempt: PreemptOff<'_>,
    key: [u64; N],
) -> Option<Elt<'a>> {
    match generation.lookup_array_first_slot(key) {
        Some(elt) => Some(elt),
        None => insert_array_slow(generation, preempt, key),
    }
}

/// Slow path: the element is new, or not in the first slot of its path.
#[inline(never)]
fn insert_array_slow<'a, const N: usize>(
    generation: &'a Generation,
    preempt: PreemptOff<'_>,
    key: [u64; N],
) -> Option<Elt<'a>> {
    generation.insert_array_on_path(preempt, key)
}

/// [`VarKey::lookup`] for several numbers.
#[inline(always)]
fn lookup_numbers<'a>(
    generation: &'a Generation,
    record: Record<'_>,
    numbers: &Numbers,
) -> Option<Elt<'a>> {
    let read = |number: &Number| number.read(&record);
    match numbers.len {
        2 => generation.lookup_array(numbers.array::<2>(read)),
        3 => generation.lookup_array(numbers.array::<3>(read)),
        _ => generation.lookup_array(numbers.array::<4>(read)),
    }
}
