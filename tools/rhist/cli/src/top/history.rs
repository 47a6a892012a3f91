// SPDX-License-Identifier: MIT OR Apache-2.0

//! What was measured of each key in each of the last intervals, in little memory.

use std::collections::VecDeque;
use std::mem::size_of;

use rhist_core::table::Dist;

/// Longest history, in intervals: hardly a screen shows more.
const MAX_INTERVALS: usize = 240;

/// Most memory that it takes, in bytes. With many keys it is shorter than [`MAX_INTERVALS`].
const MAX_BYTES: usize = 2 << 20;

/// The last intervals, the newest at the back.
#[derive(Debug, Default)]
pub struct History {
    moments: VecDeque<Moment>,
    bytes: usize,
    /// How many intervals were pushed in all.
    pub pushed: u64,
}

/// An interval. Only keys that had hits are in it.
#[derive(Debug, Default)]
pub struct Moment {
    /// When it ended: `CLOCK_MONOTONIC` in nanoseconds.
    pub end_ns: u64,
    /// Sorted by key.
    points: Vec<Point>,
    /// Those of all points, one after the other.
    cells: Vec<Cell>,
}

/// What was measured of a key in an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Number of the key.
    key: u32,
    /// Hits per second.
    pub rate: f32,
    /// The median, NaN if there is none.
    pub p50: f32,
    /// The 99th percentile, NaN if there is none.
    pub p99: f32,
    /// Where its cells end in [`Moment::cells`].
    end: u32,
}

/// Values of nearly the same size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// See [`height`].
    pub height: u8,
    /// How many there are: 8 times the binary logarithm of one more.
    pub level: u8,
}

/// Steps between a number and its double.
pub const STEPS: u8 = 4;

/// On which step a value is: 0 if it is not positive, otherwise 1 to 255.
pub fn height(value: f64) -> u8 {
    match value > 0.0 {
        true => (1.0 + (f64::from(STEPS) * value.log2()).ceil()).clamp(1.0, 255.0) as u8,
        false => 0,
    }
}

/// The largest value on a step.
pub fn value_at(height: u8) -> f64 {
    match height {
        0 => 0.0,
        _ => ((f64::from(height) - 1.0) / f64::from(STEPS)).exp2(),
    }
}

/// Adds the cells of a distribution, in their order.
fn add_cells(dist: &Dist, cells: &mut Vec<Cell>) {
    // From the index of a bucket: its bounds would take longer.
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
    /// `None` if there are no values.
    fn new((height, count): (u8, u64)) -> Option<Self> {
        let level = 8.0 * (count as f64 + 1.0).log2();
        (count > 0).then_some(Cell {
            height,
            level: level.clamp(1.0, 255.0) as u8,
        })
    }
}

impl Moment {
    /// An interval without keys yet, that ended at `end_ns`.
    pub fn new(end_ns: u64) -> Self {
        Moment {
            end_ns,
            ..Moment::default()
        }
    }

    /// Adds a key that had hits.
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

    /// What was measured of a key, and its cells. `None` if it had no hits.
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
    /// Adds an interval, and drops the oldest ones if there are too many.
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

    /// The last `count` intervals of the first `until` that were pushed, the oldest first.
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
