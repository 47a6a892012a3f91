// SPDX-License-Identifier: MIT OR Apache-2.0

//! What `rhist top` knows and shows. Readings and keys of the keyboard go in, views draw it; it knows no terminal.

use std::collections::HashMap;

use rhist_core::names::Names;
use rhist_core::question::Interval;
use rhist_core::question::Question;
use rhist_core::question::Reading;
use rhist_core::table::Row;
use rhist_core::table::Table;

use super::baseline::Base;
use super::baseline::Baseline;
use super::history::History;
use super::keys::Keys;
use super::line;
use super::line::Column;
use super::line::Line;
use super::screenful;
use super::screenful::Screenful;
use crate::screen::Labels;

/// What `rhist top` knows and shows.
pub struct State {
    /// What was asked.
    pub question: Question,
    names: Names,
    /// All keys that were seen.
    pub keys: Keys,
    /// The last reading. `None` before the first one.
    pub last: Option<Reading>,
    /// Hits at the first reading, by the number of the key.
    first_hits: HashMap<u32, u64>,
    /// The last intervals.
    pub history: History,
    now: Screenful,
    frozen: Option<Screenful>,
    /// What is compared with, instead of the interval before.
    pub baseline: Option<Baseline>,
    /// Columns of the table.
    pub columns: Vec<Column>,
    /// The column by which lines are sorted.
    pub sort: Column,
    /// Whether their order is the other way round.
    pub reversed: bool,
    /// Only keys that have this are shown.
    pub filter: String,
    /// Whether keys of the keyboard go to the filter.
    pub editing: bool,
    /// What is shown.
    pub view: View,
    /// Whether trends are those of medians instead of rates.
    pub medians: bool,
    /// The key whose line is selected. `None` for the first line, whichever that is.
    pub selected: Option<u32>,
    /// Keys whose lines are shown, in their order.
    pub order: Vec<u32>,
    /// How many of these are above the screen.
    pub offset: usize,
    /// How many lines of a text are above the screen.
    pub scroll: u16,
    /// How many lines of the table fit on the screen.
    page: usize,
    /// The file to which intervals are recorded.
    pub recording: Option<String>,
    /// To be shown until the next key of the keyboard.
    pub message: Option<String>,
    /// Whether there are no more readings.
    pub ended: bool,
}

/// What is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum View {
    /// A line for each key.
    #[default]
    Table,
    /// Values of one key over time.
    HeatMap,
    /// What was written to the kernel.
    Triggers,
    /// What keys of the keyboard do.
    Help,
}

impl State {
    /// Names of numbers.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Before the first reading.
    pub fn new(question: Question, names: Names) -> Self {
        State {
            question,
            names,
            keys: Keys::default(),
            last: None,
            first_hits: HashMap::new(),
            history: History::default(),
            now: Screenful::default(),
            frozen: None,
            baseline: None,
            columns: Vec::new(),
            sort: Column::Rate,
            reversed: false,
            filter: String::new(),
            editing: false,
            view: View::Table,
            medians: false,
            selected: None,
            order: Vec::new(),
            offset: 0,
            scroll: 0,
            page: 1,
            recording: None,
            message: None,
            ended: false,
        }
    }

    /// Takes a reading. Returns the interval since the one before, if there is one.
    pub fn read(&mut self, reading: Reading) -> Option<Interval> {
        let table = &reading.table;
        let labels = Labels {
            question: &self.question,
            names: &self.names,
        };
        let number = |row: &Row| self.keys.number(&row.keys, || label(labels, table, row));
        let keys: Vec<u32> = table.rows.iter().map(number).collect();
        self.columns = Column::of(table);
        // Only two tables are in memory while there is more to be done.
        let interval = self.last.take().map(|last| reading.since(last));
        match &interval {
            None => {
                let hits = table.rows.iter().map(|row| row.hits);
                self.first_hits = keys.iter().copied().zip(hits).collect();
            }
            Some(interval) => {
                let (now, moment) = Screenful::measure(interval, &reading, &keys, &self.now);
                self.history.push(moment);
                self.now = now;
            }
        }
        self.last = Some(reading);
        self.arrange();
        interval
    }

    /// The table of the last reading, with all columns.
    pub fn table(&self) -> Option<&Table> {
        Some(&self.last.as_ref()?.table)
    }

    /// The largest value of a key, and the sentence for what was saved with it; empty if nothing was.
    pub fn worst(&self, key: u32) -> Option<(i128, String)> {
        let key = self.keys.key(key);
        let row = self.table()?.rows.iter().find(|row| *row.keys == *key)?;
        let worst = row.worst.as_ref()?;
        let labels = Labels {
            question: &self.question,
            names: &self.names,
        };
        Some((worst.value, labels.worst(worst)))
    }

