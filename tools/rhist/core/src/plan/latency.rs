// SPDX-License-Identifier: MIT OR Apache-2.0

//! Triggers for the time between starts and ends.

use super::Asked;
use super::Error;
use super::Options;
use super::Plan;
use super::answer::Shows;
use super::condition;
use super::event_of;
use super::filters_starts;
use super::has_dist;
use super::options_filter;
use super::split_key;
use super::synthetic;
use super::synthetic::Carried;
use crate::recipe::Measure;
use crate::recipe::Point;

/// Entries of a start that has not said how many.
const START_SIZE: u32 = 16384;

/// Name of the value that a synthetic event carries.
pub(super) const VALUE: &str = "lat";

/// Adds the triggers to the plan.
pub(super) fn plan(plan: &mut Plan, asked: Asked<'_>) -> Result<(), Error> {
    let Asked {
        tracefs,
        measure,
        options,
        keys,
    } = asked;
    if measure.start.is_empty() || measure.end.is_empty() {
        return Err(Error::Impossible(
            "there is neither an event to count, nor a start and an end".to_owned(),
        ));
    }
    let filter = options_filter(measure, options)?;
    let keeps: Vec<&str> = measure.start[0].keep.keys().map(String::as_str).collect();
    let kept: Vec<&str> = keeps
        .iter()
        .copied()
        .filter(|name| is_used(name, keys) || is_used(name, &measure.save))
        .collect();
    let is_direct = has_dist(tracefs) && options.slower.is_none() && kept.is_empty();

    plan.answer.has_times = true;
    for (i, start) in measure.start.iter().enumerate() {
        let value = start.value.as_deref().unwrap_or("common_timestamp");
        let mut command = format!("hist:keys={}:ts{i}={value}", start.on.join(","));
        for (k, name) in kept.iter().enumerate() {
            let field = start.keep.get(*name).ok_or_else(|| {
                Error::Impossible(format!(
                    "start {} does not keep {name}, which another start does",
                    start.event
                ))
            })?;
            command += &format!(",kept{i}_{k}={field}");
        }
        command += &format!(":size={}", start.size.unwrap_or(START_SIZE));
        let filter = if filters_starts(measure) { filter.as_str() } else { "" };
        command += &condition(&[&start.filter, filter]);
        let (event, place) = plan.add_trigger(&event_of(&start.event)?, command);
        plan.answer.add(event, place, Shows::Nothing);
    }
    for (f, forget) in measure.forget.iter().enumerate() {
        for i in starts_of(forget, measure) {
            void(plan, forget, &format!("gone{f}_{i}"), i)?;
        }
    }
    for (e, end) in measure.end.iter().enumerate() {
        for i in starts_of(end, measure) {
            let filter = condition(&[&end.filter, if filters_starts(measure) { "" } else { &filter }]);
            if is_direct {
                direct(plan, asked, end, (e, i), &filter)?;
            } else {
                let carried = Carried {
                    kept: &kept,
                    start: &measure.start[i],
                    end,
                };
                synthetic::plan(plan, asked, &carried, (e, i), &filter)?;
            }
        }
    }
    // An end that a filter passes over has to void its starts, too: a later end would find them.
    if !filter.is_empty() && !filters_starts(measure) {
        for (e, end) in measure.end.iter().enumerate() {
            if measure.start.len() == 1 && passes_all_of_key(measure, options, end) {
                continue;
            }
            for i in starts_of(end, measure) {
                void(plan, end, &format!("over{e}_{i}"), i)?;
            }
        }
    }
    Ok(())
}

/// Whether the filter passes all ends that find the same start, or none of them.
fn passes_all_of_key(measure: &Measure, options: &Options, end: &Point) -> bool {
    let pid = measure.pid.as_deref().unwrap_or("common_pid");
    options.filter.is_none() && end.on.iter().any(|key| key == pid)
}

/// A trigger that uses up the variable of a start.
fn void(plan: &mut Plan, point: &Point, name: &str, i: usize) -> Result<(), Error> {
    // A variable that is alone in an expression stays set.
    let given = point.given.map_or(String::new(), |start| format!("given=$ts{start},"));
    let command = format!(
        "hist:keys={}:{given}{name}=common_timestamp-$ts{i}:size={START_SIZE}{}",
        point.on.join(","),
        condition(&[&point.filter])
    );
    let (event, place) = plan.add_trigger(&event_of(&point.event)?, command);
    plan.answer.add(event, place, Shows::Nothing);
    Ok(())
}

/// rhist: the end's own histogram has the distribution.
fn direct(plan: &mut Plan, asked: Asked<'_>, end: &Point, (e, i): (usize, usize), filter: &str) -> Result<(), Error> {
    let Asked {
        measure, options, keys, ..
    } = asked;
    let since = since(end, i);
    let mut command = format!("hist:keys={}", keys_or_cpu(keys));
    // Without on() the variable is looked up by the keys.
    if end.on[..] != *keys {
        command += &format!(":on({})", end.on.join(","));
    }
    if measure.save.is_empty() {
        command += &format!(":vals=({since}).dist");
    } else {
        // The variable is of use to onmax() only: values cannot refer to variables of their own trigger.
        command += &format!(
            ":lat{e}_{i}={since}:vals=({since}).dist:onmax($lat{e}_{i}).save({})",
            measure.save.join(",")
        );
    }
    command += &dist_clauses(options);
    command += &size_of(options, measure);
    command += filter;
    let (event, place) = plan.add_trigger(&event_of(&end.event)?, command);
    plan.answer.add_end(event, place, Shows::Rows, number_of(end, measure));
    Ok(())
}

/// The number of the end of which this one is: those with the same event and filter are one, and look for other starts.
pub(super) fn number_of(end: &Point, measure: &Measure) -> usize {
    let is_same = |other: &Point| (&other.event, &other.filter) == (&end.event, &end.filter);
    measure.end.iter().position(is_same).unwrap_or(0)
}

/// The numbers of the starts that a point is about.
fn starts_of(point: &Point, measure: &Measure) -> Vec<usize> {
    match point.of {
        Some(i) if i < measure.start.len() => vec![i],
        Some(_) => Vec::new(),
        None => (0..measure.start.len()).collect(),
    }
}

/// The value of an end: by default the time since its start.
pub(super) fn since(point: &Point, i: usize) -> String {
    point
        .value
        .as_deref()
        .unwrap_or("common_timestamp-{start}")
        .replace("{start}", &format!("$ts{i}"))
        // The kernel takes a blank for a part of the name.
        .replace(' ', "")
}

/// Clauses of a distribution: `:unit(…)`, if buckets are in another unit than the values, and `:quantiles(…)`.
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

/// `:size=…`, if it is not the default.
pub(super) fn size_of(options: &Options, measure: &Measure) -> String {
    options
        .size
        .or(measure.size)
        .map_or(String::new(), |size| format!(":size={size}"))
}

/// A histogram must have a key. The CPU costs least: what it is counted by is in its cache.
pub(super) fn keys_or_cpu(keys: &[String]) -> String {
    if keys.is_empty() {
        "common_cpu".to_owned()
    } else {
        keys.join(",")
    }
}

fn is_used(name: &str, keys: &[String]) -> bool {
    keys.iter().any(|key| split_key(key).0.strip_prefix('$') == Some(name))
}
