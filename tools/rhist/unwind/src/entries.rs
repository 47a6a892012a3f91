// SPDX-License-Identifier: MIT OR Apache-2.0

//! Entries of `.eh_frame`, one behind the other.

use crate::error::Error;
use gimli::EndianSlice;
use gimli::LittleEndian;
use gimli::Reader;

/// Iterates over the offsets of the entries for functions (FDEs), by the lengths of all entries
/// alone. gimli's own iterator reads all of an entry, and ends at the first that is malformed.
pub(crate) struct Entries<'a> {
    section: EndianSlice<'a, LittleEndian>,
    rest: EndianSlice<'a, LittleEndian>,
    /// Offset of the entry that was read last.
    offset: usize,
    is_open: bool,
}

impl<'a> Entries<'a> {
    /// With `is_open`, the entries end at a length of 0, or at a wrong one. Otherwise a length of 0
    /// is skipped: some linkers leave one behind the entries of each object file.
    pub(crate) fn new(section: EndianSlice<'a, LittleEndian>, is_open: bool) -> Self {
        Self {
            section,
            rest: section,
            offset: 0,
            is_open,
        }
    }

    fn read(&mut self) -> gimli::Result<Option<usize>> {
        while !self.rest.is_empty() {
            self.offset = self.rest.offset_from(self.section);
            let (length, _) = self.rest.read_initial_length()?;
            if length == 0 {
                match self.is_open {
                    true => break,
                    false => continue,
                }
            }
            let mut entry = self.rest.split(length)?;
            // A CIE has 0 in the place of the distance to its CIE.
            if entry.read_u32()? != 0 {
                return Ok(Some(self.offset));
            }
        }
        Ok(None)
    }
}

impl Iterator for Entries<'_> {
    type Item = Result<usize, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.read() {
            Ok(offset) => offset.map(Ok),
            Err(_) if self.is_open => None,
            Err(_) => Some(Err(Error::Length(self.offset as u64))),
        }
    }
}

/// Length of the entry at an offset, in bytes; 0 if none can be there.
pub(crate) fn length(section: EndianSlice<'_, LittleEndian>, offset: usize) -> usize {
    let mut rest = section;
    match rest.skip(offset).and_then(|()| rest.read_initial_length()) {
        Ok((length, _)) => length.min(rest.len()),
        Err(_) => 0,
    }
}
