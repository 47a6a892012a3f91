// SPDX-License-Identifier: MIT OR Apache-2.0

//! State of `rhist top`. Takes readings and keys of the keyboard, and is drawn by the views;
//! independent of the terminal.

use std::mem;

use rhist_core::names::Names;
use rhist_core::question::Interval;
use rhist_core::question::Question;
use rhist_core::question::Reading;
use rhist_core::table::Row;
use rhist_core::table::Table;
use rhist_core::table::shown;

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

/// State of `rhist top`.
pub struct State {
    /// The question that the readings answer.
    pub question: Question,
    names: Names,
    /// All keys seen.
    pub keys: Keys,
    /// The last intervals.
    pub history: History,
    now: Screenful,
    /// Lines of the interval before, whose memory is reused: a large block that is allocated after
    /// many small ones were freed makes the heap grow each time.
    spare: Vec<Line>,
    frozen: Option<Screenful>,
    /// Baseline to compare with, instead of the previous interval.
    pub baseline: Option<Baseline>,
    /// Columns of the table.
    pub columns: Vec<Column>,
    /// Column that lines are sorted by.
    pub sort: Column,
    /// Whether the order is reversed.
    pub reversed: bool,
    /// Text that the keys shown must contain.
    pub filter: String,
    /// Whether keys of the keyboard go to the filter.
    pub editing: bool,
    /// Current view.
    pub view: View,
    /// Whether trends show medians instead of rates.
    pub medians: bool,
    /// Key of the selected line. `None` for the first line, whichever it is.
    pub selected: Option<u32>,
    /// Keys of the lines shown, in order.
    pub order: Vec<u32>,
    /// Number of lines scrolled off the top.
    pub offset: usize,
    /// Number of lines of a text scrolled off the top.
    pub scroll: u16,
    /// Number of the table's lines that fit on the screen.
    page: usize,
    /// File of the current recording.
    pub recording: Option<String>,
    /// Message shown until the next key of the keyboard.
    pub message: Option<String>,
    /// Whether the source has ended.
    pub ended: bool,
}

/// Part of the data that is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum View {
    /// A line for each key.
    #[default]
    Table,
    /// Values of one key over time.
    HeatMap,
    /// Commands written to the kernel.
    Triggers,
    /// Help on keys of the keyboard.
    Help,
}

