// SPDX-License-Identifier: MIT OR Apache-2.0

use proptest::collection::vec;
use proptest::prelude::*;

use super::autocorrelation;
use super::difference;
use super::distribution;
use super::erfc;
use super::holm;
use super::mann_whitney;
use super::median;
use super::outside;
use super::ratio;

fn is_near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs()
}

fn series(count: u32, step: u32, modulus: u32, offset: f64) -> Vec<f64> {
    (0..count).map(|i| f64::from(i * step % modulus) + offset).collect()
}

/// Results of `scipy.stats.mannwhitneyu`: exact for few numbers without ties, otherwise asymptotic.
#[test]
fn mann_whitney_is_that_of_scipy() {
    let samples = [
        (
            vec![1.2, 3.4, 2.2, 5.1, 4.4],
            vec![6.1, 7.3, 5.5, 9.2, 8.8],
            25.0,
            0.007936507936507936,
            1.0,
        ),
        (
            vec![0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46],
            vec![1.15, 0.88, 0.90, 0.74, 1.21],
            15.0,
            0.2544122544122544,
            -0.4,
        ),
        (
            vec![1.0, 2.0, 2.0, 3.0, 3.0, 3.0, 4.0],
            vec![2.0, 3.0, 4.0, 4.0, 5.0, 5.0, 6.0, 6.0],
            47.5,
            0.025144761173357368,
            0.6964285714285714,
        ),
        (
            series(40, 37, 101, 0.0),
            series(60, 53, 97, 9.5),
            1320.0,
            0.4004605105074397,
            0.1,
        ),
        (vec![1.0; 5], vec![1.0; 5], 12.5, 1.0, 0.0),
        (
            series(100, 1, 100, 0.0),
            series(100, 1, 100, 200.5),
            10000.0,
            2.562143669163401e-34,
            1.0,
        ),
    ];
    for (a, b, u, p, delta) in samples {
        let test = mann_whitney(&a, &b).unwrap();
        assert_eq!(test.u, u);
        assert!(is_near(test.p, p), "{test:?}, not {p}");
        assert!((test.delta - delta).abs() < 1e-12, "{test:?}, not {delta}");
    }
    assert_eq!(mann_whitney(&[], &[1.0]), None);
    assert_eq!(mann_whitney(&[f64::NAN], &[1.0]), None);
}

#[test]
fn erfc_is_that_of_scipy() {
    for (x, value) in [
        (0.0, 1.0),
        (0.1, 0.8875370839817152),
        (1.0, 0.15729920705028516),
        (2.4, 0.0006885138966450789),
        (2.6, 0.000236034416529349),
        (5.0, 1.5374597944280347e-12),
        (10.0, 2.0884875837625446e-45),
    ] {
        assert!(is_near(erfc(x), value), "erfc({x}) = {}, not {value}", erfc(x));
    }
}

#[test]
fn ratios_are_those_of_pairs() {
    let (a, b) = ([1.2, 3.4, 2.2, 5.1, 4.4], [6.1, 7.3, 5.5, 9.2, 8.8]);
    let found = ratio(&a, &b).unwrap();
    let mut ratios: Vec<_> = a.iter().flat_map(|a| b.iter().map(move |b| b / a)).collect();
    ratios.sort_by(f64::total_cmp);
    // Of 252 ways to rank 5 and 5 numbers, 4 have U up to 2, and 7 have it up to 3: 2.5 % is in
    // between.
    assert!(is_near(found.value, ratios[12]));
    assert!(is_near(found.low, ratios[2]));
    assert!(is_near(found.high, ratios[22]));
    assert_eq!(ratio(&[0.0, 1.0, 2.0, 3.0, 4.0], &b), None);
    assert_eq!(ratio(&a[..3], &b[..3]), None);
}

