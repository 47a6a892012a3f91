// SPDX-License-Identifier: MIT OR Apache-2.0

//! Plans the questions and triggers of a configuration.

use rhist_core::grammar::Part;
use rhist_core::grammar::Trigger;
use rhist_core::plan::Id;
use rhist_core::plan::Plan;
use rhist_core::plan::Plans;
use rhist_core::problem::InFile;
use rhist_core::problem::Problem;
use rhist_core::query;
use rhist_core::query::Query;
use rhist_core::query::QueryText;
use rhist_core::question::Question;
use rhist_core::room::Idle;
use rhist_core::room::Size;
use rhist_core::table::ProgramNames;
use rhist_core::tracefs::events::ResolveError;
use rhist_export::service;
use rhist_export::service::HistogramConfig;
use rhist_export::service::Planner;
use rhist_export::service::Settings;
use rhist_export::service::What;

use super::programs::ServicePrograms;
use crate::recipes;
use crate::run;

/// Entries of a histogram with stacks of programs, unless its configuration says otherwise.
const STACKS: u32 = 2048;

/// Planner for the histograms of a configuration.
#[derive(Default)]
pub struct ConfigPlanner {
    /// For stacks of programs; `None`: only plans.
    pub programs: Option<ServicePrograms>,
}

impl Planner for ConfigPlanner {
    fn plan(&self, wanted: &HistogramConfig, id: &Id) -> Result<service::Plans, Box<InFile>> {
        let settings = &wanted.settings;
        let make = || match &settings.what {
            What::Query { kind, text } => {
                let plans = by_query(kind, text, settings, id);
                plans.map_err(|problem| Box::new(wanted.problem_in(kind, problem)))
            }
            What::Triggers(triggers) => by_triggers(wanted, triggers, id),
        };
        let mut plans = make()?;
        if let Some(programs) = &self.programs
            && plans.plans.best.has_programs()
            && programs.start(&plans.tracefs.user_objects())
        {
            // Without the hits of the new thread.
            plans = make()?;
        }
        if !settings.containers && plans.plans.iter().any(Plan::has_groups) {
            let title = "everybody who can scrape this would read paths of control groups";
            let problem = wanted.problem_of_name(title);
            return Err(Box::new(problem.with_help("containers = true allows that")));
        }
        let keys = plans.plans.best.key_names();
        match settings.labels.keys().find(|key| !keys.contains(&key.as_str())) {
            None => Ok(plans),
            Some(key) => Err(Box::new(no_key(wanted, key, &keys))),
        }
    }

    fn programs(&self) -> Option<Box<dyn ProgramNames>> {
        let programs = self.programs.clone()?;
        Some(Box::new(programs))
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

fn by_query(kind: &str, text: &str, settings: &Settings, id: &Id) -> Result<service::Plans, Problem> {
    let text = QueryText::new(text)?;
    let query = query(kind, &text)?;
    for (option, is_twice) in [
        ("size", query.size.is_some() && settings.size.is_some()),
        ("expire", query.expire.is_some() && settings.expire.is_some()),
    ] {
        if is_twice {
            let title = format!("--{option} and {option} are the same option: remove one of them");
            return Err(text.whole(title));
        }
    }
    let query = Query {
        size: query.size.or(settings.size),
        expire: query.expire.or(settings.expire),
        // A series that is idle would be exported for ever.
        expire_passing: Some(Idle::HOUR),
        unit: settings.unit,
        only_buckets: true,
        ..query
    };
    let tracefs = run::tracefs(query.backend).map_err(|error| text.whole(format!("{error:#}")))?;
    let plans = |query: &Query| query.plans(&tracefs, id).map_err(|error| text.locate(&error));
    let mut found = plans(&query)?;
    if found.best.has_programs() && query.size.is_none() {
        // Each row takes ten kilobytes while it is read.
        found = plans(&Query {
            size: Some(Size::fixed(STACKS)),
            ..query.clone()
        })?;
    }
    Ok(service::Plans { tracefs, plans: found })
}

/// Parses the question of a keyword: `recipe`, `count` or `between`.
pub(super) fn query(kind: &str, text: &QueryText<'_>) -> Result<Query, Problem> {
    match kind {
        "count" => text.count(),
        "between" => text.between(),
        _ => by_recipe(text),
    }
}

/// Parses a text as on the command line: its first word is a recipe, `count` or `between`.
fn by_recipe(text: &QueryText<'_>) -> Result<Query, Problem> {
    let name = text.recipe_name()?;
    if matches!(name, "count" | "between") {
        return query(name, &text.after_name());
    }
    let recipe = recipes::required(name);
    let recipe = recipe.map_err(|error| match error.downcast_ref::<query::Error>() {
        Some(error) => text.locate(error),
        None => text.whole(format!("{error:#}")),
    })?;
    text.recipe(&recipe)
}

fn by_triggers(
    wanted: &HistogramConfig,
    triggers: &[(String, String)],
    id: &Id,
) -> Result<service::Plans, Box<InFile>> {
    let whole = |error: &dyn std::fmt::Display| Box::new(wanted.problem_of_name(error.to_string()));
    let tracefs = run::tracefs(None).map_err(|error| whole(&error))?;
    let mut named = Vec::new();
    for (n, (event, command)) in triggers.iter().enumerate() {
        let is_last = n + 1 == triggers.len();
        let in_text = |word: &str, problem: Problem| {
            Box::new(match is_last {
                true => wanted.problem_in(word, problem),
                false => wanted.problem_of_name(format!("before: {problem}")),
            })
        };
        let trigger = Trigger::parse(command);
        check_clauses(&trigger).map_err(|problem| in_text("trigger", problem))?;
        let name = tracefs.resolve(event).map_err(|error| match error {
            ResolveError::Name(problem) => in_text("event", problem),
            ResolveError::Io(_) => whole(&error),
        })?;
        if let Ok(format) = tracefs.format(&name) {
            trigger.check(&format).map_err(|problem| in_text("trigger", problem))?;
        }
        named.push((name, command.clone()));
    }
    let question = Question {
        name: wanted.name.clone(),
        summary: triggers
            .last()
            .map_or(String::new(), |(event, _)| format!("Counted by a trigger of {event}")),
        ..Question::of_this_machine()
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
fn check_clauses(trigger: &Trigger<'_>) -> Result<(), Problem> {
    for Part { at, text } in &trigger.clauses {
        let problem = |title: &str| Problem::new(*at..at + text.len(), title);
        match *text {
            "pause" => return Err(problem("a trigger that is paused counts nothing")),
            "clear" | "cont" | "continue" => {
                return Err(problem("this command needs an existing trigger"));
            }
            text if text.starts_with("limit(") => {
                return Err(problem("limit() hides entries, so their counts would be missing")
                    .help("to limit the label sets, put limit = … beside trigger"));
            }
            _ => {}
        }
    }
    match trigger.keys().next() {
        Some(_) => Ok(()),
        None => {
            let end = trigger.clauses.last().map_or(0, |last| last.at + last.text.len());
            Err(Problem::new(0..end, "a histogram needs keys").help("it has to begin with hist:keys="))
        }
    }
}
