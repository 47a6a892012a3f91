// SPDX-License-Identifier: MIT OR Apache-2.0

//! History of all keys over the last intervals, in a compact form.

use std::collections::VecDeque;
use std::mem::size_of;

use rhist_core::table::Dist;

/// Limit of intervals, more than most screens can show.
const MAX_INTERVALS: usize = 240;

/// Limit of memory, in bytes. With many keys, the history is shorter than [`MAX_INTERVALS`].
const MAX_BYTES: usize = 2 << 20;

/// The last intervals, the newest at the back.
#[derive(Debug, Default)]
pub struct History {
    moments: VecDeque<Moment>,
    bytes: usize,
    /// Number of intervals pushed in total.
    pub pushed: u64,
}

/// An interval. Contains only keys with hits.
#[derive(Debug, Default)]
pub struct Moment {
    /// End of the interval: `CLOCK_MONOTONIC` in nanoseconds.
    pub end_ns: u64,
    /// Sorted by key.
    points: Vec<Point>,
    /// Cells of all points, in the same order.
    cells: Vec<Cell>,
}

/// Numbers of a key in an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Number of the key.
    key: u32,
    /// Hits per second.
    pub rate: f32,
    /// Median; NaN without a distribution.
    pub p50: f32,
    /// 99th percentile; NaN without a distribution.
    pub p99: f32,
    /// End of its cells in [`Moment::cells`].
    end: u32,
}

/// Count of values of nearly the same size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// See [`height`].
    pub height: u8,
    /// 8 * log2(count + 1).
    pub level: u8,
}

/// Steps per octave.
pub const STEPS: u8 = 4;

/// Step of a value: 0 if it is not positive, otherwise 1 to 255.
pub fn height(value: f64) -> u8 {
    match value > 0.0 {
        true => (1.0 + (f64::from(STEPS) * value.log2()).ceil()).clamp(1.0, 255.0) as u8,
        false => 0,
    }
}

/// Largest value of a step.
pub fn value_at(height: u8) -> f64 {
    match height {
        0 => 0.0,
        _ => ((f64::from(height) - 1.0) / f64::from(STEPS)).exp2(),
    }
}

/// Adds the cells of a distribution, in order.
fn add_cells(dist: &Dist, cells: &mut Vec<Cell>) {
    // Computed from the index of a bucket, which is faster than from its bounds.
    let unit = f64::from(STEPS) * (dist.bucket_unit.values() as f64).log2();
    let width = f64::from(STEPS) / f64::from(dist.scale).exp2();
    let height = |index: i32| (1.0 + (unit + (f64::from(index) + 1.0) * width).ceil()).clamp(1.0, 255.0) as u8;
    let not_positive = dist
        .negative
        .iter()
        .fold(dist.zero, |sum, (_, count)| sum.saturating_add(count));
    let mut next = (0, not_positive);
    for (index, count) in dist.positive.iter() {
        let height = height(index);
        if height != next.0 {
            cells.extend(Cell::new(next));
            next = (height, 0);
        }
        next.1 = count.saturating_add(next.1);
    }
    cells.extend(Cell::new(next));
}

impl Cell {
    /// Creates a cell from step and count. `None` if the count is 0.
    fn new((height, count): (u8, u64)) -> Option<Self> {
        let level = 8.0 * (count as f64 + 1.0).log2();
        (count > 0).then_some(Cell {
            height,
            level: level.clamp(1.0, 255.0) as u8,
        })
    }
}

impl Moment {
    /// Creates an interval without keys. `end_ns` is its end.
    pub fn new(end_ns: u64) -> Self {
        Moment {
            end_ns,
            ..Moment::default()
        }
    }

    /// Adds a key with hits.
    pub fn add(&mut self, key: u32, rate: f64, [p50, p99]: [Option<f64>; 2], dist: Option<&Dist>) {
        if let Some(dist) = dist {
            add_cells(dist, &mut self.cells);
        }
        self.points.push(Point {
            key,
            rate: rate as f32,
            p50: p50.map_or(f32::NAN, |value| value as f32),
            p99: p99.map_or(f32::NAN, |value| value as f32),
            end: u32::try_from(self.cells.len()).unwrap_or(u32::MAX),
        });
    }

