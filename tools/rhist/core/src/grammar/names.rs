// SPDX-License-Identifier: MIT OR Apache-2.0

//! Names that every event has in addition to its fields.

use std::ops::Range;

use crate::problem::Problem;
use crate::suggest;
use crate::tracefs::format::FieldKind;
use crate::tracefs::format::Format;

/// Names in keys and values of any event besides its fields, each with kind and description.
pub const KEY_NAMES: [(&str, FieldKind, &str); 10] = [
    ("common_pid", FieldKind::Number, "the thread that was running"),
    ("common_comm", FieldKind::Text, "its name"),
    ("common_cpu", FieldKind::Number, "the CPU"),
    ("common_timestamp", FieldKind::Number, "the time, in nanoseconds"),
    ("common_stacktrace", FieldKind::Stack, "the stack of the kernel"),
    ("common_ustack", FieldKind::Stack, "the stack of the program"),
    ("common_tgid", FieldKind::Number, "the process that was running"),
    ("common_ppid", FieldKind::Number, "its parent"),
    ("common_cgroup", FieldKind::Text, "its control group"),
    ("common_event", FieldKind::Text, "the event"),
];

/// Names in filters of any event besides its fields, each with kind and description.
pub const FILTER_NAMES: [(&str, FieldKind, &str); 5] = [
    ("common_pid", FieldKind::Number, "the thread that was running"),
    ("COMM", FieldKind::Text, "its name"),
    ("comm", FieldKind::Text, "its name, unless the event has such a field"),
    ("common_cpu", FieldKind::Number, "the CPU"),
    ("common_cgroup", FieldKind::Text, "the control group of the thread"),
];

/// Older names that the kernel still accepts.
const ALIASES: [(&str, FieldKind); 7] = [
    ("cpu", FieldKind::Number),
    ("CPU", FieldKind::Number),
    ("comm", FieldKind::Text),
    ("COMM", FieldKind::Text),
    ("stacktrace", FieldKind::Stack),
    ("STACKTRACE", FieldKind::Stack),
    ("hitcount", FieldKind::Number),
];

/// Part of the trigger that is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Key,
    Value,
    Filter,
}

/// Rejects a pointer to a string that the event also carries as text. With `modifier`, the pointer
/// itself can still be used.
pub(super) fn check_address(format: &Format, name: &str, at: Range<usize>, modifier: &str) -> Result<(), Problem> {
    match format.text_behind(name) {
        Some(text) => {
            let problem = Problem::new(at, format!("{name} is the address of a string"));
            let help = format!("{name}{modifier} is the address, {} the string", text.name);
            Err(problem.near(&[&text.name]).help(help))
        }
        None => Ok(()),
    }
}

/// Looks up the kind of the field `name`.
pub(super) fn kind(format: &Format, name: &str, at: Range<usize>, place: Place) -> Result<FieldKind, Problem> {
    // The kind of a variable is unknown here, so anything goes.
    if name.starts_with('$') {
        return Ok(FieldKind::Number);
    }
    if let Some(field) = format.field(name) {
        if field.size == 0 && place != Place::Filter {
            let problem = Problem::new(at, format!("{name} has no size of its own"));
            return Err(problem.label("a filter can test it, but a histogram cannot use it"));
        }
        return Ok(field.kind);
    }
    let known = match place {
        Place::Filter => &FILTER_NAMES[..],
        Place::Key | Place::Value => &KEY_NAMES[..],
    };
    let alias = ALIASES
        .iter()
        .find(|(alias, _)| *alias == name && (place != Place::Filter || *alias != "hitcount"));
    if let Some(kind) = known
        .iter()
        .find(|known| known.0 == name)
        .map(|known| known.1)
        .or(alias.map(|alias| alias.1))
    {
        return Ok(kind);
    }
    if place == Place::Filter
        && matches!(
            name,
            "common_comm" | "common_timestamp" | "common_stacktrace" | "common_ustack"
        )
    {
        let problem = Problem::new(at, format!("a filter cannot test {name}")).label("only keys and values can use it");
        return Err(match name {
            "common_comm" => problem.help("in a filter, use COMM"),
            _ => problem,
        });
    }
    let problem = Problem::new(at, format!("the event {} has no field {name}", format.name));
    let own = format.own_fields().map(|field| field.name.as_str());
    let nearest = suggest::near(name, own.clone().chain(known.iter().map(|known| known.0)));
    if !nearest.is_empty() {
        return Err(problem.near(&nearest));
    }
    let all: Vec<&str> = own.collect();
    Err(match all.is_empty() {
        true => problem.help("it has no fields of its own"),
        false => problem.help(format!("its fields are {}", all.join(", "))),
    })
}
