// SPDX-License-Identifier: MIT OR Apache-2.0

//! Prints a table with a line for each key.

use std::cmp::Reverse;

use rhist_core::table;
use rhist_core::table::Dist;
use rhist_core::table::Fold;
use rhist_core::table::Key;
use rhist_core::table::Row;
use rhist_core::table::Table;
use rhist_core::table::Unit;
use rhist_core::table::Value;

use super::Screen;
use super::View;
use super::axis::Axis;
use super::axis::Gaps;
use super::grid::Column;
use super::grid::GAP;
use super::grid::Grid;
use super::grid::Kind;
use super::number;
use super::page::Style;
use super::page::plain;
use super::quantiles::Figure;

/// Length of a sparkline, in characters.
const SPARK: usize = 16;
/// Length of the longest bar, in columns.
const BAR: usize = 30;
/// Minimum length of bars: shorter ones are useless.
const MIN_BAR: usize = 8;

// On narrow pages, columns with lower ranks are left out first.
const HITS: u8 = 100;
const SUM: u8 = 90;
const MAX: u8 = 80;
const P99: u8 = 70;
const P50: u8 = 60;
const RATE: u8 = 50;
const SPARKS: u8 = 40;
const TOTAL: u8 = 35;

/// Rows, of which the first `most` are sorted and the most important: in order of the keys if these
/// are ranges; otherwise the ones with the largest values, sums, or hits. Rows that stand for keys
/// without one are left out: see [`others()`].
pub(super) fn sorted(table: &Table, most: usize) -> Vec<&Row> {
    let is_range = |row: &Row| row.keys.iter().any(|key| matches!(key, Key::Range { .. }));
    let by_keys = table.rows.iter().any(is_range);
    let weigh = |row: &Row| if by_keys { (0, 0) } else { (weight(row), row.hits) };
    let own = table.rows.iter().filter(|row| row.other().is_none());
    let mut rows: Vec<_> = own.map(|row| (Reverse(weigh(row)), row)).collect();
    let order = |a: &(Reverse<(i128, u64)>, &Row), b: &(Reverse<(i128, u64)>, &Row)| {
        a.0.cmp(&b.0).then_with(|| a.1.keys.cmp(&b.1.keys))
    };
    // Sorts only the part that fits on a screen, out of up to a hundred thousand.
    let mut shown = rows.as_mut_slice();
    if most < shown.len() {
        shown = shown.select_nth_unstable_by(most, order).0;
    }
    shown.sort_unstable_by(order);
    rows.into_iter().map(|(_, row)| row).collect()
}

/// Rows that stand for keys without one, which come last.
pub(super) fn others(table: &Table) -> Vec<&Row> {
    let mut others: Vec<_> = table.rows.iter().filter(|row| row.other().is_some()).collect();
    others.sort_unstable_by_key(|row| row.other());
    others
}

/// Number that rows are sorted by.
pub(super) fn weight(row: &Row) -> i128 {
    let largest = |dist: &Dist| {
        dist.max
            .or_else(|| dist.buckets().next_back().map(|bucket| bucket.high))
    };
    let dists = row.values.iter().filter_map(dist_of);
    let mut numbers = row.values.iter().filter_map(|value| match value {
        Value::Number(number) => Some(*number),
        _ => None,
    });
    match dists.map(largest).next() {
        Some(largest) => largest.unwrap_or(i128::MIN),
        None => numbers.next().unwrap_or(row.hits.into()),
    }
}

/// Title of a column of numbers.
pub(super) fn title(column: &table::Column) -> String {
    match column.fold {
        Fold::Sum => plain(&column.name),
        Fold::Min => format!("min {}", plain(field(column))),
        Fold::Max => format!("max {}", plain(field(column))),
    }
}

/// Field of a column with minima or maxima.
fn field(column: &table::Column) -> &str {
    let name = column.name.as_str();
    let field = name.strip_suffix(".min").or_else(|| name.strip_suffix(".max"));
    field.unwrap_or(name)
}

/// Title and numbers of the averages, for a column of minima whose sums exist too.
pub(super) fn averages<'a>(table: &'a Table, at: usize) -> Option<(String, impl Fn(&Row) -> Option<f64> + use<'a>)> {
    let column = table.values.get(at).filter(|column| column.fold == Fold::Min)?;
    let is_sum = |sum: &table::Column| sum.fold == Fold::Sum && sum.name == field(column);
    let sum = table.values.iter().position(is_sum)?;
    let average = move |row: &Row| match row.values.get(sum)? {
        Value::Number(sum) if row.hits > 0 => Some(*sum as f64 / row.hits as f64),
        _ => None,
    };
    Some((format!("avg {}", plain(field(column))), average))
}