    /// Numbers of a key, and its cells. `None` if it had no hits.
    pub fn get(&self, key: u32) -> Option<(&Point, &[Cell])> {
        let at = self.points.binary_search_by_key(&key, |point| point.key).ok()?;
        let point = self.points.get(at)?;
        let before = at.checked_sub(1).and_then(|at| self.points.get(at));
        let start = before.map_or(0, |point| point.end);
        let cells = self.cells.get(start as usize..point.end as usize);
        Some((point, cells.unwrap_or_default()))
    }

    fn bytes(&self) -> usize {
        size_of::<Moment>() + self.points.len() * size_of::<Point>() + self.cells.len() * size_of::<Cell>()
    }
}

impl History {
    /// Adds an interval, and drops the oldest ones beyond the limits.
    pub fn push(&mut self, mut moment: Moment) {
        moment.points.sort_unstable_by_key(|point| point.key);
        moment.points.shrink_to_fit();
        moment.cells.shrink_to_fit();
        self.bytes += moment.bytes();
        self.moments.push_back(moment);
        self.pushed += 1;
        while self.moments.len() > MAX_INTERVALS || (self.bytes > MAX_BYTES && self.moments.len() > 1) {
            let oldest = self.moments.pop_front();
            self.bytes -= oldest.map_or(0, |moment| moment.bytes());
        }
    }

    /// The last `count` of the first `until` intervals pushed, the oldest first.
    pub fn last(&self, count: usize, until: u64) -> impl Iterator<Item = &Moment> {
        let later = usize::try_from(self.pushed.saturating_sub(until)).unwrap_or(usize::MAX);
        let end = self.moments.len().saturating_sub(later);
        self.moments.range(end.saturating_sub(count)..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dist(values: &[(i128, u64)]) -> Dist {
        let mut dist = Dist::new(3);
        for &(value, count) in values {
            dist.record(value, count);
        }
        dist
    }

    #[test]
    fn a_step_ends_with_its_value() {
        for step in 1..=255 {
            assert_eq!(height(value_at(step) * 0.9999), step);
            assert_eq!(height(value_at(step) * 1.0001), step.saturating_add(1));
        }
        assert_eq!(
            [height(0.0), height(-5.0), height(f64::NAN), height(1e300)],
            [0, 0, 0, 255]
        );
    }

    #[test]
    fn points_have_their_own_cells() {
        let mut moment = Moment::new(1);
        moment.add(
            3,
            2.0,
            [Some(1.0), None],
            Some(&dist(&[(-7, 1), (0, 2), (1, 3), (1000, 255)])),
        );
        moment.add(5, 1.0, [None, None], None);
        moment.add(7, 1.0, [None, None], Some(&dist(&[(64, 1)])));
        let cells = |key| moment.get(key).map(|(_, cells)| cells.to_vec());
        let cell = |height, level| Cell { height, level };
        assert_eq!(cells(3), Some(vec![cell(0, 16), cell(1, 16), cell(41, 64)]));
        assert_eq!(cells(5), Some(vec![]));
        assert_eq!(cells(7), Some(vec![cell(25, 8)]));
        assert_eq!(cells(4), None);
    }

    #[test]
    fn memory_is_bounded() {
        let mut history = History::default();
        for end_ns in 0..300 {
            let mut moment = Moment::new(end_ns);
            for key in 0..2000 {
                moment.add(key, 1.0, [None, None], Some(&dist(&[(1, 1), (1000, 1)])));
            }
            history.push(moment);
        }
        let bytes: usize = history.moments.iter().map(Moment::bytes).sum();
        assert_eq!(bytes, history.bytes);
        assert!((MAX_BYTES / 2..=MAX_BYTES).contains(&bytes));
        let ends = |count, until| {
            history
                .last(count, until)
                .map(|moment| moment.end_ns)
                .collect::<Vec<_>>()
        };
        assert_eq!(ends(2, 300), [298, 299]);
        assert_eq!(ends(2, 299), [297, 298]);
        assert!(ends(2, 0).is_empty());
    }
}
