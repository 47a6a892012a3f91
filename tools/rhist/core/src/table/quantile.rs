// SPDX-License-Identifier: MIT OR Apache-2.0

//! Quantiles of distributions, and how far they may be off.

use super::bucket::Bucket;
use super::dist::Dist;

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

impl Quantile {
    /// How far the true value may be off, as a part of it: 0.01 is one per cent. Infinite if it may be zero and the estimate is
    /// not.
    pub fn error(&self) -> f64 {
        let off = |bound: f64| match (self.value - bound).abs() {
            0.0 => 0.0,
            off => off / bound.abs(),
        };
        off(self.low).max(off(self.high))
    }
}

impl Dist {
    /// Estimates the value that the part `q` of all values, from 0 to 1, does not exceed: the value at rank `q * count`,
    /// rounded up. The estimate is the one that `hist` of the kernel module shows: the middle of the bucket at this rank of
    /// those that are in buckets.
    ///
    /// If there are values without a bucket, they may be on either side, and `low` and `high` leave room for that. `None` if no
    /// value is in a bucket, or values without one may go beyond a smallest or largest value that is not known.
    pub fn quantile(&self, q: f64) -> Option<Quantile> {
        let found = self.in_buckets();
        let outside = self.without_bucket();
        let rank_found = rank(q, found);
        let bucket = self.at(rank_found)?;
        let at = |rank| {
            if rank == rank_found {
                Some(bucket)
            } else {
                self.at(rank)
            }
        };
        let exact = |value: Option<i128>| value.map(|value| value as f64);
        let rank = rank(q, found.saturating_add(outside));
        let low = match rank.checked_sub(outside) {
            None | Some(0) => exact(self.min)?,
            Some(rank) => at(rank)?.low as f64,
        };
        let high = match rank {
            rank if rank > found => exact(self.max)?,
            rank => at(rank)?.high as f64,
        };
        // A minimum or maximum that contradicts the buckets is of another time than these.
        let (low, high) = (low.min(high), low.max(high));
        let low = exact(self.min)
            .filter(|&min| min <= high)
            .map_or(low, |min| low.max(min));
        let high = exact(self.max)
            .filter(|&max| max >= low)
            .map_or(high, |max| high.min(max));
        Some(Quantile {
            value: bucket.middle().clamp(low, high),
            low,
            high,
        })
    }

    /// The bucket of the value with this rank, from 1, among those that are in buckets.
    fn at(&self, rank: u64) -> Option<Bucket> {
        let mut below = 0u64;
        let mut reaches = |count: u64| {
            below = below.saturating_add(count);
            below >= rank
        };
        // Bounds of buckets take longer than all the rest, so only those of the one that is found are calculated.
        if let Some((index, count)) = self.negative.iter().rev().find(|&(_, count)| reaches(count)) {
            return Some(self.bucket(index, count).negated());
        }
        if let Some(zero) = self.zero_bucket()
            && reaches(zero.count)
        {
            return Some(zero);
        }
        let (index, count) = self.positive.iter().find(|&(_, count)| reaches(count))?;
        Some(self.bucket(index, count))
    }
}

/// The rank, from 1, of the quantile `q` of `count` values.
fn rank(q: f64, count: u64) -> u64 {
    // As 0.07 is a little more than seven hundredths.
    const WHOLE: u64 = 1_000_000_000;
    let part = (q.clamp(0.0, 1.0) * WHOLE as f64).round() as u64;
    let rank = match count.checked_mul(part) {
        Some(product) => product.div_ceil(WHOLE),
        None => {
            let rank = (u128::from(count) * u128::from(part)).div_ceil(WHOLE.into());
            u64::try_from(rank).unwrap_or(count)
        }
    };
    rank.max(1)
}

#[cfg(test)]
mod tests;
