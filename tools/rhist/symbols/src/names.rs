// SPDX-License-Identifier: MIT OR Apache-2.0

//! Tables of names, in which names may overlap.

use crate::error::Error;
use crate::limits::MOST_RAW;

/// The tables of names of a file, one behind the other. Names are kept as offsets: copies of names
/// that overlap could take memory without end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    bytes: Vec<u8>,
}

impl Names {
    /// Appends a table, and returns where it begins.
    pub(crate) fn add(&mut self, table: &[u8]) -> Result<u32, Error> {
        let base = self.bytes.len();
        // A zero byte ends the last name of a table that lacks one.
        if u32::try_from(base + table.len() + 1).is_err() {
            return Err(Error::TooLarge);
        }
        self.bytes.extend_from_slice(table);
        self.bytes.push(0);
        Ok(base as u32)
    }

    /// The name that begins here; empty behind the tables.
    pub(crate) fn get(&self, name: u32) -> &[u8] {
        self.within(name, MOST_RAW)
    }

    /// At most as many bytes of a name.
    pub(crate) fn within(&self, name: u32, most: usize) -> &[u8] {
        let rest = self.bytes.get(name as usize..).unwrap_or_default();
        let rest = &rest[..rest.len().min(most)];
        let size = rest.iter().position(|&byte| byte == 0).unwrap_or(rest.len());
        &rest[..size]
    }
}
