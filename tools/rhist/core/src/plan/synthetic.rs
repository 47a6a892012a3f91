// SPDX-License-Identifier: MIT OR Apache-2.0

//! Measures latencies with a synthetic event: the end generates it, with the time and the keys as
//! fields, and the event's own triggers count it.

use super::answer::Shows;
use super::clause::VALUE;
use super::clause::dist_clauses;
use super::clause::keys_or_cpu;
use super::clause::number_of;
use super::clause::room;
use super::clause::since;
use super::clause::size_of;
use super::commands::Plan;
use super::error::Error;
use super::filter::condition;
use super::measure::event_of;
use super::measure::split_key;
use super::options::Asked;
use super::options::has_dist;
use super::step::Step;
use crate::recipe::Point;
use crate::tracefs::Tracefs;
use crate::tracefs::events::EventName;
use crate::tracefs::format::Field;
use crate::tracefs::format::FieldKind;

/// Type of a stack in the definition of a synthetic event.
const STACK: &str = "unsigned long[]";

/// Types of numbers in the definition of a synthetic event (`synth_field_size()`).
const TYPES: [&str; 17] = [
    "s64",
    "u64",
    "s32",
    "u32",
    "s16",
    "u16",
    "s8",
    "u8",
    "char",
    "unsigned char",
    "int",
    "unsigned int",
    "long",
    "unsigned long",
    "bool",
    "pid_t",
    "gfp_t",
];

/// Limit of keys of a histogram of C (`TRACING_MAP_KEYS_MAX` without the stack).
pub(super) const MOST_KEYS_OF_C: usize = 3;

/// Sources of the fields of the synthetic event.
pub(super) struct Carried<'a> {
    /// Names of the values that the start keeps and the question uses.
    pub kept: &'a [&'a str],
    pub start: &'a Point,
    pub end: &'a Point,
}

/// Adds the end's trigger that generates the synthetic event. Before it, adds the event with its
/// triggers, unless the plan has one with the same fields.
pub(super) fn plan(
    plan: &mut Plan,
    asked: Asked<'_>,
    carried: &Carried<'_>,
    (e, i): (usize, usize),
    filter: &str,
) -> Result<(), Error> {
    let Asked {
        tracefs, measure, keys, ..
    } = asked;
    let Carried { kept, start, end } = *carried;
    let (end_event, start_event) = (event_of(&end.event)?, event_of(&start.event)?);
    let since = since(end, i);
    let mut fields = vec![format!("{} {VALUE}", type_of_value(plan, tracefs, &end_event, &since)?)];
    let mut parameters = vec![format!("$lat{e}_{i}")];
    let mut names: Vec<(&str, String)> = Vec::new();
    for key in keys.iter().chain(&measure.save) {
        let (field, modifier) = split_key(key);
        // The synthetic event happens in the context of the end, so it has these fields itself.
        if field.starts_with("common_") || names.iter().any(|(name, _)| *name == field) {
            continue;
        }
        let kept = field
            .strip_prefix('$')
            .and_then(|name| kept.iter().position(|kept| *kept == name).zip(start.keep.get(name)));
        let (of_event, of_field, parameter) = match kept {
            Some((k, of_field)) => (&start_event, of_field.as_str(), format!("$kept{i}_{k}")),
            None => (&end_event, field, field.to_owned()),
        };
        let (kind, parameter) = match modifier {
            Some("string") => ("char[]".to_owned(), format!("{parameter}.string")),
            _ => (type_of(plan, tracefs, of_event, of_field, key)?, parameter),
        };
        // Avoids the name of the value.
        let plain = field.trim_start_matches('$');
        let name = if plain == VALUE {
            format!("{plain}_")
        } else {
            plain.to_owned()
        };
        fields.push(format!("{kind} {name}"));
        parameters.push(parameter);
        // As a key, a stack in a record needs a modifier.
        names.push((
            field,
            if kind == STACK {
                format!("{name}.stacktrace")
            } else {
                name
            },
        ));
    }
    let fields = fields.join("; ");
    let known = plan.steps.iter().find_map(|step| match step {
        Step::Synthetic { name, definition } if definition.ends_with(&format!(" {fields}")) => Some(name.clone()),
        _ => None,
    });
    let name = match known {
        Some(name) => name,
        None => {
            let name = plan.id.synthetic(&format!("{VALUE}{e}_{i}"));
            plan.steps.push(Step::Synthetic {
                name: name.clone(),
                definition: format!("{name} {fields}"),
            });
            let rename = |key: &String| {
                let (field, modifier) = split_key(key);
                let name = names
                    .iter()
                    .find(|(from, _)| *from == field)
                    .map_or(field, |(_, to)| to);
                match modifier {
                    // The event carries the string itself.
                    None | Some("string") => name.to_owned(),
                    Some(modifier) => format!("{name}.{modifier}"),
                }
            };
            let event = EventName {
                system: "synthetic".to_owned(),
                event: name.clone(),
            };
            let renamed: Vec<String> = keys.iter().map(rename).collect();
            let save: Vec<String> = measure.save.iter().map(rename).collect();
            let asked = Asked {
                keys: &renamed,
                ..asked
            };
            results(plan, asked, &event, &save)?;
            name
        }
    };
    // Added after the triggers that count the event, so that none is lost.
    let command = format!(
        "hist:keys={}:lat{e}_{i}={since}:onmatch({}.{}).{name}({}){}{filter}",
        end.on.join(","),
        start_event.system,
        start_event.event,
        parameters.join(","),
        // An end without a free entry generates no event, even if it finds a start.
        room(asked, i)
    );
    let (event, place) = plan.add_trigger(&end_event, command);
    plan.answer.add_end(event, place, Shows::Ends, number_of(end, measure));
    Ok(())
}

