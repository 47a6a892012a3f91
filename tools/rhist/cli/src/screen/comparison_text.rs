// SPDX-License-Identifier: MIT OR Apache-2.0

//! Prints the differences between two recordings as text.

use std::io;
use std::io::Write;

use rhist_core::compare::Difference;
use rhist_core::compare::Measure;
use rhist_core::quantity::Estimate;
use rhist_core::quantity::things;
use rhist_core::stats;
use rhist_core::table::Text;
use rhist_core::table::Unit;
use rhist_core::table::Value;
use rhist_core::table::shown;
use rhist_core::tracefs::Backend;

use super::comparison::Comparison;
use super::grid::Column;
use super::grid::Grid;
use super::grid::Kind;
use super::number;
use super::page::Style;
use super::page::plain;
use super::settings::Screen;

/// Explanation for first-time readers.
const LEGEND: &str = "A and B are medians of intervals. B/A is the ratio of all pairs of intervals, with a 95 % interval. Effect \
is Cliff's delta: 1 if all intervals of B are above all of A, -1 if below, 0 if neither. p is that of the Mann-Whitney test of \
n intervals of each, corrected for the number of lines (Holm); * marks those below 5 %.";

/// Prints the differences, with an explanation.
pub(super) fn print(screen: &Screen<'_>, out: &mut dyn Write, comparison: &Comparison<'_>) -> io::Result<()> {
    let page = &screen.page;
    let write = |out: &mut dyn Write, text: &str| {
        let lines = page.wrap(&page.text(text), page.width);
        lines.iter().try_for_each(|line| writeln!(out, "{line}"))
    };
    let title = page.cut(&page.text(&plain(&screen.question.summary)), page.width);
    writeln!(out, "{}", page.paint(Style::Title, &title))?;
    for (i, name) in ["A", "B"].into_iter().enumerate() {
        write(out, &format!("{name}: {}", side(screen, comparison, i)))?;
    }
    writeln!(out)?;
    for line in grid(screen, comparison).lines(page) {
        writeln!(out, "{line}")?;
    }
    if let Some(percent) = quantile_error(comparison) {
        let note = page.text(&format!("quantiles ±{percent} %"));
        writeln!(out, "{}", page.paint(Style::Faint, &note))?;
    }
    let mut texts: Vec<&str> = comparison.notes.iter().map(String::as_str).collect();
    if !screen.quiet {
        texts.push(LEGEND);
    }
    for text in texts {
        writeln!(out)?;
        write(out, text)?;
    }
    Ok(())
}

/// Describes a recording in a line.
fn side(screen: &Screen<'_>, comparison: &Comparison<'_>, i: usize) -> String {
    let (sample, question) = (comparison.samples[i], comparison.questions[i]);
    let median = stats::median(&sample.seconds).unwrap_or(0.0);
    let intervals = things(sample.seconds.len() as u64, "intervals");
    let intervals = format!("{intervals} of {}", number::seconds(median));
    let hits = things(sample.total.total().hits, &screen.noun());
    let backend = match question.backend {
        Backend::Rhist => "rhist",
        Backend::C => "C's hist triggers",
    };
    let name = Text::from(comparison.names[i]).to_string();
    let machine = [&question.host, &question.kernel]
        .map(|text| plain(text))
        .join(", Linux ");
    format!(
        "{name}, {intervals}, {hits}; {machine}, {}, {backend}",
        things(question.cpus.into(), "CPUs")
    )
}

