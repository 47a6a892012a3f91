// SPDX-License-Identifier: GPL-2.0

//! Numbers in records: type, offset and scale.

use core::cmp::Ordering;

use super::Exponential;

/// The types of numbers in records. The most common come first, since the type is compared in this
/// order during a hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum NumberType {
    U64,
    S64,
    S32,
    U32,
    U16,
    S16,
    U8,
    S8,
}

impl NumberType {
    /// Returns the type of `size` bytes; `None` for other sizes.
    pub fn new(size: u32, signed: bool) -> Option<Self> {
        Some(match (size, signed) {
            (1, false) => Self::U8,
            (1, true) => Self::S8,
            (2, false) => Self::U16,
            (2, true) => Self::S16,
            (4, false) => Self::U32,
            (4, true) => Self::S32,
            (8, false) => Self::U64,
            (8, true) => Self::S64,
            _ => return None,
        })
    }

    /// The kernel's name of the type.
    pub fn name(self) -> &'static str {
        match self {
            Self::U8 => "u8",
            Self::S8 => "s8",
            Self::U16 => "u16",
            Self::S16 => "s16",
            Self::U32 => "u32",
            Self::S32 => "s32",
            Self::U64 => "u64",
            Self::S64 => "s64",
        }
    }

    /// Size in bytes.
    pub fn size(self) -> usize {
        match self {
            Self::U8 | Self::S8 => 1,
            Self::U16 | Self::S16 => 2,
            Self::U32 | Self::S32 => 4,
            Self::U64 | Self::S64 => 8,
        }
    }

    /// Returns whether it has a sign.
    pub fn is_signed(self) -> bool {
        matches!(self, Self::S8 | Self::S16 | Self::S32 | Self::S64)
    }

    /// A mask of its bits: the largest unsigned number of its size.
    pub fn mask(self) -> u64 {
        match self {
            Self::U8 | Self::S8 => u8::MAX.into(),
            Self::U16 | Self::S16 => u16::MAX.into(),
            Self::U32 | Self::S32 => u32::MAX.into(),
            Self::U64 | Self::S64 => u64::MAX,
        }
    }

    /// Reads a number of the type `offset` bytes into `from`, its sign extended to 64 bits if it
    /// has one.
    #[inline(always)]
    pub fn read(self, offset: u32, from: &impl Numbers) -> u64 {
        match self {
            Self::U8 => from.u8(offset).into(),
            Self::S8 => from.u8(offset) as i8 as u64,
            Self::U16 => from.u16(offset).into(),
            Self::S16 => from.u16(offset) as i16 as u64,
            Self::U32 => from.u32(offset).into(),
            Self::S32 => from.u32(offset) as i32 as u64,
            Self::U64 | Self::S64 => from.u64(offset),
        }
    }

    /// Compares two numbers by as many bits as the type has.
    pub fn compare(self, a: u64, b: u64) -> Ordering {
        match self {
            Self::U8 => (a as u8).cmp(&(b as u8)),
            Self::S8 => (a as i8).cmp(&(b as i8)),
            Self::U16 => (a as u16).cmp(&(b as u16)),
            Self::S16 => (a as i16).cmp(&(b as i16)),
            Self::U32 => (a as u32).cmp(&(b as u32)),
            Self::S32 => (a as i32).cmp(&(b as i32)),
            Self::U64 => a.cmp(&b),
            Self::S64 => (a as i64).cmp(&(b as i64)),
        }
    }
}

/// A number at a fixed offset of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number {
    offset: u32,
    /// Whether it is a `u32`, the most common type. Tested before the type.
    is_u32: bool,
    type_: NumberType,
}

impl Number {
    /// The number of this type `offset` bytes into the record.
    pub const fn new(type_: NumberType, offset: u32) -> Self {
        Self {
            offset,
            is_u32: matches!(type_, NumberType::U32),
            type_,
        }
    }

    /// Its offset in the record, in bytes.
    pub fn offset(self) -> u32 {
        self.offset
    }

    /// Size and signedness.
    pub fn type_(self) -> NumberType {
        self.type_
    }

    /// Where it ends, in bytes from the beginning of the record.
    pub fn end(self) -> usize {
        self.offset as usize + self.type_.size()
    }

    /// Reads it, its sign extended to 64 bits if it has one.
    #[inline(always)]
    pub fn read(&self, from: &impl Numbers) -> u64 {
        match self.is_u32 {
            true => NumberType::U32.read(self.offset, from),
            false => self.type_.read(self.offset, from),
        }
    }
}

/// Bytes that numbers are read from. They have the CPU's byte order and need not be aligned.
pub trait Numbers {
    /// Reads the 8-bit number at `offset`.
    fn u8(&self, offset: u32) -> u8;

    /// Reads the 16-bit number at `offset`.
    fn u16(&self, offset: u32) -> u16;

    /// Reads the 32-bit number at `offset`.
    fn u32(&self, offset: u32) -> u32;

    /// Reads the 64-bit number at `offset`.
    fn u64(&self, offset: u32) -> u64;
}

/// Out of line, so that callers of [`Scale::apply`] stay short.
#[inline(never)]
fn exponential(buckets: Exponential, number: u64) -> u64 {
    buckets.code(number).into()
}

/// How a number is scaled before it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Unchanged.
    One,
    /// Replaced by its base-2 logarithm, rounded up; 0 for 0.
    Log2,
    /// Rounded down to a multiple of this, which is not 0.
    Bucket(u64),
    /// Replaced by the code of its exponential bucket.
    Exponential(Exponential),
}

impl Scale {
    /// Applies the scale to a number.
    #[inline]
    pub fn apply(self, number: u64) -> u64 {
        match self {
            Self::One => number,
            Self::Log2 => match number {
                0 | 1 => 0,
                _ => u64::from((number - 1).ilog2() + 1),
            },
            Self::Bucket(width) => number - number.checked_rem(width).unwrap_or(0),
            Self::Exponential(buckets) => exponential(buckets, number),
        }
    }
}
