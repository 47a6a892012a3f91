// SPDX-License-Identifier: GPL-2.0

//! Exponential buckets: 2^N of them, as wide in proportion, between a number and its double.
//!
//! Bucket i of scale N has the values from 2^(i/2^N), which is not in it, to 2^((i+1)/2^N), which is. That is the index of
//! OpenTelemetry's exponential histograms, and one less than that of Prometheus' native histograms with schema N. Zero
//! has a bucket of its own, and negative values have the buckets of their absolute values.
//!
//! No logarithm is needed: a value is shifted until its highest bit is the top one. How often says between which powers of
//! two it is. Then few bits behind the top one say between which boundaries it may be, of which one is left to be compared
//! with: see [`OCTAVE`].

use core::fmt;

/// The unit of buckets for values that are nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// The value's own.
    One,
    /// Microseconds.
    Us,
    /// Milliseconds.
    Ms,
    /// Seconds.
    S,
}

impl Unit {
    /// What can be chosen.
    pub const ALL: [Self; 3] = [Self::S, Self::Ms, Self::Us];

    /// Its name; none for the value's own.
    pub const fn name(self) -> &'static [u8] {
        match self {
            Self::One => b"",
            Self::Us => b"us",
            Self::Ms => b"ms",
            Self::S => b"s",
        }
    }

    /// How many values it is.
    pub const fn values(self) -> u64 {
        match self {
            Self::One => 1,
            Self::Us => 1_000,
            Self::Ms => 1_000_000,
            Self::S => 1_000_000_000,
        }
    }

    /// Log2 of the numerator of [`Unit::factor`], less 64.
    const fn shift(self) -> i32 {
        match self {
            Self::One => 0,
            Self::Us => 9,
            Self::Ms => 19,
            Self::S => 29,
        }
    }

    /// 2^(64 + shift) / values, which has 64 bits, and 64 more behind the point; rounded down.
    fn factor(self) -> [u64; 2] {
        // Computed by the compiler: the kernel has no division of 128 bits.
        const fn quotient(unit: Unit) -> [u64; 2] {
            let (dividend, divisor) = (1 << (64 + unit.shift()), unit.values() as u128);
            let behind = ((dividend % divisor) << 64) / divisor;
            [(dividend / divisor) as u64, behind as u64]
        }
        match self {
            Self::One => [0; 2],
            Self::Us => const { quotient(Self::Us) },
            Self::Ms => const { quotient(Self::Ms) },
            Self::S => const { quotient(Self::S) },
        }
    }
}

/// A bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bucket {
    /// The bucket of zero.
    Zero,
    /// The bucket of positive values with this index.
    Positive(i32),
    /// The bucket of negative values whose absolute values have this index.
    Negative(i32),
}

/// Which bucket a value is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exponential {
    scale: u8,
    unit: Unit,
    signed: bool,
}

/// The largest scale.
const SCALE_MAX: u8 = 5;

/// The code of zero.
const ZERO: u16 = 0x8000;

/// Added to indices, so that none is negative: those of a nanosecond in seconds are above -1024.
const BIAS: i32 = 1024;

/// The boundaries between 2^63 and 2^64 at [`SCALE_MAX`]: 2^63 times 2^(k/32) for k from 1 to 32, rounded down; the last is
/// less than all larger values. No boundary but the last is a whole number, so a value is above one if it is larger than
/// this.
#[rustfmt::skip]
const BOUNDARIES: [u64; 32] = [
    0x82cd8698ac2ba1d7, 0x85aac367cc487b14, 0x88980e8092da8527, 0x8b95c1e3ea8bd6e6,
    0x8ea4398b45cd53c0, 0x91c3d373ab11c336, 0x94f4efa8fef70961, 0x9837f0518db8a96f,
    0x9b8d39b9d54e5538, 0x9ef5326091a111ad, 0xa27043030c496818, 0xa5fed6a9b15138ea,
    0xa9a15ab4ea7c0ef8, 0xad583eea42a14ac6, 0xb123f581d2ac258f, 0xb504f333f9de6484,
    0xb8fbaf4762fb9ee9, 0xbd08a39f580c36be, 0xc12c4cca66709456, 0xc5672a115506dadd,
    0xc9b9bd866e2f27a2, 0xce248c151f8480e3, 0xd2a81d91f12ae45a, 0xd744fccad69d6af4,
    0xdbfbb797daf23755, 0xe0ccdeec2a94e111, 0xe5b906e77c8348a8, 0xeac0c6e7dd24392e,
    0xefe4b99bdcdaf5cb, 0xf5257d152486cc2c, 0xfa83b2db722a033a, 0xffffffffffffffff,
];

