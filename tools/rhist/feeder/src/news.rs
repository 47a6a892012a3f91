// SPDX-License-Identifier: MIT OR Apache-2.0

//! Reports of a feeder.

use std::fmt;

use crate::list::Object;

/// An object that a feeder has dealt with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News<'a> {
    /// It has been given rules.
    Fed {
        /// Its line of the list.
        object: &'a Object,
        /// Number of rows.
        rows: usize,
        /// Size of the table, in bytes.
        bytes: usize,
    },
    /// Its file is not held by the module: it will be tried again after another hit in it.
    NotHeld(&'a Object),
    /// It gets no rules; or, if the reason begins with `names:` or `more names:`, no names of
    /// functions, or only the first ones.
    Failed {
        /// Its line of the list.
        object: &'a Object,
        /// The reason, safe to print.
        why: String,
    },
}

impl fmt::Display for News<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fed { object, rows, bytes } => write!(f, "{object}: {rows} rows, {bytes} bytes"),
            Self::NotHeld(object) => write!(f, "{object}: not readable until the next hit"),
            Self::Failed { object, why } => write!(f, "{object}: {why}"),
        }
    }
}

/// Numbers of objects, and of the rules that they were given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Objects for which rules can be made.
    pub objects: usize,
    /// Objects that were given rules.
    pub fed: usize,
    /// Rows of these rules.
    pub rows: usize,
    /// Bytes of these tables.
    pub bytes: usize,
    /// Objects whose rules another program has made.
    pub others: usize,
    /// Objects that are not readable until the next hit.
    pub not_held: usize,
    /// Objects that get no rules.
    pub failed: usize,
}
