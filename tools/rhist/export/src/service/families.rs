// SPDX-License-Identifier: MIT OR Apache-2.0

//! Metrics of a service: the counts of its histograms, and their state.

use rhist_core::question::Cost;
use rhist_core::table;
use rhist_core::table::BucketUnit;
use rhist_core::table::Fold;
use rhist_core::table::Losses;

use super::Service;
use super::config::What;
use super::config::label_name;
use super::family_names::FamilyNames;
use super::family_names::OWN;
use super::totals::Set;
use super::watched::Watched;
use crate::metrics::Family;
use crate::metrics::Kind;
use crate::metrics::Point;
use crate::metrics::Value;
use crate::metrics::unit_word;

/// Prefix of all metrics.
const PREFIX: &str = "rhist_";

/// Reads a number of losses, if known.
type Lost = fn(&Losses) -> Option<u64>;

/// Metrics of a histogram's losses: name, help, and number.
pub(super) const LOSSES: [(&str, &str, Lost); 7] = [
    (
        "dropped",
        "Hits without an entry, since the histogram was full",
        |losses| Some(losses.dropped),
    ),
    (
        "dropped_starts",
        "Dropped hits that began or ended a time, whose entries are not label sets",
        |losses| Some(losses.dropped_starts),
    ),
    (
        "no_bucket",
        "Values without a bucket, since there was no room for more buckets",
        |losses| losses.no_bucket,
    ),
    ("unresolved", "Ends without a start", |losses| losses.unresolved),
    (
        "missed",
        "Starts and maxima that were not stored, since too many hits ran at once",
        |losses| losses.missed,
    ),
    (
        "missed_hits",
        "Hits that did not reach the triggers, since the kernel or the module missed them",
        |losses| losses.missed_hits,
    ),
    (
        "expired_starts",
        "Starts that were taken out before their end, since they were idle for an hour",
        |losses| losses.expired_starts,
    ),
];

/// Labels of a histogram, one for each key.
pub struct LabelNames(pub(super) Vec<String>);

impl Service {
    /// Labels of all histograms, parallel to [`Self::histograms()`]; families refer to them.
    pub fn label_names(&self) -> Vec<LabelNames> {
        self.histograms
            .iter()
            .map(|histogram| LabelNames(labels(histogram)))
            .collect()
    }

    /// Calls `take` for each family, one histogram after the other, so that they are never all in
    /// memory.
    pub fn families<'a>(&'a self, names: &'a [LabelNames], mut take: impl FnMut(Family<'a>)) {
        let mut known = FamilyNames::default();
        // Skips empty families: before the first row, the kind of values is unknown.
        let mut take = |family: Family<'a>| {
            if !family.points.is_empty() {
                take(family);
            }
        };
        for (histogram, LabelNames(labels)) in self.histograms.iter().zip(names) {
            for mut family in of_histogram(histogram, labels) {
                // Two histograms can yield the same name: `a` with `b_c`, and `a_b` with `c`.
                known.take(&mut family);
                take(family);
            }
        }
        own(self.histograms()).into_iter().for_each(take);
    }
}

/// Labels of a histogram, from the configuration or from the keys. All differ.
fn labels(histogram: &Watched) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for column in histogram.totals.keys() {
        let given = histogram.wanted.settings.labels.get(&column.name);
        let mut name = given.cloned().unwrap_or_else(|| label_name(&column.name));
        while names.contains(&name) {
            name += "_";
        }
        names.push(name);
    }
    names
}

