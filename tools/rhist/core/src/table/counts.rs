// SPDX-License-Identifier: MIT OR Apache-2.0

//! Counts of the buckets of a distribution.

use std::fmt;

/// Counts by bucket index, without zeros. A table may have a hundred thousand of these with a few
/// buckets each, so this is a sorted list: smaller than a tree, and faster to copy and compare.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Counts(Vec<(i32, u64)>);

/// Initial capacity. Nearly all distributions have fewer buckets, so one allocation is enough.
/// Negative buckets are nearly always empty, and allocate nothing.
const FEW: usize = 8;

impl Counts {
    /// Creates an empty list with memory for this many buckets.
    pub fn with_capacity(buckets: usize) -> Self {
        Counts(Vec::with_capacity(buckets))
    }

    /// Adds to the count of a bucket. Saturates.
    pub fn add(&mut self, index: i32, count: u64) {
        if count == 0 {
            return;
        }
        // Fast path: buckets nearly always come in order.
        let place = match self.0.last() {
            Some(&(last, _)) if last >= index => self.0.binary_search_by_key(&index, |&(index, _)| index),
            _ => Err(self.0.len()),
        };
        match place.map(|place| self.0.get_mut(place)) {
            Ok(Some((_, sum))) => *sum = sum.saturating_add(count),
            Ok(None) => (),
            Err(place) => {
                if self.0.capacity() == 0 {
                    self.0.reserve_exact(FEW);
                }
                self.0.insert(place, (index, count));
            }
        }
    }

    /// Index and count of each bucket, in the order of indices.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (i32, u64)> + ExactSizeIterator + '_ {
        self.0.iter().copied()
    }

    /// Number of buckets with a count.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether all buckets are empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The lowest and the highest index.
    pub fn ends(&self) -> Option<(i32, i32)> {
        Some((self.0.first()?.0, self.0.last()?.0))
    }

    /// Merges buckets into ones 2^`shift` times as wide.
    pub fn wider(&self, shift: u8) -> Self {
        self.iter()
            .map(|(index, count)| (index >> shift.min(31), count))
            .collect()
    }

    /// Returns whether a count is higher than in a later state.
    pub fn exceed(&self, later: &Counts) -> bool {
        let mut later = later.iter().peekable();
        self.iter().any(|(index, count)| {
            while later.next_if(|(other, _)| *other < index).is_some() {}
            later
                .next_if(|(other, _)| *other == index)
                .map_or(0, |(_, count)| count)
                < count
        })
    }

    /// Increase of each count since `earlier`.
    pub fn since(&self, mut earlier: Counts) -> Counts {
        // Fast path: the buckets are nearly always the same, so reuse the memory.
        let is_same = |(&now, &before): (&(i32, u64), &(i32, u64))| now.0 == before.0;
        if self.len() == earlier.len() && self.0.iter().zip(&earlier.0).all(is_same) {
            for (before, now) in earlier.0.iter_mut().zip(&self.0) {
                before.1 = now.1.saturating_sub(before.1);
            }
            earlier.0.retain(|&(_, count)| count > 0);
            return earlier;
        }
        let mut delta = Counts::with_capacity(self.len());
        let mut before = earlier.iter().peekable();
        for (index, count) in self.iter() {
            while before.next_if(|&(other, _)| other < index).is_some() {}
            let old = before
                .next_if(|&(other, _)| other == index)
                .map_or(0, |(_, count)| count);
            delta.add(index, count.saturating_sub(old));
        }
        delta
    }
}

impl FromIterator<(i32, u64)> for Counts {
    fn from_iter<I: IntoIterator<Item = (i32, u64)>>(counts: I) -> Self {
        let counts = counts.into_iter();
        let mut sorted = Counts::with_capacity(counts.size_hint().0);
        counts.for_each(|(index, count)| sorted.add(index, count));
        sorted
    }
}

impl<const N: usize> From<[(i32, u64); N]> for Counts {
    fn from(counts: [(i32, u64); N]) -> Self {
        counts.into_iter().collect()
    }
}

impl fmt::Debug for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn counts() -> impl Strategy<Value = Vec<(i32, u64)>> {
        prop::collection::vec((-5..9, 0..4u64), 0..20)
    }

    fn sums(counts: &[(i32, u64)]) -> BTreeMap<i32, u64> {
        let mut sums = BTreeMap::new();
        for &(index, count) in counts {
            *sums.entry(index).or_insert(0) += count;
        }
        sums.retain(|_, sum| *sum > 0);
        sums
    }

    proptest! {
        #[test]
        fn they_are_a_sorted_map(counts in counts()) {
            let sorted: Counts = counts.iter().copied().collect();
            let sums = sums(&counts);
            prop_assert!(sorted.iter().eq(sums.iter().map(|(&index, &sum)| (index, sum))));
            prop_assert_eq!(format!("{sorted:?}"), format!("{sums:?}"));
        }

        #[test]
        fn since_takes_back_what_is_added(earlier in counts(), more in counts()) {
            let before: Counts = earlier.iter().copied().collect();
            let now: Counts = earlier.iter().chain(&more).copied().collect();
            prop_assert_eq!(now.since(before.clone()), more.into_iter().collect());
            prop_assert!(before.since(now).is_empty());
            let twice: Counts = earlier.iter().chain(&earlier).copied().collect();
            prop_assert_eq!(twice.since(before.clone()), before);
        }
    }
}
