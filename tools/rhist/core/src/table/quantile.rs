// SPDX-License-Identifier: MIT OR Apache-2.0

//! Quantiles of distributions, with their error bounds.

use super::bucket::Bucket;
use super::dist::Dist;

/// An estimated quantile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantile {
    /// Estimate of the true value.
    pub value: f64,
    /// Lower bound of the true value.
    pub low: f64,
    /// Upper bound of the true value.
    pub high: f64,
}

impl Quantile {
    /// Maximum relative error: 0.01 is one per cent. Infinite if the true value may be zero but the
    /// estimate is not.
    pub fn error(&self) -> f64 {
        let off = |bound: f64| match (self.value - bound).abs() {
            0.0 => 0.0,
            off => off / bound.abs(),
        };
        off(self.low).max(off(self.high))
    }
}

impl Dist {
    /// Estimates the value at rank `q * count`, rounded up, with `q` from 0 to 1. Uses the same
    /// estimate as `hist` of the kernel module: the middle of the bucket at this rank among the
    /// values in buckets.
    ///
    /// Values without a bucket may be on either side, and `low` and `high` allow for that. `None`
    /// if all buckets are empty, or if values without a bucket may exceed an unknown minimum or
    /// maximum.
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
        // A minimum or maximum that contradicts the buckets was read at another time.
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

    /// Bucket of the value with this rank, from 1, among the values in buckets.
    fn at(&self, rank: u64) -> Option<Bucket> {
        let mut below = 0u64;
        let mut reaches = |count: u64| {
            below = below.saturating_add(count);
            below >= rank
        };
        // Computes the bounds of only the bucket found, since they take longer than everything
        // else.
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

/// Rank, from 1, of the quantile `q` of `count` values.
fn rank(q: f64, count: u64) -> u64 {
    // Computes in billionths, since 0.07 as a double is slightly above seven hundredths.
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
