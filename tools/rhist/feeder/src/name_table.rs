// SPDX-License-Identifier: MIT OR Apache-2.0

//! The names of the functions of a file, or of code without one, as bytes, which a child process
//! writes, and which are kept as they are.
//!
//! Numbers have 32 bits, the least significant byte first:
//!
//! * a header: `RUN1`, the bytes of the build id, the number of rows, the number of names, and the
//!   bytes of all names;
//! * rows by place in the file, which do not overlap: begin and end of a part of a function; how
//!   far the begin is behind the begin of the function; and the number of the name. The highest bit
//!   of the latter is set for an entry of the procedure linkage table;
//! * for each name, where it ends in the text;
//! * the text of all names, one behind the other, and then the build id.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use rhist_symbols::MOST_RAW;
use rhist_symbols::Name;
use rhist_symbols::PerfMap;
use rhist_symbols::Symbols;

const MAGIC: &[u8; 4] = b"RUN1";

/// Bytes of the header.
const HEADER: usize = 20;

/// Bytes of a row.
const ROW: usize = 16;

/// Bytes of the end of a name.
const END: usize = 4;

/// Most bytes of a build id, of which linkers make 16 or 20.
const MOST_ID: usize = 64;

/// Marks the number of a name in a row: an entry of the procedure linkage table.
const PLT: u32 = 1 << 31;

/// Names of the functions of a file, by place. Takes as much memory as its bytes.
#[derive(PartialEq, Eq)]
pub struct NameTable {
    bytes: Box<[u8]>,
    rows: usize,
    names: usize,
    /// Where the text is.
    text: Range<usize>,
}

/// Without its bytes, of which it may have many.
impl fmt::Debug for NameTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("NameTable");
        shown
            .field("rows", &self.rows)
            .field("names", &self.names)
            .finish_non_exhaustive()
    }
}

/// A row: a part of a function.
#[derive(Clone, Copy, Debug)]
struct Row {
    start: u32,
    end: u32,
    /// From the begin of the function to the begin of this part.
    distance: u32,
    name: u32,
}

impl NameTable {
    /// Bytes of the largest table.
    pub const MOST_BYTES: usize = 32 << 20;

    /// The bytes of a table of a file. `None` if they would be more than [`Self::MOST_BYTES`].
    pub fn write(symbols: &Symbols, build_id: &[u8]) -> Option<Vec<u8>> {
        let parts = symbols.iter().map(|(part, name)| {
            let distance = symbols.find(part.start).map_or(0, |(_, distance)| distance);
            (part, name, distance)
        });
        // A longer one is of no use: it would not name a file.
        let build_id = if build_id.len() > MOST_ID { &[] } else { build_id };
        Self::of_parts(parts, build_id)
    }

    /// The bytes of a table of the code in a mapping, by the offset in it. A function that is in it
    /// only in part is left out. `None` if they would be more than [`Self::MOST_BYTES`].
    pub fn write_mapping(map: &PerfMap, mapping: &Range<u64>) -> Option<Vec<u8>> {
        let end = mapping.end.min(mapping.start.saturating_add(u32::MAX.into()));
        let parts = map.iter().filter_map(|(part, name, distance)| {
            let is_in = mapping.start <= part.start - distance && part.end <= end;
            is_in.then(|| (part.start - mapping.start..part.end - mapping.start, name, distance))
        });
        Self::of_parts(parts, &[])
    }

