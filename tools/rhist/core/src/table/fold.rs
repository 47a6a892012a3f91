// SPDX-License-Identifier: MIT OR Apache-2.0

//! Combines tables: sums over keys, sums of tables, and differences over time.

use std::borrow::Cow;
use std::hash::Hash;
use std::hash::Hasher;

use foldhash::HashMap;
use foldhash::HashMapExt;

use super::Column;
use super::Dist;
use super::Fold;
use super::Key;
use super::Keys;
use super::Losses;
use super::Row;
use super::Table;
use super::Value;

impl Table {
    /// Adds the rows and losses of `other`, which has the same columns. Keeps the later of the two
    /// times.
    pub fn merge(&mut self, other: Table) {
        if self.keys.is_empty() && self.values.is_empty() && self.rows.is_empty() {
            (self.keys, self.values) = (other.keys, other.values);
        }
        if self.rows.is_empty() {
            self.rows = other.rows;
        } else {
            let places = places(&other.rows, &self.rows);
            for (row, place) in other.rows.into_iter().zip(places) {
                match place.and_then(|place| self.rows.get_mut(place)) {
                    Some(ours) => ours.merge(&row, &self.values),
                    None => self.rows.push(row),
                }
            }
        }
        self.losses.merge(&other.losses);
        self.time = other.time.max(std::mem::take(&mut self.time));
    }

    /// Increase since `earlier`, an older state of this table. Omits rows without an increase, and
    /// keeps the order of the others. A decrease counts as 0, as after `clear`.
    ///
    /// A minimum or maximum is [`Value::Unknown`] or `None` unless it must be among the new values.
    pub fn since(&self, mut earlier: Table) -> Table {
        let places = places(&self.rows, &earlier.rows);
        // Reuses the rows of `earlier`: for a hundred thousand rows, allocations would take most of
        // the time.
        let delta = |(row, place): (&Row, Option<usize>)| match place.and_then(|place| earlier.rows.get_mut(place)) {
            None => Some(row.clone()),
            Some(before) if row.hits < before.hits => None,
            // `earlier` may have been read during a hit, when the hit was counted but its values
            // were not.
            Some(before) if row.hits == before.hits && row.values == before.values => None,
            Some(before) => Some(row.since(std::mem::take(before), &self.values)),
        };
        Table {
            keys: self.keys.clone(),
            values: self.values.clone(),
            rows: self.rows.iter().zip(places).filter_map(delta).collect(),
            losses: self.losses.since(&earlier.losses),
            time: self.time.clone(),
        }
    }

    /// Moves sums without a value from `delta`, the increase since an older state, to the next one:
    /// the reading happened during a hit that had added only to the sum.
    pub fn hold_back(&mut self, delta: &mut Table) {
        for row in &mut delta.rows {
            for (n, value) in row.values.iter_mut().enumerate() {
                let Value::Dist(Dist {
                    count: 0,
                    sum: Some(early),
                    ..
                }) = value
                else {
                    continue;
                };
                let early = std::mem::take(early);
                // Rare, so a linear search is enough.
                let ours = match early {
                    0 => None,
                    _ => self.rows.iter_mut().find(|ours| ours.keys == row.keys),
                };
                if let Some(Value::Dist(ours)) = ours.and_then(|ours| ours.values.get_mut(n)) {
                    ours.sum = ours.sum.map(|sum| sum.saturating_sub(early));
                }
            }
        }
    }

    /// Sum of all rows, without keys. Without rows: no hits, and unknown values.
    pub fn total(&self) -> Row {
        let none = Row {
            keys: Keys::new(),
            hits: 0,
            values: self.values.iter().map(|_| Value::Unknown).collect(),
            worst: None,
        };
        let Some((first, rest)) = self.rows.split_first() else {
            return none;
        };
        let mut total = Row {
            keys: Keys::new(),
            ..first.clone()
        };
        for row in rest {
            total.merge(row, &self.values);
        }
        total
    }

    /// Removes a key column, and merges rows that differ only in it. If the column does not exist,
    /// returns a copy.
    pub fn without_key(&self, key: usize) -> Table {
        self.grouped(key, self.values.clone(), Cow::Borrowed)
    }

