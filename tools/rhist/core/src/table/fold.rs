// SPDX-License-Identifier: MIT OR Apache-2.0

//! Tables that become one: sums over keys, over tables, and differences over time.

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
    /// Adds the rows and losses of `other`, which has the same columns. The time is the later one.
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

    /// What was added since `earlier`, which is an older state of this. Rows without anything new are not there; the
    /// others keep their order. What has become less counts as nothing, as after `clear`.
    ///
    /// A smallest or largest value is [`Value::Unknown`] or `None` unless it must have been among what was added.
    pub fn since(&self, mut earlier: Table) -> Table {
        let places = places(&self.rows, &earlier.rows);
        // Rows of `earlier` are made over: with a hundred thousand of them, most of the time would go into memory for others.
        let delta = |(row, place): (&Row, Option<usize>)| match place.and_then(|place| earlier.rows.get_mut(place)) {
            None => Some(row.clone()),
            Some(before) if row.hits < before.hits => None,
            // A hit may have been on its way when `earlier` was read: counted, while its values were not.
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

    /// Takes from this table, and from what it has more than an older state, sums of which no value was counted in between, as a
    /// hit was on its way: they are a part of what is added next.
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
                // It is rare, so nothing is prepared for it.
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

    /// All rows in one, without keys. Of no rows: no hits, and unknown values.
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

    /// The table without this key: rows that only differ in it become one. Without such a key it stays as it is.
    pub fn without_key(&self, key: usize) -> Table {
        self.grouped(key, self.values.clone(), Cow::Borrowed)
    }

    /// Makes a distribution of a key that is a range of numbers (`.log2`): it is appended as value `column`, and the key is gone.
    /// If value `sum` is the sum of these numbers, it becomes [`Dist::sum`], and is gone, too.
    ///
    /// The buckets have scale 0. Ranges that are in none of them (`.buckets=`), and what is no number, are in no bucket.
    ///
    /// `change` is called for the distribution of each row, before rows become one.
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

    /// Whether there are addresses in keys, or in fields that were saved. `has_address` says it of
    /// one of a column.
    pub fn has_addresses(&self, has_address: impl Fn(&str, &Key) -> bool) -> bool {
        self.rows.iter().any(|row| {
            let mut saved = row.worst.iter().flat_map(|worst| worst.saved.iter());
            let mut keys = self.keys.iter().zip(&row.keys);
            keys.any(|(column, key)| has_address(&column.name, key)) || saved.any(|(name, key)| has_address(name, key))
        })
    }

    /// The table with symbols only: rows that only differ in addresses become one. `has_address` as
    /// above.
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

    /// A table of what `make` makes of each row, without this key.
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

/// Keys of a row without one of them.
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

/// Where `rows` are among `others`, by their keys.
fn places(rows: &[Row], others: &[Row]) -> Vec<Option<usize>> {
    let mut finder = Finder::new(others);
    rows.iter().map(|row| finder.find(&row.keys)).collect()
}

/// Finds rows by their keys. Two readings of a histogram have most rows in the same order, so the one behind the row that was
/// found last is tried first: a look at rows one after the other is far quicker than a hash table.
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
    /// Adds what was counted in `other`, whose values have these columns, too.
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
    /// Adds `other`. What is unknown, or of another kind, makes the result unknown.
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

/// The sum of two counts. What only one of both tells is taken for all that is known.
pub(crate) fn sum(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (a, b) => a.or(b),
    }
}

/// By how much a count has risen.
pub(crate) fn less(now: Option<u64>, before: Option<u64>) -> Option<u64> {
    now.map(|now| now.saturating_sub(before.unwrap_or(0)))
}

impl Losses {
    /// Adds those of `other`. What only one of both tells is taken for all that is known.
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