    /// The bytes of a table of parts of functions, which ascend: where each is, and how far it is
    /// behind the begin of its function.
    fn of_parts<'a>(parts: impl Iterator<Item = (Range<u64>, Name<'a>, u64)>, build_id: &[u8]) -> Option<Vec<u8>> {
        let (mut rows, mut ends, mut text) = (Vec::new(), Vec::new(), Vec::new());
        let mut numbers = HashMap::new();
        for (part, name, distance) in parts {
            let number = *numbers.entry(name.raw()).or_insert_with(|| {
                text.extend_from_slice(name.raw());
                ends.extend_from_slice(&(text.len() as u32).to_le_bytes());
                (ends.len() / END - 1) as u32
            });
            let plt = if name.is_plt() { PLT } else { 0 };
            for number in [part.start, part.end, distance] {
                rows.extend_from_slice(&u32::try_from(number).ok()?.to_le_bytes());
            }
            rows.extend_from_slice(&(number | plt).to_le_bytes());
            if HEADER + rows.len() + ends.len() + text.len() + build_id.len() > Self::MOST_BYTES {
                return None;
            }
        }
        let mut bytes = MAGIC.to_vec();
        for number in [build_id.len(), rows.len() / ROW, ends.len() / END, text.len()] {
            bytes.extend_from_slice(&(number as u32).to_le_bytes());
        }
        for part in [&rows, &ends, &text, build_id] {
            bytes.extend_from_slice(part);
        }
        Some(bytes)
    }

    /// Takes the bytes of a process that may be in the hands of the file's maker. `None` if they do
    /// not have the form of a table, in each number.
    pub fn read(bytes: Vec<u8>) -> Option<Self> {
        if bytes.len() > Self::MOST_BYTES || !bytes.starts_with(MAGIC) {
            return None;
        }
        let number = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize);
        let (id, rows, names, text) = (number(4)?, number(8)?, number(12)?, number(16)?);
        // Sums of five numbers below 2^36.
        let text_start = HEADER as u64 + ROW as u64 * rows as u64 + END as u64 * names as u64;
        let text_end = text_start + text as u64;
        if id > MOST_ID || text_end + id as u64 != bytes.len() as u64 {
            return None;
        }
        let table = Self {
            bytes: bytes.into(),
            rows,
            names,
            text: text_start as usize..text_end as usize,
        };
        table.is_valid().then_some(table)
    }

    fn is_valid(&self) -> bool {
        let mut names_end = 0;
        let are_names = (0..self.names).all(|number| {
            let start = std::mem::replace(&mut names_end, self.end(number));
            start < names_end && names_end - start <= MOST_RAW
        });
        let mut parts_end = 0;
        let are_rows = (0..self.rows).all(|number| {
            let row = self.row(number);
            let end = std::mem::replace(&mut parts_end, row.end);
            let is_named = ((row.name & !PLT) as usize) < self.names;
            end <= row.start && row.start < row.end && row.distance <= row.start && is_named
        });
        let is_text = names_end == self.text.len() && !self.bytes[self.text.clone()].contains(&0);
        are_names && are_rows && is_text
    }

    /// The name of the function that an offset in the file is in, and how far it is behind the
    /// begin of that function.
    pub fn find(&self, offset: u64) -> Option<(Name<'_>, u64)> {
        let offset = u32::try_from(offset).ok()?;
        let (mut low, mut high) = (0, self.rows);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.row(middle).start <= offset {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        let row = self.row(low.checked_sub(1)?);
        let name = self.name(row.name).filter(|_| offset < row.end)?;
        Some((name, u64::from(offset - row.start) + u64::from(row.distance)))
    }

    /// The build id of the file; empty if it lacks one.
    pub fn build_id(&self) -> &[u8] {
        &self.bytes[self.text.end..]
    }

    /// Bytes of the table.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    fn number(&self, at: usize) -> u32 {
        let bytes = self.bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u32::from_le_bytes)
    }

    fn row(&self, number: usize) -> Row {
        let at = HEADER + ROW * number;
        Row {
            start: self.number(at),
            end: self.number(at + 4),
            distance: self.number(at + 8),
            name: self.number(at + 12),
        }
    }

    /// Where a name ends in the text.
    fn end(&self, name: usize) -> usize {
        self.number(HEADER + ROW * self.rows + END * name) as usize
    }

    fn name(&self, number: u32) -> Option<Name<'_>> {
        let name = (number & !PLT) as usize;
        let start = name.checked_sub(1).map_or(0, |before| self.end(before));
        let raw = self.bytes[self.text.clone()].get(start..self.end(name))?;
        Name::new(raw, number & PLT != 0)
    }
}

#[cfg(test)]
mod tests;