/// The 64 bits of the boundaries behind those.
#[rustfmt::skip]
static BEHIND: [u64; 32] = [
    0x3e2a475b46520bff, 0xc5c95b8c2154c1b2, 0x5df8d76c98c67562, 0xfbe4628758a53c90,
    0x2dc0144c8783d4c5, 0x0fd6d8e0ae5ac9d8, 0x2e8afad12551de54, 0x46ad23182e42f6f6,
    0xa2a817a2a3cc3f1f, 0xa0911f09ebb9fdd1, 0x9b7a04ef80cfdea7, 0x1cbd7f621710701b,
    0x541e24ec3531fa73, 0x4980a8c8f59a2ec4, 0x87d037e96d215d8e, 0x597d89b3754abe9f,
    0x1b879778566b65a1, 0xa8811fb66d0faf7a, 0x7c457d59a50087b5, 0x3e2ad0c964dd9f37,
    0x80e1f92a0511697e, 0xe235838f95f2c6ed, 0x12248e57c3de4028, 0x39a68bb9902d3fde,
    0x3d840d5a9e29aa64, 0x065895048dd333ca, 0x1e5e8f4a4edbb0ec, 0xd02d75b3706e54fa,
    0x46561cf6948db912, 0x7b9d0c7aed980fc3, 0x7c25bb14315d7fcc, 0xffffffffffffffff,
];

/// Scale 3: one boundary may be in each eighth of an octave. A cache line.
#[repr(align(64))]
struct Octave([u64; 8]);

static OCTAVE: Octave = {
    let mut boundaries = [0; 8];
    let mut n = 0;
    while n < 8 {
        boundaries[n] = BOUNDARIES[4 * n + 3];
        n += 1;
    }
    Octave(boundaries)
};

/// Cells of an octave at scale 5: twice as many as buckets, so that each has at most one boundary.
const CELLS: usize = 64;

/// For each cell, the number of boundaries before it, and the one in it.
static FINE_OCTAVE: [(u64, u32); CELLS] = {
    let mut cells = [(u64::MAX, 0); CELLS];
    let mut cell = 0;
    while cell < CELLS {
        let first = (1 << 63) + ((cell as u64) << 57);
        let mut k = 0;
        while BOUNDARIES[k] < first {
            k += 1;
        }
        cells[cell] = (u64::MAX, k as u32);
        if BOUNDARIES[k] - first < 1 << 57 {
            cells[cell].0 = BOUNDARIES[k];
        }
        cell += 1;
    }
    cells
};

impl Exponential {
    /// Buckets of this scale, at most [`SCALE_MAX`], for values, which are nanoseconds if there is a unit.
    pub const fn new(scale: u8, unit: Unit, signed: bool) -> Self {
        Self {
            scale: if scale < SCALE_MAX { scale } else { SCALE_MAX },
            unit,
            signed,
        }
    }

    /// The scale.
    pub fn scale(self) -> u8 {
        self.scale
    }

    /// The unit.
    pub fn unit(self) -> Unit {
        self.unit
    }

    /// Whether values are signed.
    pub fn signed(self) -> bool {
        self.signed
    }

    /// The code of the bucket of `value`. Codes are in the order of the values. Any context.
    #[inline(always)]
    pub fn code(self, value: u64) -> u16 {
        if self.signed && (value as i64) < 0 {
            return self.negative_code(value);
        }
        if value == 0 {
            return ZERO;
        }
        (i32::from(ZERO) + 1 + BIAS + self.index(value)) as u16
    }

