// SPDX-License-Identifier: MIT OR Apache-2.0

//! What is to be measured, as the command line says it: a recipe, `count`, or `between`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use anyhow::Context;
use anyhow::bail;
use clap::Arg;
use clap::ArgAction;
use clap::ArgMatches;
use clap::Args as _;
use clap::FromArgMatches;
use rhist_core::plan::Id;
use rhist_core::plan::Options;
use rhist_core::plan::Plan;
use rhist_core::question::Question;
use rhist_core::recipe::Count;
use rhist_core::recipe::Measure;
use rhist_core::recipe::Point;
use rhist_core::recipe::Recipe;
use rhist_core::recipe::UnitName;
use rhist_core::tracefs::Tracefs;

use crate::args::BetweenArgs;
use crate::args::Common;
use crate::args::CountArgs;
use crate::args::RunArgs;
use crate::probe;
use crate::recipes;

/// What is to be measured.
#[derive(Debug)]
pub struct Ask {
    /// Name of the recipe, or of the command.
    pub name: String,
    summary: String,
    measure: Measure,
    /// Values of the recipe's arguments.
    values: BTreeMap<String, String>,
    /// Options of the run.
    pub run: RunArgs,
    /// Options of all commands.
    pub common: Common,
}

impl Ask {
    /// Reads a command line that begins with the name of a recipe, `count` or `between`. `before` has the options that stood
    /// before it.
    pub fn parse(words: &[OsString], before: &Common) -> anyhow::Result<Self> {
        let Some(name) = words.first() else {
            bail!("what is to be measured? See rhist ls recipes")
        };
        let name = name.to_string_lossy().into_owned();
        match name.as_str() {
            "count" => {
                let matches = parse_words(CountArgs::augment_args(command(&name)), words)?;
                let common = before.with(Common::from_arg_matches(&matches)?);
                Self::count(CountArgs::from_arg_matches(&matches)?, common)
            }
            "between" => {
                let matches = parse_words(BetweenArgs::augment_args(command(&name)), words)?;
                let common = before.with(Common::from_arg_matches(&matches)?);
                Self::between(BetweenArgs::from_arg_matches(&matches)?, common)
            }
            _ => Self::recipe(&name, words, before),
        }
    }

    fn recipe(name: &str, words: &[OsString], before: &Common) -> anyhow::Result<Self> {
        let Some(recipe) = recipes::find(name)? else {
            bail!("there is no command or recipe {name}: see rhist ls recipes");
        };
        let matches = parse_words(recipe_command(name, &recipe), words)?;
        let mut chosen = None;
        for variant in recipe.variants.keys() {
            if matches.get_flag(variant)
                && let Some(other) = chosen.replace(variant)
            {
                bail!("--{other} and --{variant} are two ways to measure: take one of them");
            }
        }
        let (summary, measure) = match chosen.and_then(|name| recipe.variants.get(name)) {
            Some(variant) => (variant.summary.clone(), variant.measure.clone()),
            None => (recipe.summary.clone(), recipe.measure.clone()),
        };
        let mut values = BTreeMap::new();
        for arg in &recipe.args {
            let value = matches.get_one::<String>(&arg.name).or(arg.default.as_ref());
            let Some(value) = value else {
                bail!("{name}: {} is missing: {}", arg.name.to_uppercase(), arg.help)
            };
            values.insert(arg.name.clone(), value.clone());
        }
        let run = RunArgs::from_arg_matches(&matches)?;
        let common = before.with(Common::from_arg_matches(&matches)?);
        Ok(Self {
            name: name.to_owned(),
            summary,
            measure,
            values,
            run,
            common,
        })
    }

    /// `rhist count`.
    pub fn count(args: CountArgs, common: Common) -> anyhow::Result<Self> {
        let mut probes = probe::Probes::default();
        let event = probes.event(&args.event)?;
        let count = Count {
            event,
            sum: args.sum,
            stat: args.stat,
            dist: args.dist,
            ..Count::default()
        };
        let measure = Measure {
            noun: "events".to_owned(),
            probes: probes.definitions,
            count: vec![count],
            ..Measure::default()
        };
        let summary = format!("{} counted", args.event);
        Ok(Self {
            name: "count".to_owned(),
            summary,
            measure,
            values: BTreeMap::new(),
            run: args.run,
            common,
        })
    }

