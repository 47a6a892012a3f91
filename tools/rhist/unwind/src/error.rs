// SPDX-License-Identifier: MIT OR Apache-2.0

//! Reasons why a file cannot be compiled.

use crate::limits::MOST_PAGES;
use crate::limits::MOST_ROWS;
use crate::limits::MOST_RULES;
use std::fmt;

/// Reason why a file cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// It is not a program or library that can be read.
    File(rhist_elf::Error),
    /// The file lacks unwind information: it has neither a section `.eh_frame` with contents nor a
    /// pointer to such contents in its program headers.
    NoFrames,
    /// The length at this offset in `.eh_frame` leads out of the section.
    Length(u64),
    /// The initial instructions of functions are longer than all else together, so reading them
    /// would take too much time.
    TooCostly,
    /// More than [`MOST_ROWS`] rows.
    TooManyRows,
    /// More than [`MOST_RULES`] distinct rules.
    TooManyRules,
    /// Code in more than [`MOST_PAGES`] pages, or behind the last page that an offset can have.
    TooLarge,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(error) => error.fmt(f),
            Self::NoFrames => f.write_str("no unwind information (.eh_frame)"),
            Self::Length(offset) => write!(
                f,
                ".eh_frame is malformed at offset {offset:#x}: the entry ends behind the section"
            ),
            Self::TooCostly => f.write_str("the CIEs of .eh_frame would have to be read too often"),
            Self::TooManyRows => write!(f, "more than {MOST_ROWS} rows"),
            Self::TooManyRules => write!(f, "more than {MOST_RULES} distinct rules"),
            Self::TooLarge => write!(
                f,
                "code in more than {MOST_PAGES} pages of 64 KiB, or beyond 2^40 bytes"
            ),
        }
    }
}

impl std::error::Error for Error {}

impl From<rhist_elf::Error> for Error {
    fn from(error: rhist_elf::Error) -> Self {
        Self::File(error)
    }
}
