// SPDX-License-Identifier: MIT OR Apache-2.0

//! Recordings: files of OTLP's metrics in JSON, as the OpenTelemetry collector's file exporter writes and its receiver
//! reads them. A line is an interval, and stands alone: it has the question, too, in its resource.
//!
//! * How an interval becomes metrics is in [`crate::otlp`]. Points are deltas.
//! * All of a key is kept: see `otlp/attribute.rs`.
//! * Integers keep all their digits, also where OTLP has doubles.

mod decode;
mod encode;
mod points;
mod reader;
mod replay;
mod writer;

use std::fmt;

pub use reader::Reader;
pub use replay::Replay;
pub use replay::append;
pub use replay::append_interval;
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
