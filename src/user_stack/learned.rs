// SPDX-License-Identifier: GPL-2.0

//! Rules that walks have searched for: a cache.
//!
//! A rule is searched for in the rows of its file once, and is kept with the address then. Nothing
//! that is kept is ever wrong: an object gets rules once, and a table has its own cache.

use kernel::{
    prelude::*,
    sync::atomic::Atomic, //
};

use super::{
    Kind,
    Rule, //
};
use crate::sync::{
    Load,
    Store, //
};

/// An instruction of an object with rules: the index of the object in its table, and, below that,
/// the offset in its file plus a number for the object.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Key(u64);

/// Bits of an offset.
const OFFSET_BITS: u32 = 32;
/// Bits of an index.
const INDEX_BITS: u32 = 13;
/// Each object's offsets are shifted by its index times this, so that the same offset in all of
/// them has keys in different sets.
const SHIFT: u64 = 1361;

impl Key {
    /// The key of the first of `len` bytes of an object. `None`: not all of them have a key.
    pub(super) fn new(index: usize, offset: u64, len: u64) -> Option<Self> {
        let index = (index < 1 << INDEX_BITS).then_some(index as u64)?;
        let begin = offset.checked_add(index * SHIFT)?;
        let end = begin.checked_add(len)?;
        (end <= 1 << OFFSET_BITS).then_some(Self(index << OFFSET_BITS | begin))
    }

    /// The key of nothing.
    pub(super) const NONE: Self = Self(u64::MAX);

    /// The index and the offset.
    #[inline(always)]
    pub(super) fn parts(self) -> (usize, u64) {
        let index = self.0 >> OFFSET_BITS;
        let offset = self.0 & ((1 << OFFSET_BITS) - 1);
        (
            index as usize,
            offset.wrapping_sub(index.wrapping_mul(SHIFT)),
        )
    }

    /// The key as a number, and from that.
    pub(super) fn to_u64(self) -> u64 {
        self.0
    }

    pub(super) fn of(number: u64) -> Self {
        Self(number)
    }

    /// The key so many bytes further.
    #[inline(always)]
    pub(super) fn plus(self, more: u64) -> Self {
        Self(self.0.wrapping_add(more))
    }

    /// The key so many bytes before.
    #[inline(always)]
    pub(super) fn minus(self, less: u64) -> Self {
        Self(self.0.wrapping_sub(less))
    }
}

/// A rule by which nearly all frames are walked, in a form that is quickly computed with: of
/// [`Kind::Sp`] or [`Kind::Fp`], with the return address on the stack, or of [`Kind::Outermost`]:
/// 0. Other bits are not used.
#[derive(Clone, Copy, Debug)]
pub struct Plain(u32);

// Its bits: 8 each for the words from the return address and from the frame pointer of the caller
// to the canonical frame address, 12 for the words from a register to that; and the register.

const RA_BITS: u32 = 8;
const FP_BITS: u32 = 8;
const CFA_BITS: u32 = 12;
const BY_FP: u32 = 1 << (RA_BITS + FP_BITS + CFA_BITS);

impl Plain {
    /// `None`: the rule is another one.
    fn new(rule: Rule) -> Option<Self> {
        let by_fp = match rule.kind {
            Kind::Sp => 0,
            Kind::Fp => BY_FP,
            Kind::Outermost => return Some(Self(0)),
            _ => return None,
        };
        let cfa = u32::try_from(rule.cfa).ok()?;
        let [ra, fp] = [rule.ra, rule.fp].map(|words| u32::from(words.unsigned_abs()));
        let fits = cfa % 8 == 0
            && cfa / 8 < 1 << CFA_BITS
            && rule.ra < 0
            && ra < 1 << RA_BITS
            && rule.fp <= 0
            && fp < 1 << FP_BITS
            // It is the lower one of the two.
            && (fp == 0 || fp >= ra);
        fits.then_some(Self(
            by_fp | cfa / 8 << (RA_BITS + FP_BITS) | fp << RA_BITS | ra,
        ))
    }

    /// Whether the function lacks a caller. Then all numbers are 0.
    #[inline(always)]
    pub(super) fn is_outermost(self) -> bool {
        self.0 & (2 * BY_FP - 1) == 0
    }

    /// Whether the frame address is computed from the frame pointer, not the stack pointer.
    #[inline(always)]
    pub(super) fn is_by_fp(self) -> bool {
        self.0 & BY_FP != 0
    }

