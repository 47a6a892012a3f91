// SPDX-License-Identifier: MIT OR Apache-2.0

//! Clauses that several triggers have.

use super::options::Asked;
use super::options::Options;
use crate::recipe::Measure;
use crate::recipe::Point;

/// Default number of entries for starts.
const START_SIZE: u32 = 16384;

/// Field of the synthetic event that carries the time.
pub(super) const VALUE: &str = "lat";

/// Number of an end. Ends with the same event and filter count as one that looks up several starts.
pub(super) fn number_of(end: &Point, measure: &Measure) -> usize {
    let is_same = |other: &Point| (&other.event, &other.filter) == (&end.event, &end.filter);
    measure.end.iter().position(is_same).unwrap_or(0)
}

/// Value expression of an end; by default the time since its start.
pub(super) fn since(point: &Point, i: usize) -> String {
    point
        .value
        .as_deref()
        .unwrap_or("common_timestamp-{start}")
        .replace("{start}", &format!("$ts{i}"))
        // Blanks would become part of the variable's name.
        .replace(' ', "")
}

/// Clauses of a distribution: `:unit(…)` if buckets use another unit than the values, and
/// `:quantiles(…)`.
pub(super) fn dist_clauses(options: &Options) -> String {
    let mut clauses = match options.unit.word() {
        "" => String::new(),
        word => format!(":unit({word})"),
    };
    if options.only_buckets {
        clauses += ":quantiles(50)";
    }
    clauses
}

/// `:size=…` for this start, and for all triggers that look it up by the same keys. A requested
/// size can raise the number of starts but not lower it, since few results may need many starts.
pub(super) fn room(Asked { measure, options, .. }: Asked<'_>, i: usize) -> String {
    let own = measure.start.get(i).and_then(|start| start.size).unwrap_or(START_SIZE);
    format!(
        ":size={}",
        options.size.or(measure.size).map_or(own, |size| size.max(own))
    )
}

/// `:size=…` unless it is the default.
pub(super) fn size_of(options: &Options, measure: &Measure) -> String {
    options
        .size
        .or(measure.size)
        .map_or(String::new(), |size| format!(":size={size}"))
}

/// Keys of a histogram, which needs at least one. The CPU is the cheapest: its counter is in the
/// CPU's own cache.
pub(super) fn keys_or_cpu(keys: &[String]) -> String {
    if keys.is_empty() {
        "common_cpu".to_owned()
    } else {
        keys.join(",")
    }
}
