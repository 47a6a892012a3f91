// SPDX-License-Identifier: MIT OR Apache-2.0

//! Plans the texts of a configuration, which mean the same as on the command line.

use std::ffi::OsString;
use std::ops::Range;

use clap::error::ContextKind;
use clap::error::ContextValue;
use clap::error::ErrorKind;
use rhist_core::grammar::check_filter;
use rhist_core::grammar::check_key;
use rhist_core::grammar::check_value;
use rhist_core::plan::Id;
use rhist_core::plan::Plan;
use rhist_core::plan::Plans;
use rhist_core::problem::InFile;
use rhist_core::problem::Problem;
use rhist_core::question::Question;
use rhist_core::tracefs::events::ResolveError;
use rhist_core::tracefs::format::Format;
use rhist_export::service;
use rhist_export::service::HistogramConfig;
use rhist_export::service::Planner;
use rhist_export::service::What;
use rhist_export::service::Word;

use super::words;
use crate::diagnostic::Diagnostic;
use crate::options::BackendArg;
use crate::options::Common;
use crate::query;
use crate::run;

/// Message for options about output, or about a single run, which do not apply to a permanent
/// service.
const OPTIONS: &str =
    "--pid, --duration, --interval, --format, --keep, --quiet and --dry-run do not apply to a histogram of the service";

/// Planner that interprets texts like the command line.
pub struct WordsPlanner;

impl Planner for WordsPlanner {
    fn plan(&self, wanted: &HistogramConfig, id: &Id) -> Result<service::Plans, Box<InFile>> {
        let plans = match &wanted.settings.what {
            What::Words { kind, text } => {
                let words = service::split(text).map_err(|problem| Box::new(wanted.problem_in(kind, problem)))?;
                let plans = by_words(wanted, kind, &words, id);
                plans.map_err(|error| Box::new(wanted.problem_in(kind, problem(&error, text, &words))))
            }
            What::Triggers(triggers) => by_triggers(wanted, triggers, id),
        }?;
        let keys = plans.plans.best.key_names();
        match wanted.settings.labels.keys().find(|key| !keys.contains(&key.as_str())) {
            None => Ok(plans),
            Some(key) => Err(Box::new(no_key(wanted, key, &keys))),
        }
    }
}

/// Error for a label whose key the histogram lacks.
fn no_key(wanted: &HistogramConfig, key: &str, keys: &[&str]) -> InFile {
    let problem = wanted.problem_of_label(key, format!("{} has no key {key}", wanted.name));
    match keys {
        [] => problem.with_help("it has no keys"),
        keys => problem.with_help(format!("its keys are {}", keys.join(", "))),
    }
}

fn by_words(wanted: &HistogramConfig, kind: &str, words: &[Word], id: &Id) -> anyhow::Result<service::Plans> {
    let command = (kind != "recipe").then(|| OsString::from(kind));
    let words = words.iter().map(|word| OsString::from(&word.text));
    let mut query = words::query(
        &command.into_iter().chain(words).collect::<Vec<_>>(),
        &Common::default(),
    )?;
    let settings = &wanted.settings;
    let (run, common) = (&query.run, &query.common);
    let is_output = *common != Common::default();
    if is_output || run.duration.is_some() || run.interval.is_some() || !run.pid.is_empty() {
        anyhow::bail!(OPTIONS);
    }
    if run.size.is_some() && settings.size.is_some() {
        anyhow::bail!("--size and size are the same option: remove one of them");
    }
    if run.unit.is_some() {
        // The unit is part of the metrics' names, so it must be known without parsing the words.
        anyhow::bail!("--unit does not apply here: set it in the table, as in unit = \"s\"");
    }
    query.run.size = query.run.size.or(settings.size);
    query.unit = settings.unit;
    query.only_buckets = true;
    let tracefs = run::tracefs(query.run.backend)?;
    let plans = query.plans_as(&tracefs, id)?;
    Ok(service::Plans { tracefs, plans })
}

/// Locates an error in the words.
fn problem(error: &anyhow::Error, text: &str, words: &[Word]) -> Problem {
    let all = 0..text.len();
    if let Some(diagnostic) = error.downcast_ref::<Diagnostic>() {
        let problem = diagnostic.problem();
        // Position of the word. Falls back to the whole text if the word contains escapes.
        let at = place(text, words, diagnostic.source());
        let at = at.map(|at| at.start + problem.at.start..at.start + problem.at.end);
        return Problem {
            at: at.filter(|at| at.end <= text.len()).unwrap_or(all),
            ..problem.clone()
        };
    }
    if let Some(error) = error.downcast_ref::<clap::Error>() {
        let rendered = error.render().to_string();
        let title = rendered
            .lines()
            .next()
            .unwrap_or_default()
            .trim_start_matches("error: ");
        let title = match error.kind() {
            ErrorKind::DisplayHelp => "--help does not apply to a histogram of the service",
            _ => title,
        };
        let kinds = [ContextKind::InvalidValue, ContextKind::InvalidArg];
        let word = kinds.into_iter().find_map(|kind| match error.get(kind) {
            Some(ContextValue::String(word)) => place(text, words, word.split(' ').next().unwrap_or(word)),
            _ => None,
        });
        return Problem::new(word.unwrap_or(all), title);
    }
    Problem::new(all, format!("{error:#}"))
}

