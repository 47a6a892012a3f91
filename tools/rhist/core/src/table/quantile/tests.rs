// SPDX-License-Identifier: MIT OR Apache-2.0

use proptest::prelude::*;

use super::*;

/// Error that the manual of `hist` promises, by scale, in per cent.
const PROMISED: [f64; 6] = [41.43, 18.93, 9.06, 4.43, 2.19, 1.09];

fn dist(scale: u8, values: &[i128]) -> Dist {
    let mut dist = Dist::new(scale);
    values.iter().for_each(|&value| dist.record(value, 1));
    dist
}

/// The value at rank `q * count`, rounded up.
fn truth(values: &[i128], thousandths: u32) -> i128 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let rank = (sorted.len() * thousandths as usize).div_ceil(1000).max(1);
    sorted[rank - 1]
}

#[test]
fn ranks_are_those_of_decimals() {
    assert_eq!(rank(0.07, 100), 7);
    assert_eq!(rank(0.999, 1000), 999);
    assert_eq!(rank(0.999, 1001), 1000);
    assert_eq!(
        (rank(0.0, 9), rank(1.0, 9), rank(2.0, 9), rank(f64::NAN, 9)),
        (1, 9, 9, 1)
    );
    assert_eq!(rank(0.5, u64::MAX), 1 << 63);
}

#[test]
fn nothing_has_no_quantile() {
    assert_eq!(Dist::new(3).quantile(0.5), None);
}

#[test]
fn one_bucket_of_many() {
    let mut dist = Dist::new(3);
    dist.positive.add(99, 5);
    dist.count = 5;
    let quantile = dist.quantile(0.5).unwrap();
    assert_eq!((quantile.low, quantile.high), (5312.0, 5792.0));
    assert_eq!(quantile.value, 5546.8);
    assert!(quantile.error() < 0.0443);
}

#[test]
fn values_without_bucket_widen() {
    let mut dist = dist(3, &[1, 2, 3, 1000, 2000]);
    dist.count += 1;
    let quantile = dist.quantile(0.5).unwrap();
    // Rank 3 of 6 is rank 2 of 5 if the other value is below, and 3 if it is above.
    assert_eq!((quantile.low, quantile.value, quantile.high), (2.0, 3.0, 3.0));
    let worst = dist.quantile(1.0).unwrap();
    assert_eq!(worst.high, 2000.0);
    dist.max = None;
    assert_eq!(dist.quantile(1.0), None);
}

#[test]
fn a_minimum_of_another_time_does_no_harm() {
    let mut dist = dist(3, &[10, 20]);
    (dist.min, dist.max, dist.count) = (Some(1 << 40), Some(-7), 9);
    let quantile = dist.quantile(0.01).unwrap();
    assert!(quantile.low <= quantile.value && quantile.value <= quantile.high);
}

fn any_values() -> impl Strategy<Value = Vec<i128>> {
    let value = prop_oneof![
        -3..20i128,
        0..100_000i128,
        any::<u64>().prop_map(i128::from),
        any::<i64>().prop_map(i128::from),
        (0..64u32, -2..3i128).prop_map(|(power, more)| (1i128 << power) + more),
    ];
    prop::collection::vec(value, 1..200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn within_the_promised_error(values in any_values(), scale in 0..=5u8, thousandths in 0..=1000u32, extremes: bool) {
        let mut dist = dist(scale, &values);
        if !extremes {
            (dist.min, dist.max) = (None, None);
        }
        let quantile = dist.quantile(f64::from(thousandths) / 1000.0).unwrap();
        let truth = truth(&values, thousandths) as f64;
        prop_assert!(quantile.low <= truth && truth <= quantile.high, "{:?} {}", quantile, truth);
        let promised = PROMISED[usize::from(scale)] / 100.0;
        prop_assert!((quantile.value - truth).abs() <= promised * truth.abs(), "{:?} {}", quantile, truth);
        prop_assert!(quantile.error() <= promised);
    }

    #[test]
    fn true_value_is_in_bounds_also_without_buckets(
        values in any_values(), lost in any_values(), thousandths in 0..=1000u32
    ) {
        let all = [values.clone(), lost.clone()].concat();
        let mut dist = dist(3, &values);
        let whole = self::dist(3, &all);
        (dist.count, dist.min, dist.max) = (whole.count, whole.min, whole.max);
        let quantile = dist.quantile(f64::from(thousandths) / 1000.0).unwrap();
        let truth = truth(&all, thousandths) as f64;
        prop_assert!(quantile.low <= truth && truth <= quantile.high, "{:?} {}", quantile, truth);
    }
}
