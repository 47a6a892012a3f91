// SPDX-License-Identifier: MIT OR Apache-2.0

//! The command line.

use std::convert::Infallible;
use std::ffi::OsString;

use anyhow::bail;
use clap::Arg;
use clap::ArgMatches;
use clap::Args as _;
use clap::CommandFactory;
use clap::FromArgMatches;
use clap::Parser;
use clap::Subcommand;
use clap::ValueEnum;
use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser;
use rhist_core::table::BucketUnit;

use crate::commands::check;
use crate::commands::diff;
use crate::commands::exec;
use crate::commands::ls;
use crate::commands::push;
use crate::commands::report;
use crate::commands::serve;
use crate::commands::show;
use crate::commands::top;

/// Pointer to the recipes in the help, which would be too long with all of them.
const RECIPES: &str = "Recipes:
  runqlat, biolatency, syscall-latency, offcputime, ...  Ask one question each: rhist ls recipes

Without a command or recipe: what runs, and what it costs.";

/// Questions about a running kernel, answered by histograms of its trace events
#[derive(Debug, Parser)]
#[command(
    name = "rhist",
    version,
    disable_help_subcommand = true,
    override_usage = "rhist [OPTIONS] [COMMAND | RECIPE] ...",
    after_help = RECIPES
)]
pub struct Args {
    /// What to do; without it, the state of rhist on this machine.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Options before the command.
    #[command(flatten)]
    pub common: Common,
}

/// Options that several commands have: [`KNOWN`] says which.
#[derive(Clone, Debug, Default, PartialEq, clap::Args)]
#[command(next_help_heading = "Output")]
pub struct Common {
    /// Print what would be written to the kernel, and write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// How to print what was found; by default text
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// Leave the triggers when done, and print how to remove them
    #[arg(long)]
    pub keep: bool,
    /// Print only what was found
    #[arg(short, long)]
    pub quiet: bool,
}

/// The options of [`Common`] that a command supports.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    /// Whether it supports `--dry-run`.
    pub dry_run: bool,
    /// Values of `--format` that it supports; empty for none.
    pub formats: &'static [Format],
    /// Whether it supports `--keep`.
    pub keep: bool,
    /// Whether it supports `--quiet`.
    pub quiet: bool,
}

/// None of the options.
const NOTHING: Known = Known {
    dry_run: false,
    formats: &[],
    keep: false,
    quiet: false,
};

/// Options of commands that measure and print the result.
const MEASURES: Known = Known {
    dry_run: true,
    formats: &[Format::Text, Format::Json, Format::Folded, Format::Svg],
    keep: true,
    quiet: true,
};

const LISTS: Known = Known {
    formats: &[Format::Text, Format::Json],
    ..NOTHING
};

/// Supported options by command. A recipe, which is not listed, supports all of them.
pub const KNOWN: [(&str, Known); 17] = [
    // No command.
    (
        "",
        Known {
            dry_run: true,
            ..NOTHING
        },
    ),
    ("count", MEASURES),
    ("between", MEASURES),
    (
        "top",
        Known {
            formats: &[Format::Text, Format::Json, Format::Svg],
            ..MEASURES
        },
    ),
    (
        "top --replay",
        Known {
            formats: &[Format::Text, Format::Json, Format::Svg],
            quiet: true,
            ..NOTHING
        },
    ),
    (
        "record",
        Known {
            formats: &[],
            ..MEASURES
        },
    ),
    (
        "push",
        Known {
            formats: &[],
            ..MEASURES
        },
    ),
    ("push --replay", Known { quiet: true, ..NOTHING }),
    (
        "report",
        Known {
            formats: MEASURES.formats,
            quiet: true,
            ..NOTHING
        },
    ),
    (
        "diff",
        Known {
            formats: &[Format::Text, Format::Json, Format::Svg],
            quiet: true,
            ..NOTHING
        },
    ),
    ("ls", LISTS),
    ("show", LISTS),
    (
        "clean",
        Known {
            dry_run: true,
            ..NOTHING
        },
    ),
    ("doctor", LISTS),
    ("check", NOTHING),
    ("serve", NOTHING),
    (
        "exec",
        Known {
            dry_run: true,
            ..NOTHING
        },
    ),
];