    /// Turns a key with ranges of numbers (`.log2`) into a distribution: removes the key, and
    /// appends the value `column`. If value `sum` is the sum of these numbers, moves it to
    /// [`Dist::sum`].
    ///
    /// The buckets have scale 0. Ranges that match none of them (`.buckets=`), and keys that are
    /// not numbers, count without a bucket.
    ///
    /// Calls `change` for the distribution of each row before merging rows.
    pub fn fold_range(&self, key: usize, column: Column, sum: Option<usize>, change: impl Fn(&mut Dist)) -> Table {
        let sum = sum.filter(|&sum| sum < self.values.len());
        let mut values = self.values.clone();
        if let Some(sum) = sum {
            values.remove(sum);
        }
        values.push(column);
        self.grouped(key, values, |row| {
            let mut row = row.clone();
            let mut dist = match row.keys.get(key) {
                Some(key) => ranged(key, row.hits),
                None => Dist::default(),
            };
            if let Some(sum) = sum.filter(|&sum| sum < row.values.len()) {
                dist.sum = match row.values.remove(sum) {
                    Value::Number(number) => Some(number),
                    _ => None,
                };
            }
            change(&mut dist);
            row.values.push(Value::Dist(dist));
            Cow::Owned(row)
        })
    }

    /// Returns whether keys or saved fields contain addresses. `has_address` decides for a single
    /// one and its column.
    pub fn has_addresses(&self, has_address: impl Fn(&str, &Key) -> bool) -> bool {
        self.rows.iter().any(|row| {
            let mut saved = row.worst.iter().flat_map(|worst| worst.saved.iter());
            let mut keys = self.keys.iter().zip(&row.keys);
            keys.any(|(column, key)| has_address(&column.name, key)) || saved.any(|(name, key)| has_address(name, key))
        })
    }

    /// Removes addresses but keeps symbols, and merges rows that differ only in addresses.
    /// `has_address` as for [`Self::has_addresses()`].
    pub fn without_addresses(&self, has_address: impl Fn(&str, &Key) -> bool) -> Table {
        let mut places = HashMap::with_capacity(self.rows.len());
        let mut rows: Vec<Row> = Vec::new();
        for row in &self.rows {
            let mut row = row.clone();
            for (column, key) in self.keys.iter().zip(&mut row.keys) {
                if has_address(&column.name, key) {
                    key.remove_address();
                }
            }
            if let Some(worst) = &mut row.worst {
                let mut saved = worst.saved.to_vec();
                let addresses = saved.iter_mut().filter(|(name, key)| has_address(name, key));
                addresses.for_each(|(_, key)| key.remove_address());
                worst.saved = saved.into();
            }
            let place = *places.entry(row.keys.clone()).or_insert(rows.len());
            match rows.get_mut(place) {
                Some(ours) => ours.merge(&row, &self.values),
                None => rows.push(row),
            }
        }
        Table {
            keys: self.keys.clone(),
            values: self.values.clone(),
            rows,
            losses: self.losses.clone(),
            time: self.time.clone(),
        }
    }

    /// Applies `make` to each row, removes this key, and merges rows.
    fn grouped<'a>(&'a self, key: usize, values: Vec<Column>, make: impl Fn(&'a Row) -> Cow<'a, Row>) -> Table {
        let mut places = HashMap::with_capacity(self.rows.len());
        let mut rows: Vec<Row> = Vec::new();
        for row in &self.rows {
            let place = *places.entry(OtherKeys { keys: &row.keys, key }).or_insert(rows.len());
            let made = make(row);
            match rows.get_mut(place) {
                Some(row) => row.merge(&made, &values),
                None => {
                    let mut made = made.into_owned();
                    if key < made.keys.len() {
                        made.keys.remove(key);
                    }
                    rows.push(made);
                }
            }
        }
        let mut keys = self.keys.clone();
        if key < keys.len() {
            keys.remove(key);
        }
        Table {
            keys,
            values,
            rows,
            losses: self.losses.clone(),
            time: self.time.clone(),
        }
    }
}

/// Keys of a row except one, as a key of a hash table.
struct OtherKeys<'a> {
    keys: &'a [Key],
    key: usize,
}

impl OtherKeys<'_> {
    fn iter(&self) -> impl Iterator<Item = &Key> {
        let keys = self.keys.iter().enumerate();
        keys.filter(|&(n, _)| n != self.key).map(|(_, key)| key)
    }
}

impl PartialEq for OtherKeys<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for OtherKeys<'_> {}

impl Hash for OtherKeys<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.iter().for_each(|key| key.hash(state));
    }
}

/// Indices of `rows` among `others`, by their keys.
fn places(rows: &[Row], others: &[Row]) -> Vec<Option<usize>> {
    let mut finder = Finder::new(others);
    rows.iter().map(|row| finder.find(&row.keys)).collect()
}

/// Finds rows by their keys. Tries the row after the last match first, since two readings of a
/// histogram have most rows in the same order. This is far faster than a hash table, which is built
/// only when needed.
struct Finder<'a> {
    rows: &'a [Row],
    next: usize,
    by_keys: Option<HashMap<&'a [Key], usize>>,
}

impl<'a> Finder<'a> {
    fn new(rows: &'a [Row]) -> Self {
        Finder {
            rows,
            next: 0,
            by_keys: None,
        }
    }

