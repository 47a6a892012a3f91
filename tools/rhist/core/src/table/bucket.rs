// SPDX-License-Identifier: MIT OR Apache-2.0

//! Exponential buckets: their unit, and their bounds, exact to the integer.

/// The largest scale.
pub(super) const SCALE_MAX: u8 = 20;

/// Unit of the buckets of values in nanoseconds: `unit(…)` of a trigger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BucketUnit {
    /// The value's own unit, used nearly always.
    #[default]
    One,
    /// Microseconds.
    Us,
    /// Milliseconds.
    Ms,
    /// Seconds.
    S,
}

impl BucketUnit {
    /// Its size in the value's own unit.
    pub fn values(self) -> u64 {
        match self {
            Self::One => 1,
            Self::Us => 1_000,
            Self::Ms => 1_000_000,
            Self::S => 1_000_000_000,
        }
    }

    /// Word for `unit(…)` of a trigger. Empty for the value's own unit.
    pub fn word(self) -> &'static str {
        match self {
            Self::One => "",
            Self::Us => "us",
            Self::Ms => "ms",
            Self::S => "s",
        }
    }
}

/// A non-empty bucket, with its bounds in the unit of the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Smallest possible value.
    pub low: i128,
    /// Largest possible value.
    pub high: i128,
    /// Number of values.
    pub count: u64,
}

impl Bucket {
    /// The bucket mirrored at zero.
    pub(super) fn negated(self) -> Bucket {
        Bucket {
            low: -self.high,
            high: -self.low,
            count: self.count,
        }
    }

    /// Estimate for its values: the geometric mean of the smallest and the largest one, whose
    /// relative error is the same for both. Rounded like in the kernel module: to an integer, or
    /// below 100000 to a tenth, in the direction that makes the larger of the two errors smaller.
    /// 0.5 for 0 and 1 in one bucket.
    pub fn middle(&self) -> f64 {
        let clamped = |bound: i128| u64::try_from(bound.unsigned_abs()).unwrap_or(u64::MAX);
        let (a, b) = (clamped(self.low), clamped(self.high));
        let (small, large) = (a.min(b), a.max(b));
        let middle = match (small, large) {
            _ if (self.low < 0) != (self.high < 0) => return (self.low as f64 + self.high as f64) / 2.0,
            (0, _) => large as f64 / 2.0,
            (_, ..TENTHS_BELOW) => tenths(small, large) as f64 / 10.0,
            _ => {
                let square = u128::from(small) * u128::from(large);
                let root = square.isqrt();
                (root + u128::from(square - root * root > root)) as f64
            }
        };
        if self.low < 0 { -middle } else { middle }
    }
}

/// Limit from which a tenth does not matter.
const TENTHS_BELOW: u64 = 100_000;

/// The tenth with the smallest maximum error, for bounds below [`TENTHS_BELOW`].
fn tenths(small: u64, large: u64) -> u64 {
    let product = small * large;
    let tenths = (product * 100).isqrt();
    // Compares the error of the next tenth for the smallest value with the error of this one for
    // the largest.
    tenths + u64::from(large * (tenths + 1) + small * tenths < 20 * product)
}

/// 2^127 times the 2nd, 4th, 8th, … root of two, rounded down.
const ROOTS: [u128; SCALE_MAX as usize] = [
    0xb504f333f9de6484_597d89b3754abe9f,
    0x9837f0518db8a96f_46ad23182e42f6f6,
    0x8b95c1e3ea8bd6e6_fbe4628758a53c90,
    0x85aac367cc487b14_c5c95b8c2154c1b2,
    0x82cd8698ac2ba1d7_3e2a475b46520bff,
    0x8164d1f3bc030773_7be56527bd14def4,
    0x80b1ed4fd999ab6c_25335719b6e6fd20,
    0x8058d7d2d5e5f6b0_94d589f608ee4aa2,
    0x802c6436d0e04f50_ff8ce94a6797b3ce,
    0x8016302f17467628_3690dfe44d11d008,
    0x800b179c82028fd0_945e54e2ae18f2f0,
    0x80058baf7fee3b5d_1c718b38e549cb93,
    0x8002c5d00fdcfcb6_b6566a58c048be1f,
    0x800162e61bed4a48_e84c2e1a463473d9,
    0x8000b17292f702a3_aa22beacca949013,
    0x800058b92abbae02_030c5fa5256f41fe,
    0x80002c5c8dade4d7_1776c0f4dbea67d6,
    0x8000162e44eaf636_526be456600bdbe4,
    0x80000b1721fa7c18_8307016c1cd4e8b6,
    0x8000058b90de7e4c_ecfc487503488bb1,
];

/// Smallest and largest integer in bucket `index`. If it contains no integer, the ones around it.
pub(super) fn bounds(index: i32, scale: u8, unit: BucketUnit) -> (u64, u64) {
    let below = last(i64::from(index) - 1, scale, unit);
    match last(index.into(), scale, unit) {
        last if below < last => (below + 1, last),
        last => (last, last.saturating_add(1)),
    }
}

/// Index of the bucket for `value`, which must not be zero.
pub(super) fn index(value: u64, scale: u8, unit: BucketUnit) -> i32 {
    let value = value.max(1);
    let logarithm = (value as f64).log2() - (unit.values() as f64).log2();
    // The logarithm is inexact: the index is off by one at most.
    let mut index = (logarithm * f64::from(scale.min(SCALE_MAX)).exp2()).ceil() as i64 - 1;
    while last(index - 1, scale, unit) >= value {
        index -= 1;
    }
    while last(index, scale, unit) < value {
        index += 1;
    }
    // Below 64 * 2^20.
    index as i32
}

/// Largest integer in bucket `index` or below it, limited to a `u64`. 0 if all of these are empty
/// of integers.
fn last(index: i64, scale: u8, unit: BucketUnit) -> u64 {
    let scale = scale.min(SCALE_MAX);
    let end = index + 1;
    let exponent = end >> scale;
    // 2^127 times a number from 1 to 2.
    let mut mantissa = 1 << 127;
    for (n, root) in (1..=scale).zip(ROOTS) {
        if (end >> (scale - n)) & 1 == 1 {
            mantissa = multiply(mantissa, root);
        }
    }
    // The largest unit has 30 bits. The product has 95 fractional bits.
    let product = (mantissa >> 32) * u128::from(unit.values());
    let whole = match u32::try_from(95 - exponent) {
        Ok(shift) => product.checked_shr(shift).unwrap_or(0),
        Err(_) => u128::MAX,
    };
    u64::try_from(whole).unwrap_or(u64::MAX)
}

/// `a * b / 2^127`, up to 3 less.
fn multiply(a: u128, b: u128) -> u128 {
    let halves = |number: u128| (number >> 64, number & u128::from(u64::MAX));
    let ((a, a_low), (b, b_low)) = (halves(a), halves(b));
    ((a * b) << 1) + ((a * b_low) >> 63) + ((a_low * b) >> 63)
}
