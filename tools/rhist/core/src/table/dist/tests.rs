// SPDX-License-Identifier: MIT OR Apache-2.0

use proptest::prelude::*;

use super::*;

#[test]
fn a_sum_with_what_has_wrapped_is_that_of_the_others() {
    let mut dist = Dist::new(0);
    dist.record(3000, 10);
    dist.record((1 << 64) - 1000, 1);
    assert_eq!(dist.sum, Some(30_000 + (1 << 64) - 1000));
    dist.without_negative();
    assert_eq!((dist.sum, dist.zero, dist.count), (Some(30_000), 1, 11));
    assert!(dist.mean().is_some_and(|mean| mean > 2700.0));
}

#[test]
fn bounds_are_exact() {
    // Largest integers of buckets at scale 3, computed with 60 digits.
    let dist = Dist::new(3);
    let bounds: Vec<_> = [-1, 7, 8, 15, 99, 503, 511].map(|index| dist.bounds(index)).into();
    assert_eq!(
        bounds,
        [
            (1, 1),
            (2, 2),
            (2, 3),
            (4, 4),
            (5312, 5792),
            (8457869449776733336, 9223372036854775808),
            (16915738899553466671, u64::MAX),
        ]
    );
}

#[test]
fn log2_of_c() {
    let mut dist = Dist::new(0);
    dist.one_has_zero = true;
    assert_eq!(
        [-1, 0, 1, 6, 63].map(|index| dist.bounds(index)),
        [(0, 1), (2, 2), (3, 4), (65, 128), ((1 << 63) + 1, u64::MAX)]
    );
}

#[test]
fn since_knows_new_extremes_only() {
    let mut earlier = Dist::new(3);
    earlier.record(10, 2);
    let mut now = earlier.clone();
    now.record(7, 1);
    now.record(9, 1);
    let delta = now.since(earlier.clone());
    assert_eq!(
        (delta.count, delta.sum, delta.min, delta.max),
        (2, Some(16), Some(7), None)
    );
    assert_eq!(delta.in_buckets(), 2);
}

#[test]
fn a_sum_without_its_value() {
    // A reading during a hit.
    let begun = Dist {
        sum: Some(17),
        ..Dist::new(3)
    };
    let mut done = Dist::new(3);
    done.record(17, 1);
    let delta = done.since(begun.clone());
    assert_eq!((delta.count, delta.sum), (1, Some(0)));
    let mut total = begun.clone();
    total.merge(&delta);
    assert_eq!(total, done);
    let mut total = delta;
    total.merge(&begun);
    assert_eq!(total, done);
    let mut nothing = Dist::default();
    nothing.merge(&begun);
    assert_eq!(nothing.sum, Some(17));
}

#[test]
fn since_of_less_is_nothing() {
    let mut less = Dist::new(3);
    less.record(5, 1);
    let mut more = less.clone();
    more.record(5, 8);
    more.record(-5, 8);
    let delta = less.since(more.clone());
    assert_eq!((delta.count, delta.in_buckets()), (0, 0));
}

#[test]
fn other_bucket_units_are_outside_of_buckets() {
    let mut dist = Dist::new(3);
    dist.record(5, 1);
    let mut seconds = Dist::new(3);
    seconds.bucket_unit = BucketUnit::S;
    seconds.record(5, 3);
    dist.merge(&seconds);
    assert_eq!((dist.count, dist.in_buckets()), (4, 1));
}

fn any_value() -> impl Strategy<Value = i128> {
    prop_oneof![
        -3..20i128,
        any::<u64>().prop_map(i128::from),
        any::<i64>().prop_map(i128::from),
        (0..64u32, -2..3i128).prop_map(|(power, more)| (1i128 << power) + more),
    ]
}

/// A distribution with its values.
fn any_dist() -> impl Strategy<Value = Dist> {
    (0..=20u8, prop::collection::vec((any_value(), 1..1000u64), 0..20)).prop_map(|(scale, values)| {
        let mut dist = Dist::new(scale);
        for (value, count) in values {
            dist.record(value, count);
        }
        dist
    })
}

