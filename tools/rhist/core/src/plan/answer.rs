// SPDX-License-Identifier: MIT OR Apache-2.0

//! From the histograms of a run's triggers to one table.

use std::collections::BTreeMap;

use crate::hist_file;
use crate::question::Fill;
use crate::question::Reading;
use crate::table::Column;
use crate::table::Dist;
use crate::table::Fold;
use crate::table::Histogram;
use crate::table::Key;
use crate::table::Losses;
use crate::table::Row;
use crate::table::Table;
use crate::table::Unit;
use crate::table::Value;
use crate::table::fold;
use crate::tracefs::Tracefs;

/// Which histograms make up the answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Columns of keys.
    keys: Vec<Column>,
    /// Columns of values.
    pub(super) values: Vec<Column>,
    parts: Vec<Part>,
    /// Whether the values are times: none of them is below zero, but for clocks of two CPUs that differ.
    pub(super) has_times: bool,
    /// Tasks are shown by their names alone.
    pub(super) comm_by_pid: bool,
    /// Whether ends without a start are told: not if a filter has left out starts, or if not each
    /// end ends something.
    pub(super) tells_ends: bool,
}

/// A histogram of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    /// `system/event`.
    event: String,
    /// Its place among those of the event.
    place: usize,
    shows: Shows,
    /// Which of the answer's values its own are.
    columns: Vec<usize>,
    /// The number of the end that it looks for starts of, if it does.
    end: Option<usize>,
}

/// What all triggers of an end have counted. Each of its hits is one of every trigger, and finds its start in one at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct End {
    /// Hits of the trigger that has fewest.
    hits: u64,
    /// Those that have found their start, in all triggers together.
    found: u64,
}

impl End {
    /// Adds a trigger with so many hits that have found a start, and have not.
    fn add(this: Option<Self>, found: u64, unresolved: u64) -> Self {
        let hits = found.saturating_add(unresolved);
        let before = this.unwrap_or(Self { hits, found: 0 });
        Self {
            hits: before.hits.min(hits),
            found: before.found.saturating_add(found),
        }
    }

    /// Hits that have found no start in any trigger: at least so many.
    ///
    /// The triggers are read one after the other, and hits go on meanwhile. The one that is read first has fewest; as
    /// others have found more by the time they are read, too much is taken off, never too little. If nothing happens while
    /// they are read, it is exact, so the largest of all readings is never above the truth, and comes to it.
    fn without_start(self) -> u64 {
        self.hits.saturating_sub(self.found)
    }
}

/// What a histogram shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shows {
    /// Nothing of the answer: it only has a variable.
    Nothing,
    /// Nothing at all: it makes starts void, also where it has no entry for that.
    Void,
    /// Nothing, but its hits that find no start are told: it makes a synthetic event happen for each of the others.
    Ends,
    /// Rows of the answer. If that has no keys, the CPU is in their place.
    Rows,
    /// The same, with the value by powers of two as last key, and its sum as value.
    Log2,
    /// The largest values of the same.
    Worst,
    /// All of it, with its own columns.
    Whole,
}

impl Answer {
    /// An answer with these keys, and a distribution as its only value.
    pub(super) fn new(keys: Vec<String>, unit: Unit) -> Self {
        let keys = keys
            .into_iter()
            .map(|name| Column {
                name,
                ..Column::default()
            })
            .collect();
        Self {
            keys,
            values: vec![Column {
                name: "value".to_owned(),
                unit,
                fold: Fold::Sum,
            }],
            parts: Vec::new(),
            comm_by_pid: false,
            has_times: false,
            tells_ends: true,
        }
    }

    /// An answer that is a histogram as it is, whose columns it tells itself.
    pub(super) fn whole() -> Self {
        Self {
            values: Vec::new(),
            ..Self::new(Vec::new(), Unit::Plain)
        }
    }

    /// Whether it tells what the histogram at this place of an event has dropped.
    #[cfg(test)]
    pub(super) fn tells_drops_of(&self, event: &str, place: usize) -> bool {
        let is_that = |part: &&Part| part.event == event && part.place == place;
        self.parts
            .iter()
            .find(is_that)
            .is_some_and(|part| part.shows != Shows::Void)
    }

    /// Whether it is a histogram as it is.
    pub(super) fn is_whole(&self) -> bool {
        self.parts.iter().any(|part| part.shows == Shows::Whole)
    }

    /// Adds the histogram at this place among those of an event. All its values are the answer's.
    pub(super) fn add(&mut self, event: String, place: usize, shows: Shows) {
        let columns = (0..self.values.len()).collect();
        self.add_with(event, place, shows, columns);
    }

    /// Adds the histogram of an end, which looks for starts. Those of one end have the same number.
    pub(super) fn add_end(&mut self, event: String, place: usize, shows: Shows, end: usize) {
        self.add(event, place, shows);
        if let Some(part) = self.parts.last_mut() {
            part.end = Some(end);
        }
    }

    /// The same for one that has only these of the answer's values.
    pub(super) fn add_with(&mut self, event: String, place: usize, shows: Shows, columns: Vec<usize>) {
        self.parts.push(Part {
            event,
            place,
            shows,
            columns,
            end: None,
        });
    }