    /// What is shown of an interval.
    pub fn shown(&self) -> &Screenful {
        self.frozen.as_ref().unwrap_or(&self.now)
    }

    /// Whether newer intervals are not shown.
    pub fn is_frozen(&self) -> bool {
        self.frozen.is_some()
    }

    /// Stops showing newer intervals, which are taken nevertheless; or shows them again.
    pub fn freeze(&mut self) {
        self.frozen = match self.frozen.take() {
            Some(_) => None,
            None => Some(self.now.clone()),
        };
        self.arrange();
    }

    /// Compares with the whole run up to now; or with each interval before again.
    pub fn set_baseline(&mut self) {
        self.baseline = match (self.baseline.take(), &self.last) {
            (None, Some(last)) if self.now.elapsed > 0.0 => Some(self.measure_baseline(&last.table)),
            _ => None,
        };
        self.arrange();
    }

    fn measure_baseline(&self, table: &Table) -> Baseline {
        let seconds = self.now.elapsed;
        let dist = line::dist_column(table);
        let base = |row: &Row| {
            let key = self.keys.find(&row.keys)?;
            let first = self.first_hits.get(&key).copied().unwrap_or_default();
            let dist = dist.and_then(|column| screenful::dist_of(row, column));
            let quantile = |q| Some(dist?.quantile(q)?.value);
            let base = Base {
                rate: screenful::per_second(row.hits.saturating_sub(first) as f64, seconds),
                p50: quantile(0.5),
                p99: quantile(0.99),
            };
            Some((key, base))
        };
        Baseline {
            seconds,
            keys: table.rows.iter().filter_map(base).collect(),
        }
    }

    /// What a key is compared with, if there is a baseline.
    pub fn base(&self, key: u32) -> Option<Base> {
        Some(self.baseline.as_ref()?.get(key))
    }

    /// Tells how many lines of the table fit on the screen.
    pub fn set_page(&mut self, lines: u16) {
        self.page = usize::from(lines).max(1);
        self.show_selected();
    }

    /// Which lines are shown, and in what order. To be called when anything has changed that this depends on.
    pub fn arrange(&mut self) {
        if !self.columns.contains(&self.sort) {
            self.sort = Column::Rate;
        }
        let filter = self.filter.to_lowercase();
        let matches = |line: &&Line| filter.is_empty() || self.keys.label(line.key).to_lowercase().contains(&filter);
        let lines = self.shown().lines.iter().filter(matches);
        let number = |line: &Line| self.sort.number(line, self.base(line.key).as_ref());
        let mut order: Vec<_> = lines.map(|line| (number(line), line.key)).collect();
        // No two are equal, so that lines keep their places.
        order.sort_unstable_by(|&(a, a_key), &(b, b_key)| {
            let keys = || match self.sort {
                Column::Key => self.keys.key(a_key).cmp(self.keys.key(b_key)),
                _ => a_key.cmp(&b_key),
            };
            line::descending(a, b).then_with(keys)
        });
        if self.reversed {
            order.reverse();
        }
        self.order = order.into_iter().map(|(_, key)| key).collect();
        self.show_selected();
    }

    /// The place of the selected line among those that are shown.
    pub fn place(&self) -> usize {
        let place = |key| self.order.iter().position(|&shown| shown == key);
        self.selected.and_then(place).unwrap_or(0)
    }

    /// The key whose line is selected, unless no line is shown.
    pub fn current(&self) -> Option<u32> {
        self.order.get(self.place()).copied()
    }

    /// Selects the line that is `by` lines below, or above if that is negative.
    pub fn move_by(&mut self, by: isize) {
        let last = self.order.len().saturating_sub(1);
        let place = self.place().saturating_add_signed(by).min(last);
        self.selected = self.order.get(place).copied();
        self.show_selected();
    }

    /// How many lines of the table fit on the screen.
    pub fn page(&self) -> usize {
        self.page
    }

    /// Scrolls so that the selected line is on the screen.
    fn show_selected(&mut self) {
        let place = self.place();
        let last_page = self.order.len().saturating_sub(self.page);
        let least = (place + 1).saturating_sub(self.page);
        self.offset = self.offset.clamp(least, place.max(least)).min(last_page);
    }
}

/// All keys of a row.
fn label(labels: Labels<'_>, table: &Table, row: &Row) -> String {
    let keys = table.keys.iter().zip(&row.keys);
    let keys: Vec<_> = keys.map(|(column, key)| labels.key(column, key)).collect();
    match keys.is_empty() {
        true => "all".into(),
        false => keys.join(", "),
    }
}
