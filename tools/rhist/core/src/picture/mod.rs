// SPDX-License-Identifier: MIT OR Apache-2.0

//! Pictures in SVG: bars, heat maps, flame graphs, differences, and screens of a terminal.
//!
//! They need neither scripts nor style sheets, and their colours are visible on white and on black.
//! Only flame graphs have a script, to zoom and search. A picture has at most some ten thousand
//! shapes, whatever the table contains.

mod axis;
mod bars;
mod difference;
mod flame;
mod flame_difference;
mod function;
mod heat_map;
mod screen;
mod side;
mod svg;
mod tree;
mod zoom;

pub use bars::bars;
pub use bars::keys;
pub use difference::difference;
pub use flame::flame;
pub use function::function;
pub use heat_map::heat_map;
pub use screen::Cell;
pub use screen::Ink;
pub use screen::Style;
pub use screen::screen;
pub use side::Side;

use crate::quantity::Quantity;
use crate::quantity::things;
use crate::question::Question;
use crate::table::Dist;
use crate::table::Key;
use crate::table::Row;
use crate::table::Table;
use crate::table::Unit;
use crate::table::Value;
use svg::Svg;

/// Draws the picture that suits a table: a flame graph of stacks, bars of a distribution, or bars
/// of keys.
pub fn of(question: &Question, table: &Table) -> String {
    match first_dist(&table.total()) {
        _ if has_stacks(table) => flame(question, table),
        Some(dist) => bars(question, dist),
        None => keys(question, table),
    }
}

fn has_stacks(table: &Table) -> bool {
    let is_stack = |key: &Key| matches!(key, Key::Stack(_));
    table.rows.iter().any(|row| row.keys.iter().any(is_stack))
}

/// The first distribution of a row.
pub fn first_dist(row: &Row) -> Option<&Dist> {
    row.values.iter().find_map(|value| match value {
        Value::Dist(dist) => Some(dist),
        _ => None,
    })
}

/// Begins a picture with two lines: question and `facts`, then the machine.
fn begin(question: &Question, width: f64, height: f64, facts: &str) -> Svg {
    let mut svg = Svg::new(width, height, &question.summary);
    svg.heading(MARGIN, 24.0, &format!("{} ({})", question.summary, question.name));
    let machine = format!(
        "{}, Linux {}, {}",
        question.host,
        question.kernel,
        things(question.cpus.into(), "CPUs")
    );
    svg.label(MARGIN, 42.0, &[facts, &machine].join(" · "));
    svg
}

/// Count and quantiles of a distribution in one line.
fn facts(question: &Question, dist: &Dist) -> String {
    let mut facts = vec![things(dist.count, &question.noun)];
    for (name, q) in QUANTILES {
        if let Some(quantile) = dist.quantile(q) {
            facts.push(format!("{name} {}", quantity(quantile.value, question.unit)));
        }
    }
    if let Some(max) = dist.max {
        facts.push(format!("max {}", quantity(max as f64, question.unit)));
    }
    facts.join(", ")
}

fn quantity(value: f64, unit: Unit) -> String {
    Quantity { value, unit }.to_string()
}

/// Quantiles shown in pictures.
const QUANTILES: [(&str, f64); 3] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)];

/// Margin around a picture, in pixels.
const MARGIN: f64 = 16.0;

/// Fills of the first and second series, and colour of the lines of quantiles.
const BLUE: &str = "#3b82c4";
const ORANGE: &str = "#d9730d";
const GREEN: &str = "#2f9e44";

#[cfg(test)]
mod tests;
