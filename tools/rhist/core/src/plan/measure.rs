// SPDX-License-Identifier: MIT OR Apache-2.0

//! The measure of a recipe: its texts, events, names, and the signs of its values.

use std::collections::BTreeMap;

use super::error::Error;
use super::step::Id;
use crate::recipe::FilterAt;
use crate::recipe::Measure;
use crate::recipe::NameKind;
use crate::tracefs::Tracefs;
use crate::tracefs::events::EventName;
use crate::tracefs::format::Format;

/// Field with the thread that was running at the event, even if an interrupt caused it.
pub(super) const RUNNING: &str = "common_pid";

/// Key that is the stack of the running program.
pub(crate) const USTACK: &str = "common_ustack";

/// Returns whether the stack of the program is a key. It is too long for one, unless the module
/// stores stacks once, which it does only in histograms that just count.
pub(super) fn has_program(keys: &[String]) -> bool {
    keys.iter().any(|key| key == USTACK)
}

/// Formats of the counted events, of the ones that exist already.
pub(super) fn formats(tracefs: &Tracefs, measure: &Measure) -> Vec<Format> {
    let counts = measure.count.iter().map(|count| &count.event);
    let ends = measure.end.iter().map(|point| &point.event);
    let format = |event: &String| tracefs.format(&EventName::parse(event)?).ok();
    counts.chain(ends).filter_map(format).collect()
}

/// Names of the events in a measure.
pub fn events_of(measure: &Measure) -> Vec<&str> {
    let points = measure
        .start
        .iter()
        .chain(&measure.end)
        .chain(&measure.forget)
        .map(|point| point.event.as_str());
    measure
        .count
        .iter()
        .map(|count| count.event.as_str())
        .chain(points)
        .collect()
}

/// Splits a key into field and modifier: `id.syscall`. Also works for a field in parentheses.
pub(super) fn split_key(key: &str) -> (&str, Option<&str>) {
    match key.rfind('.') {
        Some(dot) if !key[dot..].contains(')') => (&key[..dot], Some(&key[dot + 1..])),
        _ => (key, None),
    }
}

/// Returns whether an event exists, or a probe of the run will create it.
pub(super) fn is_there(tracefs: &Tracefs, id: &Id, event: &str) -> bool {
    EventName::parse(event).is_some_and(|event| event.system == id.group() || tracefs.has_event(&event))
}

/// Kinds of names for numbers: by the names of fields, and by the names of keys in tables.
pub(super) fn names_of(measure: &Measure) -> BTreeMap<String, NameKind> {
    let mut names = measure.names.clone();
    for (name, key) in &measure.keys {
        if let Some(kind) = measure.names.get(split_key(key).0.trim_start_matches('$')) {
            names.insert(name.clone(), *kind);
        }
    }
    names
}

/// Names of values that can be negative: signed fields of the counted events.
pub(super) fn signed(tracefs: &Tracefs, measure: &Measure) -> Vec<String> {
    let mut signed = Vec::new();
    for count in &measure.count {
        let format = EventName::parse(&count.event).and_then(|event| tracefs.format(&event).ok());
        let Some(format) = format else { continue };
        let fields = format.own_fields().filter(|field| field.signed);
        let fields: Vec<&str> = fields.map(|field| field.name.as_str()).collect();
        // `sent=ret` is the sum of `ret`.
        let named = count.sum.iter().filter_map(|sum| sum.split_once('='));
        let named = named.filter(|(_, field)| field.contains('-') || fields.contains(field));
        signed.extend(named.map(|(name, _)| name.to_owned()));
        signed.extend(fields.into_iter().map(str::to_owned));
    }
    signed.sort_unstable();
    signed.dedup();
    signed
}

/// Parses the name of an event in a recipe.
pub(super) fn event_of(text: &str) -> Result<EventName, Error> {
    EventName::parse(text).ok_or_else(|| Error::NoEvent { event: text.to_owned() })
}

/// Substitutes `{group}` and arguments in all texts of a measure.
pub(super) fn fill_in(measure: &Measure, id: &Id, args: &BTreeMap<String, String>) -> Result<Measure, Error> {
    if let Some((name, value)) = args.iter().find(|(_, value)| value.chars().any(char::is_control)) {
        return Err(Error::Impossible(format!("{name} has control characters: {value:?}")));
    }
    let fill = |text: &mut String| {
        if text.contains("{group}") {
            *text = text.replace("{group}", &id.group());
        }
        for (name, value) in args {
            let place = format!("{{{name}}}");
            if text.contains(&place) {
                *text = text.replace(&place, value);
            }
        }
    };
    let mut measure = Measure {
        // Alternatives are planned separately.
        alternatives: Vec::new(),
        ..measure.clone()
    };
    measure.probes.iter_mut().for_each(fill);
    measure.keys.values_mut().for_each(fill);
    for count in &mut measure.count {
        [&mut count.event, &mut count.filter].into_iter().for_each(fill);
        count
            .sum
            .iter_mut()
            .chain(&mut count.stat)
            .chain(&mut count.dist)
            .for_each(fill);
    }
    for point in measure
        .start
        .iter_mut()
        .chain(&mut measure.end)
        .chain(&mut measure.forget)
    {
        [&mut point.event, &mut point.filter].into_iter().for_each(fill);
        point
            .on
            .iter_mut()
            .chain(point.value.as_mut())
            .chain(point.keep.values_mut())
            .for_each(fill);
    }
    Ok(measure)
}

/// Returns whether the filters of the command line apply to starts.
pub(super) fn filters_starts(measure: &Measure) -> bool {
    measure.filter_at == FilterAt::Start
}