    /// `rhist between`.
    pub fn between(args: BetweenArgs, common: Common) -> anyhow::Result<Self> {
        let mut probes = probe::Probes::default();
        let (on_start, on_end): (Vec<_>, Vec<_>) = args
            .on
            .iter()
            .map(|key| key.split_once('=').unwrap_or((key, key)))
            .map(|(start, end)| (start.to_owned(), end.to_owned()))
            .unzip();
        let start = Point {
            event: probes.event(&args.start)?,
            on: on_start,
            ..Point::default()
        };
        let end = Point {
            event: probes.event(&args.end)?,
            on: on_end,
            ..Point::default()
        };
        let measure = Measure {
            unit: UnitName::Ns,
            noun: "times".to_owned(),
            probes: probes.definitions,
            start: vec![start],
            end: vec![end],
            ..Measure::default()
        };
        let summary = format!("time from {} to {}", args.start, args.end);
        Ok(Self {
            name: "between".to_owned(),
            summary,
            measure,
            values: BTreeMap::new(),
            run: args.run,
            common,
        })
    }

    /// What is measured.
    pub fn measure(&self) -> &Measure {
        &self.measure
    }

    /// What it is shown for: names of keys.
    pub fn by(&self) -> &[String] {
        if self.run.by.is_empty() {
            &self.measure.by
        } else {
            &self.run.by
        }
    }

    /// Plans it for this machine.
    pub fn plan(&self, tracefs: &Tracefs) -> anyhow::Result<Plan> {
        let id = if self.common.dry_run {
            Id::example()
        } else {
            Id::of_this_process().context("/proc")?
        };
        let mut notes = Vec::new();
        let mut threads = Vec::new();
        for pid in &self.run.pid {
            threads.extend(threads_of(*pid)?);
        }
        if !threads.is_empty() {
            notes.push("threads that a process starts later are not counted".to_owned());
        }
        let is_time = self.measure.unit == UnitName::Ns;
        let slower = match &self.run.slower {
            Some(text) if is_time => Some(crate::measure::nanoseconds(text)?),
            Some(text) => bail!("--slower {text}: {} measures no times", self.name),
            None => None,
        };
        let options = Options {
            by: (!self.run.by.is_empty()).then(|| self.run.by.clone()),
            threads,
            comm: self.run.comm.clone(),
            slower,
            filter: self.run.filter.clone(),
            size: self.run.size,
            args: self.values.clone(),
        };
        let question = Question {
            name: self.name.clone(),
            summary: self.summary.clone(),
            notes,
            host: read_proc("sys/kernel/hostname"),
            kernel: read_proc("sys/kernel/osrelease"),
            cpus: std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32),
            ..Question::default()
        };
        Ok(Plan::new(tracefs, id, &self.measure, &options, question)?)
    }
}

/// The command line of a recipe, for its help and for completion.
pub fn recipe_command(name: &str, recipe: &Recipe) -> clap::Command {
    let mut command = command(name)
        .about(recipe.summary.clone())
        .after_help(recipe.about.clone());
    for arg in &recipe.args {
        command = command.arg(
            Arg::new(arg.name.clone())
                .help(arg.help.clone())
                .value_name(arg.name.to_uppercase())
                .required(arg.default.is_none()),
        );
    }
    for (name, variant) in &recipe.variants {
        command = command.arg(
            Arg::new(name.clone())
                .long(name.clone())
                .help(variant.summary.clone())
                .action(ArgAction::SetTrue),
        );
    }
    RunArgs::augment_args(command)
}

fn command(name: &str) -> clap::Command {
    let command = clap::Command::new(name.to_owned()).bin_name(format!("rhist {name}"));
    Common::augment_args(command)
}

fn parse_words(command: clap::Command, words: &[OsString]) -> anyhow::Result<ArgMatches> {
    // Prints help, or what is wrong, with the status that stands for it.
    Ok(command.try_get_matches_from(words).unwrap_or_else(|error| error.exit()))
}

/// All threads of a process.
fn threads_of(pid: i32) -> anyhow::Result<Vec<i32>> {
    let folder = format!("/proc/{pid}/task");
    if !Path::new(&folder).exists() {
        bail!("there is no process {pid}");
    }
    let threads: Vec<i32> = std::fs::read_dir(&folder)
        .with_context(|| folder.clone())?
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    Ok(threads)
}

/// A file of `/proc` with one line; empty if it cannot be read.
fn read_proc(file: &str) -> String {
    std::fs::read_to_string(Path::new("/proc").join(file))
        .unwrap_or_default()
        .trim()
        .to_owned()
}
