// SPDX-License-Identifier: MIT OR Apache-2.0

//! Bar charts of a distribution, and of keys.

use super::BLUE;
use super::GREEN;
use super::MARGIN;
use super::ORANGE;
use super::QUANTILES;
use super::axis::Axis;
use super::begin;
use super::facts;
use super::quantity;
use super::svg::CHARACTER;
use super::svg::GREY;
use super::svg::clipped;
use crate::quantity::Count;
use crate::quantity::Quantity;
use crate::quantity::things;
use crate::question::Question;
use crate::table::Dist;
use crate::table::Key;
use crate::table::Row;
use crate::table::Table;
use crate::table::Unit;
use crate::table::Value;
use crate::table::shown;

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 360.0;

/// Limit of keys shown.
const MAX_KEYS: usize = 30;

/// Draws a distribution: the number of values in each bucket on a logarithmic axis, and lines for
/// quantiles.
pub fn bars(question: &Question, dist: &Dist) -> String {
    let mut svg = begin(question, WIDTH, HEIGHT, &facts(question, dist));
    let axis = Axis::new([dist], 120.0);
    let (left, right, top, bottom) = (MARGIN + 64.0, WIDTH - MARGIN, 92.0, HEIGHT - 40.0);
    let x = |place: f64| left + place * (right - left);
    let segments = axis.segments(dist);
    let most = segments.iter().map(|segment| segment.count).max().unwrap_or(0).max(1) as f64;
    for tick in count_ticks(most) {
        let y = bottom - tick / most * (bottom - top);
        svg.line([left, y], [right, y], GREY, 0.25);
        svg.anchored(left - 8.0, y + 4.0, "end", GREY, &thousands(tick));
    }
    for segment in &segments {
        let height = (segment.count as f64 / most * (bottom - top)).max(0.5);
        let (from, to) = (x(segment.from), x(segment.to));
        let gap = ((to - from) * 0.1).min(1.0);
        let title = format!(
            "{}: {}",
            axis.name(segment, question.unit),
            things(segment.count, &question.noun)
        );
        svg.rectangle(
            [from, bottom - height, (to - from - gap).max(0.3), height],
            BLUE,
            &title,
        );
    }
    svg.line([left, bottom], [right, bottom], GREY, 1.0);
    for (place, name) in axis.ticks(12.0, question.unit) {
        svg.line([x(place), bottom], [x(place), bottom + 5.0], GREY, 1.0);
        svg.anchored(x(place), bottom + 20.0, "middle", GREY, &name);
    }
    let mut labels = Labels::default();
    for ((name, q), colour) in QUANTILES.into_iter().zip([GREEN, GREY, ORANGE]) {
        if let Some(quantile) = dist.quantile(q) {
            let at = x(axis.place(quantile.value));
            let text = format!("{name} {}", quantity(quantile.value, question.unit));
            svg.line([at, 70.0], [at, bottom], colour, 1.0);
            let (x, anchor, y) = labels.place(at, &text, right);
            svg.anchored(x, y, anchor, colour, &text);
        }
    }
    svg.finish()
}

/// Places labels so that none covers the one before.
#[derive(Default)]
struct Labels {
    end: f64,
    row: usize,
}

impl Labels {
    /// Position of the label for `at`, and its anchor.
    fn place(&mut self, at: f64, text: &str, right: f64) -> (f64, &'static str, f64) {
        let width = text.chars().count() as f64 * CHARACTER + 12.0;
        let is_right = at + width > right;
        let start = if is_right { at - width } else { at };
        self.row = if start < self.end { (self.row + 1) % 3 } else { 0 };
        self.end = start + width;
        let y = 62.0 + 14.0 * self.row as f64;
        if is_right {
            (at - 5.0, "end", y)
        } else {
            (at + 5.0, "start", y)
        }
    }
}

/// Draws the keys with the highest numbers: the first value if it is a number, otherwise hits.
pub fn keys(question: &Question, table: &Table) -> String {
    let (by, unit) = match table.values.iter().zip(&table.total().values).next() {
        Some((column, Value::Number(_))) => (format!(", by {}", column.name), column.unit),
        _ => (String::new(), Unit::Plain),
    };
    let number = |row: &Row| match row.values.first() {
        Some(Value::Number(number)) => *number,
        _ => row.hits.into(),
    };
    let mut rows: Vec<_> = table.rows.iter().map(|row| (number(row), row)).collect();
    // Keys without a row come last: comparing many with one tells nothing.
    let is_other = |row: &Row| row.other().is_some();
    rows.sort_by(|(a, row), (b, other)| {
        let by_number = is_other(row).cmp(&is_other(other)).then_with(|| b.cmp(a));
        by_number.then_with(|| row.keys.cmp(&other.keys))
    });
    let shown = rows.len().min(MAX_KEYS);
    let height = 76.0 + 20.0 * shown as f64 + MARGIN;
    let mut facts = things(table.total().hits, &question.noun) + &by;
    if rows.len() > shown {
        facts += &format!(", {} more keys not shown", Count((rows.len() - shown) as i128));
    }
    let mut svg = begin(question, WIDTH, height, &facts);
    let left = 360.0;
    let room = WIDTH - MARGIN - left - 110.0;
    let most = rows.first().map_or(1, |(most, _)| (*most).max(1)) as f64;
    for (i, (number, row)) in rows.into_iter().take(shown).enumerate() {
        let y = 64.0 + 20.0 * i as f64;
        let name = name(&row.keys);
        let width = (number as f64 / most).clamp(0.0, 1.0) * room;
        let value = Quantity {
            value: number as f64,
            unit,
        }
        .to_string();
        svg.anchored(left - 8.0, y + 12.0, "end", GREY, &clipped(&name, left - 24.0));
        svg.rectangle([left, y, width.max(0.5), 16.0], BLUE, &format!("{name}: {value}"));
        svg.label(left + width + 6.0, y + 12.0, &value);
    }
    svg.finish()
}

/// Formats the keys of a row.
pub fn name(keys: &[Key]) -> String {
    let keys: Vec<_> = shown(keys).iter().map(ToString::to_string).collect();
    if keys.is_empty() {
        "all".to_owned()
    } else {
        keys.join(", ")
    }
}

/// Up to five round numbers below `most`.
pub fn count_ticks(most: f64) -> Vec<f64> {
    let power = 10f64.powf((most / 5.0).max(1.0).log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
    let step = step.into_iter().find(|step| most / step <= 5.0).unwrap_or(most);
    (0..=5)
        .map(|i| step * f64::from(i))
        .take_while(|tick| *tick <= most)
        .collect()
}

fn thousands(number: f64) -> String {
    let quantity = Quantity {
        value: number,
        unit: Unit::Plain,
    };
    format!("{quantity:#}")
}