/// Adds the triggers that count a synthetic event. Keys and saved fields have the names of its
/// fields.
fn results(plan: &mut Plan, asked: Asked<'_>, event: &EventName, save: &[String]) -> Result<(), Error> {
    let Asked {
        tracefs, options, keys, ..
    } = asked;
    let slower = options
        .slower
        .map_or(String::new(), |least| format!("{VALUE} >= {least}"));
    let faster = options
        .faster
        .map_or(String::new(), |below| format!("{VALUE} < {below}"));
    let size = size_of(asked);
    let tail = size.clone() + &condition(&[&slower, &faster]);
    let worst = |save: &str| format!(":max={VALUE}:onmax($max).save({save})");
    if has_dist(tracefs) {
        let worst = if save.is_empty() {
            String::new()
        } else {
            worst(&save.join(","))
        };
        let clauses = dist_clauses(options);
        let command = format!(
            "hist:keys={}:vals={VALUE}.dist{worst}{clauses}{tail}",
            keys_or_cpu(keys)
        );
        let (event, place) = plan.add_trigger(event, command);
        plan.answer.add(event, place, Shows::Rows);
        return Ok(());
    }
    let mut with_value = keys.to_vec();
    with_value.push(format!("{VALUE}.log2"));
    if with_value.len() > MOST_KEYS_OF_C {
        return Err(too_many_keys(", and the time is one of them"));
    }
    let (path, place) = plan.add_trigger(event, format!("hist:keys={}:vals={VALUE}{tail}", with_value.join(",")));
    plan.answer.add(path, place, Shows::Log2);
    // `onmax()` keeps a maximum per entry, so this needs an entry that covers all values.
    let saved = if save.is_empty() {
        VALUE.to_owned()
    } else {
        save.join(",")
    };
    // A negative time, wrapped around, would stay the maximum: see `Dist::without_negative()`.
    let is_unsigned = plan.steps.iter().any(|step| match step {
        Step::Synthetic { name, definition } => *name == event.event && definition.contains(&format!(" u64 {VALUE}")),
        _ => false,
    });
    let no_wrapped = if is_unsigned {
        format!("{VALUE} < {}", 1_u64 << 63)
    } else {
        String::new()
    };
    let tail = size + &condition(&[&slower, &faster, &no_wrapped]);
    let (path, place) = plan.add_trigger(event, format!("hist:keys={}{}{tail}", keys_or_cpu(keys), worst(&saved)));
    plan.answer.add(path, place, Shows::Worst);
    Ok(())
}

