// SPDX-License-Identifier: MIT OR Apache-2.0

//! Converts distributions to the buckets of Prometheus: classic buckets, and spans of native ones.

use rhist_core::table::BucketUnit;
use rhist_core::table::Counts;
use rhist_core::table::Dist;

use crate::metrics::Family;

/// Largest schema of native histograms. The smallest one is below all scales here.
const SCHEMA_MAX: u8 = 8;

/// Sum in the unit of the buckets, if known.
pub(super) fn sum(dist: &Dist) -> Option<f64> {
    dist.sum.map(|sum| sum as f64 / dist.bucket_unit.values() as f64)
}

/// Classic bucket: counts all values up to its bound, including the ones in lower buckets.
pub(super) struct Classic {
    /// Upper bound, in the unit of the buckets.
    pub bound: f64,
    pub count: u64,
}

/// Classic buckets: 0, then the bounds of the family, or powers of four if it gives none. Powers of
/// four are ends of buckets at every scale; another bound counts up to the nearest end of a bucket.
/// The bounds are the same for all values of a unit, so that buckets can be summed over label sets
/// and machines. Leaves out the last bucket (+Inf).
pub(super) fn classic<'a>(dist: &'a Dist, family: &Family<'a>) -> impl Iterator<Item = Classic> + use<'a> {
    let scale = f64::from(dist.scale.min(Dist::SCALE_MAX)).exp2();
    let below = dist.negative.iter().map(|(_, count)| count).sum::<u64>();
    let mut count = below.saturating_add(dist.zero);
    // If the first bucket holds zeros and ones together, the bucket of 0 lacks those zeros.
    let zero = Classic { bound: 0.0, count };
    let mut positive = dist.positive.iter().peekable();
    let powers = powers(dist.bucket_unit, family.unit).filter(|_| family.bounds.is_empty());
    let bounds = family.bounds.iter().copied().chain(powers).map(move |bound| {
        let end = (bound.log2() * scale).round() as i64;
        while let Some((_, more)) = positive.next_if(|&(index, _)| i64::from(index) < end) {
            count = count.saturating_add(more);
        }
        Classic { bound, count }
    });
    std::iter::once(zero).chain(bounds)
}

/// Bounds from a microsecond to a minute for times, and from 1 to 2^30 for other numbers. `unit` is
/// the unit of the metric.
fn powers(buckets: BucketUnit, unit: &str) -> impl Iterator<Item = f64> {
    let first = match (buckets, unit) {
        (BucketUnit::S, _) => -20,
        (BucketUnit::Ms, _) => -10,
        (_, "nanoseconds") => 10,
        _ => 0,
    };
    let last = if matches!(unit, "" | "bytes") { 30 } else { first + 26 };
    (first..=last).step_by(2).map(|exponent| f64::from(exponent).exp2())
}

/// Distribution as a native histogram: schema, zero bucket, and spans of buckets.
pub(super) struct Native {
    pub schema: i32,
    /// Absolute values up to this count as zero.
    pub threshold: f64,
    pub zero: u64,
    pub positive: Spans,
    pub negative: Spans,
}

/// Consecutive buckets with gaps, in the encoding of Prometheus.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Spans {
    /// For each span, the gap after the previous one (for the first, the index), and the number of
    /// buckets.
    pub spans: Vec<(i32, u32)>,
    /// Difference of each bucket's count to the bucket before it.
    pub deltas: Vec<i64>,
}

impl Native {
    /// Converts without loss, unless the buckets are finer than the finest schema of Prometheus:
    /// then merges them down to it.
    pub fn new(dist: &Dist) -> Self {
        let coarser;
        let dist = if dist.scale > SCHEMA_MAX {
            let mut other = dist.clone();
            other.coarsen(SCHEMA_MAX);
            coarser = other;
            &coarser
        } else {
            dist
        };
        // C counts zeros and ones in one bucket, so make it the zero bucket, for values up to 1.
        let (threshold, with_zeros) = match dist.one_has_zero {
            true => (
                1.0,
                dist.positive
                    .iter()
                    .take_while(|&(index, _)| index < 0)
                    .map(|(_, count)| count)
                    .sum(),
            ),
            false => (0.0, 0),
        };
        let first = if dist.one_has_zero { 0 } else { i32::MIN };
        Self {
            schema: dist.scale.into(),
            threshold,
            zero: dist.zero.saturating_add(with_zeros),
            positive: Spans::new(&dist.positive, first),
            negative: Spans::new(&dist.negative, i32::MIN),
        }
    }
}

impl Spans {
    /// Adds 1 to each index: Prometheus names a bucket by its upper bound, OpenTelemetry by its
    /// lower one.
    fn new(counts: &Counts, first: i32) -> Self {
        let mut spans: Vec<(i32, u32)> = Vec::new();
        let mut deltas = Vec::with_capacity(counts.len());
        let (mut next, mut before) = (0, 0);
        for (index, count) in counts.iter().filter(|&(index, _)| index >= first) {
            let index = index + 1;
            match spans.last_mut() {
                Some((_, length)) if index == next => *length += 1,
                _ => spans.push((index - next, 1)),
            }
            next = index + 1;
            // Counts stay below 2^63: a billion hits per second would take 292 years.
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            deltas.push(count - before);
            before = count;
        }
        Self { spans, deltas }
    }
}
