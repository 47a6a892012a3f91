// SPDX-License-Identifier: MIT OR Apache-2.0

//! Combines the histograms of a run's triggers into one table.

use std::collections::BTreeMap;
use std::fmt;

use crate::hist_file;
use crate::names::container;
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
use crate::table::Text;
use crate::table::Unit;
use crate::table::Value;
use crate::table::fold;
use crate::tracefs::Tracefs;

/// Histograms that make up the answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Columns of the keys.
    keys: Vec<Column>,
    /// Columns of the values.
    pub(super) values: Vec<Column>,
    parts: Vec<Part>,
    /// Whether the values are times, which are negative only if the clocks of two CPUs differ.
    pub(super) has_times: bool,
    /// Whether to show tasks by name only.
    pub(super) comm_by_pid: bool,
    /// Indices of the keys that are containers. Groups below the one of a container are merged
    /// with it.
    pub(super) containers: Vec<usize>,
    /// Whether to report ends without a start. They mean nothing if a filter has left out starts,
    /// or if some ends have no start by nature.
    pub(super) tells_ends: bool,
}

/// A histogram of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    /// `system/event`.
    event: String,
    /// Index among the histograms of the event.
    place: usize,
    shows: Shows,
    /// Indices of its values in the answer.
    columns: Vec<usize>,
    /// Number of the end, if the trigger looks up starts.
    end: Option<usize>,
}

/// Totals of all triggers of an end. Each hit runs every trigger, and finds its start in at most
/// one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct End {
    /// Hits of the trigger with the fewest.
    hits: u64,
    /// Hits that found their start, summed over all triggers.
    found: u64,
}

impl End {
    /// Adds a trigger: hits that found a start, and hits that did not.
    fn add(this: Option<Self>, found: u64, unresolved: u64) -> Self {
        let hits = found.saturating_add(unresolved);
        let before = this.unwrap_or(Self { hits, found: 0 });
        Self {
            hits: before.hits.min(hits),
            found: before.found.saturating_add(found),
        }
    }

    /// Lower bound of the hits that found no start in any trigger.
    ///
    /// The triggers are read one after the other, while hits go on. The first one read has the
    /// fewest hits; by the time the others are read, they have found more starts. So the subtrahend
    /// is too large at times, never too small. Without hits during the reads the number is exact,
    /// so the maximum of all readings never exceeds the true number, and converges to it.
    fn without_start(self) -> u64 {
        self.hits.saturating_sub(self.found)
    }
}

/// Role of a histogram in the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shows {
    /// No rows: the histogram only holds variables.
    Nothing,
    /// No rows: the histogram only holds starts. Starts that were taken out before their end are
    /// reported.
    Starts,
    /// Neither rows nor losses: it voids starts, even if it has no entry left.
    Void,
    /// No rows: it generates a synthetic event for each hit that finds a start. Its other hits are
    /// reported.
    Ends,
    /// Rows of the answer. If the answer has no keys, the rows are by CPU.
    Rows,
    /// Rows with the value as an additional last key, by powers of two, and with the sum of the
    /// value.
    Log2,
    /// The largest values of such rows.
    Worst,
    /// The complete answer, with its own columns.
    Whole,
}

/// A trigger of this event is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gone(String);

impl Gone {
    /// Error for an event (`system/event`).
    pub fn new(event: &str) -> Self {
        Self(event.to_owned())
    }
}

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: a trigger of this run was removed", self.0)
    }
}