fn grid(screen: &Screen<'_>, comparison: &Comparison<'_>) -> Grid {
    let column = |title: &str, kind, rank| Column {
        title: title.to_owned(),
        cells: Vec::new(),
        kind,
        rank,
    };
    let (mut keys, mut measures) = (column("", Kind::Key, 9), column("", Kind::Key, 9));
    let (mut a, mut b) = (column("A", Kind::Number, 8), column("B", Kind::Number, 8));
    let (mut ratio, mut range) = (column("B/A", Kind::Number, 7), column("95 %", Kind::Key, 4));
    let (mut effect, mut p) = (column("effect", Kind::Number, 6), column("p", Kind::Number, 7));
    let (mut mark, mut n) = (column("", Kind::Key, 7), column("n", Kind::Number, 2));
    let mut last = None;
    for difference in comparison.differences {
        let is_new = last.replace(&difference.keys) != Some(&difference.keys);
        keys.cells.push(if is_new {
            key_names(screen, comparison, difference)
        } else {
            String::new()
        });
        measures.cells.push(measure(screen, comparison, &difference.measure));
        for (i, side) in [&mut a, &mut b].into_iter().enumerate() {
            side.cells.push(value(difference, difference.medians[i]));
        }
        ratio.cells.push(
            difference
                .ratio
                .map_or("-".to_owned(), |ratio| format!("{:.2}", ratio.value)),
        );
        let ends = difference
            .ratio
            .map(|ratio| format!("{:.2} – {:.2}", ratio.low, ratio.high));
        range.cells.push(ends.unwrap_or_default());
        effect.cells.push(format!("{:.2}", difference.delta + 0.0));
        p.cells.push(if difference.p < 0.001 {
            "<0.001".to_owned()
        } else {
            format!("{:.3}", difference.p)
        });
        mark.cells.push(if difference.p < 0.05 {
            "*".to_owned()
        } else {
            String::new()
        });
        n.cells.push(difference.intervals.map(|n| n.to_string()).join(", "));
    }
    let mut grid = Grid::default();
    let has_keys = !comparison.samples[0].total.keys.is_empty();
    for column in has_keys
        .then_some(keys)
        .into_iter()
        .chain([measures, a, b, ratio, range, effect, p, mark, n])
    {
        grid.add(column);
    }
    grid
}

fn key_names(screen: &Screen<'_>, comparison: &Comparison<'_>, difference: &Difference) -> String {
    let Some(keys) = &difference.keys else {
        return "all".to_owned();
    };
    let labels = screen.labels();
    let columns = &comparison.samples[1].total.keys;
    let names = columns
        .iter()
        .zip(shown(keys))
        .map(|(column, key)| labels.key(column, key));
    names.collect::<Vec<_>>().join(" ")
}

fn measure(screen: &Screen<'_>, comparison: &Comparison<'_>, measure: &Measure) -> String {
    let is_only = comparison.samples[0].total.values.len() == 1;
    match (measure.quantile, &measure.column) {
        (Some(quantile), _) if is_only => quantile.to_owned(),
        (Some(quantile), column) => format!("{quantile} {}", plain(column.as_deref().unwrap_or_default())),
        (None, Some(column)) => format!("{}/s", plain(column)),
        (None, None) => format!("{}/s", screen.noun()),
    }
}

/// Maximum error of the quantiles, in per cent: a smaller difference is not visible. `None` if they
/// are exact.
fn quantile_error(comparison: &Comparison<'_>) -> Option<f64> {
    let totals = comparison.samples.map(|sample| sample.total.total());
    let quantiles = totals
        .iter()
        .flat_map(|total| &total.values)
        .flat_map(|value| match value {
            Value::Dist(dist) => [0.5, 0.9, 0.99].map(|q| dist.quantile(q)),
            _ => [None; 3],
        });
    let estimates = quantiles.flatten().map(|quantile| Estimate {
        quantile,
        unit: Unit::Plain,
    });
    estimates.filter_map(|estimate| estimate.percent()).reduce(f64::max)
}

/// Formats a median.
fn value(difference: &Difference, value: f64) -> String {
    match difference.measure.quantile {
        Some(_) => number::quantity(value, difference.measure.unit),
        None if difference.measure.unit == Unit::Plain => number::rate(value),
        None => number::quantity(value, difference.measure.unit) + "/s",
    }
}