    #[cold]
    #[inline(never)]
    fn negative_code(self, value: u64) -> u16 {
        (i32::from(ZERO) - 1 - BIAS - self.index(value.wrapping_neg())) as u16
    }

    /// The index of the bucket of `value`, which is not zero.
    #[inline(always)]
    fn index(self, value: u64) -> i32 {
        if self.scale > 3 || self.unit != Unit::One {
            return self.index_slow(value);
        }
        let zeros = value.leading_zeros();
        let value = value << zeros;
        // A power of two is the last value of its bucket.
        let index = index3(value, 63 - zeros as i32) - i32::from(value << 1 == 0);
        index >> (3 - self.scale)
    }

    #[inline(never)]
    fn index_slow(self, value: u64) -> i32 {
        let zeros = value.leading_zeros();
        let (value, exponent) = (value << zeros, 63 - zeros as i32);
        let index = match self.unit {
            // A power of two is the last value of its bucket.
            Unit::One => index5(value, 0, exponent) - i32::from(value << 1 == 0),
            unit => {
                // The factor was rounded down. So a quotient that is a power of two becomes less, and stays in its bucket;
                // those above it do not become it.
                let [factor, behind] = unit.factor();
                let product = u128::from(value) * u128::from(factor)
                    + ((u128::from(value) * u128::from(behind)) >> 64);
                let zeros = product.leading_zeros();
                let product = product << zeros;
                let exponent = exponent - zeros as i32 - unit.shift();
                index5((product >> 64) as u64, product as u64, exponent)
            }
        };
        index >> (SCALE_MAX - self.scale)
    }

    /// The bucket with this code.
    pub fn bucket(code: u16) -> Bucket {
        match i32::from(code) - i32::from(ZERO) {
            0 => Bucket::Zero,
            above @ 1.. => Bucket::Positive(above - 1 - BIAS),
            below => Bucket::Negative(-below - 1 - BIAS),
        }
    }

    /// The smallest and the largest whole value that have this code. `None`: no value has it.
    pub fn bounds(self, code: u16) -> Option<(Whole, Whole)> {
        let (index, negative) = match Self::bucket(code) {
            Bucket::Zero => return Some((Whole(0), Whole(0))),
            Bucket::Positive(index) => (index, false),
            Bucket::Negative(index) => (index, true),
        };
        let (below, last) = (self.last(index - 1), self.last(index));
        match (below < last, negative) {
            (false, _) => None,
            (true, false) => Some((Whole(i128::from(below) + 1), Whole(last.into()))),
            (true, true) => Some((Whole(-i128::from(last)), Whole(-i128::from(below) - 1))),
        }
    }

    /// The largest whole value whose index is not above `index`; 0 if there is none.
    fn last(self, index: i32) -> u64 {
        let fine = i64::from(index + 1) << (SCALE_MAX - self.scale);
        // 2^63 times 2^(k/32), in the unit, and then shifted to its exponent.
        let (exponent, k) = (fine.div_euclid(32), fine.rem_euclid(32) as usize);
        let power = match k {
            0 => 1 << 63,
            k => BOUNDARIES[k - 1],
        };
        let values = u128::from(power) * u128::from(self.unit.values());
        let shift = 63 - exponent;
        if shift < 0 {
            return u64::MAX;
        }
        let mut last = match values.checked_shr(shift as u32) {
            Some(last) => u64::try_from(last).unwrap_or(u64::MAX),
            None => 0,
        };
        // The boundary was rounded before it was multiplied.
        while last < u64::MAX && self.index(last + 1) <= index {
            last += 1;
        }
        while last > 0 && self.index(last) > index {
            last -= 1;
        }
        last
    }

