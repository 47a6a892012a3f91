// SPDX-License-Identifier: MIT OR Apache-2.0

//! A logarithmic axis for values, also for negative ones and zero.

use super::quantity;
use crate::table::BucketUnit;
use crate::table::Counts;
use crate::table::Dist;
use crate::table::Unit;

/// Where values are, from 0 at the lower end to 1 at the upper one. Octaves have the same width each, zero that of a bucket.
pub struct Axis {
    /// Of the buckets that are drawn.
    pub scale: u8,
    unit: BucketUnit,
    /// Octaves of absolute values of negative and of positive values: where they begin, and how many there are.
    negative: (f64, f64),
    positive: (f64, f64),
    /// Octaves of zero.
    zero: f64,
    /// See [`Dist::one_has_zero`].
    one_has_zero: bool,
}

/// What is drawn: where a bucket begins and ends on the axis, and how many values are there.
pub struct Segment {
    pub from: f64,
    pub to: f64,
    pub count: u64,
    /// The sign of its values, and the index of its bucket. There is none for zero.
    bucket: Option<(&'static str, i32)>,
}

/// No number of 64 bits, in any unit, is beyond these octaves.
const OCTAVES: std::ops::RangeInclusive<f64> = -32.0..=65.0;

impl Axis {
    /// An axis that has all values of these distributions in at most about `max_buckets` buckets of the same scale.
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
            // Of a single bucket, it would be all of the axis.
            axis.zero = (1.0 / axis.buckets()).min(octaves / 8.0).max(0.1);
        }
        axis
    }

    /// How many buckets an octave has.
    fn buckets(&self) -> f64 {
        f64::from(1u32 << self.scale.min(20))
    }

    fn octaves(&self) -> f64 {
        (self.negative.1 + self.zero + self.positive.1).max(f64::MIN_POSITIVE)
    }

    /// Where a value is.
    pub fn place(&self, value: f64) -> f64 {
        let octave = |value: f64| (value / self.unit.values() as f64).log2();
        let octaves = match value {
            v if v > 0.0 => self.negative.1 + self.zero + (octave(v) - self.positive.0).clamp(0.0, self.positive.1),
            v if v < 0.0 => self.negative.1 - (octave(-v) - self.negative.0).clamp(0.0, self.negative.1),
            _ => self.negative.1 + self.zero / 2.0,
        };
        octaves / self.octaves()
    }

    /// The buckets of a distribution, at the scale of the axis.
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

    /// The values of a bucket, for people.
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

    /// Round values, at most this many, for marks: where they are, and their names.
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

/// Widens the octaves between `ends` to those of these buckets.
fn widen(ends: &mut Option<(f64, f64)>, counts: &Counts, scale: u8) {
    let Some((first, last)) = counts.ends() else {
        return;
    };
    let octave = |index: f64| (index / f64::from(1u32 << scale.min(20))).clamp(*OCTAVES.start(), *OCTAVES.end());
    // A coarser bucket may begin earlier and end later; whole octaves always fit.
    let (low, high) = (octave(f64::from(first)).floor(), octave(f64::from(last) + 1.0).ceil());
    let (low, high) = (low.min(high - 1.0), high);
    *ends = Some(match *ends {
        None => (low, high),
        Some((a, b)) => (a.min(low), b.max(high)),
    });
}

/// Values that are marked if there is room, in ascending order: powers of two for bytes; otherwise of ten, and if there are few
/// octaves, twice and five times these.
fn round_values(unit: Unit, octaves: f64) -> Vec<f64> {
    let steps: &[f64] = if octaves < 8.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    match unit {
        Unit::Bytes => (0..64).map(|power| 2f64.powi(power)).collect(),
        _ => (0..20)
            .flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)))
            .collect(),
    }
}
