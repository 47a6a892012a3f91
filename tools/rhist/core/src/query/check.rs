// SPDX-License-Identifier: MIT OR Apache-2.0

//! Finds faults in a question that the kernel would reject, as far as its events exist already.

use super::error::Error;
use super::model::Query;
use super::subject;
use crate::grammar::check_filter;
use crate::grammar::check_key;
use crate::grammar::check_plain_value;
use crate::plan;
use crate::problem::Problem;
use crate::recipe::FilterAt;
use crate::recipe::Measure;
use crate::recipe::Point;
use crate::suggest;
use crate::tracefs::Tracefs;
use crate::tracefs::events::EventName;
use crate::tracefs::format::Format;

impl Query {
    /// The measure with complete names of events, which the command line or a configuration may
    /// shorten, and with the short names of keys that the events allow.
    pub(super) fn with_events(&self, tracefs: &Tracefs) -> Result<Measure, Error> {
        let mut measure = self.measure.clone();
        let mut alternatives = std::mem::take(&mut measure.alternatives);
        if !tracefs.takes_programs() {
            alternatives.retain(|alternative| !alternative.programs);
            if measure.programs && !alternatives.is_empty() {
                measure = alternatives.remove(0);
            }
        }
        for measure in alternatives.iter_mut().chain([&mut measure]) {
            if matches!(self.name.as_str(), "count" | "between") {
                resolve(tracefs, measure)?;
            }
            plan::add_task_names(tracefs, measure);
        }
        measure.alternatives = alternatives;
        Ok(measure)
    }

    /// Finds faults in the question that the kernel would reject, as far as the events exist
    /// already.
    pub(super) fn check(&self, tracefs: &Tracefs, measure: &Measure) -> Result<(), Error> {
        let format = |event: &str| tracefs.format(&EventName::parse(event)?).ok();
        let keys: Vec<&String> = self.by.iter().filter(|key| !measure.keys.contains_key(*key)).collect();
        for count in &measure.count {
            let Some(format) = format(&count.event) else { continue };
            for (origin, values) in [("--sum", &count.sum), ("--stat", &count.stat), ("--dist", &count.dist)] {
                for value in values {
                    let field = value.rsplit('=').next().unwrap_or_default();
                    checked(origin, field, check_plain_value(&format, field))?;
                }
            }
        }
        let points = match measure.filter_at {
            FilterAt::Start => &measure.start,
            FilterAt::End => &measure.end,
        };
        let filtered = measure
            .count
            .iter()
            .map(|count| &count.event)
            .chain(points.iter().map(|point| &point.event));
        for format in filtered.filter_map(|event| format(event)) {
            if let Some(filter) = &self.filter {
                checked("--where", filter, check_filter(&format, filter))?;
            }
        }
        let counted = measure
            .count
            .iter()
            .map(|count| &count.event)
            .chain(measure.end.iter().map(|point| &point.event));
        for format in counted.filter_map(|event| format(event)) {
            for key in &keys {
                if *key == "ustack" && format.field(key).is_none() {
                    return Err(Error::other(match tracefs.takes_programs() {
                        true => {
                            "--by ustack: these events are about another task than the running one, whose stack is known"
                                .to_owned()
                        }
                        false => plan::lack_of_programs(tracefs).error,
                    }));
                }
                checked("--by", key, self.check_key(&format, key, measure))?;
            }
        }
        if self.name == "between" {
            let same = |start: &Point, end: &Point| (&start.event, &start.on) == (&end.event, &end.on);
            if measure
                .start
                .iter()
                .any(|start| measure.end.iter().any(|end| same(start, end)))
            {
                return Err(Error::other(
                    "A and B are the same event with the same keys: each hit would end the time that it begins",
                ));
            }
            if self.has_default_key {
                for (start, end) in measure.start.iter().zip(&measure.end) {
                    if let (Some(a), Some(b)) = (format(&start.event), format(&end.event))
                        && let Some(on) = subject::common(&a, &b)
                    {
                        return Err(Error::other(format!(
                            "without --on, times belong to the running task, but not both of A and B are about it: \
                             add --on {on}, or --on common_pid if that is what you mean"
                        )));
                    }
                }
            }
            for point in measure.start.iter().chain(&measure.end) {
                let Some(format) = format(&point.event) else { continue };
                for key in &point.on {
                    checked("--on", key, check_key(&format, key))?;
                }
            }
        }
        Ok(())
    }

    /// Checks a key, and suggests short names of the recipe if it is not a field.
    fn check_key(&self, format: &Format, key: &str, measure: &Measure) -> Result<(), Problem> {
        check_key(format, key).map_err(|problem| {
            if let Some((name, _)) = key.split_once('.')
                && let Some(field) = measure.keys.get(name).filter(|_| format.field(name).is_none())
            {
                let problem = Problem::new(
                    name.len()..key.len(),
                    format!("{name} is a short name and takes no modifier"),
                );
                return problem.help(format!("it stands for {field}"));
            }
            let near = suggest::near(key, measure.keys.keys().map(String::as_str));
            if near.is_empty() { problem } else { problem.near(&near) }
        })
    }
}

/// Completes the names of events, and adds [`ADDRESS`] to the keys if they have one.
fn resolve(tracefs: &Tracefs, measure: &mut Measure) -> Result<(), Error> {
    let counts = measure.count.iter_mut().map(|count| ("EVENT", &mut count.event));
    let starts = measure.start.iter_mut().map(|point| ("A", &mut point.event));
    let ends = measure.end.iter_mut().map(|point| ("B", &mut point.event));
    for (origin, event) in counts.chain(starts).chain(ends) {
        if !event.starts_with("{group}") {
            let name = tracefs
                .resolve(event)
                .map_err(|error| Error::event(origin, event, error))?;
            *event = name.to_string();
        }
    }
    if let Some(address) = address(tracefs, measure) {
        measure.keys.insert(ADDRESS.to_owned(), address);
    }
    Ok(())
}

/// Converts the result of a check to an error in the text of an option.
fn checked(option: &'static str, text: &str, result: Result<(), Problem>) -> Result<(), Error> {
    result.map_err(|problem| Error::text(option, text, problem))
}

/// Name in `--by` for the remote address of an event.
const ADDRESS: &str = "address";

/// Key for [`ADDRESS`]. `None` unless all counted events have the same address field and no field
/// is named `address`.
fn address(tracefs: &Tracefs, measure: &Measure) -> Option<String> {
    let counts = measure.count.iter().map(|count| &count.event);
    let ends = measure.end.iter().map(|point| &point.event);
    let mut found = None;
    for event in counts.chain(ends) {
        let format = tracefs.format(&EventName::parse(event)?).ok()?;
        let address = format.address().filter(|_| format.field(ADDRESS).is_none())?;
        let name = found.get_or_insert_with(|| address.name.clone());
        format.field(name).filter(|field| field.is_address())?;
    }
    found.map(|name| format!("{name}.ip"))
}
