// SPDX-License-Identifier: MIT OR Apache-2.0

//! Errors of plans.

use std::fmt;

/// Reason why planning failed.
#[derive(Debug, PartialEq, Eq)]
pub enum Error {
    /// The kernel lacks this event.
    NoEvent {
        /// `system:event`.
        event: String,
    },
    /// The event lacks this field.
    NoField {
        /// `system:event`.
        event: String,
        /// Name of the field, without modifiers.
        field: String,
        /// Key or value as written.
        text: String,
    },
    /// This kernel cannot express the measurement.
    Impossible(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NoEvent { event } => write!(f, "this kernel has no event {event}"),
            Error::NoField { event, field, .. } => write!(f, "event {event} has no field {field}"),
            Error::Impossible(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Error {}
