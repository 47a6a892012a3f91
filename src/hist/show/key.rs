// SPDX-License-Identifier: GPL-2.0

//! The key of a row.

use core::cmp::Ordering;

use crate::hist::{
    program::key::KeyPart,
    stacks::StackList,
    Histogram, //
};

/// A key as it is in the map, with the words of its stacks.
#[derive(Clone, Copy)]
pub(super) struct RowKey<'a> {
    bytes: &'a [u8],
    parts: &'a [KeyPart],
    /// `None`: the words of stacks are in `bytes`.
    stacks: Option<&'a StackList>,
}

impl<'a> RowKey<'a> {
    /// The key of an entry of `hist` with these bytes. `stacks` has the stacks of its keys, if they
    /// are interned.
    pub(super) fn new(hist: &'a Histogram, bytes: &'a [u8], stacks: Option<&'a StackList>) -> Self {
        let program = &hist.code.program;
        Self {
            bytes,
            parts: match stacks {
                Some(_) => &program.interned,
                None => &program.parts,
            },
            stacks,
        }
    }

    /// The content of key field `nth`, from 0.
    pub(super) fn part(&self, nth: usize) -> &'a [u8] {
        let part = &self.parts[nth];
        let bytes = &self.bytes[part.at..][..part.len];
        match self.stacks {
            Some(stacks) if part.is_stack() => stacks.get(number(bytes), part.is_long()),
            _ => bytes,
        }
    }

    /// Compares the bytes of all contents, as they follow each other in C.
    pub(super) fn compare(&self, other: &Self) -> Ordering {
        if self.stacks.is_none() {
            return self.bytes.cmp(other.bytes);
        }
        let orders = (0..self.parts.len()).map(|nth| self.part(nth).cmp(other.part(nth)));
        orders.fold(Ordering::Equal, Ordering::then)
    }
}

/// The number that `bytes`, part of a key, start with.
pub(super) fn number(bytes: &[u8]) -> u64 {
    bytes
        .first_chunk()
        .map_or(0, |chunk| u64::from_ne_bytes(*chunk))
}
