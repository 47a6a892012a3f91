// SPDX-License-Identifier: MIT OR Apache-2.0

//! Recordings: files of OTLP's metrics in JSON, as the OpenTelemetry collector's file exporter writes and its receiver
//! reads them. A line is an interval, and stands alone: it has the question, too, in its resource.
//!
//! * Hits and sums are delta sums, distributions are delta exponential histograms, other numbers are gauges. A row is a
//!   point of each, with its keys as attributes: see `attribute.rs`.
//! * The largest value, and what was saved with it, is an exemplar.
//! * Integers keep all their digits, also where OTLP has doubles.
//! * Values that are in no bucket are counted by a metric of their own, since OTLP wants the count of a histogram to be the
//!   sum of its buckets.
//! * Names that begin with `rhist.` are of the interval: its times, losses, and own cost.

mod attribute;
mod decode;
mod encode;
mod names;
mod otlp;
mod points;
mod reader;
mod replay;
mod writer;

use std::fmt;

pub use reader::Reader;
pub use replay::Replay;
pub use replay::append;
pub use writer::Writer;

/// Why a recording cannot be written or read. A sentence without a full stop, with the file, and the line if one is wrong.
#[derive(Debug)]
pub struct Error(String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests;
