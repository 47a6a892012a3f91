// SPDX-License-Identifier: MIT OR Apache-2.0

//! Intervals as metrics of OTLP, the protocol of OpenTelemetry. [`encode`] makes the [`model`] of them, once for all purposes;
//! it is written as JSON, by serde, or as protobuf, by [`protobuf`].
//!
//! * Hits and sums are sums, distributions are exponential histograms, other numbers are gauges. A row is a point of each, with
//!   its keys as attributes.
//! * The largest value, and what was saved with it, is an exemplar.
//! * Values that are in no bucket are counted by a metric of their own, since OTLP wants the count of a histogram to be the
//!   sum of its buckets.
//! * Names that begin with `rhist.` are of the interval: its times, losses, and own cost.

pub(crate) mod attribute;
mod base64;
mod container;
pub(crate) mod encode;
pub(crate) mod flat;
pub(crate) mod model;
pub(crate) mod names;
pub(crate) mod protobuf;
