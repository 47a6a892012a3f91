// SPDX-License-Identifier: MIT OR Apache-2.0

//! Ranges of values, each shown as a row of bars or a character of a sparkline: buckets of a
//! distribution, merged until they are few enough.

use std::collections::BTreeMap;

use rhist_core::table::Counts;
use rhist_core::table::Dist;

/// If fewer ranges than this lie between powers of two, finer ones are used.
const FEW: i64 = 8;

/// Maximum distance of two non-empty ranges without a gap between them.
const MAX_GAP: i32 = 4;

/// Ranges of values, in order.
#[derive(Debug)]
pub(super) struct Axis {
    scale: u8,
    shift: u32,
    ranges: Vec<Range>,
}

/// A range of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    /// Sign of its values: -1, 0 or 1.
    sign: i8,
    /// Index of its buckets, shifted.
    index: i32,
    /// Smallest value.
    pub low: i128,
    /// Largest value.
    pub high: i128,
}

/// Treatment of empty ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gaps {
    /// Keeps all.
    Show,
    /// Leaves out long sequences.
    Skip,
}

impl Axis {
    /// Creates at most `most` ranges, or 9 if that is more. Their ends are powers of two, or finer,
    /// or wider.
    pub(super) fn new(dist: &Dist, most: usize, gaps: Gaps) -> Axis {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let count = |shift| count(dist, shift, gaps);
        let mut shift = u32::from(dist.scale);
        while shift > 0 && count(shift) < FEW && count(shift - 1) <= most {
            shift -= 1;
        }
        // At this width, at most two ranges per sign remain.
        let widest = u32::from(dist.scale) + 5;
        while shift < widest && count(shift) > most {
            shift += 1;
        }
        let mut ranges = Vec::new();
        for (first, last) in runs(&dist.negative, shift, gaps).into_iter().rev() {
            ranges.extend((first..=last).rev().map(|index| range(dist, shift, -1, index)));
        }
        if dist.zero > 0 {
            ranges.push(range(dist, shift, 0, 0));
        }
        for (first, last) in runs(&dist.positive, shift, gaps) {
            ranges.extend((first..=last).map(|index| range(dist, shift, 1, index)));
        }
        let mut axis = Axis {
            scale: dist.scale,
            shift,
            ranges,
        };
        axis.leave_out_fractions(dist);
        axis
    }

    /// The ranges, in the order of values.
    pub(super) fn ranges(&self) -> &[Range] {
        &self.ranges
    }

    /// Number of values of `dist` in each range.
    pub(super) fn counts(&self, dist: &Dist) -> Vec<u64> {
        let mut dist = dist.clone();
        dist.coarsen(self.scale);
        let shift = self.shift.saturating_sub(u32::from(self.scale - dist.scale));
        let mut counts: BTreeMap<(i8, i32), u64> = BTreeMap::new();
        let mut add = |sign, index, count| {
            let sum = counts.entry((sign, index)).or_insert(0);
            *sum = sum.saturating_add(count);
        };
        add(0, 0, dist.zero);
        dist.positive
            .iter()
            .for_each(|(index, count)| add(1, index >> shift, count));
        dist.negative
            .iter()
            .for_each(|(index, count)| add(-1, index >> shift, count));
        let count = |range: &Range| counts.get(&(range.sign, range.index)).copied().unwrap_or(0);
        self.ranges.iter().map(count).collect()
    }

    /// Removes empty ranges without an integer, which exist between small numbers.
    fn leave_out_fractions(&mut self, dist: &Dist) {
        let counts = self.counts(dist);
        let mut end = None;
        let mut kept = Vec::new();
        for (range, count) in self.ranges.drain(..).zip(counts) {
            if count > 0 || end.is_none_or(|end| range.low > end) {
                end = Some(range.high);
                kept.push(range);
            }
        }
        self.ranges = kept;
    }
}

/// The range with this sign and index.
fn range(dist: &Dist, shift: u32, sign: i8, index: i32) -> Range {
    // Merged buckets have the ends of a lower scale, if a lower one exists.
    let wider = shift.saturating_sub(u32::from(dist.scale));
    let buckets = Dist {
        scale: u32::from(dist.scale).saturating_sub(shift) as u8,
        bucket_unit: dist.bucket_unit,
        one_has_zero: dist.one_has_zero,
        ..Dist::default()
    };
    let first = index << wider;
    let last = first | ((1 << wider) - 1);
    let smallest = if dist.one_has_zero { 0 } else { 1 };
    let low = i128::from(buckets.bounds(first).0.max(smallest));
    let high = i128::from(buckets.bounds(last).1);
    let (low, high) = match sign {
        0 => (0, 0),
        1 => (low, high),
        _ => (-high, -low),
    };
    Range { sign, index, low, high }
}

