// SPDX-License-Identifier: MIT OR Apache-2.0

//! Ranges that overlap, made to ranges that do not.

use std::collections::BinaryHeap;
use std::ops::Range;

/// The range of numbers that belongs to none.
const NONE: u32 = u32::MAX;

/// Numbers of ranges, by place. Each place belongs to one of the ranges it is in, or to none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spans {
    /// Where a range begins to be the one, and its number, or [`NONE`]: by place.
    begins: Vec<(u64, u32)>,
}

impl Spans {
    /// Each place belongs to the last range in the list that it is in. Their starts ascend, and
    /// they are not empty.
    pub(crate) fn of_sorted(ranges: impl Iterator<Item = Range<u64>>) -> Self {
        let mut spans = Self::default();
        // Ranges that have begun, each of which hides those below it.
        let mut open: Vec<(u64, u32)> = Vec::new();
        for (number, range) in (0..).zip(ranges) {
            spans.close(&mut open, range.start);
            // If one of these ends earlier, it will not be seen again.
            while open.last().is_some_and(|&(end, _)| end <= range.end) {
                open.pop();
            }
            open.push((range.end, number));
            spans.begin(range.start, number);
        }
        spans.close(&mut open, u64::MAX);
        spans.begins.shrink_to_fit();
        spans
    }

    /// Ends the open ranges that end up to this place.
    fn close(&mut self, open: &mut Vec<(u64, u32)>, place: u64) {
        while let Some(&(end, _)) = open.last()
            && end <= place
        {
            open.pop();
            self.begin(end, open.last().map_or(NONE, |&(_, number)| number));
        }
    }

    /// Each place belongs to the range with the highest number that it is in. The ranges are in any
    /// order, and not empty.
    pub(crate) fn of_unsorted(ranges: &[Range<u64>]) -> Self {
        let mut spans = Self::default();
        let mut numbers: Vec<u32> = (0..).take(ranges.len()).collect();
        numbers.sort_by_key(|&number| ranges[number as usize].start);
        let mut places: Vec<u64> = ranges.iter().flat_map(|range| [range.start, range.end]).collect();
        places.sort_unstable();
        places.dedup();
        let mut open = BinaryHeap::new();
        let mut next = numbers.into_iter().peekable();
        for place in places {
            while let Some(number) = next.next_if(|&number| ranges[number as usize].start == place) {
                open.push(number);
            }
            while open.peek().is_some_and(|&number| ranges[number as usize].end <= place) {
                open.pop();
            }
            spans.begin(place, open.peek().map_or(NONE, |&number| number));
        }
        spans.begins.shrink_to_fit();
        spans
    }

    /// From this place on, places belong to another range. Places ascend, but may be equal.
    fn begin(&mut self, place: u64, number: u32) {
        if self.begins.last().is_some_and(|&(last, _)| last == place) {
            self.begins.pop();
        }
        if self.begins.last().map_or(NONE, |&(_, last)| last) != number {
            self.begins.push((place, number));
        }
    }

    /// The number of the range that a place belongs to.
    pub(crate) fn find(&self, place: u64) -> Option<u32> {
        let behind = self.begins.partition_point(|&(begin, _)| begin <= place);
        let &(_, number) = self.begins[..behind].last()?;
        (number != NONE).then_some(number)
    }

    /// All places that belong to ranges, and the numbers of these, by place.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Range<u64>, u32)> {
        self.begins
            .windows(2)
            .filter(|pair| pair[0].1 != NONE)
            .map(|pair| (pair[0].0..pair[1].0, pair[0].1))
    }
}
