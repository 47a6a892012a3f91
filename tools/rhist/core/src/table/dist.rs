// SPDX-License-Identifier: MIT OR Apache-2.0

//! Distributions: counts of values in exponential buckets.

use super::bucket;
use super::bucket::Bucket;
use super::bucket::BucketUnit;
use super::counts::Counts;

/// A distribution. Bucket `i` of scale `s` contains the values `v` with `2^(i/2^s) < v <=
/// 2^((i+1)/2^s)`, as in OpenTelemetry's exponential histograms.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dist {
    /// Each octave has 2^`scale` buckets. From 0 to 20.
    pub scale: u8,
    /// Unit of `v` above; all other numbers here are in the unit of the column.
    pub bucket_unit: BucketUnit,
    /// Number of values, including values without a bucket.
    pub count: u64,
    /// Sum of the values; if computed by the kernel, modulo 2^64. `None` if unknown.
    pub sum: Option<i128>,
    /// Smallest value. `None` if unknown.
    pub min: Option<i128>,
    /// Largest value. `None` if unknown.
    pub max: Option<i128>,
    /// Number of zeros.
    pub zero: u64,
    /// Whether bucket -1 of `positive`, which contains the value 1, also counts zeros, as C's
    /// `.log2` does.
    pub one_has_zero: bool,
    /// Counts by index.
    pub positive: Counts,
    /// Counts of negative values, by the index of their absolute values.
    pub negative: Counts,
}

/// Start of the numbers that are negative values, wrapped around because the kernel counts as
/// unsigned.
const HALF: i128 = 1 << 63;

impl Dist {
    /// The largest scale.
    pub const SCALE_MAX: u8 = bucket::SCALE_MAX;

    /// Creates a distribution without values.
    pub fn new(scale: u8) -> Self {
        Dist {
            scale,
            sum: Some(0),
            ..Dist::default()
        }
    }

    /// Adds `value` `count` times, limited to the range of an `i64` or a `u64`.
    pub fn record(&mut self, value: i128, count: u64) {
        if count == 0 {
            return;
        }
        self.min = match self.count {
            0 => Some(value),
            _ => self.min.map(|min| min.min(value)),
        };
        self.max = match self.count {
            0 => Some(value),
            _ => self.max.map(|max| max.max(value)),
        };
        self.sum = self
            .sum
            .map(|sum| sum.saturating_add(value.saturating_mul(count.into())));
        self.count = self.count.saturating_add(count);
        let magnitude = u64::try_from(value.unsigned_abs()).unwrap_or(u64::MAX);
        let buckets = match value {
            0 => return self.zero = self.zero.saturating_add(count),
            1.. => &mut self.positive,
            _ => &mut self.negative,
        };
        buckets.add(bucket::index(magnitude, self.scale, self.bucket_unit), count);
    }

    /// Average. `None` without values, or if their sum is unknown.
    pub fn mean(&self) -> Option<f64> {
        let sum = self.sum.filter(|_| self.count > 0)?;
        Some(sum as f64 / self.count as f64)
    }

    /// Non-empty buckets, in the order of their values.
    pub fn buckets(&self) -> impl DoubleEndedIterator<Item = Bucket> {
        let negative = self.negative.iter().rev();
        let negative = negative.map(|(index, count)| self.bucket(index, count).negated());
        let positive = self.positive.iter();
        let positive = positive.map(|(index, count)| self.bucket(index, count));
        negative.chain(self.zero_bucket()).chain(positive)
    }

    /// The bucket of zeros, if any.
    pub(super) fn zero_bucket(&self) -> Option<Bucket> {
        (self.zero > 0).then_some(Bucket {
            low: 0,
            high: 0,
            count: self.zero,
        })
    }

    /// Smallest and largest integer in the positive bucket with this index. If it contains no
    /// integer, the ones around it.
    pub fn bounds(&self, index: i32) -> (u64, u64) {
        match index {
            -1 if self.one_has_zero => (0, bucket::bounds(index, self.scale, self.bucket_unit).1),
            _ => bucket::bounds(index, self.scale, self.bucket_unit),
        }
    }