/// First and last index of ranges that are shown without a gap.
fn runs(counts: &Counts, shift: u32, gaps: Gaps) -> Vec<(i32, i32)> {
    let mut runs: Vec<(i32, i32)> = Vec::new();
    for index in counts.iter().map(|(index, _)| index >> shift) {
        match runs.last_mut() {
            Some((_, last)) if gaps == Gaps::Show || index - *last <= MAX_GAP => *last = index,
            _ => runs.push((index, index)),
        }
    }
    runs
}

/// Number of lines, including one for each gap.
fn count(dist: &Dist, shift: u32, gaps: Gaps) -> i64 {
    let of = |buckets| {
        let runs = runs(buckets, shift, gaps);
        let skipped = runs.len().saturating_sub(1) as i64;
        let shown = runs.iter().map(|(first, last)| i64::from(last - first) + 1);
        shown.sum::<i64>() + skipped
    };
    of(&dist.negative) + i64::from(dist.zero > 0) + of(&dist.positive)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn dist(scale: u8, values: &[i128]) -> Dist {
        let mut dist = Dist::new(scale);
        values.iter().for_each(|&value| dist.record(value, 1));
        dist
    }

    fn ends_of(axis: &Axis) -> Vec<(i128, i128)> {
        axis.ranges().iter().map(|range| (range.low, range.high)).collect()
    }

    #[test]
    fn powers_of_two() {
        let dist = dist(3, &[100, 1000, 1024, 1025, 100_000]);
        let axis = Axis::new(&dist, 20, Gaps::Show);
        assert_eq!(axis.ranges().len(), 11);
        assert_eq!(ends_of(&axis)[3..5], [(513, 1024), (1025, 2048)]);
        assert_eq!(axis.counts(&dist), [1, 0, 0, 2, 1, 0, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn finer_if_they_are_few() {
        let axis = Axis::new(&dist(3, &[1025, 8000]), 20, Gaps::Show);
        assert_eq!(axis.ranges().len(), 12);
        assert_eq!(ends_of(&axis)[0], (1025, 1217));
    }

    #[test]
    fn wider_if_they_are_many() {
        let axis = Axis::new(&dist(0, &[1, 1 << 40]), 20, Gaps::Show);
        assert_eq!(axis.ranges().len(), 11);
        assert_eq!(ends_of(&axis)[0], (1, 1));
        assert_eq!(ends_of(&axis)[10], ((1 << 36) + 1, 1 << 40));
    }

    #[test]
    fn signs_and_small_numbers() {
        let dist = dist(3, &[-5, -1, 0, 0, 1, 3]);
        let axis = Axis::new(&dist, 20, Gaps::Show);
        let ends = ends_of(&axis);
        assert!(ends.windows(2).all(|pair| pair[0].1 < pair[1].0), "{ends:?}");
        assert_eq!(axis.counts(&dist).iter().sum::<u64>(), 6);
        assert!(ends.contains(&(0, 0)));
    }

    #[test]
    fn gaps() {
        let dist = dist(3, &[1, 1 << 20, 1 << 30]);
        let axis = Axis::new(&dist, 20, Gaps::Skip);
        assert_eq!(ends_of(&axis).len(), 3);
        // Few ranges are shown in detail.
        assert_eq!(ends_of(&axis)[1], (961_549, 1 << 20));
    }

    #[test]
    fn nothing() {
        assert_eq!(Axis::new(&Dist::default(), 20, Gaps::Show).ranges(), []);
    }

    proptest! {
        #[test]
        fn all_values_are_in_ranges(
            scale in 0..=20u8,
            values in prop::collection::vec(any::<i64>().prop_flat_map(|value| (Just(value), 0..63)), 1..20),
            most in 9..30usize,
        ) {
            let values: Vec<i128> = values.iter().map(|(value, shift)| i128::from(value >> shift)).collect();
            let dist = dist(scale, &values);
            let axis = Axis::new(&dist, most, Gaps::Show);
            prop_assert!(axis.ranges().len() <= most);
            let skipping = Axis::new(&dist, most, Gaps::Skip);
            prop_assert!(skipping.ranges().len() <= most);
            prop_assert_eq!(skipping.counts(&dist).iter().sum::<u64>(), values.len() as u64);
            prop_assert_eq!(axis.counts(&dist).iter().sum::<u64>(), values.len() as u64);
            for (range, count) in axis.ranges().iter().zip(axis.counts(&dist)) {
                let inside = values.iter().filter(|value| (range.low..=range.high).contains(value)).count();
                prop_assert_eq!(inside as u64, count);
            }
        }
    }
}
