// SPDX-License-Identifier: MIT OR Apache-2.0

//! Buckets as Prometheus has them: classic ones, and spans of native ones.

use crate::metrics::Family;
use crate::table::BucketUnit;
use crate::table::Counts;
use crate::table::Dist;

/// The largest schema of native histograms; and the smallest one is below all scales here.
const SCHEMA_MAX: u8 = 8;

/// A classic bucket: values that are not above its bound, those of lower buckets among them.
pub(super) struct Classic {
    /// In the unit of the buckets.
    pub bound: f64,
    pub count: u64,
}

/// Classic buckets: 0, and the bounds of the family or, without any, powers of four, which end where buckets of every scale do.
/// Another bound is moved to the end of a bucket that is nearest. The same ones for all values of a unit, so that they can be
/// summed over label sets and machines. The last one, with all values, is not among them.
pub(super) fn classic<'a>(dist: &'a Dist, family: &Family<'a>) -> impl Iterator<Item = Classic> + use<'a> {
    let scale = f64::from(dist.scale.min(Dist::SCALE_MAX)).exp2();
    let below = dist.negative.iter().map(|(_, count)| count).sum::<u64>();
    let mut count = below.saturating_add(dist.zero);
    // Where zeros are counted with ones, they are in no lower bucket.
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

/// Times from a microsecond to a minute; other numbers from 1 to a thousand millions. `unit` is that of the metric.
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

/// A distribution as a native histogram: the schema, values that are zero, and buckets.
pub(super) struct Native {
    pub schema: i32,
    /// Absolute values that are counted as zero.
    pub threshold: f64,
    pub zero: u64,
    pub positive: Spans,
    pub negative: Spans,
}

/// Buckets one after the other, with gaps.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Spans {
    /// How far each is behind the last one, the first one behind 0, and how many buckets it has.
    pub spans: Vec<(i32, u32)>,
    /// By how much the count of each bucket differs from the one before it.
    pub deltas: Vec<i64>,
}

impl Native {
    /// Exactly, unless buckets are finer than the finest ones of Prometheus: then they are made wider, down to these.
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
        // C counts zeros and ones in one bucket, which is that of values up to 1 then.
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
    /// Prometheus' index of a bucket is one more than that of OpenTelemetry.
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
            // Counts are below 2^63: a billion hits in a second take 292 years.
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            deltas.push(count - before);
            before = count;
        }
        Self { spans, deltas }
    }
}
