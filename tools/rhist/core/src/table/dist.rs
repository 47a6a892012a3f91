// SPDX-License-Identifier: MIT OR Apache-2.0

//! Distributions: counts of values in exponential buckets, and the quantiles that follow from them.

use std::collections::BTreeMap;

/// A distribution. Bucket `i` of scale `s` has the values `v` with `2^(i/2^s) < v <= 2^((i+1)/2^s)`, as in OpenTelemetry's
/// exponential histograms.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dist {
    /// Buckets between a number and its double are 2 to the power of this. 0 to 20.
    pub scale: u8,
    /// How many values there are, in buckets or not.
    pub count: u64,
    /// Their sum; wraps around at 64 bits where the kernel made it. `None` if it is not known.
    pub sum: Option<i128>,
    /// The smallest one. `None` if it is not known.
    pub min: Option<i128>,
    /// The largest one. `None` if it is not known.
    pub max: Option<i128>,
    /// Values that are zero.
    pub zero: u64,
    /// Whether bucket -1 of `positive`, which has the value 1, has zeros, too: so C's `.log2` counts.
    pub one_has_zero: bool,
    /// Counts by index, none of them 0.
    pub positive: BTreeMap<i32, u64>,
    /// Counts of negative values, by the index of their absolute values.
    pub negative: BTreeMap<i32, u64>,
}

/// An estimate of a quantile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantile {
    /// The estimate.
    pub value: f64,
    /// The true value is not below this.
    pub low: f64,
    /// Nor above this.
    pub high: f64,
}
