// SPDX-License-Identifier: MIT OR Apache-2.0

//! Intervals as metrics of OTLP, the protocol of OpenTelemetry. [`encode`] builds the [`model`] in
//! one of its forms; serde writes it as JSON.
//!
//! * Hits and sums become sums, distributions become exponential histograms, other numbers gauges.
//!   A row is a point of each, with its keys as attributes.
//! * The largest value, with the fields saved along with it, is an exemplar.
//! * Values without a bucket have a metric of their own, since in OTLP the count of a histogram
//!   equals the sum of its buckets.
//! * Names starting with `rhist.` describe the interval: its times, losses, and own cost.

pub mod attribute;
mod base64;
pub mod encode;
pub mod model;
pub mod names;
