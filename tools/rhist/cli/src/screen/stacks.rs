// SPDX-License-Identifier: MIT OR Apache-2.0

//! Prints stacks: each below its hits, one function per line, the innermost first.

use rhist_core::quantity::things;
use rhist_core::table::Key;
use rhist_core::table::Row;
use rhist_core::table::Table;
use rhist_core::table::Value;

use super::Screen;
use super::View;
use super::number;
use super::page::Style;
use super::page::columns;
use super::page::plain;
use super::quantiles::Figure;

/// Divisor of the page's limit of rows, since a stack takes many lines.
const PART: usize = 4;
const INDENT: &str = "    ";

/// Returns whether a key is a stack.
pub(super) fn has_stacks(table: &Table) -> bool {
    let is_stack = |key: &Key| matches!(key, Key::Stack(_));
    table.rows.iter().any(|row| row.keys.iter().any(is_stack))
}

/// Formats stacks, the ones with most time or hits first.
pub(super) fn lines(screen: &Screen<'_>, view: &View<'_>) -> Vec<String> {
    let table = view.table;
    let mut rows: Vec<&Row> = table.rows.iter().collect();
    rows.sort_by_cached_key(|row| (std::cmp::Reverse(size(row)), row.keys.clone()));
    let all = rows.iter().fold(0i128, |sum, row| sum.saturating_add(size(row)));
    let (shown, hidden) = rows.split_at(rows.len().min((screen.page.rows / PART).max(1)));
    let mut lines = Vec::new();
    for row in shown {
        lines.push(screen.page.paint(Style::Title, &head(screen, table, row, all)));
        let heads = lines.len();
        // The last stack is the innermost: by the stacks of a program and of the kernel.
        for key in row.keys.iter().rev() {
            let Key::Stack(frames) = key else {
                continue;
            };
            let frames = frames.iter().map(|frame| format!("{INDENT}{frame}"));
            lines.extend(frames.map(|frame| screen.page.cut(&screen.page.text(&frame), screen.page.width)));
        }
        if lines.len() == heads {
            lines.push(format!("{INDENT}(no stack)"));
        }
        lines.push(String::new());
    }
    if !hidden.is_empty() {
        let hits = hidden.iter().fold(0u64, |sum, row| sum.saturating_add(row.hits));
        let text = format!(
            "… and {} with {}",
            things(hidden.len() as u64, "more stacks"),
            things(hits, &screen.noun())
        );
        lines.push(screen.page.cut(&screen.page.text(&text), screen.page.width));
    }
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

/// Headline of a stack: its share, and as many of its other keys as fit on the page.
fn head(screen: &Screen<'_>, table: &Table, row: &Row, all: i128) -> String {
    let mut parts = vec![things(row.hits, &screen.noun())];
    if all > 0 {
        parts.push(format!("{:.1} %", size(row) as f64 * 100.0 / all as f64));
    }
    let labels = screen.labels();
    let others = table
        .keys
        .iter()
        .zip(&row.keys)
        .filter(|(_, key)| !matches!(key, Key::Stack(_)));
    parts.extend(others.map(|(column, key)| labels.key(column, key)));
    for (column, value) in table.values.iter().zip(&row.values) {
        match value {
            Value::Dist(dist) => {
                let [p50, max] = [Figure::quantile(dist, 0.5, column.unit), Figure::max(dist, column.unit)];
                if let Some(sum) = dist.sum {
                    parts.push(format!("sum {}", number::quantity(sum as f64, column.unit)));
                }
                parts.push(format!("p50 {}", p50.text));
                parts.push(format!("max {}", max.text));
            }
            Value::Number(number) => parts.push(format!(
                "{} {}",
                plain(&column.name),
                number::quantity(*number as f64, column.unit)
            )),
            Value::Unknown => {}
        }
    }
    let mut head = String::new();
    for part in parts {
        let part = screen.page.text(&part);
        match head.is_empty() {
            true => head = screen.page.cut(&part, screen.page.width),
            false if columns(&head) + 2 + columns(&part) <= screen.page.width => head += &format!("  {part}"),
            false => break,
        }
    }
    head
}

/// Weight of a stack: the sum of its values, or its hits.
pub(super) fn size(row: &Row) -> i128 {
    let sum = row.values.iter().find_map(|value| match value {
        Value::Dist(dist) => dist.sum,
        Value::Number(number) => Some(*number),
        Value::Unknown => None,
    });
    sum.unwrap_or(row.hits.into())
}
