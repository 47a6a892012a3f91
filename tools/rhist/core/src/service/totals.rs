// SPDX-License-Identifier: MIT OR Apache-2.0

//! What a histogram has counted since it was first made: also by triggers that are gone, and in as many label sets as may be.

use std::fmt;

use foldhash::HashMap;
use foldhash::HashMapExt;

use crate::question::Reading;
use crate::question::is_signed;
use crate::table::Column;
use crate::table::Counts;
use crate::table::Dist;
use crate::table::Fold;
use crate::table::Key;
use crate::table::Keys;
use crate::table::Losses;
use crate::table::Row;
use crate::table::Table;
use crate::table::Text;
use crate::table::Time;
use crate::table::Value;
use crate::table::fold;

/// The value that labels have in the place of those that are folded.
pub const OTHER: &str = "other";

/// The place of what is folded among the label sets.
const FOLDED: usize = 0;

/// Totals. They never fall, whatever happens to the triggers: what has been read once is kept.
#[derive(Debug)]
pub struct Totals {
    /// Names of values and fields whose sums can fall, since they can be below zero.
    pub signed: Vec<String>,
    /// How many label sets there are at most, besides that of what is folded.
    limit: usize,
    /// Columns of keys and values, as the first reading had them.
    keys: Vec<Column>,
    values: Vec<Column>,
    /// Label sets, the first of which is that of what is folded. They keep their places: what was folded once is so for
    /// ever, as otherwise it would be missing there when it gets a label set of its own.
    sets: Vec<Vec<String>>,
    /// By label sets that are in `sets`.
    places: HashMap<Vec<String>, usize>,
    /// By keys that were seen: where they are counted.
    known: HashMap<Keys, usize>,
    /// Keys that are counted as folded.
    folded_keys: u64,
    /// What triggers have counted that are gone.
    base: Counted,
    /// That, and what the last reading had.
    total: Counted,
    /// When the last reading was.
    time: Time,
}

/// What was counted, by the places of label sets.
#[derive(Clone, Debug, Default)]
struct Counted {
    rows: Vec<Option<Row>>,
    losses: Losses,
    events: u64,
    rejected: Option<u64>,
}

/// A reading has less than the one before: the triggers are others, or somebody has cleared them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fallen;

impl fmt::Display for Fallen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("somebody has cleared a trigger of this run, or made it again")
    }
}

/// A label set, and what was counted there.
#[derive(Clone, Copy, Debug)]
pub struct Set<'a> {
    /// Values of labels, parallel to [`Totals::keys()`].
    pub labels: &'a [String],
    /// Without keys.
    pub row: &'a Row,
}

impl Totals {
    /// Nothing yet.
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

    /// Takes a reading of the triggers in place of the last one. `label` makes labels of keys.
    ///
    /// # Errors
    ///
    /// Something would fall: then nothing is taken. Which of several triggers was cleared cannot be told, so all have to be
    /// made anew.
    ///
    /// Where nothing falls although triggers were cleared, more has come since than there was: of no label set is more
    /// missing than was counted since the last reading.
    pub fn take(&mut self, reading: Reading, label: impl Fn(&Column, &Key) -> String) -> Result<(), Fallen> {
        let mut table = reading.table;
        let time = std::mem::take(&mut table.time);
        if self.values.is_empty() && self.keys.is_empty() {
            (self.keys, self.values) = (table.keys, table.values);
            self.sets[FOLDED] = vec![OTHER.to_owned(); self.keys.len()];
            // A key of this name is counted there, too. Without keys there is one row, which is never folded.
            if !self.keys.is_empty() {
                self.places.insert(self.sets[FOLDED].clone(), FOLDED);
            }
            // Those that count most come first.
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

    /// Whether sums of a column of numbers never fall. A column may be an expression of fields.
    pub fn is_counter(&self, column: &Column) -> bool {
        column.fold == Fold::Sum && !is_signed(&self.signed, &column.name)
    }

    /// The triggers are gone, or will be: others begin with nothing.
    pub fn rebase(&mut self) {
        self.base = self.total.clone();
        // The new triggers may count other keys: only label sets are kept for ever.
        self.known.clear();
        self.folded_keys = 0;
    }

    /// Where a row is counted.
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

    /// Columns of keys. Empty until something was read.
    pub fn keys(&self) -> &[Column] {
        &self.keys
    }

    /// Columns of values. Empty until something was read.
    pub fn values(&self) -> &[Column] {
        &self.values
    }

    /// Label sets that have hits.
    pub fn sets(&self) -> impl Iterator<Item = Set<'_>> {
        let sets = self.sets.iter().zip(&self.total.rows);
        sets.filter_map(|(labels, row)| {
            Some(Set {
                labels,
                row: row.as_ref()?,
            })
        })
    }

    /// Hits that are folded, and how many keys these had.
    pub fn folded(&self) -> (u64, u64) {
        let row = self.total.rows.first().and_then(Option::as_ref);
        (row.map_or(0, |row| row.hits), self.folded_keys)
    }

    /// All of it as a reading whose keys are the label sets: like the totals, its numbers never fall.
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

    /// What is missing.
    pub fn losses(&self) -> &Losses {
        &self.total.losses
    }

    /// Hits of all triggers that no filter has rejected.
    pub fn events(&self) -> u64 {
        self.total.events
    }

    /// Hits that their filters have rejected. `None` where the kernel does not tell.
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

    /// Whether something is more here than in `later` that never falls. `is_counter` says it of columns of numbers.
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

/// Whether a distribution has more than a later one, in its sum or in a bucket.
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
