// SPDX-License-Identifier: MIT OR Apache-2.0

//! Prints a distribution as bars.

use rhist_core::table::Dist;
use rhist_core::table::Unit;

use super::axis::Axis;
use super::axis::Gaps;
use super::number;
use super::page::Page;
use super::page::Style;
use super::page::columns;

/// Limit of bars.
const ROWS: usize = 20;
/// Length of the longest bar, in columns.
const BAR: usize = 60;

/// Texts of a line.
struct Line {
    /// Empty if the range is a single value.
    low: String,
    high: String,
    hits: u64,
    count: String,
    /// Whether empty ranges before it are left out.
    skipped: bool,
}

/// A line for each range of values: range, count, bar. Dots replace empty ranges.
pub(super) fn lines(page: &Page, dist: &Dist, unit: Unit) -> Vec<String> {
    let lines = contents(page, dist, unit);
    let widest = |text: fn(&Line) -> &str| lines.iter().map(|line| columns(text(line))).max().unwrap_or(0);
    let low_width = widest(|line| &line.low);
    let high_width = widest(|line| &line.high);
    let count_width = widest(|line| &line.count);
    let top = lines.iter().map(|line| line.hits).max().unwrap_or(0).max(1);
    let [dash, dots] = ["–", "…"].map(|text| page.text(text));
    let range_width = low_width + 3 + high_width;
    let left = page.width.saturating_sub(range_width + count_width + 4).min(BAR);
    let mut printed = Vec::new();
    for line in &lines {
        if line.skipped {
            printed.push(pad(&dots, low_width + 2));
        }
        let range = match line.low.is_empty() {
            true => pad(&line.high, range_width),
            false => format!("{} {dash} {}", pad(&line.low, low_width), pad(&line.high, high_width)),
        };
        let text = page.cut(&format!("{range}  {}", pad(&line.count, count_width)), page.width);
        let bar = page.bar(line.hits as f64 / top as f64, left);
        printed.push(match bar.is_empty() {
            true => text,
            false => format!("{text}  {}", page.paint(Style::Bar, &bar)),
        });
    }
    printed
}

fn contents(page: &Page, dist: &Dist, unit: Unit) -> Vec<Line> {
    let axis = Axis::new(dist, ROWS, Gaps::Skip);
    let mut before = None;
    let ranges = axis.ranges().iter().zip(axis.counts(dist));
    ranges
        .map(|(range, hits)| Line {
            low: match range.low == range.high {
                true => String::new(),
                false => page.text(&number::low(range.low, unit)),
            },
            high: page.text(&number::quantity(range.high as f64, unit)),
            hits,
            count: number::count(hits),
            skipped: before.replace(range.high).is_some_and(|before| range.low > before + 1),
        })
        .collect()
}

/// Aligns a text to the right.
fn pad(text: &str, width: usize) -> String {
    " ".repeat(width.saturating_sub(columns(text))) + text
}
