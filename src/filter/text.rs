// SPDX-License-Identifier: GPL-2.0

//! The text of a filter.

/// The text of a filter. Reading beyond its end gives NUL.
#[derive(Clone, Copy)]
pub(super) struct FilterText<'a>(&'a [u8]);

impl<'a> FilterText<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self(text)
    }

    pub(super) fn len(self) -> usize {
        self.0.len()
    }

    pub(super) fn at(self, index: usize) -> u8 {
        self.0.get(index).copied().unwrap_or(0)
    }

    pub(super) fn from(self, start: usize) -> &'a [u8] {
        self.0.get(start..).unwrap_or_default()
    }

    pub(super) fn piece(self, start: usize, end: usize) -> &'a [u8] {
        self.0.get(start..end).unwrap_or_default()
    }

    /// The first index from `start` on whose byte is not to be skipped.
    pub(super) fn skip(self, start: usize, skip: impl Fn(u8) -> bool) -> usize {
        let bytes = self.from(start).iter();
        start + bytes.take_while(|&&byte| skip(byte)).count()
    }
}