impl std::error::Error for Gone {}

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
            containers: Vec::new(),
            has_times: false,
            tells_ends: true,
        }
    }

    /// An answer that is a single histogram; its columns are known only after reading.
    pub(super) fn whole() -> Self {
        Self {
            values: Vec::new(),
            ..Self::new(Vec::new(), Unit::Plain)
        }
    }

    /// An answer that is the only histogram of an event.
    #[cfg(test)]
    pub(crate) fn of_one(event: &str) -> Self {
        let mut answer = Self::whole();
        answer.add(event.to_owned(), 0, Shows::Whole);
        answer
    }

    /// Returns whether drops of this histogram are reported.
    #[cfg(test)]
    pub(super) fn tells_drops_of(&self, event: &str, place: usize) -> bool {
        let is_that = |part: &&Part| part.event == event && part.place == place;
        self.parts
            .iter()
            .find(is_that)
            .is_some_and(|part| part.shows != Shows::Void)
    }

    /// Returns whether its rows come from a single histogram, so that each is an entry.
    pub fn is_of_one(&self) -> bool {
        let has_rows = |part: &&Part| matches!(part.shows, Shows::Rows | Shows::Log2 | Shows::Whole);
        self.parts.iter().filter(has_rows).count() == 1
    }

    /// Returns whether the answer is a single histogram.
    pub(super) fn is_whole(&self) -> bool {
        self.parts.iter().any(|part| part.shows == Shows::Whole)
    }

    /// Adds the histogram with this index at an event. Its values are all values of the answer.
    pub(super) fn add(&mut self, event: String, place: usize, shows: Shows) {
        let columns = (0..self.values.len()).collect();
        self.add_with(event, place, shows, columns);
    }

    /// Adds the histogram of an end, which looks up starts. All triggers of one end have the same
    /// number.
    pub(super) fn add_end(&mut self, event: String, place: usize, shows: Shows, end: usize) {
        self.add(event, place, shows);
        if let Some(part) = self.parts.last_mut() {
            part.end = Some(end);
        }
    }

    /// Adds a histogram that has only these values of the answer.
    pub(super) fn add_with(&mut self, event: String, place: usize, shows: Shows, columns: Vec<usize>) {
        self.parts.push(Part {
            event,
            place,
            shows,
            columns,
            end: None,
        });
    }

    /// Events whose histograms make up the answer (`system/event`), in the order of their names.
    pub fn events(&self) -> Vec<&str> {
        let mut events: Vec<&str> = self.parts.iter().map(|part| part.event.as_str()).collect();
        events.sort_unstable();
        events.dedup();
        events
    }

    /// Reads the answer from the files of an instance.
    ///
    /// # Errors
    ///
    /// A file cannot be read or parsed, or a trigger of the run is gone.
    pub fn read(&self, instance: &Tracefs) -> Result<Reading, Box<dyn std::error::Error + Send + Sync>> {
        Ok(self.combine(self.histograms(instance)?)?)
    }

    /// Reads the histograms of each event, in the order of their triggers.
    pub fn histograms(&self, instance: &Tracefs) -> Result<BTreeMap<&str, Vec<Histogram>>, hist_file::Error> {
        let read = |event| Ok((event, hist_file::read(instance, event)?));
        self.events().into_iter().map(read).collect()
    }

    /// Combines the histograms of each event, in the order of their triggers: their totals, or
    /// their counts in an interval.
    ///
    /// # Errors
    ///
    /// A trigger of the run is gone.
    pub fn combine(&self, mut histograms: BTreeMap<&str, Vec<Histogram>>) -> Result<Reading, Gone> {
        let mut reading = Reading {
            table: Table {
                keys: self.keys.clone(),
                values: self.values.clone(),
                ..Table::default()
            },
            ..Reading::default()
        };
        let mut ends = BTreeMap::new();
        for (event, histograms) in &mut histograms {
            for part in self.parts.iter().filter(|part| part.event == *event) {
                let histogram = histograms.get_mut(part.place).map(std::mem::take);
                let histogram = histogram.ok_or_else(|| Gone::new(event))?;
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
        // Entries of these triggers are keyed like starts, and are not rows of the answer.
        let is_of_starts = matches!(part.shows, Shows::Nothing | Shows::Starts | Shows::Ends);
        reading.fill = reading.fill.max(Fill {
            entries: histogram.entries,
            size: histogram.size,
            is_of_starts,
        });
        if is_of_starts {
            table.rows.clear();
            // A dropped start means a missing time.
            table.losses.dropped_starts = table.losses.dropped;
        }
        match part.shows {
            Shows::Void => {}
            // The triggers of the end report hits without a start.
            Shows::Nothing => table.losses.unresolved = None,
            Shows::Starts => {
                table.losses.unresolved = None;
                table.losses.expired_starts = histogram.expired_set;
            }
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
                // C keeps a sum for each power of two; a negative time has wrapped around to the
                // largest one.
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
                // Sums of other events are 0 here.
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
            // The kernel reads hits and distribution one after the other while hits go on: show the
            // same number for both.
            if let (Shows::Rows | Shows::Log2, Some(count)) = (part.shows, row.values.iter().find_map(count)) {
                row.hits = count;
            }
            for &n in &self.containers {
                if let Some(Key::Text(path)) = row.keys.get_mut(n)
                    && let Ok(group) = std::str::from_utf8(path)
                {
                    let whole = container::whole(group);
                    if whole.len() < group.len() {
                        *path = Text::from(whole);
                        is_same = true;
                    }
                }
            }
            // `.sym` yields an entry for each address within a function: merge them, since no
            // offset is shown.
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
            // Leaves out no key, but merges rows with equal keys.
            table = table.without_key(self.keys.len());
        }
        let time = table.time.clone();
        reading.table.merge(table);
        reading.table.time = time;
    }

    /// Removes the CPU, which stands in as the mandatory key of a trigger if the answer has no
    /// keys.
    fn without_cpu(&self, table: Table) -> Table {
        match self.keys.is_empty() {
            true => table.without_key(0),
            false => table,
        }
    }
}

/// Number of values of a distribution.
fn count(value: &Value) -> Option<u64> {
    match value {
        Value::Dist(dist) => Some(dist.count),
        Value::Number(_) | Value::Unknown => None,
    }
}

/// Removes negative times. If an end runs on a CPU whose clock is behind its start's, the kernel
/// computes a negative time, or 2^64 - 1 as unsigned. `onmax()` compares unsigned, so it takes such
/// a time for the largest.
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
