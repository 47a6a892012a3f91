// SPDX-License-Identifier: MIT OR Apache-2.0

//! A histogram from a file of the kernel.

use std::fmt;
use std::io;

use super::Table;
use super::Text;

/// A histogram, read from `hist_jsonl` or `hist`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// Command that creates its trigger, or removes it if preceded by `!`.
    pub trigger: Text,
    /// System of the event. Empty if read from `hist`, which does not contain it.
    pub system: String,
    /// Name of the event. Empty if read from `hist`.
    pub event: String,
    /// Name of the histogram (`name=`).
    pub name: Option<Text>,
    /// Filter of the trigger (`if`).
    pub filter: Option<Text>,
    /// Whether it is paused.
    pub paused: bool,
    /// Maximum number of entries.
    pub size: u64,
    /// Clock of the times in it, if any.
    pub clock: Option<String>,
    /// Hits of all entries.
    pub hits: u64,
    /// Number of entries. With `limit()`, the table has fewer rows.
    pub entries: u64,
    /// Keys that were inserted while the last entry was taken; their hits are dropped. `None` if
    /// read from `hist`.
    pub excess: Option<u64>,
    /// Hits rejected by its filter. `None` if read from `hist`.
    pub rejected: Option<u64>,
    /// Entries of the histogram.
    pub table: Table,
}

/// Error of reading a file of histograms. Prints as a sentence without a full stop.
#[derive(Debug)]
pub enum ReadError {
    /// Reading the file failed.
    Io(io::Error),
    /// The file ends, or another histogram begins, before the totals of a histogram: the writer was
    /// interrupted.
    Incomplete {
        /// Last line.
        line: usize,
    },
    /// The schema has an unknown version.
    Version {
        /// Line with the version.
        line: usize,
        /// Version in the file.
        found: u64,
    },
    /// The file has another format.
    Format {
        /// Line, from 1.
        line: usize,
        /// Description of the fault.
        what: String,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Io(error) => write!(f, "reading failed: {error}"),
            ReadError::Incomplete { line } => {
                write!(f, "line {line}: the histogram has no totals: the file is incomplete")
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
