// SPDX-License-Identifier: MIT OR Apache-2.0

//! The table of a file: rows, the rules that they refer to, and pages.

use crate::error::Error;
use crate::limits::MOST_PAGES;
use crate::limits::MOST_ROWS;
use crate::limits::MOST_RULES;
use crate::rule;
use crate::rule::Rule;
use rhist_elf::Machine;
use std::collections::HashMap;
use std::io;
use std::io::Write;
use std::ops::Range;

/// The bytes `RUR1`.
pub(crate) const MAGIC: u32 = 0x3152_5552;
/// Size of the header, in bytes.
pub(crate) const HEADER: usize = 24;
/// Bits of an offset in a page.
const PAGE_BITS: u32 = 16;
/// Pages that an offset of 40 bits can be in.
const PAGES_OF_OFFSETS: u64 = 1 << (40 - PAGE_BITS);

/// A row: the number of the rule from this offset in its page on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    offset: u16,
    rule: u16,
}

/// The table of a file, and how much was left out of it.
///
/// As bytes, all numbers little-endian:
///
/// * a header of 24 bytes: the bytes `RUR1`, `u16` machine (`e_machine`), `u16` number of rules,
///   `u32` number of rows, `u32` first page, `u32` number of pages, `u32` 0. A page is 64 KiB of
///   the file; its number is the offset in the file divided by 65,536;
/// * the rules, 12 bytes each: `u16` kind, `i16` fp, `i16` ra, `u16` 0, `i32` cfa. The kinds are
///   the variants of [`Rule`] in their order, from 0 on. Rule 0 is for code without unwind
///   information: [`Rule::None`] or [`Rule::Frame`];
/// * for each page the number of its first row, as `u32`;
/// * the rows, 4 bytes each: `u16` offset in the page, `u16` number of the rule.
///
/// A row holds up to the next row of its page, or to the end of the page. A page with rows has one
/// at offset 0; in a page without rows, all code has rule 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    machine: Machine,
    rules: Vec<Rule>,
    first_page: u32,
    /// Number of the first row of each page.
    pages: Vec<u32>,
    rows: Vec<Row>,
    /// Functions whose entry is malformed.
    pub malformed: usize,
    /// Functions that lie in no executable segment of the file.
    pub outside: usize,
    /// Functions in which another one begins, so that their rest was left out, or that begin where
    /// another one does, so that all was.
    pub overlapping: usize,
}

impl Rules {
    /// Number of rows.
    pub fn row_count(&self) -> usize {
        self.rows.len()
    }

    /// The distinct rules. The first one is for code without unwind information.
    pub fn distinct(&self) -> &[Rule] {
        &self.rules
    }

    /// Architecture of the code.
    pub fn machine(&self) -> Machine {
        self.machine
    }

    /// Size of the table in bytes, at most 17.9 million.
    pub fn size(&self) -> usize {
        HEADER + rule::SIZE * self.rules.len() + 4 * self.pages.len() + 4 * self.rows.len()
    }

    /// The rows: each with the offset in the file from which on its rule holds.
    pub fn rows(&self) -> impl Iterator<Item = (u64, Rule)> + '_ {
        let ends = self
            .pages
            .iter()
            .skip(1)
            .map(|&end| end as usize)
            .chain([self.rows.len()]);
        self.pages
            .iter()
            .zip(ends)
            .enumerate()
            .flat_map(move |(page, (&first, end))| {
                let base = (u64::from(self.first_page) + page as u64) << PAGE_BITS;
                self.rows[first as usize..end]
                    .iter()
                    .map(move |row| (base + u64::from(row.offset), self.rules[usize::from(row.rule)]))
            })
    }

    /// The table as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.size());
        bytes.extend(MAGIC.to_le_bytes());
        bytes.extend(self.machine.number().to_le_bytes());
        bytes.extend((self.rules.len() as u16).to_le_bytes());
        bytes.extend((self.rows.len() as u32).to_le_bytes());
        bytes.extend(self.first_page.to_le_bytes());
        bytes.extend((self.pages.len() as u32).to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend(self.rules.iter().flat_map(|rule| rule.to_bytes()));
        bytes.extend(self.pages.iter().flat_map(|row| row.to_le_bytes()));
        for row in &self.rows {
            bytes.extend(row.offset.to_le_bytes());
            bytes.extend(row.rule.to_le_bytes());
        }
        bytes
    }

    /// Writes the table.
    ///
    /// # Errors
    ///
    /// An error of `output`.
    pub fn write_to(&self, mut output: impl Write) -> io::Result<()> {
        output.write_all(&self.to_bytes())
    }
}

