// SPDX-License-Identifier: GPL-2.0

//! What a hit may read: the bytes of the event's record.
//!
//! They are handed over by whoever was called for the event. Everything read from them is checked
//! against their length here, so the code that evaluates a hit needs no `unsafe`, and a record
//! whose dynamic fields point outside it can yield nothing but an empty string.

use core::ops::Range;
use core::slice;

/// Where all records tell of the context of their hit: `flags` and `preempt_count` of `struct trace_entry`.
pub const CONTEXT: Range<u32> = 2..4;

/// The same, and the number of their event before it.
pub const HEAD: Range<u32> = 0..4;

/// One event record as it lies in the ring buffer or on a probe's stack: the common header, the
/// fields at fixed offsets, then the bytes of the dynamic fields.
///
/// Numbers have the CPU's byte order and need not be aligned.
#[derive(Clone, Copy)]
pub struct Record<'a>(&'a [u8]);

impl<'a> Record<'a> {
    /// Describes the `len` bytes at `start` as a record.
    ///
    /// # Safety
    ///
    /// The `len` bytes at `start` are initialised, lie in one allocation, and nobody writes to
    /// them for `'a`. (A record belongs to the CPU that reserved it until it is committed.)
    pub unsafe fn from_raw(start: *const u8, len: usize) -> Self {
        // SAFETY: the caller promises `len` readable bytes that stay unchanged for `'a`.
        Self(unsafe { slice::from_raw_parts(start, len) })
    }

    /// Describes `bytes` as a record.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Returns all bytes.
    #[inline(always)]
    pub fn as_bytes(&self) -> &'a [u8] {
        self.0
    }

    /// Returns the `N` bytes at `offset`, zeros if the record ends before.
    #[inline]
    fn array<const N: usize>(&self, offset: u32) -> [u8; N] {
        let start = offset as usize;
        let bytes = self.0.get(start..start.saturating_add(N));
        match bytes.and_then(|b| b.first_chunk()) {
            Some(chunk) => *chunk,
            None => [0; N],
        }
    }

    /// Reads the 8-bit number at `offset`.
    #[inline]
    pub fn u8(&self, offset: u32) -> u8 {
        u8::from_ne_bytes(self.array(offset))
    }

    /// Reads the 16-bit number at `offset`.
    #[inline]
    pub fn u16(&self, offset: u32) -> u16 {
        u16::from_ne_bytes(self.array(offset))
    }

    /// Reads the 32-bit number at `offset`.
    #[inline]
    pub fn u32(&self, offset: u32) -> u32 {
        u32::from_ne_bytes(self.array(offset))
    }

    /// Reads the 64-bit number at `offset`.
    #[inline]
    pub fn u64(&self, offset: u32) -> u64 {
        u64::from_ne_bytes(self.array(offset))
    }

    /// Returns up to `len` bytes from `offset` on: fewer, possibly none, where the record ends.
    #[inline]
    pub fn bytes(&self, offset: usize, len: usize) -> &'a [u8] {
        let tail = self.0.get(offset..).unwrap_or_default();
        &tail[..tail.len().min(len)]
    }

    /// Returns the bytes of the `__data_loc` field at `offset`. The field is a 32-bit word: where
    /// the bytes are in the record (low half), and how many (high half; a string's NUL counts).
    #[inline]
    pub fn data_loc(&self, offset: u32) -> &'a [u8] {
        let word = self.u32(offset);
        self.bytes((word & 0xffff) as usize, (word >> 16) as usize)
    }

    /// Returns the bytes of up to `depth` return addresses of the stack in the `__data_loc` field at
    /// `offset`: a 64-bit number of addresses, and those.
    #[inline]
    pub fn stack(&self, offset: u32, depth: usize) -> &'a [u8] {
        let at = self.u32(offset) & 0xffff;
        let count = self.u64(at).min(depth as u64) as usize;
        let bytes = self.bytes(at as usize + size_of::<u64>(), count * size_of::<u64>());
        &bytes[..bytes.len() / size_of::<u64>() * size_of::<u64>()]
    }

    /// Returns the bytes of the `__rel_loc` field at `offset`: as [`Record::data_loc`], counted
    /// from the end of the field's word.
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