pub(super) fn dist_of(value: &Value) -> Option<&Dist> {
    match value {
        Value::Dist(dist) => Some(dist),
        _ => None,
    }
}

/// A line of the table.
enum Line<'a> {
    Row(&'a Row),
    /// Keys without a row, with their part of all hits.
    Other(&'a Row, f64),
    /// Rows beyond the limit.
    Rest {
        rows: usize,
        hits: u64,
    },
    All(&'a Row),
}

impl Line<'_> {
    fn row(&self) -> Option<&Row> {
        match self {
            Line::Row(row) | Line::Other(row, _) | Line::All(row) => Some(row),
            Line::Rest { .. } => None,
        }
    }

    fn hits(&self) -> u64 {
        match self {
            Line::Row(row) | Line::Other(row, _) | Line::All(row) => row.hits,
            Line::Rest { hits, .. } => *hits,
        }
    }

    fn dist(&self, at: usize) -> Option<&Dist> {
        dist_of(self.row()?.values.get(at)?)
    }
}

/// Formats a line for each row, one for the rows beyond the limit, and one for the total.
pub(super) fn lines(screen: &Screen<'_>, view: &View<'_>) -> Vec<String> {
    let table = view.table;
    let sorted = sorted(table, screen.page.rows);
    let (shown, hidden) = sorted.split_at(sorted.len().min(screen.page.rows));
    let total = table.total();
    let mut lines: Vec<Line> = shown.iter().map(|row| Line::Row(row)).collect();
    if !hidden.is_empty() {
        lines.push(Line::Rest {
            rows: hidden.len(),
            hits: hidden.iter().fold(0, |sum, row| row.hits.saturating_add(sum)),
        });
    }
    let part = |row: &Row| row.hits as f64 / total.hits.max(1) as f64;
    lines.extend(others(table).into_iter().map(|row| Line::Other(row, part(row))));
    if lines.len() > 1 {
        lines.push(Line::All(&total));
    }
    let mut grid = Grid::default();
    for at in 0..table.keys.len() {
        add_key(&mut grid, screen, table, &lines, at);
    }
    let number = |title: String, cells, rank| Column {
        title,
        cells,
        kind: Kind::Number,
        rank,
    };
    let hits = lines.iter().map(|line| number::count(line.hits())).collect();
    grid.add(number(screen.noun(), hits, HITS));
    if view.seconds.is_some() {
        let rate = |line: &Line| view.rate(line.hits()).map_or(String::new(), number::rate);
        grid.add(number("/s".to_owned(), lines.iter().map(rate).collect(), RATE));
    }
    let mut error: f64 = 0.0;
    for at in 0..table.values.len() {
        error = error.max(add_value(&mut grid, table, &lines, at));
    }
    let has_dist = |at: &usize| lines.iter().any(|line| line.dist(*at).is_some());
    match (0..table.values.len()).find(has_dist) {
        Some(at) => add_sparks(&mut grid, screen, table, &total, &lines, at),
        None => add_bars(&mut grid, screen, &lines),
    }
    let mut printed = grid.lines(&screen.page);
    if error > 0.0 {
        let note = screen.page.text(&format!("quantiles ±{error} %"));
        printed.push(screen.page.paint(Style::Faint, &note));
    }
    printed
}

fn add_key(grid: &mut Grid, screen: &Screen<'_>, table: &Table, lines: &[Line<'_>], at: usize) {
    let Some(column) = table.keys.get(at) else {
        return;
    };
    let labels = screen.labels();
    let cell = |line: &Line| match line {
        Line::Row(row) => row.keys.get(at).map_or(String::new(), |key| labels.key(column, key)),
        _ if at > 0 => String::new(),
        Line::Other(row, part) => {
            let name = row.keys.first().map_or(String::new(), Key::to_string);
            format!("{name}, {}", number::percent(*part))
        }
        Line::Rest { rows, .. } => format!("… and {} more", number::count(*rows as u64)),
        Line::All(_) => "all".to_owned(),
    };
    grid.add(Column {
        title: plain(&column.name),
        cells: lines.iter().map(cell).collect(),
        kind: Kind::Key,
        rank: u8::MAX,
    });
}