/// Families for the counts of a histogram.
fn of_histogram<'a>(histogram: &'a Watched, labels: &'a [String]) -> Vec<Family<'a>> {
    if histogram.started().is_none() {
        return Vec::new();
    }
    let sets: Vec<Set<'a>> = histogram.totals.sets().collect();
    let name = format!("{PREFIX}{}", histogram.wanted.name);
    let summary = match histogram.question.summary.as_str() {
        "" => "Counted by a trigger".to_owned(),
        summary => summary.to_owned(),
    };
    let values = histogram.totals.values();
    let is_dist = |column: usize| {
        let first = sets.iter().find_map(|set| match set.row.values.get(column) {
            Some(table::Value::Dist(_)) => Some(true),
            Some(table::Value::Number(_)) => Some(false),
            _ => None,
        });
        first.unwrap_or(false)
    };
    let point = |set: &Set<'a>, value, start_ns| Point {
        labels: labels
            .iter()
            .zip(set.labels)
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect(),
        value,
        start_ns,
    };
    let mut families = Vec::new();
    // With a distribution, the hits are its count.
    if !(0..values.len()).any(is_dist) {
        let mut hits = Family::new(name.clone(), "", Kind::Counter, summary.clone());
        let hit = |set: &Set<'a>| point(set, Value::Whole(set.row.hits.into()), histogram.began(set.row));
        hits.points = sets.iter().map(hit).collect();
        families.push(hits);
    }
    let is_latency = values.len() == 1 && values[0].name == "value";
    for (n, column) in values.iter().enumerate() {
        let is_dist = is_dist(n);
        let kind = match histogram.totals.is_counter(column) {
            _ if is_dist => Kind::Histogram,
            true => Kind::Counter,
            false => Kind::Gauge,
        };
        let unit = unit_word(
            column.unit,
            if is_dist {
                bucket_unit(histogram)
            } else {
                BucketUnit::One
            },
        );
        let mut parts = vec![name.clone()];
        if !is_latency {
            parts.push(value_name(&column.name, column.fold));
        }
        let is_named = |part: &String| part == unit || part.ends_with(&format!("_{unit}"));
        if !unit.is_empty() && !parts.last().is_some_and(is_named) {
            parts.push(unit.to_owned());
        }
        let help = if is_latency {
            summary.clone()
        } else {
            format!("{summary}: {}", column.name)
        };
        let mut family = Family::new(parts.join("_"), unit, kind, help.clone());
        if is_dist {
            family.bounds = &histogram.wanted.settings.bounds;
        }
        for set in &sets {
            let value = match set.row.values.get(n) {
                Some(table::Value::Dist(dist)) if is_dist => Value::Dist(dist),
                Some(table::Value::Number(number)) if !is_dist => Value::Whole(*number),
                _ => continue,
            };
            let begin = histogram.began(set.row).filter(|_| kind != Kind::Gauge);
            family.points.push(point(set, value, begin));
        }
        families.push(family);
        // Quantiles of the distribution exclude these values.
        let lost = |set: &Set<'a>| match set.row.values.get(n) {
            Some(table::Value::Dist(dist)) if dist.without_bucket() > 0 => {
                let lost = Value::Whole(dist.without_bucket().into());
                Some(point(set, lost, histogram.began(set.row)))
            }
            _ => None,
        };
        let points: Vec<_> = sets.iter().filter_map(lost).collect();
        if !points.is_empty() {
            parts.push("no_bucket".to_owned());
            let help = format!("{help}: values without a bucket, since there was no room for more buckets");
            let mut family = Family::new(parts.join("_"), "", Kind::Counter, help);
            family.points = points;
            families.push(family);
        }
    }
    families
}

/// Part of a metric's name for a value. Replaces invalid characters, as in `common_timestamp-$ts0`.
fn value_name(column: &str, fold: Fold) -> String {
    let end = match fold {
        Fold::Sum => "",
        Fold::Min => "_min",
        Fold::Max => "_max",
    };
    label_name(column) + end
}

/// Unit of the histogram's buckets.
fn bucket_unit(histogram: &Watched) -> BucketUnit {
    match &histogram.wanted.settings.what {
        What::Query { .. } => histogram.wanted.settings.unit,
        What::Triggers(triggers) => {
            let text = triggers.last().map_or("", |(_, text)| text.as_str());
            let has = |unit: &BucketUnit| text.contains(&format!(":unit({})", unit.word()));
            let known = [BucketUnit::Us, BucketUnit::Ms, BucketUnit::S];
            known.into_iter().find(has).unwrap_or_default()
        }
    }
}

