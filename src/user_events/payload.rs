// SPDX-License-Identifier: GPL-2.0

//! What a payload is checked for before anybody gets it.

use super::field::HEADER;

/// A field that says where in the record something is: 16 bits of offset, then 16 of length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Locator {
    /// Of the field, in bytes from the beginning of the record.
    pub(super) offset: u32,
    /// Does its offset count from behind the field, not from the beginning of the record?
    pub(super) relative: bool,
    /// Is a NUL to end what it locates?
    pub(super) string: bool,
}

impl Locator {
    /// Is what it locates within the payload, and a string if it has to be?
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
        // The last byte may be in front of the payload only if nothing is there at all, and then
        // there is no NUL either.
        let last = || payload.get(from_payload(end.checked_sub(1)?)?).copied();
        !self.string || last() == Some(0)
    }
}
