// SPDX-License-Identifier: GPL-2.0

//! Exponential buckets by big integers.

use num_bigint::BigUint;
use rhist::event::Unit;

fn nanoseconds(unit: Unit) -> u64 {
    match unit {
        Unit::One => 1,
        Unit::Us => 1_000,
        Unit::Ms => 1_000_000,
        Unit::S => 1_000_000_000,
    }
}

/// Returns whether `value` in `unit` is above 2^(index/2^scale), by comparing the power 2^scale of
/// both.
fn is_above(value: u64, unit: Unit, scale: u8, index: i32) -> bool {
    let power = 1u32 << scale;
    let left = BigUint::from(value).pow(power);
    let right = BigUint::from(nanoseconds(unit)).pow(power);
    match index {
        0.. => left > right << index as usize,
        _ => left << index.unsigned_abs() as usize > right,
    }
}

/// Index in OpenTelemetry: the index of the last boundary below the value.
pub(crate) fn index_of(value: u64, unit: Unit, scale: u8) -> i32 {
    let (mut below, mut above) = (-31 << scale, 65 << scale);
    assert!(is_above(value, unit, scale, below));
    while above - below > 1 {
        let middle = (below + above) / 2;
        match is_above(value, unit, scale, middle) {
            true => below = middle,
            false => above = middle,
        }
    }
    below
}

/// The largest whole number below or at boundary `index`, saturated.
pub(crate) fn boundary(unit: Unit, scale: u8, index: i32) -> u64 {
    let (mut below, mut above) = (0u64, u64::MAX);
    while below < above {
        let middle = above - (above - below) / 2;
        match is_above(middle, unit, scale, index) {
            true => above = middle - 1,
            false => below = middle,
        }
    }
    below
}
