// SPDX-License-Identifier: MIT OR Apache-2.0

//! Recordings: files of OTLP metrics in JSON, as the OpenTelemetry collector's file exporter writes
//! and its receiver reads them. Each line is an interval, and is complete in itself: its resource
//! contains the question.
//!
//! * [`crate::otlp`] turns intervals into metrics. Points are deltas.
//! * Keys are stored without loss: see `otlp/attribute.rs`.
//! * Integers keep all their digits, even where OTLP has doubles.

mod decode;
mod encode;
mod points;
mod reader;
mod replay;
mod writer;

use std::fmt;

pub use reader::Reader;
pub use replay::Replay;
pub use writer::Writer;

/// Error of writing or reading a recording: a sentence without a full stop, with the file and, if
/// known, the line.
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
