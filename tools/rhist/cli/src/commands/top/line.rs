// SPDX-License-Identifier: MIT OR Apache-2.0

//! Lines of the table: the numbers of a key in an interval. Columns, by which lines are sorted.

use std::cmp::Ordering;

use rhist_core::table::Fold;
use rhist_core::table::Table;
use rhist_core::table::Unit;
use rhist_core::table::Value;

use super::baseline::Base;

/// Numbers of a key in an interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Line {
    /// Number of the key.
    pub key: u32,
    /// Hits per second.
    pub rate: f64,
    /// Hits per second in the previous interval.
    pub rate_before: f64,
    /// Median of the first distribution.
    pub p50: Option<f64>,
    /// 99th percentile of the first distribution.
    pub p99: Option<f64>,
    /// Maximum of the first distribution since the start of the run.
    pub max: Option<i128>,
    /// Whether the maximum happened in this interval.
    pub max_is_new: bool,
    /// Parallel to the values of the table: the increase per second for sums; minima and maxima
    /// unchanged.
    pub numbers: Box<[f64]>,
}

/// A column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// Labels of the keys.
    Key,
    /// Hits per second.
    Rate,
    /// Relative change of the rate.
    Change,
    /// Median.
    P50,
    /// 99th percentile.
    P99,
    /// Maximum since the start of the run.
    Max,
    /// Numeric value of the table, by its index.
    Number(usize),
}

impl Column {
    /// Columns for a table, in order.
    pub fn of(table: &Table) -> Vec<Column> {
        let mut columns = vec![Column::Key, Column::Rate, Column::Change];
        if dist_column(table).is_some() {
            columns.extend([Column::P50, Column::P99, Column::Max]);
        }
        let is_number = |&i: &usize| matches!(known(table, i), Some(Value::Number(_)));
        columns.extend((0..table.values.len()).filter(is_number).map(Column::Number));
        columns
    }

    /// Headline of the column.
    pub fn title(self, table: &Table) -> String {
        match self {
            Column::Key => {
                let names: Vec<_> = table.keys.iter().map(|key| key.name.as_str()).collect();
                names.join(", ")
            }
            Column::Rate => "rate/s".into(),
            Column::Change => "change".into(),
            Column::P50 => "p50".into(),
            Column::P99 => "p99".into(),
            Column::Max => "max".into(),
            Column::Number(i) => match table.values.get(i) {
                Some(value) if value.fold == Fold::Sum => format!("{}/s", value.name),
                Some(value) => value.name.clone(),
                None => String::new(),
            },
        }
    }

    /// Unit of its numbers.
    pub fn unit(self, table: &Table) -> Unit {
        let value = match self {
            Column::P50 | Column::P99 | Column::Max => dist_column(table),
            Column::Number(i) => Some(i),
            Column::Key | Column::Rate | Column::Change => None,
        };
        let value = value.and_then(|i| table.values.get(i));
        value.map_or(Unit::Plain, |value| value.unit)
    }

    /// Number that lines are sorted by. `None` sorts below all numbers.
    pub fn number(self, line: &Line, base: Option<&Base>) -> Option<f64> {
        match self {
            Column::Key => None,
            Column::Rate => Some(line.rate),
            Column::Change => change(line, base),
            Column::P50 => difference(line.p50, base, |base| base.p50),
            Column::P99 => difference(line.p99, base, |base| base.p99),
            Column::Max => line.max.map(|max| max as f64),
            Column::Number(i) => line.numbers.get(i).copied(),
        }
    }
}

/// Relative change of the rate: -0.5 if it has halved. Infinite if it was 0. `None` if both are 0.
fn change(line: &Line, base: Option<&Base>) -> Option<f64> {
    let before = base.map_or(line.rate_before, |base| base.rate);
    match (before > 0.0, line.rate > 0.0) {
        (true, _) => Some(line.rate / before - 1.0),
        (false, true) => Some(f64::INFINITY),
        (false, false) => None,
    }
}

/// A number, or its difference to the baseline, if one is set.
fn difference(now: Option<f64>, base: Option<&Base>, of: fn(&Base) -> Option<f64>) -> Option<f64> {
    match base {
        None => now,
        Some(base) => Some(now? - of(base)?),
    }
}

/// Index of the first distribution among the values of a table.
pub fn dist_column(table: &Table) -> Option<usize> {
    (0..table.values.len()).find(|&i| matches!(known(table, i), Some(Value::Dist(_))))
}

/// First known value of a column.
fn known(table: &Table, column: usize) -> Option<&Value> {
    let mut values = table.rows.iter().filter_map(|row| row.values.get(column));
    values.find(|value| !matches!(value, Value::Unknown))
}

/// Orders larger numbers first, and `None` last.
pub fn descending(a: Option<f64>, b: Option<f64>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => b.total_cmp(&a),
        _ => b.is_some().cmp(&a.is_some()),
    }
}
