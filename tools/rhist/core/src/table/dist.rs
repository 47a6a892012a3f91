// SPDX-License-Identifier: MIT OR Apache-2.0

//! Distributions: counts of values in exponential buckets.

use super::bucket;
use super::bucket::Bucket;
use super::counts::Counts;

/// A distribution. Bucket `i` of scale `s` has the values `v` with `2^(i/2^s) < v <= 2^((i+1)/2^s)`, as in OpenTelemetry's
/// exponential histograms.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dist {
    /// Buckets between a number and its double are 2 to the power of this. 0 to 20.
    pub scale: u8,
    /// The unit of `v` above; all other numbers here are in the unit of the column.
    pub bucket_unit: BucketUnit,
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
    /// Counts by index.
    pub positive: Counts,
    /// Counts of negative values, by the index of their absolute values.
    pub negative: Counts,
}

/// In what buckets measure values that are nanoseconds: `unit(…)` of a trigger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BucketUnit {
    /// In the value's own unit. What nearly all have.
    #[default]
    One,
    /// In microseconds.
    Us,
    /// In milliseconds.
    Ms,
    /// In seconds.
    S,
}

impl BucketUnit {
    /// How many of the value's own units it is.
    pub fn values(self) -> u64 {
        match self {
            Self::One => 1,
            Self::Us => 1_000,
            Self::Ms => 1_000_000,
            Self::S => 1_000_000_000,
        }
    }

    /// As `unit(…)` of a trigger has it. Empty for the value's own unit.
    pub fn word(self) -> &'static str {
        match self {
            Self::One => "",
            Self::Us => "us",
            Self::Ms => "ms",
            Self::S => "s",
        }
    }
}

/// Values from here on are negative ones that have wrapped around, since the kernel counts without
/// signs.
const HALF: i128 = 1 << 63;

impl Dist {
    /// The largest scale.
    pub const SCALE_MAX: u8 = 20;

    /// A distribution without values.
    pub fn new(scale: u8) -> Self {
        Dist {
            scale,
            sum: Some(0),
            ..Dist::default()
        }
    }

    /// Adds `count` times `value`, which is taken for the nearest number that an `i64` or a `u64` holds.
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

    /// The average. `None` if there are no values, or their sum is not known.
    pub fn mean(&self) -> Option<f64> {
        let sum = self.sum.filter(|_| self.count > 0)?;
        Some(sum as f64 / self.count as f64)
    }

    /// Buckets that have values, in the order of these.
    pub fn buckets(&self) -> impl DoubleEndedIterator<Item = Bucket> {
        let negative = self.negative.iter().rev();
        let negative = negative.map(|(index, count)| self.bucket(index, count).negated());
        let positive = self.positive.iter();
        let positive = positive.map(|(index, count)| self.bucket(index, count));
        negative.chain(self.zero_bucket()).chain(positive)
    }

    /// Values that are zero.
    pub(super) fn zero_bucket(&self) -> Option<Bucket> {
        (self.zero > 0).then_some(Bucket {
            low: 0,
            high: 0,
            count: self.zero,
        })
    }

    /// The smallest and the largest whole value of the bucket of positive values with this index. Where no whole number is in
    /// it, those around it.
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

    /// How many values are in buckets. Fewer than [`Dist::count`] where the kernel had no room for a bucket.
    pub fn in_buckets(&self) -> u64 {
        let buckets = self.negative.iter().chain(self.positive.iter());
        buckets.fold(self.zero, |sum, (_, count)| sum.saturating_add(count))
    }

    /// How many values are in no bucket, so that quantiles do not know of them.
    pub fn without_bucket(&self) -> u64 {
        self.count.saturating_sub(self.in_buckets())
    }

    /// Makes buckets wider, down to `scale`, exactly. A scale that is not lower changes nothing.
    pub fn coarsen(&mut self, scale: u8) {
        let Some(shift) = self.scale.checked_sub(scale).filter(|&shift| shift > 0) else {
            return;
        };
        for buckets in [&mut self.positive, &mut self.negative] {
            *buckets = buckets.wider(shift);
        }
        self.scale = scale;
    }

    /// Adds the values of `other`. The result has the lower one of both scales, where both have values. What `other` has in
    /// buckets of another [`BucketUnit`] is in no bucket afterwards.
    pub fn merge(&mut self, other: &Dist) {
        let sum = match (self.sum, other.sum) {
            (None, sum) if self.count == 0 => sum,
            (sum, None) if other.count == 0 => sum,
            (a, b) => pair(a, b, i128::saturating_add),
        };
        // What was read while a hit was on its way can have the hit's part of the sum alone.
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

    /// Makes negative values zero, and numbers from 2^63, which it takes for differences below zero
    /// that have wrapped around where the kernel has counted without signs. The largest value is
    /// not known then.
    ///
    /// They count as zeros in the sum, too. What they are in the kernel's sum is not known exactly,
    /// so each is taken for the lowest value of its bucket: like that, a sum never falls from one
    /// reading to the next. It is never outside of what the buckets of the others allow.
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
            // Their bucket says next to nothing of how far they are below zero, but none is as near
            // to it as the largest number.
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

    /// Whether a bucket of positive values has numbers from 2^63.
    fn is_wrapped(&self, index: i32) -> bool {
        // Bounds take long, and nearly always none has. In the largest unit, values of bucket 0 are
        // below 2^31.
        index >> self.scale.min(31) > 31 && i128::from(self.bounds(index).0) > HALF
    }

    /// The least and the most that the values of positive buckets can add up to.
    fn limits(&self, counts: &Counts) -> (i128, i128) {
        counts.iter().fold((0, 0), |(least, most), (index, count)| {
            let (low, high) = self.bounds(index);
            let add = |sum: i128, bound: u64| sum.saturating_add(i128::from(bound).saturating_mul(count.into()));
            (add(least, low), add(most, high))
        })
    }

    /// What was added since `earlier`, which is an older state of this. The smallest and the largest value are `None` unless
    /// they must have been among it. What has become less counts as nothing.
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
