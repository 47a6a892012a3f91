// SPDX-License-Identifier: GPL-2.0

//! Exponential buckets: 2^N of them, of proportional width, between a number and its double.
//!
//! Bucket i of scale N has the values from 2^(i/2^N), exclusive, to 2^((i+1)/2^N), inclusive. The
//! index is the same as in OpenTelemetry's exponential histograms, and one less than in Prometheus'
//! native histograms with schema N. Zero has a bucket of its own, and negative values have the
//! buckets of their absolute values.
//!
//! Computing an index takes no logarithm: a value is shifted until its highest bit is the top one.
//! The number of shifts gives the powers of two around it. A few bits behind the top one then leave
//! a single boundary that the value has to be compared with: see [`OCTAVE`].

use core::fmt;

/// The unit of buckets for values that are nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// The unit of the value.
    One,
    /// Microseconds.
    Us,
    /// Milliseconds.
    Ms,
    /// Seconds.
    S,
}

impl Unit {
    /// The units that can be chosen.
    pub const ALL: [Self; 3] = [Self::S, Self::Ms, Self::Us];

    /// Its name; empty for the unit of the value.
    pub const fn name(self) -> &'static [u8] {
        match self {
            Self::One => b"",
            Self::Us => b"us",
            Self::Ms => b"ms",
            Self::S => b"s",
        }
    }

    /// Number of nanoseconds in the unit; 1 for the unit of the value.
    pub const fn values(self) -> u64 {
        match self {
            Self::One => 1,
            Self::Us => 1_000,
            Self::Ms => 1_000_000,
            Self::S => 1_000_000_000,
        }
    }

    /// log2 of the numerator of [`Unit::factor`], less 64.
    const fn shift(self) -> i32 {
        match self {
            Self::One => 0,
            Self::Us => 9,
            Self::Ms => 19,
            Self::S => 29,
        }
    }

    /// 2^(64 + shift) / values, which has 64 bits before the point, and 64 more behind it; rounded
    /// down.
    fn factor(self) -> [u64; 2] {
        // Computed by the compiler: the kernel lacks division of 128 bits.
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

/// The buckets of a value: scale, unit and sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exponential {
    /// Number of bits by which an index at [`SCALE_FAST`] is shifted; negative if the index cannot
    /// be computed from it. Tested first, so that the fast path reads nothing else.
    shift: i8,
    scale: u8,
    unit: Unit,
    signed: bool,
}

/// The largest scale that takes only [`OCTAVE`].
const SCALE_FAST: u8 = 3;

/// The largest scale.
const SCALE_MAX: u8 = 5;

/// The code of zero.
const ZERO: u16 = 0x8000;

/// Added to indices, so that none is negative: the index of a nanosecond in seconds is above -1024.
const BIAS: i32 = 1024;

/// The boundaries between 2^127 and 2^128 at [`SCALE_MAX`]: 2^127 times 2^(k/32) for k from 1 to
/// 32, rounded down. The last is one less than 2^128, so that nothing is above it. No other
/// boundary is a whole number, so a number of 128 bits is above the boundary if it is larger than
/// this.
#[rustfmt::skip]
pub const BOUNDARIES: [u128; 32] = [
    0x82cd8698ac2ba1d7_3e2a475b46520bff, 0x85aac367cc487b14_c5c95b8c2154c1b2,
    0x88980e8092da8527_5df8d76c98c67562, 0x8b95c1e3ea8bd6e6_fbe4628758a53c90,
    0x8ea4398b45cd53c0_2dc0144c8783d4c5, 0x91c3d373ab11c336_0fd6d8e0ae5ac9d8,
    0x94f4efa8fef70961_2e8afad12551de54, 0x9837f0518db8a96f_46ad23182e42f6f6,
    0x9b8d39b9d54e5538_a2a817a2a3cc3f1f, 0x9ef5326091a111ad_a0911f09ebb9fdd1,
    0xa27043030c496818_9b7a04ef80cfdea7, 0xa5fed6a9b15138ea_1cbd7f621710701b,
    0xa9a15ab4ea7c0ef8_541e24ec3531fa73, 0xad583eea42a14ac6_4980a8c8f59a2ec4,
    0xb123f581d2ac258f_87d037e96d215d8e, 0xb504f333f9de6484_597d89b3754abe9f,
    0xb8fbaf4762fb9ee9_1b879778566b65a1, 0xbd08a39f580c36be_a8811fb66d0faf7a,
    0xc12c4cca66709456_7c457d59a50087b5, 0xc5672a115506dadd_3e2ad0c964dd9f37,
    0xc9b9bd866e2f27a2_80e1f92a0511697e, 0xce248c151f8480e3_e235838f95f2c6ed,
    0xd2a81d91f12ae45a_12248e57c3de4028, 0xd744fccad69d6af4_39a68bb9902d3fde,
    0xdbfbb797daf23755_3d840d5a9e29aa64, 0xe0ccdeec2a94e111_065895048dd333ca,
    0xe5b906e77c8348a8_1e5e8f4a4edbb0ec, 0xeac0c6e7dd24392e_d02d75b3706e54fa,
    0xefe4b99bdcdaf5cb_46561cf6948db912, 0xf5257d152486cc2c_7b9d0c7aed980fc3,
    0xfa83b2db722a033a_7c25bb14315d7fcc, 0xffffffffffffffff_ffffffffffffffff,
];

