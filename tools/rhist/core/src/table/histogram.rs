// SPDX-License-Identifier: MIT OR Apache-2.0

//! What a kernel file says of a histogram.

use std::fmt;
use std::io;

use super::Table;
use super::Text;

/// A histogram as it was read from `hist_jsonl` or `hist`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// The command that makes its trigger; with `!` in front of it, it removes it.
    pub trigger: Text,
    /// The system of the event. Empty if it was read from `hist`, which does not say it.
    pub system: String,
    /// The event. Empty if it was read from `hist`.
    pub event: String,
    /// What is behind `name=`.
    pub name: Option<Text>,
    /// What is behind `if`.
    pub filter: Option<Text>,
    /// Whether it is paused.
    pub paused: bool,
    /// For how many entries there is room.
    pub size: u64,
    /// The clock of times in it, if there are any.
    pub clock: Option<String>,
    /// Hits of all entries.
    pub hits: u64,
    /// How many entries there are; more than rows of the table with `limit()`.
    pub entries: u64,
    /// Keys that were inserted while the last entry was taken; their hits are dropped. `None` if it was read from `hist`.
    pub excess: Option<u64>,
    /// Hits that its filter has rejected. `None` if it was read from `hist`.
    pub rejected: Option<u64>,
    /// Its entries.
    pub table: Table,
}

/// Why a file of histograms cannot be read. Shown, it is a sentence without a full stop.
#[derive(Debug)]
pub enum ReadError {
    /// The kernel did not give it.
    Io(io::Error),
    /// It ends, or another histogram begins, before the totals of a histogram: whoever wrote it was stopped.
    Incomplete {
        /// The last line.
        line: usize,
    },
    /// It is of a version that is not known.
    Version {
        /// The line that says it.
        line: usize,
        /// The version.
        found: u64,
    },
    /// It is not such a file.
    Format {
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        what: String,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Io(error) => write!(f, "reading fails: {error}"),
            ReadError::Incomplete { line } => {
                write!(
                    f,
                    "line {line}: the histogram has no totals, so the file is not complete"
                )
            }
            ReadError::Version { line, found } => {
                write!(
                    f,
                    "line {line}: schema {found} is not known; rhist of a newer version may read it"
                )
            }
            ReadError::Format { line, what } => write!(f, "line {line}: {what}"),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ReadError::Io(error) => Some(error),
            _ => None,
        }
    }
}