    /// Reads it from the files of an instance.
    ///
    /// # Errors
    ///
    /// Those of the files, and of their readers.
    pub fn read(&self, instance: &Tracefs) -> Result<Reading, Box<dyn std::error::Error + Send + Sync>> {
        let mut reading = Reading {
            table: Table {
                keys: self.keys.clone(),
                values: self.values.clone(),
                ..Table::default()
            },
            ..Reading::default()
        };
        let mut ends = BTreeMap::new();
        let mut events: Vec<&str> = self.parts.iter().map(|part| part.event.as_str()).collect();
        events.sort_unstable();
        events.dedup();
        for event in events {
            let mut histograms = hist_file::read(instance, event)?;
            for part in self.parts.iter().filter(|part| part.event == event) {
                let histogram = histograms
                    .get_mut(part.place)
                    .map(std::mem::take)
                    .ok_or_else(|| format!("{event}: a trigger of this run is gone"))?;
                self.add_part(&mut reading, &mut ends, part, histogram);
            }
        }
        for end in ends.into_values().filter(|_| self.tells_ends) {
            reading.table.losses.merge(&Losses {
                unresolved: Some(end.without_start()),
                ..Losses::default()
            });
        }
        Ok(reading)
    }

    fn add_part(&self, reading: &mut Reading, ends: &mut BTreeMap<usize, End>, part: &Part, histogram: Histogram) {
        let mut table = histogram.table;
        let counted = histogram.hits + table.losses.dropped;
        reading.rejected = fold::sum(reading.rejected, histogram.rejected);
        reading.events += counted + table.losses.unresolved.unwrap_or(0);
        if let Some(end) = part.end
            && let Some(unresolved) = table.losses.unresolved.take()
        {
            let all = End::add(ends.get(&end).copied(), counted, unresolved);
            ends.insert(end, all);
        }
        if part.shows == Shows::Void {
            return;
        }
        // Their entries are by what starts and ends have in common, not those of the answer.
        let is_of_starts = matches!(part.shows, Shows::Nothing | Shows::Ends);
        reading.fill = reading.fill.max(Fill {
            entries: histogram.entries,
            size: histogram.size,
            is_of_starts,
        });
        if is_of_starts {
            table.rows.clear();
            // A start that was dropped is a time that is missing.
            table.losses.dropped_starts = table.losses.dropped;
        }
        match part.shows {
            Shows::Void => {}
            // Ends that find no start are told by the ends.
            Shows::Nothing => table.losses.unresolved = None,
            Shows::Ends => {}
            Shows::Whole => {
                (reading.table.keys, reading.table.values) = (table.keys, table.values);
                reading.table.rows = table.rows;
                reading.table.losses.merge(&table.losses);
                reading.table.time = table.time;
                return;
            }
            Shows::Rows => table = self.without_cpu(table),
            Shows::Log2 => {
                // Each of C's powers of two has a sum of its own, of which one is that of what has
                // wrapped around.
                let change = |dist: &mut Dist| {
                    if self.has_times {
                        dist.without_negative();
                    }
                };
                let last = table.keys.len().saturating_sub(1);
                table = table.fold_range(last, Column::default(), Some(0), change);
            }
            Shows::Worst => {
                table = self.without_cpu(table);
                for row in &mut table.rows {
                    row.hits = 0;
                    let max = row.worst.as_ref().map(|worst| worst.value);
                    row.values = vec![Value::Dist(Dist { max, ..Dist::new(0) })];
                }
                table.losses = Losses::default();
            }
        }
        let has_all = part.columns.iter().copied().eq(0..self.values.len());
        let mut is_same = false;
        for row in &mut table.rows {
            if !has_all || row.values.len() != self.values.len() {
                // What this histogram has no sum of is 0.
                let mut values = vec![Value::Number(0); self.values.len()];
                for (value, column) in row.values.drain(..).zip(&part.columns) {
                    if let Some(place) = values.get_mut(*column) {
                        *place = value;
                    }
                }
                row.values = values;
            }
            if self.has_times {
                without_negative(row);
            }
            // The kernel reads both one after the other, while hits go on: what is shown is one
            // number.
            if let (Shows::Rows | Shows::Log2, Some(count)) = (part.shows, row.values.iter().find_map(count)) {
                row.hits = count;
            }
            // Without an offset, `.sym` has a function as often as it has places in it that are in the records.
            for key in &mut row.keys {
                if self.comm_by_pid
                    && let Key::Task { comm, .. } = key
                {
                    *key = Key::Text(std::mem::take(comm));
                    is_same = true;
                }
                if let Key::Address(frame) = key
                    && frame.symbol.as_ref().is_some_and(|symbol| !symbol.contains('+'))
                {
                    frame.address = None;
                    is_same = true;
                }
            }
        }
        table.keys.clone_from(&self.keys);
        table.values.clone_from(&self.values);
        if is_same {
            // No key is left out: rows become one that have the same.
            table = table.without_key(self.keys.len());
        }
        let time = table.time.clone();
        reading.table.merge(table);
        reading.table.time = time;
    }

    /// Rows of a histogram that has the CPU as its key, since it must have one, and the answer has none.
    fn without_cpu(&self, table: Table) -> Table {
        match self.keys.is_empty() {
            true => table.without_key(0),
            false => table,
        }
    }
}

/// How many values a distribution has.
fn count(value: &Value) -> Option<u64> {
    match value {
        Value::Dist(dist) => Some(dist.count),
        Value::Number(_) | Value::Unknown => None,
    }
}

/// Where an end is on another CPU than its start, whose clock is behind, the kernel has a negative
/// time, or, without signs, 0 - 1 = 2^64 - 1. `onmax()` compares without signs, and so has one for
/// the largest.
fn without_negative(row: &mut Row) {
    for value in &mut row.values {
        if let Value::Dist(dist) = value {
            dist.without_negative();
        }
    }
    row.worst.take_if(|worst| !(0..=i64::MAX.into()).contains(&worst.value));
}

#[cfg(test)]
pub(super) mod tests;