    pub(super) fn bucket(&self, index: i32, count: u64) -> Bucket {
        let (low, high) = self.bounds(index);
        Bucket {
            low: low.into(),
            high: high.into(),
            count,
        }
    }

    /// The largest value, or else the largest number of the last bucket. `None` if values without a
    /// bucket may be larger.
    pub fn at_most(&self) -> Option<i128> {
        let last = || self.buckets().next_back().filter(|_| self.without_bucket() == 0);
        self.max.or_else(|| last().map(|bucket| bucket.high))
    }

    /// Number of values in buckets. Below [`Dist::count`] if the kernel ran out of buckets.
    pub fn in_buckets(&self) -> u64 {
        let buckets = self.negative.iter().chain(self.positive.iter());
        buckets.fold(self.zero, |sum, (_, count)| sum.saturating_add(count))
    }

    /// Number of values without a bucket, which quantiles do not include.
    pub fn without_bucket(&self) -> u64 {
        self.count.saturating_sub(self.in_buckets())
    }

    /// Makes buckets wider, down to `scale`, without loss. Has no effect unless `scale` is lower.
    pub fn coarsen(&mut self, scale: u8) {
        let Some(shift) = self.scale.checked_sub(scale).filter(|&shift| shift > 0) else {
            return;
        };
        for buckets in [&mut self.positive, &mut self.negative] {
            *buckets = buckets.wider(shift);
        }
        self.scale = scale;
    }

    /// Adds the values of `other`. If both have values, the result has the lower of the two scales.
    /// If `other` uses another [`BucketUnit`], its values have no bucket in the result.
    pub fn merge(&mut self, other: &Dist) {
        let sum = match (self.sum, other.sum) {
            (None, sum) if self.count == 0 => sum,
            (sum, None) if other.count == 0 => sum,
            (a, b) => pair(a, b, i128::saturating_add),
        };
        // A reading during a hit may contain only the hit's part of the sum.
        if other.count == 0 {
            self.sum = sum;
            return;
        }
        if self.count == 0 {
            self.clone_from(other);
            self.sum = sum;
            return;
        }
        self.count = self.count.saturating_add(other.count);
        self.sum = sum;
        self.min = pair(self.min, other.min, Ord::min);
        self.max = pair(self.max, other.max, Ord::max);
        if self.bucket_unit != other.bucket_unit {
            return;
        }
        self.coarsen(other.scale);
        let shift = other.scale.saturating_sub(self.scale).min(31);
        self.zero = self.zero.saturating_add(other.zero);
        self.one_has_zero |= other.one_has_zero;
        for (into, from) in [
            (&mut self.positive, &other.positive),
            (&mut self.negative, &other.negative),
        ] {
            for (index, count) in from.iter() {
                into.add(index >> shift, count);
            }
        }
    }