    /// What is taken for the values with this code: the geometric mean of the smallest and the largest of them, since that
    /// is off by the same proportion from both. `None`: no value has it.
    pub fn middle(self, code: u16) -> Option<Tenths> {
        let (Whole(first), Whole(last)) = self.bounds(code)?;
        let negative = last < 0;
        let (small, large) = (first.unsigned_abs() as u64, last.unsigned_abs() as u64);
        let (small, large) = (small.min(large), small.max(large));
        let square = u128::from(small) * u128::from(large);
        let tenths = match large {
            0..Tenths::WHOLE => u128::from(nearest_root(square * 100)),
            _ => u128::from(nearest_root(square)) * 10,
        };
        let tenths = tenths as i128;
        Some(Tenths(if negative { -tenths } else { tenths }))
    }
}

/// The square root, rounded to the nearest. Bit by bit, as the kernel has no division of 128 bits.
fn nearest_root(square: u128) -> u64 {
    let mut root = 0u64;
    for bit in (0..64).rev() {
        let more = root | 1 << bit;
        if u128::from(more) * u128::from(more) <= square {
            root = more;
        }
    }
    let rest = square - u128::from(root) * u128::from(root);
    root.saturating_add(u64::from(rest > u128::from(root)))
}

/// The index at scale 3 of a value between 2^exponent and twice that, whose highest bit was shifted to the top; one more if
/// it is 2^exponent itself.
#[inline(always)]
fn index3(value: u64, exponent: i32) -> i32 {
    let eighth = (value >> 60) as usize & 7;
    exponent * 8 + eighth as i32 + i32::from(value > OCTAVE.0[eighth])
}

/// The index at [`SCALE_MAX`], as [`index3`]; `behind` are the bits behind `value`.
#[inline(always)]
fn index5(value: u64, behind: u64, exponent: i32) -> i32 {
    let (boundary, before) = FINE_OCTAVE[(value >> 57) as usize % CELLS];
    let above = match value == boundary {
        true => behind > BEHIND[before as usize % BEHIND.len()],
        false => value > boundary,
    };
    exponent * 32 + before as i32 + i32::from(above)
}

/// A whole number of 64 bits, with or without a sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Whole(i128);

impl Whole {
    /// The number of these bits.
    pub fn new(bits: u64, signed: bool) -> Self {
        match signed {
            true => Self((bits as i64).into()),
            false => Self(bits.into()),
        }
    }

    /// Its value, to be compared, added and multiplied. The kernel has no division of 128 bits, and no formatting, which
    /// needs one.
    pub fn value(self) -> i128 {
        self.0
    }

    /// This number, divided by `count`, rounded towards zero; 0 if `count` is.
    pub fn over(self, count: u64) -> Self {
        let magnitude = self.0.unsigned_abs() as u64;
        let quotient = i128::from(magnitude.checked_div(count).unwrap_or(0));
        Self(if self.0 < 0 { -quotient } else { quotient })
    }
}

impl fmt::Display for Whole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match u64::try_from(self.0) {
            Ok(number) => number.fmt(f),
            Err(_) => (self.0 as i64).fmt(f),
        }
    }
}

/// An estimate, in tenths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tenths(i128);

impl Tenths {
    /// From this number on a tenth does not matter.
    const WHOLE: u64 = 100_000;

    /// A whole number.
    pub fn whole(number: Whole) -> Self {
        Self(number.0 * 10)
    }

    /// Tenths of one.
    pub fn tenths(self) -> i128 {
        self.0
    }
}

impl fmt::Display for Tenths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let magnitude = self.0.unsigned_abs();
        // Both fit, and the kernel has no division of 128 bits.
        let (whole, tenth) = match u64::try_from(magnitude) {
            Ok(magnitude) => (magnitude / 10, magnitude % 10),
            Err(_) => (ten_times_less(magnitude), 0),
        };
        let sign = if self.0 < 0 { "-" } else { "" };
        match tenth {
            0 => write!(f, "{sign}{whole}"),
            tenth => write!(f, "{sign}{whole}.{tenth}"),
        }
    }
}

/// A tenth of `number`, which is below 10 * 2^64.
fn ten_times_less(number: u128) -> u64 {
    let (high, low) = ((number >> 32) as u64, number as u64 & 0xffff_ffff);
    let (quotient, rest) = (high / 10, high % 10);
    (quotient << 32) + ((rest << 32 | low) / 10)
}