/// Range of the first occurrence of `part` within a word.
fn place(text: &str, words: &[Word], part: &str) -> Option<Range<usize>> {
    let mut found = words.iter().filter_map(|word| {
        let start = word.at.start + text.get(word.at.clone())?.find(part)?;
        Some(start..start + part.len())
    });
    found.next().filter(|_| !part.is_empty())
}

fn by_triggers(
    wanted: &HistogramConfig,
    triggers: &[(String, String)],
    id: &Id,
) -> Result<service::Plans, Box<InFile>> {
    let whole = |error: &dyn std::fmt::Display| Box::new(wanted.problem_of_name(error.to_string()));
    let tracefs = run::tracefs(BackendArg::Auto).map_err(|error| whole(&error))?;
    let mut named = Vec::new();
    for (n, (event, command)) in triggers.iter().enumerate() {
        let is_last = n + 1 == triggers.len();
        let in_text = |word: &str, problem: Problem| {
            Box::new(match is_last {
                true => wanted.problem_in(word, problem),
                false => wanted.problem_of_name(format!("before: {problem}")),
            })
        };
        check_clauses(command).map_err(|problem| in_text("trigger", problem))?;
        let name = tracefs.resolve(event).map_err(|error| match error {
            ResolveError::Name(problem) => in_text("event", problem),
            ResolveError::Io(_) => whole(&error),
        })?;
        if let Ok(format) = tracefs.format(&name) {
            check_trigger(&format, command).map_err(|problem| in_text("trigger", problem))?;
        }
        named.push((name, command.clone()));
    }
    let question = Question {
        name: wanted.name.clone(),
        summary: triggers
            .last()
            .map_or(String::new(), |(event, _)| format!("Counted by a trigger of {event}")),
        ..query::machine()
    };
    let plan = Plan::of_triggers(&tracefs, id.clone(), &named, question).map_err(|error| whole(&error))?;
    Ok(service::Plans {
        tracefs,
        plans: Plans {
            best: plan,
            others: Vec::new(),
        },
    })
}

/// Rejects clauses with which a histogram cannot be served.
fn check_clauses(command: &str) -> Result<(), Problem> {
    let text = command.split_once(" if ").map_or(command, |(text, _)| text);
    let clauses = parts(text, 0, ':');
    for (at, clause) in &clauses {
        let problem = |title: &str| Problem::new(*at..at + clause.len(), title);
        match *clause {
            "pause" => return Err(problem("a trigger that is paused counts nothing")),
            "clear" | "cont" | "continue" => {
                return Err(problem("this command needs an existing trigger"));
            }
            clause if clause.starts_with("limit(") => {
                return Err(problem("limit() hides entries, so their counts would be missing")
                    .help("to limit the label sets, put limit = … beside trigger"));
            }
            _ => {}
        }
    }
    let is_keys = |(_, clause): &(usize, &str)| matches!(clause.split_once('='), Some(("keys" | "key", keys)) if !keys.is_empty());
    match clauses.iter().any(is_keys) {
        true => Ok(()),
        false => Err(Problem::new(0..text.len(), "a histogram needs keys").help("it has to begin with hist:keys=")),
    }
}

/// Finds faults that the kernel would reject, as far as known: fields of keys and values, and the
/// filter.
fn check_trigger(format: &Format, command: &str) -> Result<(), Problem> {
    let (text, filter) = match command.split_once(" if ") {
        Some((text, filter)) => (text, Some(filter)),
        None => (command, None),
    };
    if let Some(filter) = filter {
        check_filter(format, filter).map_err(|problem| problem.moved(text.len() + " if ".len()))?;
    }
    for (at, part) in parts(text, 0, ':') {
        let Some((word, list)) = part.split_once('=') else {
            continue;
        };
        for (at, item) in parts(list, at + word.len() + 1, ',') {
            // Only the kernel knows variables.
            if item.contains('$') {
                continue;
            }
            match word {
                "keys" | "key" => check_key(format, item),
                "values" | "vals" | "val" if item != "hitcount" => check_value(format, item),
                _ => Ok(()),
            }
            .map_err(|problem| problem.moved(at))?;
        }
    }
    Ok(())
}

/// Splits a text at a separator outside parentheses. Returns each part with its offset, counted
/// from `from`.
fn parts(text: &str, from: usize, separator: char) -> Vec<(usize, &str)> {
    let (mut parts, mut begin, mut depth) = (Vec::new(), 0, 0i32);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ if c == separator && depth <= 0 => {
                parts.push((from + begin, &text[begin..at]));
                begin = at + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.push((from + begin, &text[begin..]));
    parts
}