/// The high 64 bits of boundary `k`.
const fn high(k: usize) -> u64 {
    (BOUNDARIES[k] >> 64) as u64
}

/// The low 64 bits of each boundary.
static LOW: [u64; 32] = {
    let mut low = [0; 32];
    let mut k = 0;
    while k < low.len() {
        low[k] = BOUNDARIES[k] as u64;
        k += 1;
    }
    low
};

/// Scale 3: at most one boundary is in each eighth of an octave. A cache line.
#[repr(align(64))]
struct Octave([u64; 8]);

static OCTAVE: Octave = {
    let mut boundaries = [0; 8];
    let mut n = 0;
    while n < 8 {
        boundaries[n] = high(4 * n + 3);
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
        while high(k) < first {
            k += 1;
        }
        cells[cell] = (u64::MAX, k as u32);
        if high(k) - first < 1 << 57 {
            cells[cell].0 = high(k);
        }
        cell += 1;
    }
    cells
};

impl Exponential {
    /// Creates buckets of this scale, at most [`SCALE_MAX`]. With a unit, values are nanoseconds.
    pub const fn new(scale: u8, unit: Unit, signed: bool) -> Self {
        let scale = if scale < SCALE_MAX { scale } else { SCALE_MAX };
        Self {
            shift: match unit {
                Unit::One => SCALE_FAST as i8 - scale as i8,
                _ => -1,
            },
            scale,
            unit,
            signed,
        }
    }

    /// N, where a number and its double are 2^N buckets apart.
    pub fn scale(self) -> u8 {
        self.scale
    }

    /// The unit of the buckets; [`Unit::One`] for the value's own.
    pub fn unit(self) -> Unit {
        self.unit
    }

    /// Returns whether values are signed.
    pub fn signed(self) -> bool {
        self.signed
    }

    /// Returns the code of the bucket of `value`. Codes are in the order of the values. Any
    /// context.
    #[inline(always)]
    pub fn code(self, value: u64) -> u16 {
        // One test for zero, negative values, and values with the highest bit.
        if value as i64 <= 0 {
            return match value {
                0 => ZERO,
                _ => self.code_with_highest_bit(value),
            };
        }
        positive_code(self.index(value))
    }

    /// Inlined [`Exponential::code`] for most values. `None`: the caller has to call `code()`.
    #[inline(always)]
    pub fn code_inline(&self, value: u64) -> Option<u16> {
        if value == 0 {
            return Some(ZERO);
        }
        let inline = value as i64 > 0 && self.shift >= 0;
        // The shift is at most 3: no check is needed.
        inline.then(|| positive_code(index_fast(value).wrapping_shr(self.shift as u32)))
    }

    /// Out of line: rare.
    #[cold]
    #[inline(never)]
    fn code_with_highest_bit(self, value: u64) -> u16 {
        match self.signed {
            true => negative_code(self.index(value.wrapping_neg())),
            false => positive_code(self.index(value)),
        }
    }

    /// The index of the bucket of `value`, which is not zero.
    #[inline(always)]
    fn index(self, value: u64) -> i32 {
        match self.shift {
            0.. => index_fast(value) >> self.shift,
            _ => self.index_slow(value),
        }
    }

    #[inline(never)]
    fn index_slow(self, value: u64) -> i32 {
        let zeros = value.leading_zeros();
        let (value, exponent) = (value << zeros, 63 - zeros as i32);
        let index = match self.unit {
            // A power of two is the last value of its bucket.
            Unit::One => index_fine(value, 0, exponent) - i32::from(value << 1 == 0),
            unit => {
                // The factor was rounded down. So a quotient that is a power of two becomes less,
                // and stays in its bucket; quotients above it do not become it.
                let [factor, behind] = unit.factor();
                let product = u128::from(value) * u128::from(factor)
                    + ((u128::from(value) * u128::from(behind)) >> 64);
                let zeros = product.leading_zeros();
                let product = product << zeros;
                let exponent = exponent - zeros as i32 - unit.shift();
                index_fine((product >> 64) as u64, product as u64, exponent)
            }
        };
        index >> (SCALE_MAX - self.scale)
    }

    /// Returns the bucket with this code.
    pub fn bucket(code: u16) -> Bucket {
        match i32::from(code) - i32::from(ZERO) {
            0 => Bucket::Zero,
            above @ 1.. => Bucket::Positive(above - 1 - BIAS),
            below => Bucket::Negative(-below - 1 - BIAS),
        }
    }

