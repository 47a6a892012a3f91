// SPDX-License-Identifier: MIT OR Apache-2.0

//! Statistics that compare two samples without assuming a distribution.
//!
//! A sample is one number per interval, such as a quantile. Single events are unsuitable as a
//! sample: they come in bursts and depend on each other, so a test on them would find anything
//! significant.

use std::cmp::Ordering;

/// Maximum size of both samples for an exact probability, provided that all numbers differ.
/// Otherwise it is approximated.
const MAX_EXACT: usize = 25;

/// Two-sided probability that a confidence interval of 95 % misses the true ratio.
const MISS: f64 = 0.05;

/// Quantile of the normal distribution for this probability.
const MISS_Z: f64 = 1.959963984540054;

/// Mann-Whitney test, which decides whether two samples differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MannWhitney {
    /// Number of pairs (one number from each sample) in which the second sample's number is larger;
    /// equal ones count one half.
    pub u: f64,
    /// Probability of a difference at least this large, in either direction, if both samples had
    /// the same distribution.
    pub p: f64,
    /// Cliff's delta: the share of pairs in which the second sample's number is larger, minus the
    /// share in which it is smaller. From -1 to 1.
    pub delta: f64,
}

/// Factor from the numbers of one sample to the numbers of another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// Hodges-Lehmann estimate: the median of the ratios of all pairs.
    pub value: f64,
    /// Lower end of the 95 % confidence interval.
    pub low: f64,
    /// Upper end of the 95 % confidence interval.
    pub high: f64,
}

/// Compares two samples. `None` if one is empty, or contains a NaN or an infinity.
///
/// Exact if each has at most 25 numbers, and all are different. Otherwise the normal approximation,
/// with corrections for ties and continuity.
pub fn mann_whitney(a: &[f64], b: &[f64]) -> Option<MannWhitney> {
    let (a, b) = (sorted(a)?, sorted(b)?);
    let (m, n) = (a.len() as f64, b.len() as f64);
    let less = pairs(&a, &b, |a, b| a < b) as f64;
    let more = pairs(&b, &a, |b, a| b < a) as f64;
    let pairs = m * n;
    let u = less + (pairs - less - more) / 2.0;
    let mut all = [a.as_slice(), b.as_slice()].concat();
    all.sort_by(f64::total_cmp);
    let ties: Vec<f64> = all.chunk_by(|a, b| a == b).map(|equal| equal.len() as f64).collect();
    let is_exact = a.len() <= MAX_EXACT && b.len() <= MAX_EXACT && ties.len() == all.len();
    let p = if is_exact {
        let smaller = u.min(pairs - u) as usize;
        2.0 * distribution(a.len(), b.len()).iter().take(smaller + 1).sum::<f64>()
    } else {
        let total = m + n;
        let tied: f64 = ties.iter().map(|t| t * t * t - t).sum();
        let variance = pairs / 12.0 * (total + 1.0 - tied / (total * (total - 1.0)));
        // All numbers are equal.
        if variance <= 0.0 {
            1.0
        } else {
            let z = ((u - pairs / 2.0).abs() - 0.5).max(0.0) / variance.sqrt();
            erfc(z / std::f64::consts::SQRT_2)
        }
    };
    Some(MannWhitney {
        u,
        p: p.min(1.0),
        delta: (less - more) / pairs,
    })
}

/// Estimates the factor from the numbers of `a` to the numbers of `b`. `None` if a number is not
/// positive, or if the samples are too small for a confidence interval.
pub fn ratio(a: &[f64], b: &[f64]) -> Option<Ratio> {
    let logarithms = |sample: &[f64]| sorted(&sample.iter().map(|number| number.ln()).collect::<Vec<_>>());
    let (a, b) = (logarithms(a)?, logarithms(b)?);
    let pairs = a.len() as u64 * b.len() as u64;
    let outside = outside(a.len(), b.len());
    let at = |rank: u64| difference(&a, &b, rank).exp();
    Some(Ratio {
        value: (at(pairs.div_ceil(2)) * at(pairs / 2 + 1)).sqrt(),
        low: at(outside.filter(|&rank| rank > 0)?),
        high: at(pairs + 1 - outside?),
    })
}

/// Corrects the probabilities of several tests with the method of Holm: the probability of any
/// false positive among them stays below the level.
pub fn holm(probabilities: &mut [f64]) {
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    order.sort_by(|&i, &j| probabilities[i].total_cmp(&probabilities[j]));
    let mut largest: f64 = 0.0;
    for (rank, &i) in order.iter().enumerate() {
        let corrected = probabilities[i] * (order.len() - rank) as f64;
        largest = largest.max(corrected.min(1.0));
        probabilities[i] = largest;
    }
}