fn merged(a: &Dist, b: &Dist) -> Dist {
    let mut sum = a.clone();
    sum.merge(b);
    sum
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_value_is_in_the_bucket_of_its_index(value in 1..=u64::MAX, scale in 0..=20u8, unit in 0..4usize) {
        let unit = [BucketUnit::One, BucketUnit::Us, BucketUnit::Ms, BucketUnit::S][unit];
        let (low, high) = bucket::bounds(bucket::index(value, scale, unit), scale, unit);
        prop_assert!(low <= value && value <= high);
    }

    #[test]
    fn neighbours_touch(index in -100..70_000_000i32, scale in 0..=20u8) {
        let (_, below) = bucket::bounds(index - 1, scale, BucketUnit::One);
        let (low, high) = bucket::bounds(index, scale, BucketUnit::One);
        prop_assert!(low <= high);
        prop_assert!(low <= below.saturating_add(1) && low >= below.saturating_sub(1));
    }

    #[test]
    fn coarse_buckets_are_those_of_the_coarse_scale(
        values in prop::collection::vec(any_value(), 1..30), fine in 0..=20u8, coarse in 0..=20u8
    ) {
        let of = |scale| {
            let mut dist = Dist::new(scale);
            values.iter().for_each(|&value| dist.record(value, 1));
            dist
        };
        let mut dist = of(fine);
        dist.coarsen(coarse);
        prop_assert_eq!(dist, of(fine.min(coarse)));
    }

    #[test]
    fn merge_is_commutative(a in any_dist(), b in any_dist()) {
        prop_assert_eq!(merged(&a, &b).buckets().collect::<Vec<_>>(), merged(&b, &a).buckets().collect::<Vec<_>>());
        if a.count > 0 && b.count > 0 {
            prop_assert_eq!(merged(&a, &b), merged(&b, &a));
        }
    }

    #[test]
    fn merge_is_associative(a in any_dist(), b in any_dist(), c in any_dist()) {
        prop_assert_eq!(merged(&merged(&a, &b), &c), merged(&a, &merged(&b, &c)));
    }

    #[test]
    fn since_takes_a_merge_back(a in any_dist(), b in any_dist()) {
        let mut b = b;
        b.coarsen(a.scale);
        let delta = merged(&a, &b).since(a.clone());
        prop_assert_eq!((delta.count, delta.sum), (b.count, b.sum));
        if b.count > 0 {
            prop_assert_eq!(delta.buckets().collect::<Vec<_>>(), {
                let mut coarse = b.clone();
                if a.count > 0 { coarse.coarsen(a.scale); }
                coarse.buckets().collect::<Vec<_>>()
            });
            prop_assert!(delta.min.is_none_or(|min| Some(min) == b.min));
            prop_assert!(delta.max.is_none_or(|max| Some(max) == b.max));
        }
    }
}

#[test]
fn what_has_wrapped_around_is_zero() {
    let after = |numbers: &[i128], scale| {
        let mut dist = Dist::new(scale);
        for number in numbers {
            dist.record(*number, 1);
        }
        // The kernel sums modulo 2^64.
        dist.sum = dist.sum.map(|sum| sum.rem_euclid(1 << 64));
        dist.without_negative();
        dist
    };
    for scale in [0, 3, 6] {
        let dist = after(&[5, 7, u64::MAX.into(), (1 << 64) - 20_000], scale);
        assert_eq!((dist.zero, dist.count, dist.in_buckets()), (2, 4, 4));
        // The minimum for the sum of the values in the buckets of 5 and 7.
        let least = if scale == 0 { 10 } else { 12 };
        assert_eq!((dist.sum, dist.min, dist.max), (Some(least), Some(0), None));
        assert_eq!(after(&[30, u64::MAX.into()], scale).sum, Some(30));
        let largest = after(&[1, i64::MAX.into()], scale);
        assert_eq!((largest.zero, largest.max), (0, Some(i64::MAX.into())));
    }
    // With signed numbers, the maximum is known.
    let mut signed = Dist::new(3);
    for number in [5, 7, -1, -20_000] {
        signed.record(number, 1);
    }
    signed.without_negative();
    assert_eq!((signed.zero, signed.count, signed.in_buckets()), (2, 4, 4));
    assert_eq!((signed.sum, signed.min, signed.max), (Some(12), Some(0), Some(7)));
    let mut dist = Dist::new(0);
    dist.record(u64::MAX.into(), 3);
    dist.one_has_zero = true;
    dist.without_negative();
    assert_eq!((dist.zero, dist.positive.iter().next()), (0, Some((-1, 3))));
}

#[test]
fn a_mean_without_negative_values_is_that_of_the_others() {
    for below_zero in [-1, -250, -100_000] {
        let mut dist = Dist::new(3);
        dist.record(1000, 99);
        dist.record(below_zero, 1);
        dist.without_negative();
        let mean = dist.mean().unwrap();
        assert!((990.0..1001.0).contains(&mean), "{below_zero}: {mean}");
    }
}

proptest! {
    /// A falling sum would look like a trigger that was cleared.
    #[test]
    fn a_sum_without_negative_values_never_falls(
        values in prop::collection::vec((-100_000_i128..1_000_000, 1_u64..9), 1..40),
        scale in 0_u8..7,
    ) {
        let mut dist = Dist::new(scale);
        let (mut last, mut of_others) = (0, 0);
        for (value, count) in values {
            dist.record(value, count);
            of_others += value.max(0) * i128::from(count);
            let mut shown = dist.clone();
            shown.without_negative();
            let sum = shown.sum.unwrap();
            let (least, most) = shown.limits(&shown.positive);
            prop_assert!(sum >= last && sum >= of_others);
            prop_assert!(dist.negative.is_empty() || (least..=most).contains(&sum));
            last = sum;
        }
    }
}
