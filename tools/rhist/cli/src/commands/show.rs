// SPDX-License-Identifier: MIT OR Apache-2.0

//! `rhist show EVENT`: lists its fields, with the modifiers that suit them.

use std::process::ExitCode;

use anyhow::Context;
use rhist_core::grammar::KEY_NAMES;
use rhist_core::grammar::modifier;
use rhist_core::grammar::modifier::Modifier;
use rhist_core::table::Text;
use rhist_core::tracefs::events::EventName;
use rhist_core::tracefs::format::Field;
use rhist_core::tracefs::format::FieldKind;
use rhist_core::tracefs::format::Format as EventFormat;
use serde_json::Value;
use serde_json::json;

use super::ls::print;
use crate::diagnostic;
use crate::options::Format;
use crate::run;

/// Arguments of `rhist show`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The event: system:event, or the name of an event that only one system has
    #[arg(value_name = "EVENT")]
    event: String,
}

/// Limit of the names of values shown.
const NAMES_MAX: usize = 12;

/// Prints the event.
pub fn run(args: &Args, format: Format) -> anyhow::Result<ExitCode> {
    let tracefs = run::tracefs(None)?;
    let name = diagnostic::resolve(&tracefs, "EVENT", &args.event)?;
    let event = tracefs
        .format(&name)
        .with_context(|| format!("cannot read the fields of {name}"))?;
    match format {
        Format::Json => print(&format!("{}\n", as_json(&name, &event))),
        _ => print(&text(&name, &event)),
    }
}

/// Cells of the table for a field.
fn row(event: &EventFormat, field: &Field) -> [String; 4] {
    let list = |modifiers: Vec<&Modifier>| {
        modifiers
            .iter()
            .map(|modifier| modifier.example())
            .collect::<Vec<_>>()
            .join(" ")
    };
    let key = match field.is_key() {
        true => list(modifier::of_key(event, field)),
        false => "cannot be a key".to_owned(),
    };
    [
        escape(&field.name),
        escape(&field.ty),
        key,
        list(modifier::of_value(event, field)),
    ]
}

fn text(name: &EventName, event: &EventFormat) -> String {
    let heading = ["FIELD", "TYPE", "KEY MODIFIERS", "VALUE MODIFIERS"].map(str::to_owned);
    let mut rows = vec![heading];
    rows.extend(event.own_fields().map(|field| row(event, field)));
    let mut text = format!("{name}\n\n{}", columns(&rows));

    for field in event.own_fields() {
        if let Some(symbols) = event.symbols(&field.name) {
            let shown = |(value, name): &(i128, String)| match symbols.are_flags() {
                true => format!("{} {value:#x}", escape(name)),
                false => format!("{} {value}", escape(name)),
            };
            let names = symbols.names();
            let mut list: Vec<String> = names.iter().take(NAMES_MAX).map(shown).collect();
            if names.len() > NAMES_MAX {
                list.push(format!("and {} others", names.len() - NAMES_MAX));
            }
            text += &format!("\nValues of {}: {}\n", escape(&field.name), list.join(", "));
        }
    }

    text += "\nOf any event:\n";
    let common: Vec<[String; 2]> = KEY_NAMES
        .iter()
        .map(|(name, _, about)| [format!("  {name}"), (*about).to_owned()])
        .collect();
    text += &columns(&common);
    text + &format!("\nTry:\n  rhist {}\n", example(name, event))
}

/// Aligns cells in columns, separated by two spaces.
fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or_default()
    };
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
    }
    text
}

/// Suggests a command that counts the event by its most informative field.
fn example(name: &EventName, event: &EventFormat) -> String {
    let key = |field: &Field| {
        let modifiers = modifier::of_key(event, field);
        let first = modifiers.first().map(|modifier| modifier.name);
        match first {
            Some("sym" | "syscall") => format!("{}.{}", field.name, first.unwrap_or_default()),
            _ => field.name.clone(),
        }
    };
    let named = |field: &&Field| key(field).contains('.');
    let is_text = |field: &&Field| field.kind == FieldKind::Text && field.size > 0;
    let by = event
        .own_fields()
        .find(named)
        .or_else(|| event.own_fields().find(is_text));
    let by = by.map_or("common_comm".to_owned(), key);
    let size = event.own_fields().find(|field| {
        let words = ["bytes", "len", "size", "count", "delay", "runtime", "latency"];
        field.kind == FieldKind::Number && field.name.split('_').any(|word| words.contains(&word))
    });
    match size {
        Some(field) => format!("count {name} --by {} --dist {}", escape(&by), escape(&field.name)),
        None => format!("count {name} --by {}", escape(&by)),
    }
}

fn as_json(name: &EventName, event: &EventFormat) -> Value {
    let field = |field: &Field| {
        let names = |modifiers: Vec<&Modifier>| modifiers.iter().map(|modifier| modifier.name).collect::<Vec<_>>();
        let symbols = event.symbols(&field.name).map(|symbols| {
            let names: Vec<Value> = symbols
                .names()
                .iter()
                .map(|(value, name)| json!({"value": *value as i64, "name": name}))
                .collect();
            json!({"flags": symbols.are_flags(), "names": names})
        });
        json!({
            "name": field.name,
            "type": field.ty,
            "offset": field.offset,
            "size": field.size,
            "signed": field.signed,
            "kind": field.kind.noun(),
            "key_modifiers": names(modifier::of_key(event, field)),
            "value_modifiers": names(modifier::of_value(event, field)),
            "symbols": symbols,
        })
    };
    json!({
        "system": name.system,
        "event": name.event,
        "id": event.id,
        "fields": event.own_fields().map(field).collect::<Vec<_>>(),
        "example": example(name, event),
    })
}

fn escape(text: &str) -> String {
    Text::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    macro_rules! event {
        ($system:literal, $event:literal) => {{
            let text = include_str!(concat!(
                "../../../core/tests/fixtures/events/",
                $system,
                "/",
                $event,
                "/format"
            ));
            let name = EventName {
                system: $system.to_owned(),
                event: $event.to_owned(),
            };
            (name, EventFormat::parse(text).unwrap())
        }};
    }

    #[test]
    fn events() {
        let shown = [
            event!("sched", "sched_switch"),
            event!("irq", "softirq_entry"),
            event!("kmem", "kmalloc"),
            event!("raw_syscalls", "sys_enter"),
            event!("syscalls", "sys_enter_openat"),
            event!("sched", "sched_process_exec"),
            event!("ftrace", "print"),
            event!("timer", "hrtimer_expire_entry"),
        ];
        assert_snapshot!(shown.map(|(name, event)| text(&name, &event)).join("\n----\n"));
    }

    #[test]
    fn json() {
        let (name, event) = event!("irq", "softirq_entry");
        assert_snapshot!(serde_json::to_string_pretty(&as_json(&name, &event)).unwrap());
    }
}
