// SPDX-License-Identifier: GPL-2.0

//! The record of a hit: the bytes that a histogram and a filter may read.
//!
//! Every access is checked against the length of the record here, so evaluating a hit needs no
//! `unsafe`, and dynamic fields that point outside the record are empty.

use core::ops::Range;

use super::{
    number::Numbers,
    unaligned::Unaligned,
    Number,
    NumberType, //
};

/// The offsets of `common_flags` and `common_preempt_count` in every record (`struct trace_entry`).
pub const CONTEXT: Range<u32> = 2..4;

/// The offsets of `common_type` and [`CONTEXT`].
pub const HEAD: Range<u32> = 0..4;

/// One event record as it lies in the ring buffer or on a probe's stack: the common header, the
/// fields at fixed offsets, then the bytes of the dynamic fields.
#[derive(Clone, Copy)]
pub struct Record<'a>(&'a [u8]);

impl<'a> Record<'a> {
    /// Describes `bytes` as a record.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Reads the number at `offset`, 0 if the record ends before it does.
    #[inline]
    fn read<T: Unaligned<Bytes = [u8; N]> + Default, const N: usize>(&self, offset: u32) -> T {
        let start = offset as usize;
        let bytes = self.0.get(start..start.saturating_add(N));
        bytes
            .and_then(|bytes| bytes.first_chunk())
            .map_or(T::default(), T::of)
    }

    /// Returns all bytes.
    #[inline(always)]
    pub fn as_bytes(&self) -> &'a [u8] {
        self.0
    }

    /// Returns the first eight bytes, which are the `struct trace_entry`; 0 if the record is
    /// shorter.
    #[inline(always)]
    pub fn first_word(&self) -> u64 {
        self.u64(0)
    }

    /// Reads a number of one of the commonest types; `None` for other types. Small enough to be
    /// inlined.
    #[inline(always)]
    pub fn common_number(&self, number: Number) -> Option<u64> {
        match number.type_() {
            NumberType::U32 => Some(self.u32(number.offset()).into()),
            NumberType::U64 => Some(self.u64(number.offset())),
            _ => None,
        }
    }

    /// Returns up to `len` bytes from `offset` on: fewer, possibly none, where the record ends.
    #[inline]
    pub fn bytes(&self, offset: usize, len: usize) -> &'a [u8] {
        let tail = self.0.get(offset..).unwrap_or_default();
        &tail[..tail.len().min(len)]
    }

    /// Returns the bytes of the `__data_loc` field at `offset`. The field is a 32-bit word: the
    /// position of the bytes in the record (low half), and their number (high half; a string's NUL
    /// counts).
    #[inline]
    pub fn data_loc(&self, offset: u32) -> &'a [u8] {
        let word = self.u32(offset);
        self.bytes((word & 0xffff) as usize, (word >> 16) as usize)
    }

    /// Returns the bytes of up to `depth` return addresses of the stack in the `__data_loc` field
    /// at `offset`, which holds a 64-bit number of addresses and the addresses. C's number may
    /// exceed the addresses in the field by one (`trace_stack()`).
    #[inline]
    pub fn stack(&self, offset: u32, depth: usize) -> &'a [u8] {
        let Some((count, entries)) = self.data_loc(offset).split_first_chunk() else {
            return &[];
        };
        let room = entries.len() / size_of::<u64>();
        let count = u64::from_ne_bytes(*count).min(depth.min(room) as u64) as usize;
        &entries[..count * size_of::<u64>()]
    }

    /// Returns the bytes of the `__rel_loc` field at `offset`: like [`Record::data_loc`], but
    /// relative to the end of the field's word.
    #[inline]
    pub fn rel_loc(&self, offset: u32) -> &'a [u8] {
        let word = self.u32(offset);
        let base = (offset as usize).saturating_add(size_of::<u32>());
        self.bytes(
            base.saturating_add((word & 0xffff) as usize),
            (word >> 16) as usize,
        )
    }
}

/// A number is 0 if the record ends before it does.
impl Numbers for Record<'_> {
    #[inline]
    fn u8(&self, offset: u32) -> u8 {
        self.read(offset)
    }

    #[inline]
    fn u16(&self, offset: u32) -> u16 {
        self.read(offset)
    }

    #[inline]
    fn u32(&self, offset: u32) -> u32 {
        self.read(offset)
    }

    #[inline]
    fn u64(&self, offset: u32) -> u64 {
        self.read(offset)
    }
}