/// Adds the columns for a value. Returns the largest error of the numbers shown.
fn add_value(grid: &mut Grid, table: &Table, lines: &[Line<'_>], at: usize) -> f64 {
    let Some(column) = table.values.get(at) else {
        return 0.0;
    };
    let name = plain(&column.name);
    let mut number = |title: String, cells: Vec<String>, rank| {
        grid.add(Column {
            title,
            cells,
            kind: Kind::Number,
            rank,
        })
    };
    if !lines.iter().any(|line| line.dist(at).is_some()) {
        let cell = |line: &Line| match line.row().and_then(|row| row.values.get(at)) {
            Some(Value::Number(value)) => number::quantity(*value as f64, column.unit),
            _ => String::new(),
        };
        if let Some((title, average)) = averages(table, at) {
            let cell = |line: &Line| match line.row().and_then(&average) {
                Some(average) => number::quantity(average, column.unit),
                None => String::new(),
            };
            number(title, lines.iter().map(cell).collect(), SUM);
        }
        number(title(column), lines.iter().map(cell).collect(), SUM);
        return 0.0;
    }
    // A single distribution needs no prefix.
    let dists = (0..table.values.len()).filter(|&at| lines.iter().any(|line| line.dist(at).is_some()));
    let prefix = if dists.count() > 1 {
        format!("{name} ")
    } else {
        String::new()
    };
    let mut error: f64 = 0.0;
    let mut cells = |figure: &dyn Fn(&Dist) -> Figure| -> Vec<String> {
        let cell = |line: &Line| {
            let figure = line.dist(at).map(figure).unwrap_or_default();
            error = error.max(figure.error.unwrap_or(0.0));
            figure.text
        };
        lines.iter().map(cell).collect()
    };
    let p50 = cells(&|dist| Figure::quantile(dist, 0.5, column.unit));
    let p99 = cells(&|dist| Figure::quantile(dist, 0.99, column.unit));
    let max = cells(&|dist| Figure::max(dist, column.unit));
    number(format!("{prefix}p50"), p50, P50);
    number(format!("{prefix}p99"), p99, P99);
    number(format!("{prefix}max"), max, MAX);
    // A sum without a unit is meaningless.
    if column.unit != Unit::Plain {
        let total = |line: &Line| {
            let sum = line.dist(at).and_then(|dist| dist.sum);
            sum.map_or(String::new(), |sum| number::quantity(sum as f64, column.unit))
        };
        number(format!("{prefix}total"), lines.iter().map(total).collect(), TOTAL);
    }
    error
}

/// Adds a sparkline for each row's distribution, all on the same axis.
fn add_sparks(grid: &mut Grid, screen: &Screen<'_>, table: &Table, total: &Row, lines: &[Line<'_>], at: usize) {
    let Some(whole) = total.values.get(at).and_then(dist_of) else {
        return;
    };
    let axis = Axis::new(whole, SPARK, Gaps::Show);
    let unit = table.values.get(at).map(|column| column.unit).unwrap_or_default();
    let (Some(first), Some(last)) = (axis.ranges().first(), axis.ranges().last()) else {
        return;
    };
    let spark = |line: &Line| {
        line.dist(at)
            .map_or(String::new(), |dist| screen.page.spark(&axis.counts(dist)))
    };
    grid.add(Column {
        title: number::range(first.low, last.high, unit),
        cells: lines.iter().map(spark).collect(),
        kind: Kind::Bar,
        rank: SPARKS,
    });
}

/// Adds a bar for each row's share of the number that rows are sorted by.
fn add_bars(grid: &mut Grid, screen: &Screen<'_>, lines: &[Line<'_>]) {
    let left = screen.page.width.saturating_sub(grid.width(&screen.page) + GAP);
    if left < MIN_BAR {
        return;
    }
    let weights = || {
        lines.iter().map(|line| match line {
            Line::Row(row) => weight(row).max(0),
            _ => 0,
        })
    };
    let top = weights().max().unwrap_or(0).max(1);
    let bar = |weight: i128| screen.page.bar(weight as f64 / top as f64, left.min(BAR));
    grid.add(Column {
        title: String::new(),
        cells: weights().map(bar).collect(),
        kind: Kind::Bar,
        rank: 0,
    });
}
