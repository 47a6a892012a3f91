// SPDX-License-Identifier: MIT OR Apache-2.0

//! The form of a table as bytes, for a program that did not make it itself.

use crate::limits::MOST_PAGES;
use crate::limits::MOST_ROWS;
use crate::limits::MOST_RULES;
use crate::rule;
use crate::rules::HEADER;
use crate::rules::MAGIC;

/// The numbers in the header of a table whose length fits them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// Number of rules, from 1 to [`MOST_RULES`].
    pub rules: usize,
    /// Number of pages, at most [`MOST_PAGES`].
    pub pages: usize,
    /// Number of rows, at most [`MOST_ROWS`].
    pub rows: usize,
}

impl Form {
    /// Bytes of the largest table.
    pub const MOST_BYTES: usize = HEADER + rule::SIZE * MOST_RULES + 4 * MOST_PAGES + 4 * MOST_ROWS;

    /// Reads the header. `None` if that is not of a table, or beyond a limit, or if the table is
    /// shorter or longer than it says. Rules, pages and rows are not looked at: the module does
    /// that.
    pub fn of(table: &[u8]) -> Option<Self> {
        let half = |at: usize| Some(u16::from_le_bytes(table.get(at..at + 2)?.try_into().ok()?));
        let word = |at: usize| Some(u32::from_le_bytes(table.get(at..at + 4)?.try_into().ok()?));
        let form = Self {
            rules: half(6)?.into(),
            rows: word(8)? as usize,
            pages: word(16)? as usize,
        };
        let is_within = form.rules >= 1 && form.rows <= MOST_ROWS && form.pages <= MOST_PAGES;
        let is_ours = word(0)? == MAGIC && word(20)? == 0 && is_within;
        (is_ours && table.len() == form.bytes()).then_some(form)
    }

    /// Bytes of such a table.
    pub fn bytes(&self) -> usize {
        HEADER + rule::SIZE * self.rules + 4 * self.pages + 4 * self.rows
    }
}
