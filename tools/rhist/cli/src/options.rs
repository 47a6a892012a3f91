// SPDX-License-Identifier: MIT OR Apache-2.0

//! Options that several commands share.

use std::convert::Infallible;

use anyhow::bail;
use clap::Arg;
use clap::ArgMatches;
use clap::Args as _;
use clap::ValueEnum;
use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser;
use rhist_core::query;
use rhist_core::room::Idle;
use rhist_core::room::Size;
use rhist_core::table::BucketUnit;
use rhist_core::tracefs::Backend;

/// Options that many commands have: `KNOWN` says which.
#[derive(Clone, Debug, Default, PartialEq, clap::Args)]
#[command(next_help_heading = "Output")]
pub struct Common {
    /// Print what would be written to the kernel, but write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Output format; by default text
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// Leave the triggers when done, and print how to remove them
    #[arg(long)]
    pub keep: bool,
    /// Print only the result
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
const KNOWN: [(&str, Known); 18] = [
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
            formats: MEASURES.formats,
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
    ("unwind", NOTHING),
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
    /// An SVG picture
    Svg,
}

impl Format {
    fn word(&self) -> String {
        let value = self.to_possible_value();
        value.map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

/// Options of a measurement: which hits are counted, for how long, and by which keys.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Measurement")]
pub struct RunArgs {
    /// Only the threads of this process
    #[arg(short, long, value_name = "PID", value_delimiter = ',')]
    pub pid: Vec<i32>,
    /// With -p: also the tasks that it starts during the measurement, and theirs
    #[arg(long)]
    pub children: bool,
    /// Samples per second on each CPU, 1 to 10000, for recipes that take samples; by default as
    /// many as the machine is set to
    #[arg(short = 'F', long, value_name = "HERTZ", value_parser = clap::value_parser!(u32).range(1..=10000))]
    pub frequency: Option<u32>,
    /// Only tasks with this name; * stands for any characters
    #[arg(short, long, value_name = "NAME")]
    pub comm: Option<String>,
    /// Only tasks of this control group (cgroup v2) and of those below it
    #[arg(long, value_name = "PATH")]
    pub cgroup: Option<String>,
    /// Only tasks of this container, by the first digits of its identifier
    #[arg(long, value_name = "ID")]
    pub container: Option<String>,
    /// End after this many seconds; by default at Ctrl-C
    #[arg(short, long, value_name = "SECONDS", value_parser = seconds)]
    pub duration: Option<f64>,
    /// Show each interval of this many seconds
    #[arg(short, long, value_name = "SECONDS", value_parser = seconds)]
    pub interval: Option<f64>,
    /// Count by these keys: fields of the event, with modifiers
    #[arg(long, value_name = "KEY", value_delimiter = ',')]
    pub by: Vec<String>,
    /// Only times of at least this: 10ms, 500us, 1s
    #[arg(long, value_name = "TIME")]
    pub slower: Option<String>,
    /// Only times of less than this
    #[arg(long, value_name = "TIME")]
    pub faster: Option<String>,
    /// Count rhist's own activity, too
    #[arg(long = "self")]
    pub itself: bool,
    /// Unit of the buckets of times, which can only be added to others in the same unit; by
    /// default nanoseconds
    #[arg(long, value_enum)]
    pub unit: Option<UnitArg>,
    /// Only events that pass this filter, in the kernel's syntax
    #[arg(long = "where", value_name = "EXPR", value_parser = one_line)]
    pub filter: Option<String>,
    /// Number of entries for results, and for starts: 65 to 131072, or A..B to grow from A to B
    #[arg(long, value_name = "SIZE")]
    pub size: Option<Size>,
    /// Take out results without hits for this long, from 1s to 8760h: their hits are counted as
    /// other
    #[arg(long, value_name = "DURATION")]
    pub expire: Option<Idle>,
    /// Implementation of histograms: by default rhist's, if the module is loaded
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
    /// Histograms of the module rhist
    Rhist,
    /// The kernel's own, written in C
    C,
}

/// Adds the supported options to a command and its subcommands.
pub fn with_common(command: clap::Command, known: &Known) -> clap::Command {
    let all = Common::augment_args(clap::Command::new(""));
    let options = all.get_arguments().filter_map(|option| known.option(option));
    command
        .mut_subcommands(|command| with_common(command, known))
        .args(options)
}

/// Names of all commands, without recipes.
pub fn commands() -> Vec<&'static str> {
    let names = KNOWN.iter().map(|(name, _)| *name);
    names.filter(|name| !name.is_empty() && !name.contains(' ')).collect()
}

impl From<BackendArg> for Option<Backend> {
    fn from(backend: BackendArg) -> Self {
        match backend {
            BackendArg::Auto => None,
            BackendArg::Rhist => Some(Backend::Rhist),
            BackendArg::C => Some(Backend::C),
        }
    }
}

/// Creates a command with the options of [`Common`] that it supports. Its arguments are still
/// missing.
pub fn command(name: &str) -> clap::Command {
    let command = clap::Command::new(name.to_owned()).bin_name(format!("rhist {name}"));
    // Puts the common options last.
    with_common(command, &known(name)).next_help_heading(None::<&str>)
}

/// Returns whether an argument or an option of all recipes has this name.
pub fn is_recipe_option(name: &str) -> bool {
    let mut command = RunArgs::augment_args(command("recipe"));
    command.build();
    command
        .get_arguments()
        .any(|arg| arg.get_id() == name || arg.get_long() == Some(name))
}

/// Options that a command supports.
pub fn known(command: &str) -> Known {
    let row = KNOWN.iter().find(|(name, _)| *name == command);
    row.map_or(MEASURES, |(_, known)| *known)
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
            bail!(
                "{name} does not support --format {}, only {}",
                format.word(),
                names.join(", ")
            );
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

fn one_line(text: &str) -> Result<String, Infallible> {
    Ok(query::one_line(text))
}

/// Parses a number of seconds, from 0.01 to a year.
pub fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.01..=31_536_000.0).contains(&seconds) => Ok(seconds),
        _ => Err("expected a number of seconds from 0.01 to 31536000 (a year)".to_owned()),
    }
}
