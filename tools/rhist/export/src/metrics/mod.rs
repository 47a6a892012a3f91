// SPDX-License-Identifier: MIT OR Apache-2.0

//! Metrics: named numbers with labels, cumulative since a start time. Independent of their source
//! and of the output format; [`prometheus`] writes them for Prometheus.

pub mod prometheus;

use rhist_core::table::BucketUnit;
use rhist_core::table::Dist;
use rhist_core::table::Unit;

/// All metrics of one name.
#[derive(Clone, Debug, PartialEq)]
pub struct Family<'a> {
    /// Name, with the unit at its end, and without the suffix that a format adds, such as `_total`.
    pub name: String,
    /// Help text: a sentence without a full stop.
    pub help: String,
    /// Unit as it stands in the name: `seconds`. Empty for plain counts.
    pub unit: &'static str,
    /// Type of its numbers.
    pub kind: Kind,
    /// Bounds of the classic buckets of a histogram, in the unit of the metric. If empty, the
    /// format chooses powers of four for the unit.
    pub bounds: &'a [f64],
    /// Points; all have different labels.
    pub points: Vec<Point<'a>>,
}

/// Type of the numbers of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Sum since a start time, which never falls.
    Counter,
    /// Number that rises and falls.
    Gauge,
    /// Distribution since a start time.
    Histogram,
    /// Constant 1; the labels carry the information.
    Info,
}

/// Number or distribution with its labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Point<'a> {
    /// Names and values of the labels.
    pub labels: Vec<(&'a str, &'a str)>,
    /// Current value.
    pub value: Value<'a>,
    /// Start of counting, in nanoseconds of `CLOCK_REALTIME`. `None` for numbers that are not
    /// counted.
    pub start_ns: Option<u64>,
}

/// Value of a point.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// Integer.
    Whole(i128),
    /// Floating-point number.
    Real(f64),
    /// Distribution. All its numbers but the indices of buckets are in the unit of its column: see
    /// [`unit_word()`].
    Dist(&'a Dist),
}

impl<'a> Family<'a> {
    /// Creates a family without points.
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

/// Word for a unit in names of metrics. Nanoseconds become seconds only if the kernel has counted
/// in seconds ([`BucketUnit`]): a conversion of buckets could lose precision.
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
