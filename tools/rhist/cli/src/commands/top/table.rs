// SPDX-License-Identifier: MIT OR Apache-2.0

//! Draws the table: a line for each key.

use ratatui::layout::Rect;
use ratatui::style::Modifier;
use ratatui::style::Style;
use rhist_core::table::Table;
use rhist_core::table::Unit;

use super::line::Column;
use super::line::Line;
use super::number;
use super::paint::Paint;
use super::paint::safe;
use super::state::State;

/// Width of the mark before keys, and minimum widths of keys and trends, in cells.
const MIN_KEY: u16 = 10;
const MARK: u16 = 1;
const MIN_TREND: u16 = 6;

/// Draws the table into an area. `total` has its columns.
pub fn draw(state: &mut State, total: &Table, paint: &mut Paint, area: Rect) {
    state.set_page(area.height.saturating_sub(1));
    // Before the first interval.
    if state.columns.is_empty() {
        return;
    }
    let layout = Layout::new(&state.columns, total, area.width);
    titles(state, total, paint, area, &layout);
    let selected = state.place();
    let lines = state.order.iter().enumerate().skip(state.offset);
    for (y, (place, &key)) in (area.y + 1..area.bottom()).zip(lines) {
        let Some(line) = state.shown().line(key) else {
            continue;
        };
        draw_line(state, total, line, paint, Rect { y, ..area }, &layout);
        if place == selected {
            let mark = paint.look.pick("›", ">");
            paint.text(area.x, y, MARK, mark, Style::new());
            paint.style(area.x, y, area.width, paint.look.selected());
        }
    }
}

/// Columns that fit, with their widths.
struct Layout {
    /// Columns other than the key, with their widths, in order.
    columns: Vec<(Column, u16)>,
    key: u16,
    /// Width of the trend; 0 for none.
    trend: u16,
}

impl Layout {
    fn new(all: &[Column], table: &Table, width: u16) -> Self {
        let mut by_importance: Vec<_> = all.iter().copied().filter(|&column| column != Column::Key).collect();
        by_importance.sort_by_key(|column| match column {
            Column::Key | Column::Rate => 0,
            Column::P99 => 1,
            Column::P50 => 2,
            Column::Max => 3,
            Column::Number(_) => 4,
            Column::Change => 5,
        });
        let mut free = width.saturating_sub(MARK + MIN_KEY);
        let mut fitting = Vec::new();
        for column in by_importance {
            let cells = match column.unit(table) {
                Unit::Bytes => 9,
                _ => 8,
            };
            match free.checked_sub(cells + 1) {
                Some(left) => free = left,
                None => break,
            }
            fitting.push((column, cells));
        }
        fitting.sort_by_key(|(column, _)| all.iter().position(|other| other == column));
        let trend = match free / 2 {
            trend if trend > MIN_TREND => trend - 1,
            _ => 0,
        };
        let for_trend = if trend > 0 { trend + 1 } else { 0 };
        Layout {
            columns: fitting,
            key: (MIN_KEY + free - for_trend).min(width.saturating_sub(MARK)),
            trend,
        }
    }
}

fn titles(state: &State, table: &Table, paint: &mut Paint, area: Rect, layout: &Layout) {
    let bar = paint.look.bar();
    paint.text(area.x, area.y, area.width, &" ".repeat(area.width.into()), bar);
    let title = |column: Column, paint: &Paint| {
        let title = match column {
            Column::P50 | Column::P99 if state.baseline.is_some() => format!("±{}", column.title(table)),
            _ => safe(&column.title(table)),
        };
        let down = (column == Column::Key) == state.reversed;
        let (mark, style) = match (column == state.sort, down) {
            (false, _) => ("", bar),
            (true, true) => (paint.look.pick("▼", " v"), bar.add_modifier(Modifier::BOLD)),
            (true, false) => (paint.look.pick("▲", " ^"), bar.add_modifier(Modifier::BOLD)),
        };
        (format!("{title}{mark}"), style)
    };
    let mut x = area.x + MARK;
    let (text, style) = title(Column::Key, paint);
    paint.text(x, area.y, layout.key, &text, style);
    x += layout.key;
    for &(column, width) in &layout.columns {
        let (text, style) = title(column, paint);
        paint.right(x + 1, area.y, width, &text, style);
        x += width + 1;
    }
    let trend = if state.medians { "p50 trend" } else { "rate trend" };
    paint.text(x + 1, area.y, layout.trend, trend, bar);
}

fn draw_line(state: &State, table: &Table, line: &Line, paint: &mut Paint, area: Rect, layout: &Layout) {
    let mut x = area.x + MARK;
    paint.text(x, area.y, layout.key, state.keys.label(line.key), Style::new());
    x += layout.key;
    for &(column, width) in &layout.columns {
        let style = match column {
            Column::Max if line.max_is_new => Style::new().add_modifier(Modifier::BOLD),
            _ => Style::new(),
        };
        paint.right(x + 1, area.y, width, &cell(state, table, line, column), style);
        x += width + 1;
    }
    if layout.trend > 0 {
        trend(state, line.key, paint, Rect::new(x + 1, area.y, layout.trend, 1));
    }
}

/// Text of a cell.
fn cell(state: &State, table: &Table, line: &Line, column: Column) -> String {
    let base = state.base(line.key);
    let number = column.number(line, base.as_ref());
    let unit = column.unit(table);
    match (column, number) {
        (_, None) => "-".into(),
        (Column::Change, Some(change)) => number::change(change),
        (Column::P50 | Column::P99, Some(more)) if base.is_some() => number::signed(more, unit),
        (_, Some(number)) => number::short(number, unit),
    }
}

/// Draws rates or medians of a key over time.
fn trend(state: &State, key: u32, paint: &mut Paint, area: Rect) {
    let moments = state.history.last(area.width.into(), state.shown().pushed);
    let values: Vec<_> = moments
        .map(|moment| match moment.get(key) {
            Some((point, _)) if state.medians => point.p50.max(0.0),
            Some((point, _)) => point.rate,
            None => 0.0,
        })
        .collect();
    let most = values.iter().copied().fold(0.0, f32::max);
    let heights = paint.look.heights();
    let top = heights.len().saturating_sub(1);
    let bar = |&value: &f32| match value > 0.0 {
        true => heights
            .get((value / most * top as f32).round() as usize)
            .copied()
            .unwrap_or(" "),
        false => " ",
    };
    let text: String = values.iter().map(bar).collect();
    paint.right(area.x, area.y, area.width, &text, Style::new());
}
