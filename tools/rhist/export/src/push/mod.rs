// SPDX-License-Identifier: MIT OR Apache-2.0

//! Pushes intervals to a receiver of OTLP over HTTP, such as an OpenTelemetry collector.
//!
//! ```text
//! Interval → Exporter → Batch → Pusher: Queue on disk → a thread of its own → Client → receiver
//! ```
//!
//! An [`Exporter`] makes [`Batch`]es of the intervals of one question. A [`Pusher`] takes the
//! batches of any number of exporters, and does not wait for the receiver: each batch is written to
//! the [`Queue`], and removed when the receiver has accepted it.

mod client;
mod endpoint;
mod environment;
mod exporter;
mod pusher;
mod queue;
mod retry_after;

use std::fmt;

pub use endpoint::Endpoint;
pub use environment::Environment;
pub use exporter::Exporter;
pub use exporter::Format;
pub use pusher::Pace;
pub use pusher::Pusher;
pub use pusher::Totals;
pub use queue::Limits;
pub use queue::Queue;
pub use queue::state_folder;

pub use rhist_core::otlp::model::Temporality;

/// Encoding of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Protobuf, which every receiver accepts.
    Protobuf,
    /// JSON mapping of OTLP.
    Json,
}

impl Encoding {
    /// Media type for the header `Content-Type`.
    pub fn media_type(self) -> &'static str {
        match self {
            Encoding::Protobuf => "application/x-protobuf",
            Encoding::Json => "application/json",
        }
    }

    fn word(self) -> &'static str {
        match self {
            Encoding::Protobuf => "protobuf",
            Encoding::Json => "json",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        [Encoding::Protobuf, Encoding::Json]
            .into_iter()
            .find(|encoding| encoding.word() == word)
    }
}

/// Kind of data in batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Signal {
    /// Numbers.
    #[default]
    Metrics,
    /// Stacks, in a format that is in development.
    Profiles,
}

impl Signal {
    /// Path below the address of a receiver.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Signal::Metrics => "/v1/metrics",
            Signal::Profiles => "/v1development/profiles",
        }
    }
}

/// Body of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Encoding of the body.
    pub encoding: Encoding,
    /// An encoded `ExportMetricsServiceRequest` or `ExportProfilesServiceRequest`.
    pub body: Vec<u8>,
}

/// Fault in the settings: a sentence without a full stop, which names the setting.
#[derive(Debug, PartialEq, Eq)]
pub struct Error(String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
pub(crate) mod tests;
