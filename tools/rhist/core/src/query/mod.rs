// SPDX-License-Identifier: MIT OR Apache-2.0

//! A question as it is asked, before it is planned for a machine: a recipe, `count`, or `between`.
//!
//! The command line and the configuration of the service each make one.

mod check;
mod error;
pub mod probe;
mod subject;
mod text;
mod words;

use std::collections::BTreeMap;
use std::io;

pub use error::Error;
pub use error::Written;
use probe::Probes;
pub use text::QueryText;

use crate::plan;
use crate::plan::Id;
use crate::plan::Instead;
use crate::plan::Options;
use crate::plan::Plan;
use crate::plan::Plans;
use crate::quantity;
use crate::question::Question;
use crate::recipe::Count;
use crate::recipe::Measure;
use crate::recipe::Point;
use crate::recipe::Recipe;
use crate::recipe::UnitName;
use crate::run;
use crate::table::BucketUnit;
use crate::table::Unit;
use crate::threads;
use crate::tracefs::Backend;
use crate::tracefs::Tracefs;

/// A question, before it is planned for a machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// Name of the recipe, or `count`, `between`.
    pub name: String,
    /// One line that describes the measurement.
    pub summary: String,
    /// Events to count, or between which time passes.
    pub measure: Measure,
    /// Values of the recipe's arguments.
    pub args: BTreeMap<String, String>,
    /// Whether `--on` is missing, so that a default key links the two events.
    pub has_default_key: bool,
    /// Keys; empty for the recipe's.
    pub by: Vec<String>,
    /// Processes to measure; empty for all.
    pub pids: Vec<i32>,
    /// Measures only tasks with this name; a pattern if it contains `*`.
    pub comm: Option<String>,
    /// Lower limit of times.
    pub slower: Option<String>,
    /// Upper limit of times, exclusive.
    pub faster: Option<String>,
    /// Filter for hits.
    pub filter: Option<String>,
    /// Whether the activity of rhist itself counts.
    pub counts_self: bool,
    /// Number of entries for results, and the minimum for starts.
    pub size: Option<u32>,
    /// Unit of the buckets of times.
    pub unit: BucketUnit,
    /// Whether only the buckets of distributions are read.
    pub only_buckets: bool,
    /// Implementation of the histograms; `None` for rhist's, if the module is loaded.
    pub backend: Option<Backend>,
    /// Whether the plan is only printed: another process will carry it out.
    pub is_dry_run: bool,
}

impl Query {
    /// A recipe's question. `variants` are the options for variants, and `args` the arguments that
    /// were given.
    pub fn recipe(
        name: &str,
        recipe: &Recipe,
        variants: &[&str],
        mut args: BTreeMap<String, String>,
    ) -> Result<Self, Error> {
        if let [one, other, ..] = variants {
            return Err(Error::other(format!(
                "--{one} and --{other} exclude each other: use one of them"
            )));
        }
        for arg in &recipe.args {
            if !args.contains_key(&arg.name) {
                let Some(default) = &arg.default else {
                    let missing = arg.name.to_uppercase();
                    return Err(Error::other(format!("{name}: {missing} is missing: {}", arg.help)));
                };
                args.insert(arg.name.clone(), default.clone());
            }
        }
        let variant = variants.first().and_then(|name| recipe.variants.get(*name));
        let (summary, measure) = match variant {
            Some(variant) => (&variant.summary, &variant.measure),
            None => (&recipe.summary, &recipe.measure),
        };
        Ok(Self {
            name: name.to_owned(),
            summary: summary.clone(),
            measure: measure.clone(),
            args,
            ..Self::default()
        })
    }

    /// Question of `count`. `values` has the values of the count, without its event.
    pub fn count(event: &str, values: Count) -> Result<Self, Error> {
        let mut probes = Probes::default();
        let count = Count {
            event: probes.event(event)?,
            ..values
        };
        let measure = Measure {
            noun: "events".to_owned(),
            count: vec![count],
            ..Measure::default()
        };
        Ok(Self {
            name: "count".to_owned(),
            summary: format!("{event} counted"),
            measure: probes.complete(measure),
            ..Self::default()
        })
    }

    /// Question of `between`. `on` has the keys that link both events: `FIELD`, or
    /// `FIELD_OF_START=FIELD_OF_END`.
    pub fn between(start: &str, end: &str, on: &[String]) -> Result<Self, Error> {
        let default = ["common_pid".to_owned()];
        let (on_start, on_end): (Vec<_>, Vec<_>) = if on.is_empty() { &default } else { on }
            .iter()
            .map(|key| key.split_once('=').unwrap_or((key, key)))
            .map(|(start, end)| (start.to_owned(), end.to_owned()))
            .unzip();
        let mut probes = Probes::default();
        let mut point = |event: &str, on| {
            Ok::<_, Error>(Point {
                event: probes.event(event)?,
                on,
                ..Point::default()
            })
        };
        let measure = Measure {
            unit: UnitName::Ns,
            noun: "times".to_owned(),
            start: vec![point(start, on_start)?],
            end: vec![point(end, on_end)?],
            ..Measure::default()
        };
        Ok(Self {
            name: "between".to_owned(),
            summary: format!("time from {start} to {end}"),
            measure: probes.complete(measure),
            has_default_key: on.is_empty(),
            ..Self::default()
        })
    }

