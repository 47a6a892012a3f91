// SPDX-License-Identifier: GPL-2.0

//! What numbers are compared with.

use super::predicate::Op;

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

/// Numbers from `first` on: `span` more than that one, and on from zero after the largest.
///
/// What a comparison is true for is always such a range, for signed numbers too: their sign bit
/// makes them large. So one subtraction and one comparison do for all operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range<T> {
    first: T,
    span: T,
}

impl Range<u64> {
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
            first: first & mask,
            span: last.wrapping_sub(first) & mask,
        })
    }

    /// The numbers of `width` from `start` up to, but without, `end`; `None` if there are none.
    pub(super) fn between(start: u64, end: u64) -> Option<Self> {
        let span = end.checked_sub(start)?.checked_sub(1)?;
        Some(Self { first: start, span })
    }

    /// The numbers of `width` that are not in the range; `None` if there are none.
    pub(super) fn others(self, width: Width) -> Option<Self> {
        let mask = width.max();
        let span = (mask - self.span).checked_sub(1)?;
        Some(Self {
            first: self.first.wrapping_add(self.span).wrapping_add(1) & mask,
            span,
        })
    }
}

macro_rules! contains {
    ($($number:ty)*) => {
        $(
            impl Range<$number> {
                /// Whether `number` is one of them.
                #[inline]
                pub(super) fn contains(self, number: $number) -> bool {
                    number.wrapping_sub(self.first) <= self.span
                }
            }

            impl From<Range<u64>> for Range<$number> {
                fn from(range: Range<u64>) -> Self {
                    Self {
                        first: range.first as $number,
                        span: range.span as $number,
                    }
                }
            }
        )*
    };
}
contains!(u8 u16 u32);

impl Range<u64> {
    /// Whether `number` is one of them.
    #[inline]
    pub(super) fn contains(self, number: u64) -> bool {
        number.wrapping_sub(self.first) <= self.span
    }
}