/// Correlation of each number with the one before it: 0 for none, 1 for full. `None` for fewer than
/// three numbers, or if all are equal.
pub fn autocorrelation(series: &[f64]) -> Option<f64> {
    if series.len() < 3 {
        return None;
    }
    let mean = series.iter().sum::<f64>() / series.len() as f64;
    let of = |pairs: &mut dyn Iterator<Item = (&f64, &f64)>| pairs.map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>();
    let variance = of(&mut series.iter().zip(series));
    let correlation = of(&mut series.iter().zip(&series[1..])) / variance;
    correlation.is_finite().then_some(correlation)
}

/// Median of a sample. `None` if the sample is empty.
pub fn median(sample: &[f64]) -> Option<f64> {
    let sample = sorted(sample)?;
    let middle = sample.len() / 2;
    Some(match sample.len() % 2 {
        0 => (sample[middle - 1] + sample[middle]) / 2.0,
        _ => sample[middle],
    })
}

fn sorted(sample: &[f64]) -> Option<Vec<f64>> {
    if sample.is_empty() || sample.iter().any(|number| !number.is_finite()) {
        return None;
    }
    let mut sample = sample.to_vec();
    sample.sort_by(f64::total_cmp);
    Some(sample)
}

/// Number of pairs in which `a`'s number is `below` `b`'s. Both must be sorted.
fn pairs(a: &[f64], b: &[f64], below: impl Fn(f64, f64) -> bool) -> u64 {
    let mut place = 0;
    let mut count = 0;
    for &number in b {
        while a.get(place).is_some_and(|&other| below(other, number)) {
            place += 1;
        }
        count += place as u64;
    }
    count
}

/// The difference of this rank, from 1, among the differences `b - a` of all pairs. Both must be
/// sorted.
fn difference(a: &[f64], b: &[f64], rank: u64) -> f64 {
    let (Some(first_a), Some(last_a), Some(first_b), Some(last_b)) = (a.first(), a.last(), b.first(), b.last()) else {
        return f64::NAN;
    };
    let (mut low, mut high) = (first_b - last_a, last_b - first_a);
    // Bisects, since a list of all pairs would be too long. Ends when no number lies between the
    // two limits.
    loop {
        let middle = low + (high - low) / 2.0;
        // Counted for each number of b, which needs no sorted pairs.
        let not_above = pairs(b, a, |b, a| b - a <= middle);
        match (not_above >= rank, middle > low && middle < high) {
            (true, true) => high = middle,
            (false, true) => low = middle,
            (true, false) => return middle,
            (false, false) => return high,
        }
    }
}

/// Rank of the first difference inside the 95 % confidence interval, counted from either end.
/// `None` if the samples are too small.
fn outside(m: usize, n: usize) -> Option<u64> {
    let rank = if m <= MAX_EXACT && n <= MAX_EXACT {
        let mut below = 0.0;
        let is_outside = |probability: &f64| {
            below += probability;
            below <= MISS / 2.0
        };
        distribution(m, n).into_iter().take_while(is_outside).count() as f64
    } else {
        let (m, n) = (m as f64, n as f64);
        (m * n / 2.0 - MISS_Z * (m * n * (m + n + 1.0) / 12.0).sqrt()).floor()
    };
    (rank >= 1.0).then_some(rank as u64)
}

/// Probability of each U from 0 to `m * n`, if both samples have the same distribution.
fn distribution(m: usize, n: usize) -> Vec<f64> {
    // Coefficients of the Gaussian binomial: the product of (1 - q^(n+i)) / (1 - q^i). Below 2^53
    // for 25 and 25, so they are exact.
    let mut counts = vec![0.0; m * n + 1];
    counts[0] = 1.0;
    for i in 1..=m {
        for u in (n + i..counts.len()).rev() {
            counts[u] -= counts[u - n - i];
        }
        for u in i..counts.len() {
            counts[u] += counts[u - i];
        }
    }
    let total: f64 = counts.iter().sum();
    counts.iter().map(|count| count / total).collect()
}

/// Complementary error function for numbers from 0.
fn erfc(x: f64) -> f64 {
    let scale = (-x * x).exp() / std::f64::consts::PI.sqrt();
    match x.partial_cmp(&2.5) {
        Some(Ordering::Less) => {
            // Taylor series of the error function.
            let (mut term, mut sum) = (x, x);
            for i in 1..60 {
                term *= 2.0 * x * x / (2 * i + 1) as f64;
                sum += term;
            }
            1.0 - 2.0 * scale * sum
        }
        // Continued fraction.
        _ => scale / (1..60).rev().fold(x, |tail, i| x + i as f64 / 2.0 / tail),
    }
}

#[cfg(test)]
mod tests;