    /// Returns the smallest and the largest whole value with this code. `None`: no value has it.
    pub fn bounds(self, code: u16) -> Option<(Whole, Whole)> {
        let (index, negative) = match Self::bucket(code) {
            Bucket::Zero => return Some((Whole(0), Whole(0))),
            Bucket::Positive(index) => (index, false),
            Bucket::Negative(index) => (index, true),
        };
        let most = match (self.signed, negative) {
            (false, false) => u64::MAX,
            (false, true) => return None,
            (true, false) => i64::MAX as u64,
            (true, true) => i64::MIN.unsigned_abs(),
        };
        let (below, last) = (self.last(index - 1), self.last(index).min(most));
        match (below < last, negative) {
            (false, _) => None,
            (true, false) => Some((Whole(i128::from(below) + 1), Whole(last.into()))),
            (true, true) => Some((Whole(-i128::from(last)), Whole(-i128::from(below) - 1))),
        }
    }

    /// The largest whole value whose index is not above `index`; 0 if all are above.
    fn last(self, index: i32) -> u64 {
        let fine = i64::from(index + 1) << (SCALE_MAX - self.scale);
        // 2^127 times 2^(k/32), in the unit, less 64 bits, and then shifted to its exponent.
        let (exponent, k) = (fine.div_euclid(32), fine.rem_euclid(32) as usize);
        let (high, low) = match k {
            0 => (1 << 63, 0),
            k => (high(k - 1), LOW[k - 1]),
        };
        let unit = u128::from(self.unit.values());
        let values = u128::from(high) * unit + ((u128::from(low) * unit) >> 64);
        match u32::try_from(63 - exponent) {
            Ok(shift) => u64::try_from(values.checked_shr(shift).unwrap_or(0)).unwrap_or(u64::MAX),
            Err(_) => u64::MAX,
        }
    }

    /// Returns an estimate for values with this code: the geometric mean of the smallest and the
    /// largest of them, since its proportion to both is the same. A tenth is rounded to where the
    /// larger one of the two errors is smaller. `None`: no value has the code.
    pub fn middle(self, code: u16) -> Option<Tenths> {
        let (Whole(first), Whole(last)) = self.bounds(code)?;
        let negative = last < 0;
        let (small, large) = (first.unsigned_abs() as u64, last.unsigned_abs() as u64);
        let (small, large) = (small.min(large), small.max(large));
        let tenths = match large {
            0..Tenths::WHOLE => {
                let product = small * large;
                let tenths = (product * 100).isqrt();
                // The error of the next tenth from the smallest value, and of this one from the
                // largest.
                let up = large * (tenths + 1) + small * tenths < 20 * product;
                u128::from(tenths + u64::from(up))
            }
            _ => u128::from(nearest_root(u128::from(small) * u128::from(large))) * 10,
        };
        let tenths = tenths as i128;
        Some(Tenths(if negative { -tenths } else { tenths }))
    }
}

/// The square root, rounded to the nearest. Computed bit by bit, as the kernel lacks division of
/// 128 bits.
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

/// The code of positive values with this index.
#[inline(always)]
fn positive_code(index: i32) -> u16 {
    (i32::from(ZERO) + 1 + BIAS + index) as u16
}

/// The code of negative values whose absolute values have this index.
fn negative_code(index: i32) -> u16 {
    (i32::from(ZERO) - 1 - BIAS - index) as u16
}

/// The index at [`SCALE_FAST`] of `value`, which is not zero.
#[inline(always)]
fn index_fast(value: u64) -> i32 {
    let zeros = value.leading_zeros();
    // One less, since the upper boundary belongs to a bucket. So a power of two loses its highest
    // bit, and has 7 eighths instead of 8: it gets the last bucket of the octave below, in which
    // nothing is above the boundary.
    let less = value.wrapping_shl(zeros).wrapping_sub(1);
    let eighths = (less >> 60) as usize;
    let above = less >= OCTAVE.0[eighths % 8];
    8 * (62 - zeros as i32) + eighths as i32 + i32::from(above)
}

/// The index at [`SCALE_MAX`] of a number between 2^exponent and twice that, whose highest bit was
/// shifted to the top of `value`; `low` are the bits behind it. One more if it is 2^exponent
/// itself.
#[inline(always)]
fn index_fine(value: u64, low: u64, exponent: i32) -> i32 {
    let (boundary, before) = FINE_OCTAVE[(value >> 57) as usize % CELLS];
    let above = match value == boundary {
        true => low > LOW[before as usize % LOW.len()],
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

    /// Its value, to be compared, added and multiplied. The kernel lacks division of 128 bits, and
    /// so formatting.
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
    /// From this number on, tenths are not shown.
    const WHOLE: u64 = 100_000;

    /// Converts a whole number.
    pub fn whole(number: Whole) -> Self {
        // It cannot overflow. A checked multiplication would call a function on arm64 that the
        // kernel does not have.
        Self(number.0.wrapping_mul(10))
    }

    /// The estimate in tenths.
    pub fn tenths(self) -> i128 {
        self.0
    }
}

impl fmt::Display for Tenths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let magnitude = self.0.unsigned_abs();
        // Both fit in 64 bits, for which the kernel has division.
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
