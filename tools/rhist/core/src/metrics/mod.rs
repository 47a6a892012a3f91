// SPDX-License-Identifier: MIT OR Apache-2.0

//! Metrics: named numbers with labels, cumulative since a time. They know neither where they come from, nor how they are
//! written; [`prometheus`] writes them for Prometheus.

pub mod prometheus;

use crate::table::BucketUnit;
use crate::table::Dist;
use crate::table::Unit;

/// Metrics of one name.
#[derive(Clone, Debug, PartialEq)]
pub struct Family<'a> {
    /// Its name, with the unit at its end, and without what a format adds, such as `_total`.
    pub name: String,
    /// A sentence for people, without a full stop.
    pub help: String,
    /// Unit of its numbers, as it is in the name: `seconds`. Empty for a number of things.
    pub unit: &'static str,
    /// What its numbers are.
    pub kind: Kind,
    /// Bounds of the classic buckets of a histogram, in the unit of the metric. Empty: those of its unit.
    pub bounds: &'a [f64],
    /// No two have the same labels.
    pub points: Vec<Point<'a>>,
}

/// What numbers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A sum since a time, that never falls.
    Counter,
    /// A number that rises and falls.
    Gauge,
    /// A distribution since a time.
    Histogram,
    /// A one, whose labels say something.
    Info,
}

/// A number, or a distribution.
#[derive(Clone, Debug, PartialEq)]
pub struct Point<'a> {
    /// Names and values of labels.
    pub labels: Vec<(&'a str, &'a str)>,
    /// The number.
    pub value: Value<'a>,
    /// Since when it was counted, in nanoseconds of `CLOCK_REALTIME`. `None` for what is not counted.
    pub start_ns: Option<u64>,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// A whole number.
    Whole(i128),
    /// Another number.
    Real(f64),
    /// A distribution. All its numbers but the indices of buckets are in the unit of its column: see [`unit_word()`].
    Dist(&'a Dist),
}

impl<'a> Family<'a> {
    /// A family without points.
    pub fn new(name: impl Into<String>, unit: &'static str, kind: Kind, help: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            help: help.into(),
            unit,
            kind,
            bounds: &[],
            points: Vec::new(),
        }
    }

    /// Adds a point.
    pub fn push(&mut self, labels: Vec<(&'a str, &'a str)>, value: Value<'a>, start_ns: Option<u64>) {
        self.points.push(Point {
            labels,
            value,
            start_ns,
        });
    }
}

/// The word for a unit in names of metrics. Nanoseconds are so many seconds only where the kernel has counted in seconds
/// ([`BucketUnit`]): nothing is converted that could lose something.
pub fn unit_word(unit: Unit, buckets: BucketUnit) -> &'static str {
    match (buckets, unit) {
        (BucketUnit::S, _) => "seconds",
        (BucketUnit::Ms, _) => "milliseconds",
        (BucketUnit::Us, _) | (BucketUnit::One, Unit::Microseconds) => "microseconds",
        (BucketUnit::One, Unit::Nanoseconds) => "nanoseconds",
        (BucketUnit::One, Unit::Bytes) => "bytes",
        (BucketUnit::One, Unit::Plain) => "",
    }
}
