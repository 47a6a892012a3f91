// SPDX-License-Identifier: MIT OR Apache-2.0

//! Prints counts for people.

use std::io;
use std::io::Write;

use rhist_core::quantity::things;
use rhist_core::table;
use rhist_core::table::Unit;
use rhist_core::table::Value;

use super::Screen;
use super::View;
use super::bars;
use super::grid::Column;
use super::grid::Grid;
use super::grid::Kind;
use super::losses;
use super::number;
use super::page::Style;
use super::page::columns;
use super::page::plain;
use super::quantiles;
use super::rows;
use super::stacks;

/// Indent of labelled texts.
const INDENT: usize = 8;

/// Prints a header, the counts, the largest value, and losses; for a total also cost and triggers.
/// Only triggers may be wider than the page.
pub(super) fn print(screen: &Screen<'_>, out: &mut dyn Write, view: &View<'_>) -> io::Result<()> {
    let mut parts = vec![header(screen, view), body(screen, view)];
    parts.push(remarks(screen, view));
    if view.is_total() && !screen.quiet {
        parts.push(triggers(screen));
    }
    for part in parts.into_iter().filter(|part| !part.is_empty()) {
        for line in part {
            writeln!(out, "{line}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn header(screen: &Screen<'_>, view: &View<'_>) -> Vec<String> {
    let page = &screen.page;
    let hits = view
        .table
        .rows
        .iter()
        .fold(0u64, |sum, row| sum.saturating_add(row.hits));
    let mut counted = things(hits, &screen.noun());
    if let Some((seconds, rate)) = view.seconds.zip(view.rate(hits)) {
        counted += &format!(" in {}, {}/s", number::seconds(seconds), number::rate(rate));
    }
    let title = match view.is_total() {
        true => plain(&screen.question.summary),
        false => number::clock(view.to.realtime_ns).unwrap_or_default(),
    };
    let [title, counted] = [title, counted].map(|text| page.cut(&page.text(&text), page.width));
    if title.is_empty() {
        return vec![counted];
    }
    let one = columns(&title) + 2 + columns(&counted) <= page.width;
    let colon = if view.is_total() { ": " } else { "  " };
    let title = page.paint(Style::Title, &title);
    match one {
        true => vec![format!("{title}{colon}{counted}")],
        false => vec![title, counted],
    }
}

fn body(screen: &Screen<'_>, view: &View<'_>) -> Vec<String> {
    let table = view.table;
    if table.rows.is_empty() {
        return Vec::new();
    }
    if screen.by && stacks::has_stacks(table) {
        return stacks::lines(screen, view);
    }
    if screen.by && !table.keys.is_empty() {
        return rows::lines(screen, view);
    }
    let mut lines = Vec::new();
    for (column, value) in table.values.iter().zip(table.total().values) {
        let Value::Dist(dist) = value else {
            continue;
        };
        if !lines.is_empty() {
            lines.push(String::new());
        }
        if table.values.len() > 1 {
            let name = screen.page.text(&plain(&column.name));
            lines.push(
                screen
                    .page
                    .paint(Style::Title, &screen.page.cut(&name, screen.page.width)),
            );
        }
        lines.extend(bars::lines(&screen.page, &dist, column.unit));
        lines.push(String::new());
        lines.extend(quantiles::lines(&screen.page, &dist, column.unit));
    }
    lines.extend(numbers(screen, view));
    lines
}

/// Sums and extremes over all rows, one per line.
fn numbers(screen: &Screen<'_>, view: &View<'_>) -> Vec<String> {
    let column = |kind, rank| Column {
        title: String::new(),
        cells: Vec::new(),
        kind,
        rank,
    };
    let (mut names, mut numbers) = (column(Kind::Key, 1), column(Kind::Number, 0));
    let total = view.table.total();
    for (at, (column, value)) in view.table.values.iter().zip(&total.values).enumerate() {
        let Value::Number(value) = value else {
            continue;
        };
        let mut add = |name, number| {
            names.cells.push(name);
            numbers.cells.push(number::quantity(number, column.unit));
        };
        if let Some((title, average)) = rows::averages(view.table, at)
            && let Some(average) = average(&total)
        {
            add(title, average);
        }
        add(rows::title(column), *value as f64);
    }
    let mut grid = Grid::default();
    grid.add(names);
    grid.add(numbers);
    grid.lines(&screen.page)
}

/// Remarks: the largest value, losses, notes, cost.
fn remarks(screen: &Screen<'_>, view: &View<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    let mut add = |name: &str, texts: Vec<String>, style: Option<Style>| {
        for (at, text) in texts.iter().enumerate() {
            lines.extend(labelled(screen, if at == 0 { name } else { "" }, text, style));
        }
    };
    add("worst", worst(screen, view).into_iter().collect(), None);
    let losses = losses::losses(view);
    let lost = !losses.is_empty();
    add("lost", losses, Some(Style::Warning));
    if view.is_total() {
        add(if lost { "" } else { "lost" }, losses::untold(screen, view), None);
    }
    add("stacks", losses::cut(screen, view).into_iter().collect(), None);
    add("full", losses::fill(view).into_iter().collect(), None);
    if view.is_total() {
        add("ticks", losses::ticks(view).into_iter().collect(), None);
        add("clock", clock(screen, view).into_iter().collect(), None);
    }
    if view.is_total() && !screen.quiet {
        add(
            "note",
            screen.question.notes.iter().map(|note| plain(note)).collect(),
            None,
        );
        add("cost", losses::cost(view).into_iter().collect(), None);
    }
    lines
}

/// Explains times of 0.
fn clock(screen: &Screen<'_>, view: &View<'_>) -> Option<String> {
    let step = screen.question.clock_step_ns?;
    let is_time = |column: &&table::Column| column.unit == Unit::Nanoseconds;
    let total = view.table.total();
    let mut columns = view.table.values.iter().zip(&total.values);
    let has_zero = columns.any(|(column, value)| {
        let mut buckets = rows::dist_of(value).into_iter().flat_map(table::Dist::buckets);
        is_time(&column) && buckets.any(|bucket| bucket.low == 0)
    });
    let step = number::quantity(step as f64, Unit::Nanoseconds);
    has_zero.then(|| format!("times of 0 ns are shorter than a step of this machine's clock, {step}"))
}

/// The largest value of all rows, with the fields saved at that event, if they are known.
fn worst(screen: &Screen<'_>, view: &View<'_>) -> Option<String> {
    let worst = view.table.worst()?;
    if worst.saved.is_empty() {
        return None;
    }
    let first = view.table.rows.first()?;
    let mut dists = view.table.values.iter().zip(&first.values);
    let unit = dists
        .find(|(_, value)| rows::dist_of(value).is_some())
        .map(|(column, _)| column.unit);
    let value = number::quantity(worst.value as f64, unit.unwrap_or(screen.question.unit));
    Some(format!("{value}, {}", screen.labels().worst(worst)))
}

/// Formats `name: text` in as many lines as needed.
fn labelled(screen: &Screen<'_>, name: &str, text: &str, style: Option<Style>) -> Vec<String> {
    let page = &screen.page;
    let indent = " ".repeat(INDENT);
    let label = if name.is_empty() {
        indent.clone()
    } else {
        format!("{:<INDENT$}", format!("{name}:"))
    };
    let wrapped = page.wrap(&page.text(text), page.width.saturating_sub(INDENT));
    let lines = wrapped.into_iter().enumerate();
    lines
        .map(|(at, line)| {
            let start = if at == 0 { &label } else { &indent };
            let line = format!("{start}{line}");
            style.map_or(line.clone(), |style| page.paint(style, &line))
        })
        .collect()
}

/// Shell commands of the triggers. Not wrapped, so that they can be copied.
fn triggers(screen: &Screen<'_>) -> Vec<String> {
    let triggers = screen.question.triggers.iter();
    let mut lines: Vec<String> = triggers.map(|trigger| screen.page.text(&plain(trigger))).collect();
    if !lines.is_empty() {
        lines.insert(0, screen.page.paint(Style::Faint, "by these triggers:"));
    }
    lines
}
