// SPDX-License-Identifier: GPL-2.0

//! The check of a payload before it is written to a buffer.

use super::field::HEADER;

/// A dynamic field (`__data_loc`, `__rel_loc`): 16 bits of offset, then 16 of length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Locator {
    /// Where the field is, in bytes from the beginning of the record.
    pub(super) offset: u32,
    /// `__rel_loc`: the offset in it counts from the end of the field, not from the beginning of the record.
    pub(super) relative: bool,
    /// The data is a string, and has to end in a NUL.
    pub(super) string: bool,
}

impl Locator {
    /// Whether the data is within the payload, and ends in a NUL if it is a string.
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
        // The last byte is in front of the payload only if there is no data at all, and then there is no
        // NUL either.
        let last = || payload.get(from_payload(end.checked_sub(1)?)?).copied();
        !self.string || last() == Some(0)
    }
}
