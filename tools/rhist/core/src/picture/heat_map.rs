// SPDX-License-Identifier: MIT OR Apache-2.0

//! Heat maps, which show how a distribution changes over time.

use super::BLUE;
use super::GREEN;
use super::MARGIN;
use super::ORANGE;
use super::axis::Axis;
use super::begin;
use super::facts;
use super::first_dist;
use super::quantity;
use super::svg::GREY;
use crate::quantity::Count;
use crate::question::Interval;
use crate::question::Question;
use crate::table::Dist;
use crate::table::Row;
use crate::table::Unit;

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 440.0;

/// Limit of columns. With more intervals, adjacent ones share a column.
const MAX_COLUMNS: usize = 240;

/// Number of colours.
const LEVELS: usize = 10;

/// A column: start and end in seconds since the first interval, and the values counted meanwhile.
struct Column {
    from: f64,
    to: f64,
    dist: Dist,
}

/// Draws counts over time and value, with lines for quantiles. Uses only the first distribution of
/// each table.
pub fn heat_map(question: &Question, intervals: &[Interval]) -> String {
    let columns = columns(intervals);
    let mut all = Dist::default();
    columns.iter().for_each(|column| all.merge(&column.dist));
    let mut svg = begin(question, WIDTH, HEIGHT, &facts(question, &all));
    let axis = Axis::new(columns.iter().map(|column| &column.dist), 64.0);
    let (left, right, top, bottom) = (MARGIN + 64.0, WIDTH - MARGIN, 76.0, HEIGHT - 40.0);
    let first = columns.first().map_or(0.0, |column| column.from);
    let seconds = columns.last().map_or(1.0, |column| column.to - first).max(1e-9);
    let x = |time: f64| left + (time - first) / seconds * (right - left);
    let y = |place: f64| bottom - place * (bottom - top);

    let mut cells = Vec::new();
    for column in &columns {
        for segment in axis.segments(&column.dist) {
            // Use rates, so that long intervals do not look hotter.
            let rate = segment.count as f64 / (column.to - column.from).max(1e-9);
            let (from, to) = (y(segment.to), y(segment.from));
            let [start, end] = [column.from, column.to].map(x);
            cells.push((rate, [start, from, end - start, to - from]));
        }
    }
    let hottest = cells.iter().map(|(rate, _)| *rate).fold(0.0, f64::max);
    let coldest = cells.iter().map(|(rate, _)| *rate).fold(hottest, f64::min);
    let mut levels = vec![Vec::new(); LEVELS];
    for (rate, cell) in cells {
        // Logarithmic, since counts differ by orders of magnitude.
        let part = (rate / coldest).ln() / (hottest / coldest).ln();
        let level = if part.is_finite() {
            (part * LEVELS as f64) as usize
        } else {
            LEVELS
        };
        levels[level.min(LEVELS - 1)].push(cell);
    }
    for (level, cells) in levels.iter().enumerate() {
        svg.rectangles(cells, BLUE, opacity(level));
    }

    svg.line([left, bottom], [right, bottom], GREY, 1.0);
    svg.line([left, top], [left, bottom], GREY, 1.0);
    for (place, name) in axis.ticks(12.0, question.unit) {
        svg.line([left - 5.0, y(place)], [left, y(place)], GREY, 1.0);
        svg.line([left, y(place)], [right, y(place)], GREY, 0.2);
        svg.anchored(left - 8.0, y(place) + 4.0, "end", GREY, &name);
    }
    for tick in time_ticks(seconds) {
        let at = x(first + tick);
        svg.line([at, bottom], [at, bottom + 5.0], GREY, 1.0);
        let anchor = if tick > seconds * 0.97 { "end" } else { "middle" };
        svg.anchored(at, bottom + 20.0, anchor, GREY, &clock(tick, seconds));
    }
    for (name, q, colour, place) in [("p50", 0.5, GREEN, 0.0), ("p99", 0.99, ORANGE, 56.0)] {
        let point = |column: &Column| {
            let quantile = column.dist.quantile(q)?;
            Some([x((column.from + column.to) / 2.0), y(axis.place(quantile.value))])
        };
        svg.curve(columns.iter().map(point), colour);
        svg.line([left + place, 60.0], [left + place + 16.0, 60.0], colour, 1.0);
        svg.anchored(left + place + 20.0, 64.0, "start", colour, name);
    }
    legend(&mut svg, question, [right, coldest, hottest]);
    svg.finish()
}

/// Draws the colours, and the rates that they stand for.
fn legend(svg: &mut super::Svg, question: &Question, [right, coldest, hottest]: [f64; 3]) {
    let per_second = |rate: f64| Count(rate.round() as i128).to_string();
    let text = format!("{} {}/s", per_second(hottest), question.noun);
    let end = right - text.chars().count() as f64 * super::svg::CHARACTER - 6.0;
    svg.anchored(right, 64.0, "end", GREY, &text);
    let start = end - 10.0 * LEVELS as f64;
    for level in 0..LEVELS {
        svg.rectangles(&[[start + 10.0 * level as f64, 54.0, 10.0, 12.0]], BLUE, opacity(level));
    }
    svg.anchored(start - 6.0, 64.0, "end", GREY, &per_second(coldest));
}

fn opacity(level: usize) -> f64 {
    0.1 + 0.9 * level as f64 / (LEVELS - 1) as f64
}

fn columns(intervals: &[Interval]) -> Vec<Column> {
    let start = intervals.first().map_or(0, |interval| interval.from.monotonic_ns);
    let seconds = |time: u64| time.saturating_sub(start) as f64 / 1e9;
    let chunk = |chunk: &[Interval]| {
        let (first, last) = (chunk.first()?, chunk.last()?);
        let mut dist = Dist::default();
        for interval in chunk {
            let total: Row = interval.delta.total();
            if let Some(other) = first_dist(&total) {
                dist.merge(other);
            }
        }
        Some(Column {
            from: seconds(first.from.monotonic_ns),
            to: seconds(last.to.monotonic_ns),
            dist,
        })
    };
    let each = intervals.len().div_ceil(MAX_COLUMNS).max(1);
    intervals.chunks(each).filter_map(chunk).collect()
}

/// Up to ten round times.
fn time_ticks(seconds: f64) -> Vec<f64> {
    let steps = [
        1e-3, 1e-2, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0,
    ];
    let step = steps
        .into_iter()
        .find(|step| seconds / step <= 10.0)
        .unwrap_or(seconds / 8.0);
    (0..=10)
        .map(|i| step * f64::from(i))
        .take_while(|tick| *tick <= seconds)
        .collect()
}

/// Formats a time for an axis of length `all`: `1:30` from a minute on.
fn clock(time: f64, all: f64) -> String {
    let whole = time.round() as u64;
    match all {
        _ if time == 0.0 => "0".to_owned(),
        3600.0.. => format!("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60),
        60.0.. => format!("{}:{:02}", whole / 60, whole % 60),
        _ => quantity(time * 1e9, Unit::Nanoseconds),
    }
}
