// SPDX-License-Identifier: MIT OR Apache-2.0

//! Totals of a histogram since it was first started. They include counts of triggers that are gone,
//! and limit the number of label sets.

use std::fmt;

use foldhash::HashMap;
use foldhash::HashMapExt;
use rhist_core::question::Reading;
use rhist_core::question::is_signed;
use rhist_core::table::Column;
use rhist_core::table::Counts;
use rhist_core::table::Dist;
use rhist_core::table::Fold;
use rhist_core::table::Key;
use rhist_core::table::Keys;
use rhist_core::table::Losses;
use rhist_core::table::Row;
use rhist_core::table::Table;
use rhist_core::table::Text;
use rhist_core::table::Time;
use rhist_core::table::Value;
use rhist_core::table::fold;

/// Value of each label of the label set that collects the folded keys.
pub const OTHER: &str = "other";

/// Index of the label set of the folded keys.
const FOLDED: usize = 0;

/// Totals of a histogram. They never fall, whatever happens to the triggers: a count that was read
/// once is kept.
#[derive(Debug)]
pub struct Totals {
    /// Names of values and fields that can be negative, so that their sums can fall.
    pub signed: Vec<String>,
    /// Limit of label sets, besides the folded one.
    limit: usize,
    /// Columns of keys and values, from the first reading.
    keys: Vec<Column>,
    values: Vec<Column>,
    /// Label sets; the first one collects the folded keys. Indices are permanent: a key that was
    /// folded once stays folded, since a label set of its own would make the folded one fall.
    sets: Vec<Vec<String>>,
    /// Indices in `sets` by label set.
    places: HashMap<Vec<String>, usize>,
    /// Indices in `sets` by key, for all keys seen.
    known: HashMap<Keys, usize>,
    /// Number of folded keys.
    folded_keys: u64,
    /// Counts of triggers that are gone.
    base: Counted,
    /// `base` plus the last reading.
    total: Counted,
    /// Time of the last reading.
    time: Time,
}

/// Counts by the indices of label sets.
#[derive(Clone, Debug, Default)]
struct Counted {
    rows: Vec<Option<Row>>,
    losses: Losses,
    events: u64,
    rejected: Option<u64>,
}

/// A reading is below the previous one: the triggers were replaced or cleared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fallen;

impl fmt::Display for Fallen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("another program cleared a trigger of this run, or made it again")
    }
}

/// A label set with its counts.
#[derive(Clone, Copy, Debug)]
pub struct Set<'a> {
    /// Values of labels, parallel to [`Totals::keys()`].
    pub labels: &'a [String],
    /// Counts, without keys.
    pub row: &'a Row,
}

impl Totals {
    /// Creates empty totals.
    pub fn new(limit: u32) -> Self {
        Self {
            signed: Vec::new(),
            limit: limit as usize,
            keys: Vec::new(),
            values: Vec::new(),
            sets: vec![Vec::new()],
            places: HashMap::new(),
            known: HashMap::new(),
            folded_keys: 0,
            base: Counted::default(),
            total: Counted::default(),
            time: Time::default(),
        }
    }

    /// Replaces the last reading of the current triggers. `label` turns keys into labels.
    ///
    /// # Errors
    ///
    /// A total would fall. Then nothing changes. It is unknown which of several triggers was
    /// cleared, so all must be restarted.
    ///
    /// If triggers were cleared and no total falls, they have counted at least as much since then.
    /// In that case a label set misses at most as many hits as it got since the last reading.
    pub fn take(&mut self, reading: Reading, label: impl Fn(&Column, &Key) -> String) -> Result<(), Fallen> {
        let mut table = reading.table;
        let time = std::mem::take(&mut table.time);
        if self.values.is_empty() && self.keys.is_empty() {
            (self.keys, self.values) = (table.keys, table.values);
            self.sets[FOLDED] = vec![OTHER.to_owned(); self.keys.len()];
            // A real key named `other` shares this label set. A table without keys has a single
            // row, which is never folded.
            if !self.keys.is_empty() {
                self.places.insert(self.sets[FOLDED].clone(), FOLDED);
            }
            // Gives label sets of their own to the keys with most hits.
            table.rows.sort_by_key(|row| std::cmp::Reverse(row.hits));
        }
        let mut now = Counted {
            rows: vec![None; self.sets.len()],
            losses: table.losses,
            events: reading.events,
            rejected: reading.rejected,
        };
        for mut row in table.rows {
            let keys = std::mem::take(&mut row.keys);
            let place = self.place(keys, &label);
            now.add(place, row, &self.values);
        }
        if !self.base.rows.is_empty() || self.base.events > 0 || self.base.rejected > Some(0) {
            now.merge(&self.base, &self.values);
        }
        let is_counter = |column: &Column| self.is_counter(column);
        if self.total.exceeds(&now, &self.values, is_counter) {
            return Err(Fallen);
        }
        (self.total, self.time) = (now, time);
        Ok(())
    }

    /// Returns whether the sums of a column never fall. A column may be an expression of fields.
    pub fn is_counter(&self, column: &Column) -> bool {
        column.fold == Fold::Sum && !is_signed(&self.signed, &column.name)
    }

    /// Starts over with new triggers, whose counts begin at 0.
    pub fn rebase(&mut self) {
        self.base = self.total.clone();
        // The new triggers may count other keys; only label sets are permanent.
        self.known.clear();
        self.folded_keys = 0;
    }