    /// Names of the keys that the result is shown by.
    pub fn keys(&self) -> &[String] {
        if self.by.is_empty() { &self.measure.by } else { &self.by }
    }

    /// Plans the question for this machine, with this ID in the names of the run's objects.
    /// Considers each alternative whose events exist, the best first.
    pub fn plans(&self, tracefs: &Tracefs, id: &Id) -> Result<Plans, Error> {
        let mut notes = Vec::new();
        let threads = self.threads()?;
        if !threads.is_empty() {
            notes.push("threads that a process starts later are not counted".to_owned());
        }
        let own = self.own_threads();
        if own.is_empty() && !self.counts_self && !self.is_dry_run && threads.is_empty() {
            let note = "rhist's own activity is counted, too: rhist cannot see the global IDs of its threads from its PID namespace";
            notes.push(note.to_owned());
        }
        let slower = self.bound("--slower", self.slower.as_deref())?;
        let faster = self.bound("--faster", self.faster.as_deref())?;
        if faster.is_some_and(|below| below <= slower.unwrap_or(0)) {
            let [slower, faster] = [&self.slower, &self.faster].map(|bound| bound.as_deref().unwrap_or("0"));
            return Err(Error::other(format!(
                "no time is at least {slower} (--slower) and less than {faster} (--faster)"
            )));
        }
        let options = Options {
            by: (!self.by.is_empty()).then(|| self.by.clone()),
            threads,
            own,
            comm: self.comm.clone(),
            slower,
            faster,
            filter: self.filter.clone(),
            size: self.size,
            unit: self.unit,
            only_buckets: self.only_buckets,
            args: self.args.clone(),
            comm_by_pid: false,
        };
        let question = Question {
            name: self.name.clone(),
            summary: self.summary.clone(),
            notes,
            ..Question::of_this_machine()
        };
        let ways = |measure: &Measure| {
            let plan = |options: &Options| Plan::new(tracefs, id.clone(), measure, options, question.clone());
            let best = plan(&options)?;
            let others = match tracefs.backend() == Backend::C && best.has_comm() {
                true => plan(&Options {
                    comm_by_pid: true,
                    ..options.clone()
                })
                .into_iter()
                .map(|plan| (Instead::ById, plan))
                .collect(),
                false => Vec::new(),
            };
            Ok::<_, plan::Error>(Plans { best, others })
        };
        let measure = self.with_events(tracefs)?;
        self.check(tracefs, &measure)?;
        let mut plans = ways(&measure);
        for alternative in &measure.alternatives {
            let fits = self.check(tracefs, alternative);
            match &mut plans {
                Ok(plans) => {
                    if let (Ok(()), Ok(more)) = (fits, ways(alternative)) {
                        plans.others.push((Instead::LessExact, more.best));
                        plans.others.extend(more.others);
                    }
                }
                // The alternative is less exact, so use it only if the kernel lacks an event, not
                // if the better plan cannot answer the question.
                Err(lack @ plan::Error::NoEvent { .. }) => {
                    fits?;
                    // If both plans are impossible, reports the error of the first.
                    if let Ok(mut first) = ways(alternative) {
                        let note = run::otherwise(&lack.to_string(), &self.name);
                        first.best.question.notes.push(note.clone());
                        for (_, other) in &mut first.others {
                            other.question.notes.push(note.clone());
                        }
                        plans = Ok(first);
                    }
                }
                Err(_) => break,
            }
        }
        Ok(plans?)
    }

    /// Threads of the processes to measure.
    fn threads(&self) -> Result<Vec<i32>, Error> {
        let mut all = Vec::new();
        for pid in &self.pids {
            all.extend(threads::of(*pid).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => Error::other(format!("process {pid} does not exist")),
                _ => Error::Io(threads::folder(*pid), error),
            })?);
        }
        Ok(all)
    }

    /// Threads of rhist itself, which the measurement leaves out.
    fn own_threads(&self) -> Vec<i32> {
        match self.counts_self || self.is_dry_run {
            true => Vec::new(),
            false => threads::own(),
        }
    }

    /// Parses the value of an option as a limit for times, in nanoseconds. Fails if the question
    /// does not count times.
    fn bound(&self, option: &'static str, text: Option<&str>) -> Result<Option<u64>, Error> {
        let Some(text) = text else { return Ok(None) };
        if self.measure.unit != UnitName::Ns {
            return Err(Error::other(format!(
                "{option} {text}: {} does not measure times",
                self.name
            )));
        }
        let fail = |why: String| Error::Value {
            option,
            text: text.to_owned(),
            why,
        };
        let time = quantity::parse(text, Unit::Nanoseconds).map_err(|error| fail(error.to_string()))?;
        let time = u64::try_from(time).map_err(|_| fail(format!("{text:?} is not a time")))?;
        Ok(Some(time))
    }

    /// Texts of the user that become part of a trigger, to locate errors found by the kernel.
    pub fn written(&self) -> Vec<Written<'_>> {
        let by = self.by.iter().map(|text| Written { origin: "--by", text });
        let filter = self.filter.iter().map(|text| Written {
            origin: "--where",
            text,
        });
        let args = self.args.values().map(|text| Written {
            origin: "argument",
            text,
        });
        filter.chain(by).chain(args).collect()
    }
}

/// Joins the lines of a filter, since a trigger must be a single line.
pub fn one_line(filter: &str) -> String {
    filter.replace(char::is_control, " ")
}