    /// Bytes from that register to the frame address.
    #[inline(always)]
    pub fn cfa(self) -> u64 {
        u64::from(self.0 >> (RA_BITS + FP_BITS) & ((1 << CFA_BITS) - 1)) * 8
    }

    /// Bytes from the frame pointer of the caller to the frame address; 0: it has not changed.
    #[inline(always)]
    pub(super) fn fp(self) -> u64 {
        u64::from(self.0 >> RA_BITS & ((1 << FP_BITS) - 1)) * 8
    }

    /// Bytes from the return address to the frame address.
    #[inline(always)]
    pub(super) fn ra(self) -> u64 {
        u64::from(self.0 & ((1 << RA_BITS) - 1)) * 8
    }
}

// A word has the upper bits of a key, and a rule: PLAIN and a `Plain`, or NTH and the number of the
// rule in its file. It is 0 if it has none. One word, so that nobody sees the halves of two.

const RULE_BITS: u32 = BY_FP.trailing_zeros() + 1;
const PLAIN: u64 = 1 << RULE_BITS;
const NTH: u64 = 1 << (RULE_BITS - 1);
const TAG_SHIFT: u32 = RULE_BITS + 1;

const SET_BITS: u32 = 11;
/// Number of sets of two words: 32 KiB.
const SETS: usize = 1 << SET_BITS;

/// All bits of a key are in the index of its set, or in its words.
const _: () = assert!(OFFSET_BITS + INDEX_BITS - SET_BITS + TAG_SHIFT == u64::BITS);

type Set = [Atomic<u64>; 2];

/// The cache. Shared by all CPUs.
///
/// # Invariants
///
/// `sets` has [`SETS`] sets.
pub(super) struct Learned {
    sets: KVVec<Set>,
}

/// The cache, in a hit.
#[derive(Clone, Copy)]
pub struct Rulebook<'a>(&'a [Set; SETS]);

impl Learned {
    /// Without rules. May sleep. Fails with `ENOMEM`.
    pub(super) fn new() -> Result<Self> {
        let mut sets = KVVec::with_capacity(SETS, GFP_KERNEL)?;
        for _ in 0..SETS {
            sets.push([Atomic::new(0), Atomic::new(0)], GFP_KERNEL)?;
        }
        Ok(Self { sets })
    }

    #[inline(always)]
    pub(super) fn book(&self) -> Option<Rulebook<'_>> {
        Some(Rulebook(self.sets.as_slice().try_into().ok()?))
    }
}

impl Rulebook<'_> {
    #[inline(always)]
    fn set(&self, key: Key) -> Option<&Set> {
        self.0.get(key.0 as usize & (SETS - 1))
    }

    /// The plain rule of an instruction, if that is kept. Any context.
    #[inline(always)]
    pub fn plain(&self, key: Key) -> Option<Plain> {
        let [first, second] = self.set(key)?;
        let wanted = key.0 >> SET_BITS << 1 | 1;
        let mut word = first.relaxed();
        if word >> RULE_BITS != wanted {
            word = second.relaxed();
            if word >> RULE_BITS != wanted {
                return None;
            }
        }
        Some(Plain(word as u32))
    }

    /// The number of the rule of an instruction, if that is kept and is not plain. Any context.
    pub(super) fn nth(&self, key: Key) -> Option<usize> {
        let wanted = (key.0 >> SET_BITS) << TAG_SHIFT | NTH;
        let of = |word: u64| (word & !0xffff == wanted).then_some(word as usize & 0xffff);
        self.set(key)?.iter().find_map(|word| of(word.relaxed()))
    }

    /// Keeps the rule of an instruction, the `nth` one in its file. Any context.
    /// Returns it if it is plain.
    pub(super) fn learn(&self, key: Key, rule: Rule, nth: usize) -> Option<Plain> {
        let plain = Plain::new(rule);
        let rule = match plain {
            Some(plain) => PLAIN | u64::from(plain.0),
            None => NTH | (nth & 0xffff) as u64,
        };
        if let Some([first, second]) = self.set(key) {
            // Others may do so at the same time: then one of these words is lost, or there twice.
            second.release(first.relaxed());
            first.release((key.0 >> SET_BITS) << TAG_SHIFT | rule);
        }
        plain
    }
}