impl State {
    /// Names of numbers.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Creates the state before the first reading.
    pub fn new(question: Question, names: Names) -> Self {
        State {
            question,
            names,
            keys: Keys::default(),
            history: History::default(),
            now: Screenful::default(),
            spare: Vec::new(),
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

    /// Takes an interval, and the total at its end.
    pub fn read(&mut self, interval: &Interval, total: &Reading) {
        let total = total.table.with_one_other();
        let delta = interval.delta.with_one_other();
        let labels = Labels {
            question: &self.question,
            names: &self.names,
        };
        let number = |row: &Row| self.keys.number(&row.keys, || label(labels, &total, row));
        let keys: Vec<u32> = total.rows.iter().map(number).collect();
        self.columns = Column::of(&total);
        let lines = mem::take(&mut self.spare);
        let (now, moment) = Screenful::measure(interval, &delta, &total, &keys, &self.now, lines);
        self.history.push(moment);
        self.spare = mem::replace(&mut self.now, now).lines;
        self.arrange();
    }

    /// Maximum of a key in the total, and the sentence about the fields saved with it; empty if
    /// nothing was saved.
    pub fn worst(&self, total: &Reading, key: u32) -> Option<(i128, String)> {
        let key = self.keys.key(key);
        let row = total.table.rows.iter().find(|row| *row.keys == *key)?;
        let worst = row.worst.as_ref()?;
        let labels = Labels {
            question: &self.question,
            names: &self.names,
        };
        Some((worst.value, labels.worst(worst)))
    }

    /// Numbers of the interval shown.
    pub fn shown(&self) -> &Screenful {
        self.frozen.as_ref().unwrap_or(&self.now)
    }

    /// Returns whether the display is frozen.
    pub fn is_frozen(&self) -> bool {
        self.frozen.is_some()
    }

    /// Freezes the display, while readings go on, or unfreezes it.
    pub fn freeze(&mut self) {
        self.frozen = match self.frozen.take() {
            Some(_) => None,
            None => Some(self.now.clone()),
        };
        self.arrange();
    }

    /// Sets the baseline to the total, the run so far, or removes it.
    pub fn set_baseline(&mut self, total: &Reading) {
        self.baseline = match self.baseline.take() {
            None if self.now.elapsed > 0.0 => Some(self.measure_baseline(&total.table.with_one_other())),
            _ => None,
        };
        self.arrange();
    }

    fn measure_baseline(&self, table: &Table) -> Baseline {
        let seconds = self.now.elapsed;
        let dist = line::dist_column(table);
        let base = |row: &Row| {
            let key = self.keys.find(&row.keys)?;
            let dist = dist.and_then(|column| screenful::dist_of(row, column));
            let quantile = |q| Some(dist?.quantile(q)?.value);
            let base = Base {
                rate: screenful::per_second(row.hits as f64, seconds),
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

    /// Baseline of a key, if a baseline is set.
    pub fn base(&self, key: u32) -> Option<Base> {
        Some(self.baseline.as_ref()?.get(key))
    }

    /// Sets the number of the table's lines that fit on the screen.
    pub fn set_page(&mut self, lines: u16) {
        self.page = usize::from(lines).max(1);
        self.show_selected();
    }

    /// Computes the lines to show, and their order. Must be called after each change that affects
    /// these.
    pub fn arrange(&mut self) {
        if !self.columns.contains(&self.sort) {
            self.sort = Column::Rate;
        }
        let filter = self.filter.to_lowercase();
        let matches = |line: &&Line| filter.is_empty() || self.keys.label(line.key).to_lowercase().contains(&filter);
        let lines = self.shown().lines.iter().filter(matches);
        let number = |line: &Line| self.sort.number(line, self.base(line.key).as_ref());
        let mut order: Vec<_> = lines.map(|line| (number(line), line.key)).collect();
        // The order is total, so that lines keep their places.
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
        // It stands for many keys, so comparing it with one tells nothing.
        let place = |other| order.iter().position(|&(_, key)| key == other);
        if let Some(place) = self.keys.other().and_then(place) {
            order[place..].rotate_left(1);
        }
        self.order = order.into_iter().map(|(_, key)| key).collect();
        self.show_selected();
    }

    /// Index of the selected line among the lines shown.
    pub fn place(&self) -> usize {
        let place = |key| self.order.iter().position(|&shown| shown == key);
        self.selected.and_then(place).unwrap_or(0)
    }

    /// Key of the selected line. `None` if the table is empty.
    pub fn current(&self) -> Option<u32> {
        self.order.get(self.place()).copied()
    }

    /// Moves the selection down by `by` lines, or up if it is negative.
    pub fn move_by(&mut self, by: isize) {
        let last = self.order.len().saturating_sub(1);
        let place = self.place().saturating_add_signed(by).min(last);
        self.selected = self.order.get(place).copied();
        self.show_selected();
    }

    /// Number of the table's lines that fit on the screen.
    pub fn page(&self) -> usize {
        self.page
    }

    /// Scrolls the selected line into view.
    fn show_selected(&mut self) {
        let place = self.place();
        let last_page = self.order.len().saturating_sub(self.page);
        let least = (place + 1).saturating_sub(self.page);
        self.offset = self.offset.clamp(least, place.max(least)).min(last_page);
    }
}

/// Label of a row's keys.
fn label(labels: Labels<'_>, table: &Table, row: &Row) -> String {
    let keys = table.keys.iter().zip(shown(&row.keys));
    let keys: Vec<_> = keys.map(|(column, key)| labels.key(column, key)).collect();
    match keys.is_empty() {
        true => "all".into(),
        false => keys.join(", "),
    }
}
