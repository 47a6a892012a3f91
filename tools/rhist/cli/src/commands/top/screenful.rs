// SPDX-License-Identifier: MIT OR Apache-2.0

//! Numbers shown for an interval: the figures of the header, and a line for each key.

use rhist_core::question::Fill;
use rhist_core::question::Interval;
use rhist_core::table::Dist;
use rhist_core::table::Fold;
use rhist_core::table::Losses;
use rhist_core::table::Row;
use rhist_core::table::Table;
use rhist_core::table::Value;
use rhist_core::table::fold;

use super::history::Moment;
use super::line;
use super::line::Line;

/// Numbers shown for an interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Screenful {
    /// Sorted by the numbers of their keys.
    pub lines: Vec<Line>,
    /// Length of the interval, in seconds. 0 before the first one.
    pub seconds: f64,
    /// Time from the start of the run to the end of the interval, in seconds.
    pub elapsed: f64,
    /// Hits of all triggers per second.
    pub events: f64,
    /// Share of a CPU that these hits cost, if known.
    pub cost: Option<f64>,
    /// Fill level of the fullest histogram.
    pub fill: Fill,
    /// Losses since the start.
    pub losses: Losses,
    /// Number of intervals in the history at its end.
    pub pushed: u64,
}

impl Screenful {
    /// Computes the numbers of an interval. A key without a row in its counts `delta` was not hit.
    /// `total` has the counts of the run at its end, and `keys` the numbers of its keys. `before`
    /// is the previous interval. Reuses the memory of `lines`.
    pub fn measure(
        interval: &Interval,
        delta: &Table,
        total: &Table,
        keys: &[u32],
        before: &Screenful,
        mut lines: Vec<Line>,
    ) -> (Self, Moment) {
        let seconds = interval.seconds();
        let dist = line::dist_column(total);
        let places = fold::places(&total.rows, &delta.rows);
        let mut moment = Moment::new(interval.to.monotonic_ns);
        lines.clear();
        lines.reserve(total.rows.len());
        for ((row, &key), place) in total.rows.iter().zip(keys).zip(places) {
            let delta = place.and_then(|place| delta.rows.get(place));
            let hits = delta.map_or(0, |delta| delta.hits);
            let of = |row| dist.and_then(|column| dist_of(row, column));
            let values = delta.and_then(of);
            let max = of(row).and_then(|dist| dist.max);
            // If the maximum of the interval is unknown, it is at most the maximum of the run.
            let most = values.and_then(|dist| dist.max).or(max);
            let most = most.map_or(f64::INFINITY, |max| max as f64);
            let quantile = |q| Some(values?.quantile(q)?.value.min(most));
            let line = Line {
                key,
                rate: per_second(hits as f64, seconds),
                rate_before: before.line(key).map_or(0.0, |line| line.rate),
                p50: quantile(0.5),
                p99: quantile(0.99),
                max,
                max_is_new: max > before.line(key).and_then(|line| line.max),
                numbers: numbers(total, row, delta, seconds),
            };
            if hits > 0 {
                moment.add(key, line.rate, [line.p50, line.p99], values);
            }
            lines.push(line);
        }
        lines.sort_unstable_by_key(|line| line.key);
        let screenful = Screenful {
            lines,
            seconds,
            elapsed: before.elapsed + seconds,
            events: per_second(interval.events as f64, seconds),
            cost: interval.cpus(),
            fill: interval.fill,
            losses: total.losses.clone(),
            pushed: before.pushed + 1,
        };
        (screenful, moment)
    }

    /// Line of a key.
    pub fn line(&self, key: u32) -> Option<&Line> {
        match self.lines.get(key as usize) {
            // While no key has disappeared, its number is its index.
            Some(line) if line.key == key => Some(line),
            _ => {
                let at = self.lines.binary_search_by_key(&key, |line| line.key).ok()?;
                self.lines.get(at)
            }
        }
    }
}

/// Kinds of losses that have occurred since the start: name and number.
pub fn losses(losses: &Losses) -> impl Iterator<Item = (&'static str, u64)> {
    let all = [
        ("dropped", losses.dropped.checked_sub(losses.dropped_starts)),
        ("starts dropped", Some(losses.dropped_starts)),
        ("no bucket", losses.no_bucket),
        ("unresolved", losses.unresolved),
        ("missed", losses.missed),
        ("hits missed", losses.missed_hits),
        ("starts expired", losses.expired_starts),
    ];
    all.into_iter()
        .filter_map(|(name, count)| Some((name, count.filter(|&count| count > 0)?)))
}

/// Distribution in a column of a row.
pub fn dist_of(row: &Row, column: usize) -> Option<&Dist> {
    match row.values.get(column)? {
        Value::Dist(dist) => Some(dist),
        Value::Number(_) | Value::Unknown => None,
    }
}

/// Numeric values of a row: the increase per second for sums; minima and maxima unchanged. Parallel
/// to the values of the table; empty if none is numeric.
fn numbers(table: &Table, row: &Row, delta: Option<&Row>, seconds: f64) -> Box<[f64]> {
    let is_number = |value: &Value| matches!(value, Value::Number(_));
    if !row.values.iter().any(is_number) {
        return Box::default();
    }
    let value = |(i, value): (usize, &Value)| {
        let is_sum = table.values.get(i).is_none_or(|column| column.fold == Fold::Sum);
        let added = delta.and_then(|delta| delta.values.get(i));
        match (value, is_sum, added) {
            (Value::Number(number), false, _) => *number as f64,
            (_, true, Some(Value::Number(added))) => per_second(*added as f64, seconds),
            _ => 0.0,
        }
    };
    row.values.iter().enumerate().map(value).collect()
}

/// Number per second; 0 for an interval without length.
pub fn per_second(count: f64, seconds: f64) -> f64 {
    match seconds > 0.0 {
        true => count / seconds,
        false => 0.0,
    }
}