/// Counts in how many of a thousand experiments the interval contains the true ratio: the median of
/// the first sample is 1, of the second 1.5.
#[test]
fn ratios_are_in_their_intervals() {
    // Generator of pseudorandom numbers (xorshift64*).
    let mut state = 88_172_645_463_325_252_u64;
    let mut uniform = || {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1_u64 << 53) as f64
    };
    for (m, n) in [(6, 9), (30, 40)] {
        let mut hits = 0;
        for _ in 0..1_000 {
            let mut sample =
                |count, scale: f64| (0..count).map(|_| scale * (uniform() - 0.5).exp()).collect::<Vec<_>>();
            let found = ratio(&sample(m, 1.0), &sample(n, 1.5)).unwrap();
            hits += u32::from((found.low..=found.high).contains(&1.5));
        }
        assert!((930..=990).contains(&hits), "{hits}");
    }
}

#[test]
fn distributions_of_u_are_exact() {
    assert_eq!(distribution(2, 2).map_counts(6.0), [1.0, 1.0, 2.0, 1.0, 1.0]);
    assert_eq!(distribution(3, 2).map_counts(10.0), [1.0, 1.0, 2.0, 2.0, 2.0, 1.0, 1.0]);
    // For 25 and 25 numbers: symmetric, and positive everywhere.
    let large = distribution(25, 25);
    assert!(large.iter().zip(large.iter().rev()).all(|(a, b)| a == b && *a > 0.0));
    // Table of Mann and Whitney for 5 %: the largest significant U is one less.
    assert_eq!(
        [outside(5, 5), outside(8, 8), outside(10, 20), outside(3, 3)],
        [Some(3), Some(14), Some(56), None]
    );
}

trait Counts {
    fn map_counts(&self, total: f64) -> Vec<f64>;
}

impl Counts for Vec<f64> {
    fn map_counts(&self, total: f64) -> Vec<f64> {
        self.iter().map(|probability| (probability * total).round()).collect()
    }
}

#[test]
fn holm_multiplies_the_smallest_by_most() {
    let mut probabilities = [0.01, 0.04, 0.03, 0.005];
    holm(&mut probabilities);
    assert!(
        probabilities
            .iter()
            .zip([0.03, 0.06, 0.06, 0.02])
            .all(|(a, b)| is_near(*a, b)),
        "{probabilities:?}"
    );
    holm(&mut []);
}

#[test]
fn series_are_like_themselves() {
    assert_eq!(autocorrelation(&[1.0, 1.0, 1.0]), None);
    assert_eq!(autocorrelation(&[1.0, 2.0]), None);
    assert!(is_near(autocorrelation(&[1.0, 2.0, 3.0, 4.0]).unwrap(), 0.25));
    assert!(autocorrelation(&series(100, 1, 100, 0.0)).unwrap() > 0.9);
    assert!(autocorrelation(&series(100, 1, 2, 0.0)).unwrap() < -0.9);
}

proptest! {
    #[test]
    fn both_directions_say_the_same(a in vec(0..50i32, 1..40), b in vec(0..50i32, 1..40)) {
        let [a, b] = [a, b].map(|sample| sample.into_iter().map(f64::from).collect::<Vec<_>>());
        let (there, back) = (mann_whitney(&a, &b).unwrap(), mann_whitney(&b, &a).unwrap());
        prop_assert!(is_near(there.p, back.p) && (0.0..=1.0).contains(&there.p));
        prop_assert_eq!(there.delta, -back.delta);
        prop_assert_eq!(there.u + back.u, (a.len() * b.len()) as f64);
    }

    #[test]
    fn differences_have_their_ranks(mut a in vec(-50..50i32, 1..20), mut b in vec(-50..50i32, 1..20), rank in any::<prop::sample::Index>()) {
        a.sort_unstable();
        b.sort_unstable();
        let [a, b] = [a, b].map(|sample| sample.into_iter().map(f64::from).collect::<Vec<_>>());
        let mut all: Vec<_> = a.iter().flat_map(|a| b.iter().map(move |b| b - a)).collect();
        all.sort_by(f64::total_cmp);
        let rank = rank.index(all.len());
        prop_assert!((difference(&a, &b, rank as u64 + 1) - all[rank]).abs() < 1e-9);
    }

    #[test]
    fn medians_are_in_the_middle(sample in vec(-1e9..1e9f64, 1..50)) {
        let middle = median(&sample).unwrap();
        let below = sample.iter().filter(|&&number| number < middle).count();
        let above = sample.iter().filter(|&&number| number > middle).count();
        prop_assert!(below.abs_diff(above) <= 1);
    }
}