/// Error for more than [`MOST_KEYS_OF_C`] keys in C. `but` names an extra key that the plan needs.
pub(super) fn too_many_keys(but: &str) -> Error {
    Error::Impossible(format!(
        "C's histograms have at most three keys{but}: load rhist, or count by fewer keys"
    ))
}

/// Type for a field of a synthetic event that receives a field of another event.
fn type_of(plan: &Plan, tracefs: &Tracefs, event: &EventName, name: &str, text: &str) -> Result<String, Error> {
    match name {
        "common_stacktrace" => return Ok(STACK.to_owned()),
        "common_timestamp" => return Ok("u64".to_owned()),
        "common_comm" => return Ok("char[]".to_owned()),
        "common_cpu" => return Ok("unsigned int".to_owned()),
        _ => {}
    }
    if event.system == plan.id.group() {
        return Ok(type_of_argument(plan, event, name));
    }
    let field = field(tracefs, event, name, text)?;
    let ty = field.ty.as_str();
    if field.kind == FieldKind::Text {
        // A dynamic string of the record, whose place is in the field, becomes a dynamic string of
        // the synthetic event.
        return Ok(if ty.starts_with("char[") {
            format!("char[{}]", field.size)
        } else {
            "char[]".to_owned()
        });
    }
    // The kernel accepts a parameter of the same type, or an unsigned one of the same size.
    if TYPES.contains(&ty) {
        return Ok(ty.to_owned());
    }
    match field.size {
        1 | 2 | 4 | 8 => Ok(format!("u{}", field.size * 8)),
        _ => Err(Error::Impossible(format!(
            "field {name} of {event} ({ty}) cannot be a key here"
        ))),
    }
}

/// Type of a probe's argument, taken from the definition, since the probe does not exist yet.
fn type_of_argument(plan: &Plan, event: &EventName, name: &str) -> String {
    let path = format!("{}/{}", event.system, event.event);
    let definition = plan.steps.iter().find_map(|step| match step {
        Step::Probe { name, definition } if *name == path => Some(definition.as_str()),
        _ => None,
    });
    let argument = definition
        .and_then(|text| {
            text.split_whitespace()
                .find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
        })
        .unwrap_or_default();
    match argument.rsplit_once(':').map_or("", |(_, kind)| kind) {
        "string" | "ustring" => "char[]".to_owned(),
        // Bit field: `b8@0/32`.
        kind if kind.starts_with('b') => format!("u{}", kind.rsplit_once('/').map_or("64", |(_, size)| size)),
        kind => match kind.strip_prefix(['u', 'x']) {
            Some(bits @ ("8" | "16" | "32")) => format!("u{bits}"),
            _ if matches!(kind, "s8" | "s16" | "s32" | "s64") => kind.to_owned(),
            _ => "u64".to_owned(),
        },
    }
}

/// Type of an expression: the type of its first operand.
fn type_of_value(plan: &Plan, tracefs: &Tracefs, event: &EventName, expression: &str) -> Result<String, Error> {
    let first: String = expression
        .chars()
        .skip_while(|c| *c == '(')
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect();
    if first.is_empty() {
        return Ok("u64".to_owned());
    }
    type_of(plan, tracefs, event, &first, expression)
}

fn field(tracefs: &Tracefs, event: &EventName, name: &str, text: &str) -> Result<Field, Error> {
    let format = tracefs.format(event).map_err(|_| Error::NoEvent {
        event: event.to_string(),
    })?;
    format.field(name).cloned().ok_or_else(|| Error::NoField {
        event: event.to_string(),
        field: name.to_owned(),
        text: text.to_owned(),
    })
}
