// SPDX-License-Identifier: MIT OR Apache-2.0

//! Plans triggers that count events.

use super::address;
use super::answer::Shows;
use super::clause::dist_clauses;
use super::clause::keys_or_cpu;
use super::clause::size_of;
use super::commands::Plan;
use super::error::Error;
use super::filter::condition;
use super::filter::options_filter;
use super::filter::others_filter;
use super::measure::event_of;
use super::options::Asked;
use super::options::has_dist;
use super::synthetic::MOST_KEYS_OF_C;
use super::synthetic::too_many_keys;
use crate::recipe::Count;
use crate::table::Column;
use crate::table::Fold;
use crate::table::Unit;
use crate::tracefs::Tracefs;
use crate::tracefs::events::EventName;

/// Adds the triggers to the plan.
pub(super) fn plan(plan: &mut Plan, asked: Asked<'_>) -> Result<(), Error> {
    let numbers;
    let asked = match has_dist(asked.tracefs) {
        true => asked,
        false => {
            numbers = address::as_numbers(plan, asked)?;
            numbers.asked(asked)
        }
    };
    let Asked { measure, options, .. } = asked;
    for (option, bound) in [("--slower", options.slower), ("--faster", options.faster)] {
        if bound.is_some() {
            return Err(Error::Impossible(format!(
                "{option} is for times between events: use --where for fields of an event"
            )));
        }
    }
    let filter = options_filter(measure, options, has_dist(asked.tracefs))?;
    let mut columns: Vec<Column> = Vec::new();
    for count in &measure.count {
        let first = &measure.count[0];
        if count.stat != first.stat || count.dist != first.dist {
            return Err(Error::Impossible(
                "events that are counted together can differ in their sums only".to_owned(),
            ));
        }
        for column in columns_of(plan, asked.tracefs, count) {
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
    }
    plan.answer.values = columns;
    for count in &measure.count {
        let event = event_of(&count.event)?;
        let others = others_filter(measure, options, &count.event, None);
        if others.is_none() {
            plan.note_self();
        }
        let others = others.unwrap_or_default();
        let tail = format!("{}{}", size_of(asked), condition(&[&count.filter, &filter, &others]));
        if has_dist(asked.tracefs) {
            rhist(plan, asked, count, &event, &tail);
        } else {
            c(plan, asked, count, &event, &tail)?;
        }
    }
    Ok(())
}

/// Columns beside the hits: sums, minima and maxima, then distributions.
fn columns_of(plan: &Plan, tracefs: &Tracefs, count: &Count) -> Vec<Column> {
    let format = EventName::parse(&count.event).and_then(|event| tracefs.format(&event).ok());
    let column = |field: &str, name: &str, fold| Column {
        name: name.to_owned(),
        // Without a unit in the question, uses the unit that the event's fields imply.
        unit: match plan.question.unit {
            Unit::Plain => format
                .as_ref()
                .and_then(|format| format.unit(field))
                .unwrap_or_default(),
            unit => unit,
        },
        fold,
    };
    let sum = |sum: &String| {
        let (name, field) = named(sum);
        column(field, name, Fold::Sum)
    };
    let mut columns: Vec<_> = count.sum.iter().map(sum).collect();
    for field in &count.stat {
        columns.push(column(field, field, Fold::Sum));
        if has_dist_columns(plan) {
            columns.push(column(field, &format!("{field}.min"), Fold::Min));
            columns.push(column(field, &format!("{field}.max"), Fold::Max));
        }
    }
    columns.extend(count.dist.iter().map(|field| column(field, field, Fold::Sum)));
    columns
}

/// Splits `sent=ret` into the name of a sum and its field.
fn named(sum: &str) -> (&str, &str) {
    sum.split_once('=').unwrap_or((sum, sum))
}

/// Indices of this event's values in the answer.
fn places(plan: &Plan, tracefs: &Tracefs, count: &Count) -> Vec<usize> {
    let place = |column: Column| plan.answer.values.iter().position(|other| *other == column);
    columns_of(plan, tracefs, count).into_iter().filter_map(place).collect()
}

fn has_dist_columns(plan: &Plan) -> bool {
    plan.question.backend == crate::tracefs::Backend::Rhist
}

fn rhist(plan: &mut Plan, asked: Asked<'_>, count: &Count, event: &EventName, tail: &str) {
    let Asked { measure, keys, .. } = asked;
    let mut values: Vec<String> = count.sum.iter().map(|sum| named(sum).1.to_owned()).collect();
    for field in &count.stat {
        values.extend([field.clone(), format!("{field}.min"), format!("{field}.max")]);
    }
    values.extend(count.dist.iter().map(|field| format!("{field}.dist")));
    let mut command = format!("hist:keys={}", keys_or_cpu(keys));
    if !values.is_empty() {
        command += &format!(":vals={}", values.join(","));
    }
    if let (Some(field), false) = (count.dist.first().or(count.stat.first()), measure.save.is_empty()) {
        command += &format!(":most={field}:onmax($most).save({})", measure.save.join(","));
    }
    if !count.dist.is_empty() {
        command += &dist_clauses(asked.options);
    }
    let (event, place) = plan.add_trigger(event, command + tail);
    let columns = places(plan, asked.tracefs, count);
    plan.answer.add_with(event, place, Shows::Rows, columns);
}

/// Plans triggers of C, which allow only two values, both sums, and distributions only as a key.
fn c(plan: &mut Plan, asked: Asked<'_>, count: &Count, event: &EventName, tail: &str) -> Result<(), Error> {
    let keys = asked.keys;
    let sums: Vec<String> = count
        .sum
        .iter()
        .chain(&count.stat)
        .map(|sum| named(sum).1.to_owned())
        .collect();
    if sums.len() > 2 || count.dist.len() > 1 || !sums.is_empty() && !count.dist.is_empty() {
        return Err(Error::Impossible(
            "C's histograms have at most two sums, or one distribution: load rhist, or ask for fewer".to_owned(),
        ));
    }
    if keys.len() + count.dist.len() > MOST_KEYS_OF_C {
        return Err(too_many_keys(if count.dist.is_empty() {
            ""
        } else {
            ", and the distributed field is one of them"
        }));
    }
    if !count.stat.is_empty() {
        plan.question
            .notes
            .push("C's histograms have no minimum and maximum: only averages are shown".to_owned());
    }
    let (command, shows) = match count.dist.first() {
        None => {
            let vals = if sums.is_empty() {
                String::new()
            } else {
                format!(":vals={}", sums.join(","))
            };
            (format!("hist:keys={}{vals}", keys_or_cpu(keys)), Shows::Rows)
        }
        Some(field) => {
            let mut keys = keys.to_vec();
            keys.push(format!("{field}.log2"));
            (format!("hist:keys={}:vals={field}", keys.join(",")), Shows::Log2)
        }
    };
    let (event, place) = plan.add_trigger(event, command + tail);
    let columns = places(plan, asked.tracefs, count);
    plan.answer.add_with(event, place, shows, columns);
    Ok(())
}