/// Output format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    #[default]
    Text,
    /// Lines of JSON, one for each interval
    Json,
    /// Folded stacks or keys, for flame graphs
    Folded,
    /// A picture
    Svg,
}

impl Format {
    fn word(&self) -> String {
        let value = self.to_possible_value();
        value.map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

/// Commands. Each has a file in `commands/` with its arguments and a function `run`.
#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant)]
pub enum Command {
    /// Count events
    Count(CountArgs),
    /// Measure the time between two events
    Between(BetweenArgs),
    /// Show keys as they change, on the whole screen
    ///
    /// Where no terminal is, and with --format json, prints a line of JSON for each interval. With
    /// --format svg, prints a picture of the screen at the end, of COLUMNS times LINES characters.
    Top(top::Args),
    /// Keep what is measured in a file, an interval a line
    Record(RecordArgs),
    /// Push what is measured to a receiver of OTLP, such as an OpenTelemetry collector
    ///
    /// What the receiver does not accept is kept in a queue on disk, and sent again.
    Push(push::Args),
    /// Show a recording
    Report(report::Args),
    /// Compare two recordings
    Diff(diff::Args),
    /// List events, runs or recipes
    Ls(ls::Args),
    /// Show the fields of an event, and what keys they make
    Show(show::Args),
    /// Remove what runs have left that are gone, and what --keep has left
    Clean,
    /// Say what this machine can measure, and what it needs for the rest
    ///
    /// The exit status is 1 if nothing can be measured.
    Doctor,
    /// Check the files of a configuration against this machine
    ///
    /// The exit status is 2 if something in them is wrong.
    Check(check::Args),
    /// Make the histograms of a configuration, and let Prometheus scrape them
    ///
    /// Runs until SIGTERM or SIGINT, and then removes all that it made. SIGHUP has it read its
    /// configuration again: what is the same goes on. rhist.service(8) has more.
    Serve(serve::Args),
    /// Run a program on the tracing directory of rhist
    ///
    /// COMMAND runs in a mount namespace of its own, in which rhist's tracing directory lies over
    /// /sys/kernel/tracing. So trace-cmd, perf, and whatever else uses that path, find there the
    /// histograms and user events of rhist, and all that the kernel's directory has. Other programs
    /// notice nothing.
    ///
    /// The exit status is that of COMMAND, 127 if there is no such command, 125 if it could not be
    /// run so.
    Exec(exec::Args),
    /// A recipe: its name, and what follows.
    #[command(external_subcommand)]
    Recipe(Vec<OsString>),
}

impl Command {
    /// Name of its row in [`KNOWN`].
    pub fn name(&self) -> &str {
        match self {
            Self::Count(_) => "count",
            Self::Between(_) => "between",
            Self::Top(args) if args.replay.is_some() => "top --replay",
            Self::Top(_) => "top",
            Self::Record(_) => "record",
            Self::Push(args) if args.replay.is_some() => "push --replay",
            Self::Push(_) => "push",
            Self::Report(_) => "report",
            Self::Diff(_) => "diff",
            Self::Ls(_) => "ls",
            Self::Show(_) => "show",
            Self::Clean => "clean",
            Self::Doctor => "doctor",
            Self::Check(_) => "check",
            Self::Serve(_) => "serve",
            Self::Exec(_) => "exec",
            Self::Recipe(_) => "RECIPE",
        }
    }
}

/// What is counted, for how long, and how it is shown.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Measurement")]
pub struct RunArgs {
    /// Only the threads of this process
    #[arg(short, long, value_name = "PID", value_delimiter = ',')]
    pub pid: Vec<i32>,
    /// Only tasks with this name; * stands for any characters
    #[arg(short, long, value_name = "NAME")]
    pub comm: Option<String>,
    /// End after so many seconds; by default at Ctrl-C
    #[arg(short, long, value_name = "SECONDS", value_parser = seconds)]
    pub duration: Option<f64>,
    /// Show what was added in each interval of so many seconds
    #[arg(short, long, value_name = "SECONDS", value_parser = seconds)]
    pub interval: Option<f64>,
    /// Show it for each of these: fields of the event, with modifiers
    #[arg(long, value_name = "KEY", value_delimiter = ',')]
    pub by: Vec<String>,
    /// Only what took at least so long: 10ms, 500us, 1s
    #[arg(long, value_name = "TIME")]
    pub slower: Option<String>,
    /// Only what took less than this
    #[arg(long, value_name = "TIME")]
    pub faster: Option<String>,
    /// Also what rhist itself does
    #[arg(long = "self")]
    pub itself: bool,
    /// In what unit the buckets of times are, to be added to others in this unit; by default
    /// nanoseconds
    #[arg(long, value_enum)]
    pub unit: Option<UnitArg>,
    /// Only events that this filter of the kernel passes
    #[arg(long = "where", value_name = "EXPR", value_parser = one_line)]
    pub filter: Option<String>,
    /// How many entries there is room for, of results and of starts: 65 to 131072
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(65..=131_072))]
    pub size: Option<u32>,
    /// Whose histograms: by default rhist's, if the module is loaded
    #[arg(long, value_enum, default_value_t)]
    pub backend: BackendArg,
}

