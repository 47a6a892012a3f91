// SPDX-License-Identifier: MIT OR Apache-2.0

//! `rhist ls`: lists events, runs or recipes.

use std::io;
use std::io::Write;
use std::process::ExitCode;

use clap::Subcommand;
use rhist_core::journal::Entries;
use rhist_core::journal::Journals;
use rhist_core::problem::Problem;
use rhist_core::recipe::Recipe;
use rhist_core::table::Text;
use rhist_core::tracefs::events::EventName;
use serde_json::json;

use crate::diagnostic;
use crate::diagnostic::Diagnostic;
use crate::options::Format;
use crate::recipes;
use crate::run;

/// Arguments of `rhist ls`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// List to print.
    #[command(subcommand)]
    what: What,
}

/// Lists.
#[derive(Debug, Subcommand)]
enum What {
    /// Events that can be counted
    Events {
        /// A system, a part of the name, or a pattern with * and ?
        #[arg(value_name = "PATTERN")]
        pattern: Option<String>,
    },
    /// Runs of rhist on this machine, including those that --keep has left
    Runs,
    /// Recipes, with the question of each
    Recipes,
}

/// Prints the list.
pub fn run(args: &Args, format: Format) -> anyhow::Result<ExitCode> {
    let text = match &args.what {
        What::Events { pattern } => {
            let events = run::tracefs(None)?.events()?;
            events_text(&select(events, pattern.as_deref())?, format)
        }
        What::Runs => runs_text(&Journals::find().list(), format),
        What::Recipes => recipes_text(&recipes::names(), format, recipes::find)?,
    };
    print(&text)
}

/// Prints a text on standard output, and flushes it.
pub fn print(text: &str) -> anyhow::Result<ExitCode> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Selects the events that match a pattern.
fn select(events: Vec<EventName>, pattern: Option<&str>) -> anyhow::Result<Vec<EventName>> {
    let Some(pattern) = pattern else { return Ok(events) };
    let text = pattern.replace('/', ":");
    let fits = |event: &EventName| {
        let full = event.to_string();
        match text.contains(['*', '?']) {
            true => matches(text.as_bytes(), full.as_bytes()) || matches(text.as_bytes(), event.event.as_bytes()),
            false => full.contains(&text),
        }
    };
    // The exact name of a system takes precedence over partial matches.
    let in_system = |event: &EventName| event.system == text;
    let whole_system = events.iter().any(in_system);
    let names: Vec<String> = events
        .iter()
        .flat_map(|event| [event.system.clone(), event.event.clone()])
        .collect();
    let found: Vec<EventName> = events
        .into_iter()
        .filter(|event| if whole_system { in_system(event) } else { fits(event) })
        .collect();
    if found.is_empty() {
        let problem = Problem::new(0..pattern.len(), "no event matches");
        let near = rhist_core::suggest::near(pattern, names.iter().map(String::as_str));
        return Err(Diagnostic::new("PATTERN", pattern, problem.near(&near)).into());
    }
    Ok(found)
}

/// Matches a pattern with `*` and `?`. The time is at most proportional to the product of both
/// lengths.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    // Position after the last star, and end of the text that it has matched.
    let mut star = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                p += 1;
                star = Some((p, t));
            }
            Some(&byte) if byte == b'?' || Some(&byte) == text.get(t) => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((behind, swallowed)) => {
                    p = behind;
                    t = swallowed + 1;
                    star = Some((behind, t));
                }
                None => return false,
            },
        }
    }
    pattern.iter().skip(p).all(|byte| *byte == b'*')
}

fn events_text(events: &[EventName], format: Format) -> String {
    let line = |event: &EventName| match format {
        Format::Json => json!({"system": event.system, "event": event.event}).to_string(),
        _ => event.to_string(),
    };
    events.iter().map(|event| line(event) + "\n").collect()
}

/// Formats a line for each run. The flag says whether its owner lives.
fn runs_text(runs: &[(Entries, bool)], format: Format) -> String {
    let state = |entries: &Entries, is_alive: bool| match (is_alive, entries.kept) {
        (true, _) => "running",
        (false, true) => "kept",
        // The next measurement removes it.
        (false, false) => "dead",
    };
    let line = |(entries, is_alive): &(Entries, bool)| match format {
        Format::Json => json!({
            "instance": entries.id.instance(),
            "state": state(entries, *is_alive),
            "command": entries.command,
            "cost": {"event_ns": entries.cost.event_ns, "rejected_ns": entries.cost.rejected_ns},
        })
        .to_string(),
        _ => {
            let command = Text::from(entries.command.as_str());
            format!(
                "{}  {:7}  rhist {command}",
                entries.id.instance(),
                state(entries, *is_alive)
            )
        }
    };
    runs.iter().map(|run| line(run) + "\n").collect()
}