/// A table to which ranges are added, from the begin of the file to its end.
pub(crate) struct Draft {
    table: Rules,
    /// With a random seed, so that no file can choose rules whose hashes are equal.
    numbers: HashMap<Rule, u16, foldhash::quality::RandomState>,
    /// Number of the rule that was added last, and the end of its range.
    last: (u16, u64),
}

impl Draft {
    /// With the rule for code in gaps.
    pub(crate) fn new(machine: Machine, gap: Rule) -> Self {
        Self {
            table: Rules {
                machine,
                rules: vec![gap],
                first_page: 0,
                pages: Vec::new(),
                rows: Vec::new(),
                malformed: 0,
                outside: 0,
                overlapping: 0,
            },
            numbers: [(gap, 0)].into_iter().collect(),
            last: (0, 0),
        }
    }

    /// Says that a rule holds in a range of the file, which begins at or behind the end of all
    /// ranges so far. Nothing is known in between, and nothing happens if the range is empty.
    pub(crate) fn add(&mut self, range: Range<u64>, rule: Rule) -> Result<(), Error> {
        if range.is_empty() || rule == Rule::None {
            return Ok(());
        }
        let number = self.number(rule)?;
        let (last, end) = self.last;
        if end < range.start {
            self.close()?;
        }
        // With a gap before it, or in a page of its own, even an equal rule needs a row.
        if last != number || end < range.start || is_begin(range.start) {
            self.open(range.start)?;
            self.push(range.start, number)?;
        }
        for page in (range.start >> PAGE_BITS) + 1..=(range.end - 1) >> PAGE_BITS {
            self.open(page << PAGE_BITS)?;
            self.push(page << PAGE_BITS, number)?;
        }
        self.last = (number, range.end);
        Ok(())
    }

    /// Ends the table.
    pub(crate) fn finish(mut self) -> Result<Rules, Error> {
        self.close()?;
        Ok(self.table)
    }

    fn number(&mut self, rule: Rule) -> Result<u16, Error> {
        if let Some(&number) = self.numbers.get(&rule) {
            return Ok(number);
        }
        if self.table.rules.len() == MOST_RULES {
            return Err(Error::TooManyRules);
        }
        let number = self.table.rules.len() as u16;
        self.table.rules.push(rule);
        self.numbers.insert(rule, number);
        Ok(number)
    }

    /// Says that the last rule holds no longer, unless its page ends there, too.
    fn close(&mut self) -> Result<(), Error> {
        let (_, end) = self.last;
        match is_begin(end) {
            true => Ok(()),
            false => self.push(end, 0),
        }
    }

    /// Begins the page of an offset, and all before it, if that is another one than the last. If
    /// the offset lies within the page, nothing is known at its begin.
    fn open(&mut self, offset: u64) -> Result<(), Error> {
        let table = &mut self.table;
        let page = offset >> PAGE_BITS;
        if page >= PAGES_OF_OFFSETS {
            return Err(Error::TooLarge);
        }
        if table.pages.is_empty() {
            table.first_page = page as u32;
        }
        let count = (page - u64::from(table.first_page)) as usize + 1;
        if count > MOST_PAGES {
            return Err(Error::TooLarge);
        }
        if count == table.pages.len() {
            return Ok(());
        }
        table.pages.resize(count, table.rows.len() as u32);
        match is_begin(offset) {
            true => Ok(()),
            false => self.push(page << PAGE_BITS, 0),
        }
    }

    fn push(&mut self, offset: u64, rule: u16) -> Result<(), Error> {
        if self.table.rows.len() == MOST_ROWS {
            return Err(Error::TooManyRows);
        }
        self.table.rows.push(Row {
            offset: offset as u16,
            rule,
        });
        Ok(())
    }
}

/// Whether a page begins at an offset.
fn is_begin(offset: u64) -> bool {
    offset.is_multiple_of(1 << PAGE_BITS)
}
