// SPDX-License-Identifier: MIT OR Apache-2.0

//! Recordings of which a difference is drawn.

use crate::table::Table;

/// One of two recordings.
pub struct Side<'a> {
    /// Name in the legend.
    pub name: &'a str,
    /// Sum of all intervals.
    pub table: &'a Table,
    /// Duration in seconds.
    pub seconds: f64,
}