    fn find(&mut self, keys: &[Key]) -> Option<usize> {
        let rows = self.rows;
        let place = match rows.get(self.next) {
            Some(row) if *row.keys == *keys => self.next,
            _ => {
                let numbered = rows.iter().enumerate();
                let index = || numbered.map(|(place, row)| (row.keys.as_slice(), place)).collect();
                *self.by_keys.get_or_insert_with(index).get(keys)?
            }
        };
        self.next = place + 1;
        Some(place)
    }
}

/// A distribution of scale 0 with `hits` values in this range.
fn ranged(key: &Key, hits: u64) -> Dist {
    let mut dist = Dist::new(0);
    match *key {
        Key::Number(number) => {
            dist.record(number, hits);
            return dist;
        }
        Key::Range { first: 0, last: 1 } => {
            dist.record(1, hits);
            dist.one_has_zero = true;
        }
        Key::Range { first, last } => {
            let (mut lowest, mut highest) = (Dist::new(0), Dist::new(0));
            lowest.record(first, hits);
            highest.record(last, hits);
            dist.count = hits;
            if lowest.buckets().eq(highest.buckets()) {
                dist = lowest;
            }
        }
        _ => dist.count = hits,
    }
    (dist.sum, dist.min, dist.max) = (None, None, None);
    dist
}

impl Row {
    /// Adds the counts of `other`, whose values have the same columns.
    pub fn merge(&mut self, other: &Row, values: &[Column]) {
        self.hits = self.hits.saturating_add(other.hits);
        let pairs = self.values.iter_mut().zip(&other.values);
        for ((value, other), column) in pairs.zip(values) {
            value.merge(other, column.fold);
        }
        if other.worst > self.worst {
            self.worst.clone_from(&other.worst);
        }
    }

    fn since(&self, mut earlier: Row, values: &[Column]) -> Row {
        earlier.hits = self.hits.saturating_sub(earlier.hits);
        let pairs = self.values.iter().zip(&mut earlier.values);
        for ((now, before), column) in pairs.zip(values) {
            let taken = std::mem::replace(before, Value::Unknown);
            *before = now.since(taken, column.fold);
        }
        earlier.worst = match (&self.worst, &earlier.worst) {
            (Some(now), Some(before)) if now.value <= before.value => None,
            (worst, _) => worst.clone(),
        };
        earlier
    }
}

impl Value {
    /// Adds `other`. The result is unknown if one of them is unknown, or if their kinds differ.
    fn merge(&mut self, other: &Value, fold: Fold) {
        match (&mut *self, other) {
            (Value::Number(number), &Value::Number(other)) => {
                *number = match fold {
                    Fold::Sum => number.saturating_add(other),
                    Fold::Min => other.min(*number),
                    Fold::Max => other.max(*number),
                }
            }
            (Value::Dist(dist), Value::Dist(other)) => dist.merge(other),
            _ => *self = Value::Unknown,
        }
    }

    fn since(&self, earlier: Value, fold: Fold) -> Value {
        match (self, earlier) {
            (&Value::Number(now), Value::Number(before)) => match fold {
                Fold::Sum => Value::Number(now.saturating_sub(before)),
                Fold::Min if now < before => Value::Number(now),
                Fold::Max if now > before => Value::Number(now),
                Fold::Min | Fold::Max => Value::Unknown,
            },
            (Value::Dist(now), Value::Dist(before)) => Value::Dist(now.since(before)),
            _ => Value::Unknown,
        }
    }
}

/// Sum of two counts. A missing count is ignored.
pub fn sum(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (a, b) => a.or(b),
    }
}

/// Increase of a count.
pub(crate) fn less(now: Option<u64>, before: Option<u64>) -> Option<u64> {
    now.map(|now| now.saturating_sub(before.unwrap_or(0)))
}

impl Losses {
    /// Adds the losses of `other`. Missing counts are ignored.
    pub fn merge(&mut self, other: &Losses) {
        self.dropped = self.dropped.saturating_add(other.dropped);
        self.dropped_starts = self.dropped_starts.saturating_add(other.dropped_starts);
        self.no_bucket = sum(self.no_bucket, other.no_bucket);
        self.unresolved = sum(self.unresolved, other.unresolved);
        self.missed = sum(self.missed, other.missed);
        self.missed_hits = sum(self.missed_hits, other.missed_hits);
    }

    fn since(&self, earlier: &Losses) -> Losses {
        Losses {
            dropped: self.dropped.saturating_sub(earlier.dropped),
            dropped_starts: self.dropped_starts.saturating_sub(earlier.dropped_starts),
            no_bucket: less(self.no_bucket, earlier.no_bucket),
            unresolved: less(self.unresolved, earlier.unresolved),
            missed: less(self.missed, earlier.missed),
            missed_hits: less(self.missed_hits, earlier.missed_hits),
        }
    }
}

#[cfg(test)]
mod tests;