/// Formats a line for each recipe. `find` loads a recipe by name.
fn recipes_text(
    names: &[String],
    format: Format,
    find: impl Fn(&str) -> anyhow::Result<Option<Recipe>>,
) -> anyhow::Result<String> {
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or_default();
    let mut text = String::new();
    for name in names {
        let recipe = match find(name) {
            Ok(Some(recipe)) => recipe,
            Ok(None) => continue,
            // A broken recipe does not hide the others.
            Err(error) => {
                diagnostic::complain(&error);
                continue;
            }
        };
        text += &match format {
            Format::Json => json!({
                "name": name,
                "summary": recipe.summary,
                "about": recipe.about,
                "tags": recipe.tags,
                "example": recipe.example,
                "variants": recipe.variants.keys().collect::<Vec<_>>(),
            })
            .to_string(),
            _ => format!(
                "{:width$}  {}",
                Text::from(name.as_str()).to_string(),
                Text::from(recipe.summary.as_str())
            ),
        };
        text.push('\n');
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use proptest::prelude::*;
    use rhist_core::plan::Id;
    use rhist_core::question::Cost;

    use super::*;

    fn events() -> Vec<EventName> {
        [
            "irq:softirq_entry",
            "irq_vectors:local_timer_entry",
            "sched:sched_switch",
            "sched:sched_wakeup",
        ]
        .iter()
        .filter_map(|name| EventName::parse(name))
        .collect()
    }

    fn selected(pattern: &str) -> String {
        match select(events(), Some(pattern)) {
            Ok(events) => events_text(&events, Format::Text).replace('\n', " "),
            Err(error) => error.downcast_ref::<Diagnostic>().unwrap().render(false),
        }
    }

    #[test]
    fn patterns() {
        assert_eq!(selected("irq"), "irq:softirq_entry ");
        assert_eq!(selected("sched/sched_s"), "sched:sched_switch ");
        assert_eq!(selected("sched_*"), "sched:sched_switch sched:sched_wakeup ");
        assert_eq!(selected("*_entry"), "irq:softirq_entry irq_vectors:local_timer_entry ");
        assert_eq!(selected("sched:sched_?witch"), "sched:sched_switch ");
        assert_snapshot!(selected("shced"));
    }

    #[test]
    fn json_lines() {
        let text = events_text(&events()[..1], Format::Json);
        assert_eq!(text, "{\"event\":\"softirq_entry\",\"system\":\"irq\"}\n");
    }

    #[test]
    fn recipes_as_text_and_json() {
        let find = |name: &str| match name {
            "waits" => {
                let text = "summary = \"How long\\u001b[2J\"\nabout = \"More\"\nexample = \"waits -d 5\"\ntags = [\"sched\"]\n";
                Ok(Some(Recipe::parse(text)?))
            }
            "broken" => anyhow::bail!("it is broken"),
            _ => Ok(None),
        };
        let names = ["broken", "gone", "waits"].map(str::to_owned);
        let text = [Format::Text, Format::Json]
            .map(|format| recipes_text(&names, format, find).unwrap())
            .concat();
        assert_snapshot!(text);
    }

    #[test]
    fn runs() {
        let entries = |command: &str, kept| Entries {
            id: Id::example(),
            steps: Vec::new(),
            begun: true,
            kept,
            command: command.to_owned(),
            cost: Cost {
                event_ns: Some(120.5),
                ..Cost::default()
            },
        };
        let runs = [
            (entries("runqlat", false), true),
            (entries("count \x1b[2J", true), false),
            (entries("x", false), false),
        ];
        assert_snapshot!(runs_text(&runs, Format::Text) + &runs_text(&runs, Format::Json));
        assert_eq!(runs_text(&[], Format::Text), "");
    }

    proptest! {
        #[test]
        fn a_star_takes_anything(text in "[a-z:]{0,9}", tail in "[a-z:]{0,9}") {
            let whole = format!("{text}{tail}");
            let patterns = [format!("{text}*"), format!("*{tail}"), format!("{text}**{tail}*")];
            for pattern in patterns {
                prop_assert!(matches(pattern.as_bytes(), whole.as_bytes()));
            }
            let longer = format!("{text}?{tail}");
            prop_assert!(!matches(longer.as_bytes(), whole.as_bytes()));
        }
    }
}
