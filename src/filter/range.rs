// SPDX-License-Identifier: GPL-2.0

//! What numbers are compared with.

use super::predicate::Op;
use crate::hist::event::EventField;
use crate::hook::record::Record;

/// Bytes of a number in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    One,
    Two,
    Four,
    Eight,
}

impl Width {
    /// The width of a field of `size` bytes, if those can be a number.
    pub(super) fn of(size: u32) -> Option<Self> {
        match size {
            1 => Some(Self::One),
            2 => Some(Self::Two),
            4 => Some(Self::Four),
            8 => Some(Self::Eight),
            _ => None,
        }
    }

    /// The largest number without a sign.
    fn max(self) -> u64 {
        match self {
            Self::One => u8::MAX.into(),
            Self::Two => u16::MAX.into(),
            Self::Four => u32::MAX.into(),
            Self::Eight => u64::MAX,
        }
    }
}

/// A number in a record.
#[derive(Clone, Copy)]
pub(super) struct Number {
    pub(super) at: u32,
    pub(super) width: Width,
}

impl Number {
    /// What `field` has, if that can be a number.
    pub(super) fn of(field: &EventField) -> Option<Self> {
        let (at, width) = (field.offset, Width::of(field.size)?);
        Some(Self { at, width })
    }

    /// Reads it; its sign is one of its bits.
    #[inline(always)]
    pub(super) fn read(self, record: Record<'_>) -> u64 {
        match self.width {
            Width::One => record.u8(self.at).into(),
            Width::Two => record.u16(self.at).into(),
            Width::Four => record.u32(self.at).into(),
            Width::Eight => record.u64(self.at),
        }
    }
}

/// Numbers of a width from `first` on: `span` more than that one, and on from zero after the largest.
///
/// What a comparison is true for is always such a range, for signed numbers too: their sign bit
/// makes them large. So one subtraction and one comparison do for all operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    first: u64,
    span: u64,
    /// The largest of the numbers.
    mask: u64,
}

impl Range {
    /// The numbers of `width` for which `op value` is true; `None` if there are none. Of the value,
    /// only as many bits count as the numbers have.
    pub(super) fn new(op: Op, value: u64, width: Width, signed: bool) -> Option<Self> {
        let mask = width.max();
        let value = value & mask;
        let (min, max) = match signed {
            true => (mask / 2 + 1, mask / 2),
            false => (0, mask),
        };
        let (first, last) = match op {
            Op::Equal => (value, value),
            Op::NotEqual => (value.wrapping_add(1), value.wrapping_sub(1)),
            Op::Less if value == min => return None,
            Op::Less => (min, value.wrapping_sub(1)),
            Op::LessOrEqual => (min, value),
            Op::Greater if value == max => return None,
            Op::Greater => (value.wrapping_add(1), max),
            Op::GreaterOrEqual => (value, max),
            Op::And | Op::Glob => return None,
        };
        Some(Self {
            first,
            span: last.wrapping_sub(first) & mask,
            mask,
        })
    }

    /// The numbers of `width` from `start` up to, but without, `end`; `None` if there are none.
    pub(super) fn between(start: u64, end: u64, width: Width) -> Option<Self> {
        let span = end.checked_sub(start)?.checked_sub(1)?;
        Some(Self {
            first: start,
            span,
            mask: width.max(),
        })
    }

    /// Those of the width that are not in the range; `None` if there are none.
    pub(super) fn others(self) -> Option<Self> {
        Some(Self {
            first: self.first.wrapping_add(self.span).wrapping_add(1),
            span: (self.mask - self.span).checked_sub(1)?,
            mask: self.mask,
        })
    }

    /// Whether `number` is one of them.
    #[inline(always)]
    pub(super) fn contains(self, number: u64) -> bool {
        number.wrapping_sub(self.first) & self.mask <= self.span
    }
}
