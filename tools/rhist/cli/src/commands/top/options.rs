// SPDX-License-Identifier: MIT OR Apache-2.0

//! Settings of the display.

use std::time::Duration;
use std::time::Instant;

use rhist_core::names::Names;

use crate::options::Format;

/// Settings of the display.
#[derive(Debug)]
pub struct Options {
    /// Interval between readings.
    pub interval: Duration,
    /// Output format instead of the terminal: lines of JSON, or a picture. `Text` stands for the
    /// terminal.
    pub format: Format,
    /// Time of the end, if any.
    pub end: Option<Instant>,
    /// Whether the source is a recording, which needs no waiting.
    pub is_replay: bool,
    /// Names of numbers.
    pub names: Names,
}
