// SPDX-License-Identifier: MIT OR Apache-2.0

//! Reads a file of the kernel line by line.

use std::io::BufRead;
use std::io::Read;

use crate::table::ReadError;

/// Reader that counts lines.
pub(crate) struct Lines<R> {
    reader: R,
    line: Vec<u8>,
    number: usize,
}

/// Limit of a line, in bytes. The kernel's lines have a few thousand bytes; the limit keeps other
/// files from filling the memory.
const MAX: usize = 1 << 20;

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(reader: R) -> Self {
        Lines {
            reader,
            line: Vec::new(),
            number: 0,
        }
    }

    /// Reads the next line, with its newline. Returns its number, from 1, and its text; `None` at
    /// the end.
    pub(crate) fn next(&mut self) -> Result<Option<(usize, &[u8])>, ReadError> {
        self.line.clear();
        let limit = MAX as u64 + 1;
        let read = self.reader.by_ref().take(limit).read_until(b'\n', &mut self.line);
        if read.map_err(ReadError::Io)? == 0 {
            return Ok(None);
        }
        self.number += 1;
        if self.line.len() > MAX && !self.line.ends_with(b"\n") {
            return Err(ReadError::Format {
                line: self.number,
                what: "the line is longer than 1 MiB: not a histogram".to_owned(),
            });
        }
        Ok(Some((self.number, &self.line)))
    }

    /// Number of the line read last, from 1.
    pub(crate) fn number(&self) -> usize {
        self.number
    }
}