    /// Counts negative values as zeros, and also numbers from 2^63 on, which are negative
    /// differences that the kernel has stored as unsigned. If the maximum is such a number, it
    /// becomes unknown.
    ///
    /// The sum then counts them as zeros, too. Their exact part of the kernel's sum is unknown. For
    /// a negative value, takes the lowest value of its bucket; for a wrapped one, the wrapped value
    /// nearest to zero. With signed buckets, the sum thus never falls between readings. The sum is
    /// limited to the range that the remaining buckets allow.
    pub fn without_negative(&mut self) {
        let has_wrapped = self.positive.ends().is_some_and(|(_, last)| self.is_wrapped(last));
        if self.negative.is_empty() && !has_wrapped {
            return;
        }
        let total = |counts: &Counts| {
            let counts = counts.iter();
            counts.fold(0, |sum: u64, (_, count)| sum.saturating_add(count))
        };
        if !self.negative.is_empty() {
            let negative = std::mem::take(&mut self.negative);
            let (_, below_zero) = self.limits(&negative);
            self.zero = self.zero.saturating_add(total(&negative));
            self.sum = self.sum.map(|sum| sum.saturating_add(below_zero));
            self.min = self.min.map(|min| min.max(0));
            self.max = self.max.map(|max| max.max(0));
        }
        if has_wrapped {
            let (wrapped, others): (Vec<_>, Vec<_>) =
                self.positive.iter().partition(|&(index, _)| self.is_wrapped(index));
            self.positive = others.into_iter().collect();
            let wrapped = total(&wrapped.into_iter().collect());
            match self.one_has_zero {
                true => self.positive.add(-1, wrapped),
                false => self.zero = self.zero.saturating_add(wrapped),
            }
            // The bucket of wrapped values says little about their distance from zero, but none is
            // nearer to it than the maximum.
            let nearest = self.max.filter(|&max| max >= HALF).map_or(0, |max| (1 << 64) - max);
            let below_zero = nearest.saturating_mul(wrapped.into());
            self.sum = self.sum.map(|sum| i128::from(sum as i64).saturating_add(below_zero));
            self.min = self.min.map(|_| 0);
            self.max = self.max.filter(|&max| max < HALF);
        }
        let (low, high) = self.limits(&self.positive);
        let high = if self.without_bucket() == 0 { high } else { i128::MAX };
        self.sum = self.sum.map(|sum| sum.clamp(low, high));
    }

    /// Returns whether a positive bucket has numbers from 2^63 on.
    fn is_wrapped(&self, index: i32) -> bool {
        // Fast path: bounds are slow to compute, and nearly always no bucket has such numbers. In
        // the largest unit, values of bucket 0 are below 2^31.
        index >> self.scale.min(31) > 31 && i128::from(self.bounds(index).0) > HALF
    }

    /// Minimum and maximum of the sum of the values in positive buckets.
    fn limits(&self, counts: &Counts) -> (i128, i128) {
        counts.iter().fold((0, 0), |(least, most), (index, count)| {
            let (low, high) = self.bounds(index);
            let add = |sum: i128, bound: u64| sum.saturating_add(i128::from(bound).saturating_mul(count.into()));
            (add(least, low), add(most, high))
        })
    }

    /// Returns whether a sum or a bucket is higher than in a later state.
    pub fn exceeds(&self, later: &Dist) -> bool {
        let sum = self.sum.zip(later.sum).is_some_and(|(sum, later)| sum > later);
        self.zero > later.zero
            || sum && later.negative.is_empty()
            || self.scale == later.scale
                && (self.positive.exceed(&later.positive) || self.negative.exceed(&later.negative))
    }

    /// Increase since `earlier`, an older state of this distribution. Minimum and maximum are
    /// `None` unless they must be among the new values. A decrease counts as 0.
    pub fn since(&self, mut earlier: Dist) -> Dist {
        if earlier.count == 0 {
            return Dist {
                sum: pair(self.sum, earlier.sum.or(Some(0)), i128::saturating_sub),
                ..self.clone()
            };
        }
        if self.scale != earlier.scale {
            let mut now = self.clone();
            now.coarsen(earlier.scale);
            earlier.coarsen(now.scale);
            return now.since(earlier);
        }
        let fell = |(now, before): (i128, i128)| (now < before).then_some(now);
        let rose = |(now, before): (i128, i128)| (now > before).then_some(now);
        Dist {
            count: self.count.saturating_sub(earlier.count),
            sum: pair(self.sum, earlier.sum, i128::saturating_sub),
            min: self.min.zip(earlier.min).and_then(fell),
            max: self.max.zip(earlier.max).and_then(rose),
            zero: self.zero.saturating_sub(earlier.zero),
            positive: self.positive.since(earlier.positive),
            negative: self.negative.since(earlier.negative),
            ..*self
        }
    }
}

/// `combine` of both, if both are known.
fn pair(a: Option<i128>, b: Option<i128>, combine: fn(i128, i128) -> i128) -> Option<i128> {
    a.zip(b).map(|(a, b)| combine(a, b))
}

#[cfg(test)]
mod tests;
