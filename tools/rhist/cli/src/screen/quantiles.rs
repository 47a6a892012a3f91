// SPDX-License-Identifier: MIT OR Apache-2.0

//! Prints the numbers of a distribution with their error bounds.

use rhist_core::quantity::Estimate;
use rhist_core::table::Dist;
use rhist_core::table::Unit;

use super::grid::Column;
use super::grid::Grid;
use super::grid::Kind;
use super::number::count;
use super::number::quantity;
use super::page::Page;

/// Quantiles shown below bars.
pub(super) const PARTS: [(f64, &str); 4] = [(0.5, "p50"), (0.9, "p90"), (0.99, "p99"), (0.999, "p99.9")];

/// A formatted number with its error bound.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Figure {
    pub text: String,
    /// Error in per cent. `None` if the text contains it, or the number is missing.
    pub error: Option<f64>,
}

impl Figure {
    /// Quantile `q`, from 0 to 1.
    pub(super) fn quantile(dist: &Dist, q: f64, unit: Unit) -> Self {
        let Some(quantile) = dist.quantile(q) else {
            return Figure::unknown();
        };
        match (Estimate { quantile, unit }).percent() {
            Some(percent) if percent >= 100.0 => Figure::at_most(quantile.high, unit),
            percent => Figure {
                text: quantity(quantile.value, unit),
                error: Some(percent.unwrap_or(0.0)),
            },
        }
    }

    /// Maximum. For an interval, often only its bucket is known.
    pub(super) fn max(dist: &Dist, unit: Unit) -> Self {
        if let Some(max) = dist.max {
            return Figure {
                text: quantity(max as f64, unit),
                error: Some(0.0),
            };
        }
        match dist.at_most() {
            Some(most) => Figure::at_most(most as f64, unit),
            None => Figure::unknown(),
        }
    }

    fn at_most(value: f64, unit: Unit) -> Self {
        Figure {
            text: format!("≤ {}", quantity(value, unit)),
            error: None,
        }
    }

    fn unknown() -> Self {
        Figure {
            text: "?".to_owned(),
            error: None,
        }
    }

    fn error_text(&self) -> String {
        match self.error {
            None => String::new(),
            Some(0.0) => "exact".to_owned(),
            Some(percent) => format!("±{percent} %"),
        }
    }
}

/// Count, mean, quantiles and maximum of a distribution: side by side, or one per line on narrow
/// pages.
pub(super) fn lines(page: &Page, dist: &Dist, unit: Unit) -> Vec<String> {
    let mut cells = vec![("n", count(dist.count), String::new())];
    if let Some(mean) = dist.mean() {
        cells.push(("mean", quantity(mean, unit), String::new()));
    }
    let quantiles = PARTS.map(|(q, name)| (name, Figure::quantile(dist, q, unit)));
    let all = quantiles.into_iter().chain([("max", Figure::max(dist, unit))]);
    cells.extend(all.map(|(name, figure)| {
        let error = figure.error_text();
        (name, figure.text, error)
    }));
    let mut side_by_side = Grid::default();
    for (name, text, error) in &cells {
        side_by_side.add(Column {
            title: (*name).to_owned(),
            cells: vec![text.clone(), error.clone()],
            kind: Kind::Number,
            rank: 0,
        });
    }
    if side_by_side.width(page) <= page.width {
        return side_by_side.lines(page);
    }
    let mut below = Grid::default();
    let column = |cells, kind, rank| Column {
        title: String::new(),
        cells,
        kind,
        rank,
    };
    below.add(column(
        cells.iter().map(|cell| cell.0.to_owned()).collect(),
        Kind::Key,
        2,
    ));
    below.add(column(
        cells.iter().map(|cell| cell.1.clone()).collect(),
        Kind::Number,
        1,
    ));
    below.add(column(
        cells.iter().map(|cell| cell.2.clone()).collect(),
        Kind::Number,
        0,
    ));
    below.lines(page)
}
