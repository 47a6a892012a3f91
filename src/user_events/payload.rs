// SPDX-License-Identifier: GPL-2.0

//! Checks the dynamic fields of a payload before it is written to a buffer.

/// Bytes of the header of a record (`struct trace_entry`), which is followed by the fields.
pub(super) const HEADER: u32 = 8;

/// A dynamic field (`__data_loc`, `__rel_loc`): 16 bits of offset, then 16 of length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Locator {
    /// Offset of the field in the record, in bytes.
    pub(super) offset: u32,
    /// `__rel_loc`: the offset of the data counts from the end of the field, not from the start of
    /// the record.
    pub(super) relative: bool,
    /// The data is a string, which must end in a NUL.
    pub(super) string: bool,
}

impl Locator {
    /// Returns whether the data does not go beyond the end of `payload`, and ends in a NUL if it is
    /// a string.
    pub(super) fn accepts(&self, payload: &[u8]) -> bool {
        let from_payload = |at: u32| at.checked_sub(HEADER).map(|at| at as usize);
        let field = from_payload(self.offset).and_then(|at| payload.get(at..)?.first_chunk());
        let Some(field) = field else {
            return false;
        };
        let value = u32::from_ne_bytes(*field);
        let base = if self.relative { self.offset + 4 } else { 0 };
        let end = base + (value & 0xffff) + (value >> 16);
        if end as usize > HEADER as usize + payload.len() {
            return false;
        }
        // The last byte of the data; `None` if it is in the header of the record or missing, so
        // that a string without a NUL in the payload is refused.
        let last = || payload.get(from_payload(end.checked_sub(1)?)?).copied();
        !self.string || last() == Some(0)
    }
}
