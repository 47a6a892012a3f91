// SPDX-License-Identifier: GPL-2.0

//! Exponential buckets, compared with big integers at every boundary.
#![cfg(not(loom))]

#[path = "exponential/naive.rs"]
mod naive;

use naive::{boundary, index_of};
use proptest::prelude::*;
use rhist::event::{Bucket, Exponential, Unit};

const UNITS: [Unit; 4] = [Unit::One, Unit::Us, Unit::Ms, Unit::S];

fn all() -> impl Iterator<Item = (u8, Unit)> {
    (0..=5).flat_map(|scale| UNITS.map(|unit| (scale, unit)))
}

fn check(value: u64, unit: Unit, scale: u8) {
    if value == 0 {
        return;
    }

    let buckets = Exponential::new(scale, unit, false);
    let bucket = Exponential::bucket(buckets.code(value));
    let expected = Bucket::Positive(index_of(value, unit, scale));
    assert_eq!(bucket, expected, "{value} at scale {scale} in {unit:?}");
}

/// The index never decreases: so it is right everywhere if it is right on both sides of each boundary.
#[test]
fn every_boundary() {
    for (scale, unit) in all() {
        let lowest = index_of(1, unit, scale);
        let highest = index_of(u64::MAX, unit, scale);
        for index in lowest..=highest + 1 {
            let last = boundary(unit, scale, index);
            for value in [
                last.saturating_sub(1),
                last,
                last.saturating_add(1),
                last.saturating_add(2),
            ] {
                check(value, unit, scale);
            }
        }
    }
}

#[test]
fn powers_of_two() {
    for (scale, unit) in all() {
        for exponent in 0..64 {
            let power = 1u64 << exponent;
            for value in [power - 1, power, power + 1] {
                check(value, unit, scale);
            }
        }
        check(u64::MAX, unit, scale);
    }
}

#[test]
fn known_indices() {
    let index = |value, scale| match Exponential::bucket(
        Exponential::new(scale, Unit::One, false).code(value),
    ) {
        Bucket::Positive(index) => index,
        other => panic!("{other:?}"),
    };
    // From the specification of OpenTelemetry: an upper boundary belongs to its bucket.
    assert_eq!(
        [1, 2, 3, 4, 5, 8, 9].map(|n| index(n, 0)),
        [-1, 0, 1, 1, 2, 2, 3]
    );
    assert_eq!([1, 2, 3, 4].map(|n| index(n, 3)), [-1, 7, 12, 15]);
    assert_eq!(
        [1, 2, 1 << 63, u64::MAX].map(|n| index(n, 5)),
        [-1, 31, 2015, 2047]
    );
}

/// The bounds of a bucket are the values that have its code, and no other ones have it.
#[test]
fn bounds() {
    for (scale, unit) in all() {
        let buckets = Exponential::new(scale, unit, true);
        let mut next = 0;
        for code in 0x8000..=buckets.code(i64::MAX as u64) {
            let Some((first, last)) = buckets.bounds(code) else {
                continue;
            };
            assert_eq!(first.value(), next, "{code:x} at scale {scale} in {unit:?}");
            next = last.value() + 1;
            for value in [first.value(), last.value().min(i64::MAX.into())] {
                assert_eq!(buckets.code(value as u64), code);
                let negative = buckets.code((-value) as u64);
                assert_eq!(negative, 0x8000 - (code - 0x8000));
                let (least, most) = buckets.bounds(negative).unwrap();
                assert_eq!(least.value(), -last.value());
                assert_eq!(most.value(), -first.value());
            }
        }
        assert!(next > i64::MAX.into());
    }
}

/// What the manual says: the error of what is shown for any value of a bucket, in percent.
#[test]
fn errors() {
    let stated = [41.43, 18.93, 9.06, 4.43, 2.2, 1.1];
    for (scale, unit) in all() {
        let buckets = Exponential::new(scale, unit, false);
        let mut worst = 0.0f64;
        for code in 0x8001..=buckets.code(u64::MAX) {
            let Some((first, last)) = buckets.bounds(code) else {
                continue;
            };
            let shown: f64 = buckets.middle(code).unwrap().to_string().parse().unwrap();
            for value in [first, last] {
                let value = value.value() as f64;
                worst = worst.max((shown - value).abs() / value * 100.0);
            }
        }
        assert!(
            worst <= stated[scale as usize],
            "{worst} at scale {scale} in {unit:?}"
        );
        assert!(
            worst >= stated[scale as usize] * 0.98,
            "{worst} at scale {scale} in {unit:?}"
        );
    }
}

#[test]
fn signs() {
    let [unsigned, signed] = [false, true].map(|signed| Exponential::new(3, Unit::One, signed));
    assert_eq!(signed.code(0), 0x8000);
    assert!(signed.code(-5i64 as u64) < signed.code(-1i64 as u64));
    assert!(signed.code(-1i64 as u64) < signed.code(0));
    assert!(unsigned.code(-1i64 as u64) > unsigned.code(i64::MAX as u64));
    let code = signed.code(i64::MIN as u64);
    let (first, _) = signed.bounds(code).unwrap();
    assert_eq!(first.value(), i64::MIN.into());
    assert_eq!(first.to_string(), i64::MIN.to_string());
}

proptest! {
    #[test]
    fn any_value(value: u64, shift in 0..64, scale in 0u8..=5, unit in 0usize..4) {
        check(value >> shift, UNITS[unit], scale);
    }

    #[test]
    fn codes_are_in_order(a: u64, b: u64, scale in 0u8..=5, unit in 0usize..4, signed: bool) {
        let buckets = Exponential::new(scale, UNITS[unit], signed);
        let (a, b) = match signed {
            true => ((a as i64).min(b as i64) as u64, (a as i64).max(b as i64) as u64),
            false => (a.min(b), a.max(b)),
        };
        prop_assert!(buckets.code(a) <= buckets.code(b));
    }
}
