// SPDX-License-Identifier: GPL-2.0

//! Ranges of numbers, which all comparisons are compiled to.

use super::op::Op;
use crate::event::NumberType;

/// A range of numbers of a type: `first` and the `span` numbers after it, with wraparound from the
/// largest to 0.
///
/// The numbers for which a comparison is true always form such a range, also for signed numbers,
/// which are taken as unsigned. So every operator is one subtraction and one comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NumberRange {
    first: u64,
    span: u64,
    /// The largest number of the type.
    mask: u64,
}

impl NumberRange {
    /// A range for numbers that are not read.
    pub(super) const EMPTY: Self = Self {
        first: 0,
        span: 0,
        mask: 0,
    };

    /// The numbers of `type_` for which `op value` is true; `None` if it is always false. The value
    /// is cut to the width of the type.
    pub(super) fn new(op: Op, value: u64, type_: NumberType) -> Option<Self> {
        let mask = type_.mask();
        let value = value & mask;
        let (min, max) = match type_.is_signed() {
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

    /// The numbers of `type_` in `start..end`; `None` if that is empty.
    pub(super) fn between(start: u64, end: u64, type_: NumberType) -> Option<Self> {
        let span = end.checked_sub(start)?.checked_sub(1)?;
        Some(Self {
            first: start,
            span,
            mask: type_.mask(),
        })
    }

    /// The complement: the numbers of the type that are not in the range; `None` if it is empty.
    pub(super) fn others(self) -> Option<Self> {
        Some(Self {
            first: self.first.wrapping_add(self.span).wrapping_add(1),
            span: (self.mask - self.span).checked_sub(1)?,
            mask: self.mask,
        })
    }

    /// Returns whether `number` is in the range.
    #[inline(always)]
    pub(super) fn contains(self, number: u64) -> bool {
        number.wrapping_sub(self.first) & self.mask <= self.span
    }
}
