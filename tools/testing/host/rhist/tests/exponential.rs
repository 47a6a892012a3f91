// SPDX-License-Identifier: GPL-2.0

//! Exponential buckets, compared with big integers at every boundary.
#![cfg(not(loom))]

#[path = "exponential/naive.rs"]
mod naive;

use naive::{boundary, index_of};
use num_bigint::BigUint;
use proptest::prelude::*;
use rhist::event::{exponential::BOUNDARIES, Bucket, Exponential, Tenths, Unit, Whole};

/// The code of zero.
const ZERO: u16 = 0x8000;

const UNITS: [Unit; 4] = [Unit::One, Unit::Us, Unit::Ms, Unit::S];

fn all() -> impl Iterator<Item = (u8, Unit)> {
    (0..=5).flat_map(|scale| UNITS.map(|unit| (scale, unit)))
}

/// Each entry is the largest whole number below its boundary: compared by the power 32 of both. The
/// last one is one less than its boundary.
#[test]
fn table() {
    for (k, boundary) in (1..).zip(BOUNDARIES) {
        let power = BigUint::from(1u32) << (127 * 32 + k);
        let [at, above] = [0u32, 1].map(|n| (BigUint::from(boundary) + n).pow(32));
        match k {
            32 => assert_eq!(above, power),
            _ => assert!(at < power && power < above, "boundary {k}"),
        }
    }
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

/// The index never decreases: so it is right everywhere if it is right on both sides of each
/// boundary.
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

/// The bounds of all codes follow upon each other from the smallest value to the largest, and both
/// bounds have the code.
#[test]
fn bounds() {
    for ((scale, unit), signed) in all().flat_map(|all| [false, true].map(|signed| (all, signed))) {
        let buckets = Exponential::new(scale, unit, signed);
        let [mut next, most]: [i128; 2] = match signed {
            true => [i64::MIN.into(), i64::MAX.into()],
            false => [0, u64::MAX.into()],
        };
        for code in 0..=u16::MAX {
            let Some((first, last)) = buckets.bounds(code) else {
                continue;
            };
            let told = format!("{code:x} at scale {scale} in {unit:?}, signed: {signed}");
            assert_eq!(first.value(), next, "{told}");
            assert!(first <= last, "{told}");
            next = last.value() + 1;
            for value in [first.value(), last.value()] {
                assert_eq!(buckets.code(value as u64), code, "{told}");
            }
            let [first, middle, last] = [
                Tenths::whole(first),
                buckets.middle(code).unwrap(),
                Tenths::whole(last),
            ];
            assert!(first <= middle && middle <= last, "{told}");
        }
        assert_eq!(next, most + 1);
    }
}

/// The manual's figures: the error of a bucket's shown number for any value in it, in percent.
#[test]
fn errors() {
    let stated = [41.43, 18.93, 9.06, 4.43, 2.19, 1.09];
    for (scale, unit) in all() {
        for signed in [false, true] {
            let buckets = Exponential::new(scale, unit, signed);
            let mut worst = 0.0f64;
            for code in 0..=u16::MAX {
                let Some((first, last)) = buckets.bounds(code).filter(|_| code != ZERO) else {
                    continue;
                };
                let shown: f64 = buckets.middle(code).unwrap().to_string().parse().unwrap();
                for value in [first, last] {
                    let value = value.value() as f64;
                    worst = worst.max((shown - value).abs() / value.abs() * 100.0);
                }
            }
            let stated = stated[scale as usize];
            let told = format!("{worst} at scale {scale} in {unit:?}");
            assert!(stated - 0.01 < worst && worst <= stated, "{told}");
        }
    }
}

/// The shown number of some buckets.
#[test]
fn shown() {
    let shown = |value: i64, scale, signed| {
        let buckets = Exponential::new(scale, Unit::One, signed);
        let middle = buckets.middle(buckets.code(value as u64)).unwrap();
        middle.to_string()
    };
    assert_eq!(shown(0, 3, false), "0");
    assert_eq!(shown(1, 3, false), "1");
    assert_eq!(shown(15, 3, false), "15.5");
    assert_eq!(shown(-15, 3, true), "-15.5");
    assert_eq!(shown(6, 0, true), "6.3");
    assert_eq!(shown(-6, 0, true), "-6.3");
    // sqrt(65537 * 131072) is 92682.6: no tenth, as some of the bucket is above 100000.
    assert_eq!(shown(100_000, 0, false), "92683");
    // sqrt(66972 * 68437): a tenth, as all of the bucket is below 100000.
    assert_eq!(shown(68_000, 5, false), "67700.5");
    // The square root of (2^63 + 1) * (2^64 - 1) is 13043817825332782212.7.
    assert_eq!(shown(-1, 0, false), "13043817825332782213");
    assert_eq!(
        Tenths::whole(Whole::new(u64::MAX, false)).to_string(),
        u64::MAX.to_string()
    );
    assert_eq!(
        Tenths::whole(Whole::new(1 << 63, true)).to_string(),
        i64::MIN.to_string()
    );
}

/// Codes without any value.
#[test]
fn no_value() {
    let [unsigned, signed] = [false, true].map(|signed| Exponential::new(3, Unit::One, signed));
    // No whole number lies between 1 and 2.
    for code in unsigned.code(1) + 1..unsigned.code(2) {
        assert_eq!(unsigned.bounds(code), None);
        assert_eq!(unsigned.middle(code), None);
    }
    assert_eq!(unsigned.bounds(signed.code(-1i64 as u64)), None);
    assert_eq!(signed.bounds(unsigned.code(u64::MAX)), None);
    assert_eq!(signed.bounds(0), None);
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
