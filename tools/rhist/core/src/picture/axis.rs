// SPDX-License-Identifier: MIT OR Apache-2.0

//! Logarithmic axis for values, including negative ones and zero.

use super::quantity;
use crate::table::BucketUnit;
use crate::table::Counts;
use crate::table::Dist;
use crate::table::Unit;

/// Maps values to places between 0, the lower end, and 1, the upper end. All octaves have the same
/// width; zero is about as wide as a bucket.
pub struct Axis {
    /// Scale of the buckets that are drawn.
    pub scale: u8,
    unit: BucketUnit,
    /// Octaves of the absolute values of negative and positive values: the first one, and their
    /// number.
    negative: (f64, f64),
    positive: (f64, f64),
    /// Width of zero, in octaves.
    zero: f64,
    /// See [`Dist::one_has_zero`].
    one_has_zero: bool,
}

/// A drawn bucket: its ends on the axis, and its number of values.
pub struct Segment {
    pub from: f64,
    pub to: f64,
    pub count: u64,
    /// Sign of its values, and index of its bucket. `None` for zero.
    bucket: Option<(&'static str, i32)>,
}

/// Octaves of all 64-bit numbers in any unit.
const OCTAVES: std::ops::RangeInclusive<f64> = -32.0..=65.0;

impl Axis {
    /// Creates an axis for all values of these distributions, with one scale and at most about
    /// `max_buckets` buckets.
    pub fn new<'a>(dists: impl IntoIterator<Item = &'a Dist>, max_buckets: f64) -> Self {
        let mut axis = Axis {
            scale: 20,
            unit: BucketUnit::One,
            negative: (0.0, 0.0),
            positive: (0.0, 0.0),
            zero: 0.0,
            one_has_zero: false,
        };
        let mut negative = None;
        let mut positive = None;
        let mut has_zero = false;
        for dist in dists {
            axis.scale = axis.scale.min(dist.scale);
            axis.unit = dist.bucket_unit;
            widen(&mut negative, &dist.negative, dist.scale);
            widen(&mut positive, &dist.positive, dist.scale);
            has_zero |= dist.zero > 0;
            axis.one_has_zero |= dist.one_has_zero;
        }
        let ends = |ends: Option<(f64, f64)>| ends.map_or((0.0, 0.0), |(low, high)| (low, high - low));
        axis.negative = ends(negative);
        axis.positive = ends(positive);
        let octaves = axis.negative.1 + axis.positive.1;
        while axis.scale > 0 && octaves * axis.buckets() > max_buckets {
            axis.scale -= 1;
        }
        if has_zero {
            // Keep zero narrow if buckets are few: as wide as a single bucket, it would fill the
            // axis.
            axis.zero = (1.0 / axis.buckets()).min(octaves / 8.0).max(0.1);
        }
        axis
    }

    /// Number of buckets in an octave.
    fn buckets(&self) -> f64 {
        f64::from(1u32 << self.scale.min(20))
    }

    fn octaves(&self) -> f64 {
        (self.negative.1 + self.zero + self.positive.1).max(f64::MIN_POSITIVE)
    }

    /// Place of a value.
    pub fn place(&self, value: f64) -> f64 {
        let octave = |value: f64| (value / self.unit.values() as f64).log2();
        let octaves = match value {
            v if v > 0.0 => self.negative.1 + self.zero + (octave(v) - self.positive.0).clamp(0.0, self.positive.1),
            v if v < 0.0 => self.negative.1 - (octave(-v) - self.negative.0).clamp(0.0, self.negative.1),
            _ => self.negative.1 + self.zero / 2.0,
        };
        octaves / self.octaves()
    }

    /// Buckets of a distribution at the scale of the axis.
    pub fn segments(&self, dist: &Dist) -> Vec<Segment> {
        let mut dist = dist.clone();
        dist.coarsen(self.scale);
        let width = 1.0 / self.buckets();
        let segment = |low: f64, high: f64, count, bucket| Segment {
            from: low / self.octaves(),
            to: high / self.octaves(),
            count,
            bucket,
        };
        let octave = |index: i32| (f64::from(index) * width).clamp(*OCTAVES.start(), *OCTAVES.end());
        let mut segments = Vec::new();
        for (index, count) in dist.negative.iter().rev() {
            let low = self.negative.1 - (octave(index) - self.negative.0);
            segments.push(segment((low - width).max(0.0), low, count, Some(("-", index))));
        }
        if dist.zero > 0 {
            let low = self.negative.1;
            segments.push(segment(low, low + self.zero, dist.zero, None));
        }
        for (index, count) in dist.positive.iter() {
            let low = self.negative.1 + self.zero + (octave(index) - self.positive.0);
            segments.push(segment(low, low + width, count, Some(("", index))));
        }
        segments
    }

    /// Values of a bucket, formatted for people.
    pub fn name(&self, segment: &Segment, unit: Unit) -> String {
        let Some((sign, index)) = segment.bucket else {
            return "0".to_owned();
        };
        let dist = Dist {
            scale: self.scale,
            bucket_unit: self.unit,
            one_has_zero: self.one_has_zero,
            ..Dist::default()
        };
        let (low, high) = dist.bounds(index);
        let [low, high] = [low, high].map(|value| quantity(value as f64, unit));
        if low == high {
            format!("{sign}{low}")
        } else {
            format!("{sign}{low} to {sign}{high}")
        }
    }

    /// Round values for marks, at most `max`: their places and names.
    pub fn ticks(&self, max: f64, unit: Unit) -> Vec<(f64, String)> {
        let each = self.octaves() / max;
        let mut ticks = Vec::new();
        if self.zero > 0.0 {
            ticks.push((self.place(0.0), "0".to_owned()));
        }
        let values = self.unit.values() as f64;
        for ((first, octaves), sign) in [(self.positive, 1.0), (self.negative, -1.0)] {
            if octaves <= 0.0 {
                continue;
            }
            let mut last = f64::NEG_INFINITY;
            for value in round_values(unit, octaves) {
                let octave = (value / values).log2();
                if octave >= first - 1e-9 && octave <= first + octaves + 1e-9 && octave - last >= each {
                    ticks.push((self.place(sign * value), quantity(sign * value, unit)));
                    last = octave;
                }
            }
        }
        ticks
    }
}

/// Widens the octaves between `ends` to include these buckets.
fn widen(ends: &mut Option<(f64, f64)>, counts: &Counts, scale: u8) {
    let Some((first, last)) = counts.ends() else {
        return;
    };
    let octave = |index: f64| (index / f64::from(1u32 << scale.min(20))).clamp(*OCTAVES.start(), *OCTAVES.end());
    // A coarser bucket may begin earlier and end later; whole octaves always contain it.
    let (low, high) = (octave(f64::from(first)).floor(), octave(f64::from(last) + 1.0).ceil());
    let (low, high) = (low.min(high - 1.0), high);
    *ends = Some(match *ends {
        None => (low, high),
        Some((a, b)) => (a.min(low), b.max(high)),
    });
}

/// Candidates for marks, in ascending order: powers of two for bytes; otherwise powers of ten and,
/// for few octaves, two and five times these.
fn round_values(unit: Unit, octaves: f64) -> Vec<f64> {
    let steps: &[f64] = if octaves < 8.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    match unit {
        Unit::Bytes => (0..64).map(|power| 2f64.powi(power)).collect(),
        _ => (0..20)
            .flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)))
            .collect(),
    }
}