    /// Index of the label set for a row.
    fn place(&mut self, keys: Keys, label: impl Fn(&Column, &Key) -> String) -> usize {
        if let Some(&place) = self.known.get(&keys) {
            return place;
        }
        let labels: Vec<String> = self
            .keys
            .iter()
            .zip(&keys)
            .map(|(column, key)| label(column, key))
            .collect();
        let place = match self.places.get(&labels) {
            Some(&place) => place,
            None if self.sets.len() <= self.limit => {
                self.sets.push(labels.clone());
                self.places.insert(labels, self.sets.len() - 1);
                self.sets.len() - 1
            }
            None => FOLDED,
        };
        self.folded_keys += u64::from(place == FOLDED);
        self.known.insert(keys, place);
        place
    }

    /// Columns of keys. Empty before the first reading.
    pub fn keys(&self) -> &[Column] {
        &self.keys
    }

    /// Columns of values. Empty before the first reading.
    pub fn values(&self) -> &[Column] {
        &self.values
    }

    /// Label sets with hits.
    pub fn sets(&self) -> impl Iterator<Item = Set<'_>> {
        let sets = self.sets.iter().zip(&self.total.rows);
        sets.filter_map(|(labels, row)| {
            Some(Set {
                labels,
                row: row.as_ref()?,
            })
        })
    }

    /// Number of folded hits, and of folded keys.
    pub fn folded(&self) -> (u64, u64) {
        let row = self.total.rows.first().and_then(Option::as_ref);
        (row.map_or(0, |row| row.hits), self.folded_keys)
    }

    /// The totals as a reading whose keys are the label sets. Its numbers never fall either.
    pub fn reading(&self) -> Reading {
        let row = |set: Set<'_>| Row {
            keys: set.labels.iter().map(|label| Key::Text(Text::shown(label))).collect(),
            ..set.row.clone()
        };
        Reading {
            table: Table {
                keys: self.keys.clone(),
                values: self.values.clone(),
                rows: self.sets().map(row).collect(),
                losses: self.total.losses.clone(),
                time: self.time.clone(),
            },
            events: self.total.events,
            rejected: self.total.rejected,
            ..Reading::default()
        }
    }

    /// Total losses.
    pub fn losses(&self) -> &Losses {
        &self.total.losses
    }

    /// Hits of all triggers, without hits rejected by a filter.
    pub fn events(&self) -> u64 {
        self.total.events
    }

    /// Hits rejected by the filters. `None` if the kernel does not count them.
    pub fn rejected(&self) -> Option<u64> {
        self.total.rejected
    }
}

impl Counted {
    fn add(&mut self, place: usize, row: Row, values: &[Column]) {
        if place >= self.rows.len() {
            self.rows.resize(place + 1, None);
        }
        match &mut self.rows[place] {
            Some(sum) => sum.merge(&row, values),
            empty => *empty = Some(row),
        }
    }

    fn merge(&mut self, other: &Counted, values: &[Column]) {
        for (place, row) in other.rows.iter().enumerate() {
            if let Some(row) = row {
                self.add(place, row.clone(), values);
            }
        }
        self.losses.merge(&other.losses);
        self.events = self.events.saturating_add(other.events);
        self.rejected = fold::sum(self.rejected, other.rejected);
    }

    /// Returns whether a count that must not fall is higher here than in `later`. `is_counter`
    /// decides for columns of numbers.
    fn exceeds(&self, later: &Counted, values: &[Column], is_counter: impl Fn(&Column) -> bool) -> bool {
        let row = |(place, row): (usize, &Option<Row>)| match (row, later.rows.get(place)) {
            (Some(row), Some(Some(later))) => {
                let columns = row.values.iter().zip(&later.values).zip(values);
                let value = |((value, later), column): ((&Value, &Value), &Column)| match (value, later) {
                    (Value::Number(number), Value::Number(later)) => number > later && is_counter(column),
                    (Value::Dist(dist), Value::Dist(later)) => dist_exceeds(dist, later),
                    _ => false,
                };
                row.hits > later.hits || columns.into_iter().any(value)
            }
            (Some(row), _) => row.hits > 0,
            (None, _) => false,
        };
        let Losses {
            dropped,
            dropped_starts,
            no_bucket,
            unresolved,
            missed,
            missed_hits,
        } = &self.losses;
        self.events > later.events
            || self.rejected > later.rejected
            || *dropped > later.losses.dropped
            || *dropped_starts > later.losses.dropped_starts
            || *no_bucket > later.losses.no_bucket
            || *unresolved > later.losses.unresolved
            || *missed > later.losses.missed
            || *missed_hits > later.losses.missed_hits
            || self.rows.iter().enumerate().any(row)
    }
}

/// Returns whether a sum or a bucket of a distribution is higher than in a later one.
fn dist_exceeds(dist: &Dist, later: &Dist) -> bool {
    let counts = |counts: &Counts, later: &Counts| {
        let mut later = later.iter().peekable();
        counts.iter().any(|(index, count)| {
            while later.next_if(|(other, _)| *other < index).is_some() {}
            later
                .next_if(|(other, _)| *other == index)
                .map_or(0, |(_, count)| count)
                < count
        })
    };
    let sum = dist.sum.zip(later.sum).is_some_and(|(sum, later)| sum > later);
    dist.zero > later.zero
        || sum && later.negative.is_empty()
        || dist.scale == later.scale
            && (counts(&dist.positive, &later.positive) || counts(&dist.negative, &later.negative))
}

#[cfg(test)]
mod tests;
