// SPDX-License-Identifier: MIT OR Apache-2.0

//! A distribution as bars.

use rhist_core::table::Dist;
use rhist_core::table::Unit;

use super::axis::Axis;
use super::number;
use super::page::Page;
use super::page::Style;
use super::page::columns;

/// Most bars of a distribution.
const ROWS: usize = 20;
/// Columns of the longest bar.
const BAR: usize = 60;

/// A line for each range of values: the range, how many there are, a bar.
pub(super) fn lines(page: &Page, dist: &Dist, unit: Unit) -> Vec<String> {
    let axis = Axis::new(dist, ROWS);
    let counts = axis.counts(dist);
    let top = counts.iter().copied().max().unwrap_or(0).max(1);
    let (lows, highs): (Vec<_>, Vec<_>) = axis
        .ranges()
        .iter()
        .map(|range| {
            (
                page.text(&number::low(range.low, unit)),
                page.text(&number::quantity(range.high as f64, unit)),
            )
        })
        .unzip();
    let counts: Vec<_> = counts.into_iter().map(|count| (count, number::count(count))).collect();
    let widest = |texts: &mut dyn Iterator<Item = &String>| texts.map(|text| columns(text)).max().unwrap_or(0);
    let low_width = widest(&mut lows.iter());
    let high_width = widest(&mut highs.iter());
    let count_width = widest(&mut counts.iter().map(|(_, text)| text));
    let dash = page.text("–");
    let used = low_width + high_width + count_width + 3 + 2 + 2;
    let left = page.width.saturating_sub(used).min(BAR);
    let mut lines = Vec::new();
    for ((low, high), (count, text)) in lows.iter().zip(&highs).zip(&counts) {
        let pad = |text: &str, width: usize| " ".repeat(width - columns(text)) + text;
        let range = match low == high {
            true => pad(high, low_width + 3 + high_width),
            false => format!("{} {dash} {}", pad(low, low_width), pad(high, high_width)),
        };
        let line = page.cut(&format!("{range}  {}", pad(text, count_width)), page.width);
        let bar = page.bar(*count as f64 / top as f64, left);
        lines.push(match bar.is_empty() {
            true => line,
            false => format!("{line}  {}", page.paint(Style::Bar, &bar)),
        });
    }
    lines
}