/// Families about the state of each histogram.
fn own(histograms: &[Watched]) -> Vec<Family<'_>> {
    let family = |name: &str, unit, kind, help: &str| Family::new(format!("{PREFIX}{OWN}_{name}"), unit, kind, help);
    let counter = |name: &str, help: &str| family(name, "", Kind::Counter, help);
    let gauge = |name: &str, help: &str| family(name, "", Kind::Gauge, help);
    let mut running = gauge("running", "Whether the histogram counts now");
    let mut paused = gauge(
        "paused",
        "Whether the histogram is paused, since it cost more than its budget",
    );
    let mut pauses = counter("pauses", "How often the histogram was paused for its cost");
    let mut starts = counter("starts", "How often the histogram was made in the kernel");
    let mut events = counter(
        "events",
        "Hits of all triggers of the histogram that passed their filters, including starts",
    );
    let mut rejected = counter("rejected", "Hits that the filters of the triggers rejected");
    let mut lost = LOSSES.map(|(name, help, _)| counter(name, help));
    let mut entries = gauge("entries", "Entries of the fullest histogram in the kernel");
    let mut size = gauge("size", "Size of the fullest histogram in the kernel, in entries");
    let mut folded = counter(
        "folded",
        "Hits counted in the label set other, since the limit of label sets was reached",
    );
    let mut folded_keys = gauge("folded_keys", "Keys that were counted in the label set other");
    let mut expired = counter(
        "expired",
        "Hits of label sets that were removed since they were idle, and of keys without one",
    );
    let mut recycled = counter("recycled", "Hits of keys whose places in the kernel were needed");
    let mut sets = gauge("label_sets", "Label sets of the histogram");
    let mut limit = gauge("label_sets_limit", "Limit of label sets, without other");
    let cost = "CPU time of a hit on this machine";
    let mut event_cost = family("event_cost_seconds", "seconds", Kind::Gauge, cost);
    let cost = "CPU time of a hit that a filter rejects";
    let mut rejected_cost = family("rejected_cost_seconds", "seconds", Kind::Gauge, cost);
    let share = "Part of a CPU that the histogram cost between the last two readings";
    let mut cost_ratio = family("cost_ratio", "ratio", Kind::Gauge, share);
    let mut budget = family(
        "budget_ratio",
        "ratio",
        Kind::Gauge,
        "Part of a CPU that the histogram may cost",
    );
    for histogram in histograms {
        let labels = || vec![("histogram", histogram.wanted.name.as_str())];
        let start = histogram.started();
        let totals = &histogram.totals;
        let losses = totals.losses();
        let whole = |number: u64| Value::Whole(number.into());
        let (folded_hits, keys) = totals.folded();
        running.push(labels(), whole(histogram.is_running().into()), None);
        paused.push(labels(), whole(histogram.is_paused().into()), None);
        limit.push(labels(), whole(histogram.wanted.settings.limit.into()), None);
        budget.push(labels(), Value::Real(histogram.watch.budget), None);
        if start.is_none() {
            continue;
        }
        for (family, number) in [
            (&mut pauses, histogram.watch.pauses),
            (&mut starts, histogram.starts),
            (&mut events, totals.events()),
            (&mut folded, folded_hits),
        ] {
            family.push(labels(), whole(number), start);
        }
        if let Some(number) = totals.rejected() {
            rejected.push(labels(), whole(number), start);
        }
        for (family, number) in [&mut expired, &mut recycled].into_iter().zip(totals.taken_out()) {
            if let Some(number) = number {
                family.push(labels(), whole(number), start);
            }
        }
        for (family, (_, _, number)) in lost.iter_mut().zip(LOSSES) {
            if let Some(number) = number(losses) {
                family.push(labels(), whole(number), start);
            }
        }
        folded_keys.push(labels(), whole(keys), None);
        sets.push(labels(), whole(totals.sets().count() as u64), None);
        entries.push(labels(), whole(histogram.fill.entries), None);
        size.push(labels(), whole(histogram.fill.size), None);
        let Cost { event_ns, rejected_ns } = histogram.watch.cost;
        for (family, ns) in [(&mut event_cost, event_ns), (&mut rejected_cost, rejected_ns)] {
            if let Some(ns) = ns {
                family.push(labels(), Value::Real(ns / 1e9), None);
            }
        }
        if let Some(share) = histogram.watch.share {
            cost_ratio.push(labels(), Value::Real(share), None);
        }
    }
    [running, paused, pauses, starts, events, rejected]
        .into_iter()
        .chain(lost)
        .chain([
            entries,
            size,
            folded,
            folded_keys,
            expired,
            recycled,
            sets,
            limit,
            event_cost,
            rejected_cost,
            cost_ratio,
            budget,
        ])
        .collect()
}