/// Unit of buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum UnitArg {
    /// Seconds
    S,
    /// Milliseconds
    Ms,
    /// Microseconds
    Us,
}

impl From<UnitArg> for BucketUnit {
    fn from(unit: UnitArg) -> Self {
        match unit {
            UnitArg::S => Self::S,
            UnitArg::Ms => Self::Ms,
            UnitArg::Us => Self::Us,
        }
    }
}

/// Choice of the histograms' implementation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum BackendArg {
    /// rhist's if the module is loaded, else C's
    #[default]
    Auto,
    /// Those of the module rhist
    Rhist,
    /// The kernel's own, written in C
    C,
}

/// Arguments of `rhist count`.
#[derive(Clone, Debug, clap::Args)]
pub struct CountArgs {
    /// Event: sched:sched_switch, kprobe:FUNCTION, uprobe:FILE:FUNCTION
    #[arg(value_name = "EVENT")]
    pub event: String,
    /// Show the sum of this field
    #[arg(long, value_name = "FIELD", value_delimiter = ',')]
    pub sum: Vec<String>,
    /// Show smallest, average and largest value of this field
    #[arg(long, value_name = "FIELD", value_delimiter = ',')]
    pub stat: Vec<String>,
    /// Show the distribution of this field
    #[arg(long, value_name = "FIELD", value_delimiter = ',')]
    pub dist: Vec<String>,
    /// What of it, and for how long.
    #[command(flatten)]
    pub run: RunArgs,
}

/// Arguments of `rhist between`.
#[derive(Clone, Debug, clap::Args)]
pub struct BetweenArgs {
    /// Event with which the time begins
    #[arg(value_name = "A")]
    pub start: String,
    /// Event with which it ends
    #[arg(value_name = "B")]
    pub end: String,
    /// What both have in common: FIELD, or FIELD_OF_A=FIELD_OF_B; by default common_pid, the task
    /// that runs
    #[arg(long, value_name = "KEY", value_delimiter = ',')]
    pub on: Vec<String>,
    /// What of it, and for how long.
    #[command(flatten)]
    pub run: RunArgs,
}

/// Arguments of `rhist record`.
#[derive(Clone, Debug, clap::Args)]
pub struct RecordArgs {
    /// The file that is made
    #[arg(value_name = "FILE")]
    pub file: std::path::PathBuf,
    /// What is measured: RECIPE, count, or between, with its options
    #[arg(
        value_name = "RECIPE",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required = true
    )]
    pub words: Vec<OsString>,
}

/// Builds the command line. Each command gets the options of [`Common`] that it supports.
pub fn program() -> clap::Command {
    Args::command().mut_subcommands(|command| {
        let known = known(command.get_name());
        with_common(command, &known)
    })
}

/// Adds the supported options to a command and its subcommands.
pub fn with_common(command: clap::Command, known: &Known) -> clap::Command {
    let all = Common::augment_args(clap::Command::new(""));
    let options = all.get_arguments().filter_map(|option| known.option(option));
    command
        .mut_subcommands(|command| with_common(command, known))
        .args(options)
}

/// Options that a command supports.
pub fn known(command: &str) -> Known {
    let row = KNOWN.iter().find(|(name, _)| *name == command);
    row.map_or(MEASURES, |(_, known)| *known)
}

impl Args {
    /// Parses a command line.
    pub fn parse_from(words: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Result<Self, clap::Error> {
        let matches = program().try_get_matches_from(words)?;
        let mut args = Self::from_arg_matches(&matches)?;
        args.common = Common::of(&matches);
        Ok(args)
    }
}

impl Known {
    /// The option as it applies to the command, if supported.
    fn option(&self, option: &Arg) -> Option<Arg> {
        match option.get_id().as_str() {
            "dry_run" if self.dry_run => Some(option.clone()),
            "keep" if self.keep => Some(option.clone()),
            "quiet" if self.quiet => Some(option.clone()),
            "format" if !self.formats.is_empty() => {
                let values = self.formats.iter().filter_map(Format::to_possible_value);
                let parser = PossibleValuesParser::new(values).try_map(|text| Format::from_str(&text, false));
                Some(option.clone().value_parser(parser))
            }
            _ => None,
        }
    }
}

/// Names of all commands, without recipes.
pub fn commands() -> Vec<String> {
    let program = Args::command();
    let names = program.get_subcommands().map(clap::Command::get_name);
    names.map(str::to_owned).collect()
}

impl Common {
    /// Collects the options given before a command, after it, or after a subcommand.
    pub fn of(matches: &ArgMatches) -> Common {
        // A command does not define all of them.
        let is_set = |name: &str| matches!(matches.try_get_one::<bool>(name), Ok(Some(true)));
        let common = Common {
            dry_run: is_set("dry_run"),
            format: matches.try_get_one("format").ok().flatten().copied(),
            keep: is_set("keep"),
            quiet: is_set("quiet"),
        };
        match matches.subcommand() {
            Some((_, below)) => common.with(Common::of(below)),
            None => common,
        }
    }

    /// Rejects options that the command does not support, wherever they were given.
    pub fn check(&self, command: &str) -> anyhow::Result<()> {
        let known = known(command);
        let name = match command {
            "" => "rhist without a command".to_owned(),
            command => format!("rhist {command}"),
        };
        for (option, is_given, is_known) in [
            ("--dry-run", self.dry_run, known.dry_run),
            ("--format", self.format.is_some(), !known.formats.is_empty()),
            ("--keep", self.keep, known.keep),
            ("--quiet", self.quiet, known.quiet),
        ] {
            if is_given && !is_known {
                bail!("{name} has no option {option}");
            }
        }
        if let Some(format) = self.format.filter(|format| !known.formats.contains(format)) {
            let names: Vec<_> = known.formats.iter().map(Format::word).collect();
            bail!("{name} has no format {}, but {}", format.word(), names.join(", "));
        }
        Ok(())
    }

    /// Requested output format, or the default.
    pub fn format(&self) -> Format {
        self.format.unwrap_or_default()
    }

    /// Combines these options with `other`, given elsewhere on the command line. `other` takes
    /// precedence.
    pub fn with(&self, other: Common) -> Common {
        Common {
            dry_run: self.dry_run || other.dry_run,
            format: other.format.or(self.format),
            keep: self.keep || other.keep,
            quiet: self.quiet || other.quiet,
        }
    }
}

/// Joins the lines of a filter, since a trigger must be a single line.
fn one_line(text: &str) -> Result<String, Infallible> {
    Ok(text.replace(char::is_control, " "))
}

/// Parses a number of seconds, from 0.01 to a year.
pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.01..=31_536_000.0).contains(&seconds) => Ok(seconds),
        _ => Err("seconds are a number from 0.01 to 31536000, a year".to_owned()),
    }
}
