// SPDX-License-Identifier: MIT OR Apache-2.0

//! The command line: the tree of all commands.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::ArgMatches;
use clap::CommandFactory;
use clap::FromArgMatches;
use clap::Parser;
use clap::Subcommand;

use crate::commands::between;
use crate::commands::check;
use crate::commands::clean;
use crate::commands::count;
use crate::commands::diff;
use crate::commands::doctor;
use crate::commands::exec;
use crate::commands::ls;
use crate::commands::push;
use crate::commands::record;
use crate::commands::report;
use crate::commands::serve;
use crate::commands::show;
use crate::commands::status;
use crate::commands::top;
use crate::commands::unwind;
use crate::commands::words;
use crate::diagnostic::USAGE;
use crate::options::Common;
use crate::options::known;
use crate::options::with_common;

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
pub struct CommandLine {
    /// Command; without one, the state of rhist on this machine.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Options before the command.
    #[command(flatten)]
    pub common: Common,
}

/// Commands. Each has a file in `commands/`, with its arguments if it has any.
#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant)]
pub enum Command {
    /// Count events
    Count(count::Args),
    /// Measure the time between two events
    Between(between::Args),
    /// Show keys as they change, on the whole screen
    ///
    /// Without a terminal, and with --format json, prints a line of JSON for each interval. With
    /// --format svg, prints a picture of the screen at the end, of COLUMNS times LINES characters.
    Top(top::Args),
    /// Record a measurement to a file, one interval per line
    Record(record::Args),
    /// Push a measurement to a receiver of OTLP, such as an OpenTelemetry collector
    ///
    /// Batches that the receiver does not accept are kept in a queue on disk, and sent again.
    Push(push::Args),
    /// Show a recording
    Report(report::Args),
    /// Compare two recordings
    ///
    /// Of stacks, --format svg draws a flame graph of B, in which functions with a larger share
    /// than in A are red, and with a smaller one blue; below it are stacks that only A has.
    /// --format folded prints the hits of each stack in A and in B, as difffolded.pl does.
    Diff(diff::Args),
    /// List events, runs or recipes
    Ls(ls::Args),
    /// Show the fields of an event, and the keys that they make
    Show(show::Args),
    /// Remove the objects of dead runs, and those that --keep has left
    Clean,
    /// Show which measurements this machine supports, and what the others need
    ///
    /// The exit status is 1 if nothing can be measured.
    Doctor,
    /// Check the files of a configuration against this machine
    ///
    /// The exit status is 2 if something in them is wrong.
    Check(check::Args),
    /// Make the histograms of a configuration, and let Prometheus scrape them
    ///
    /// Runs until SIGTERM or SIGINT, and then removes all that it made. SIGHUP makes it read its
    /// configuration again; unchanged histograms go on. See rhist.service(8).
    Serve(serve::Args),
    /// Give the module rules for the stacks of programs
    ///
    /// Reads the unwind information (.eh_frame) of each file in which a stack is taken, and writes
    /// it as rules, by which the module walks stacks of programs without frame pointers. Runs until
    /// it is interrupted. Needs root, and the module.
    Unwind(unwind::Args),
    /// Run a program on the tracing directory of rhist
    ///
    /// COMMAND runs in a mount namespace of its own, in which rhist's tracing directory lies over
    /// /sys/kernel/tracing. There, trace-cmd, perf and other programs find the histograms and user
    /// events of rhist besides everything in the kernel's directory. Programs outside of the
    /// namespace are not affected.
    ///
    /// The exit status is that of COMMAND, 127 if COMMAND does not exist, 125 if it could not be
    /// run in this way or the options are invalid. Called as rhist-exec, rhist is rhist exec, until
    /// version 1.0.
    Exec(exec::Args),
    /// A recipe: its name, and what follows.
    #[command(external_subcommand)]
    Recipe(Vec<OsString>),
}

impl Command {
    /// Name with which [`Common::check()`] finds its options.
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
            Self::Unwind(_) => "unwind",
            Self::Exec(_) => "exec",
            Self::Recipe(_) => "RECIPE",
        }
    }
}

/// Builds the command line. Each command gets the options of [`Common`] that it supports.
pub fn program() -> clap::Command {
    CommandLine::command().mut_subcommands(|command| {
        let known = known(command.get_name());
        with_common(command, &known)
    })
}

/// Exit status for an invalid command line: for `exec` one that its command does not have.
pub fn usage_status(words: &[OsString]) -> u8 {
    let matches = program().ignore_errors(true).try_get_matches_from(words);
    match matches.as_ref().ok().and_then(ArgMatches::subcommand_name) {
        Some("exec") => exec::NOT_RUN,
        _ => USAGE,
    }
}

impl CommandLine {
    /// Parses a command line.
    pub fn parse_from(words: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Result<Self, clap::Error> {
        let matches = program().try_get_matches_from(words)?;
        let mut line = Self::from_arg_matches(&matches)?;
        line.common = Common::of(&matches);
        Ok(line)
    }

    /// Runs the command.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let common = self.common;
        common.check(self.command.as_ref().map_or("", Command::name))?;
        match self.command {
            None => status::run(common.dry_run),
            Some(Command::Count(args)) => count::run(args, common),
            Some(Command::Between(args)) => between::run(args, common),
            Some(Command::Top(args)) => top::run(&args, &common),
            Some(Command::Record(args)) => record::run(&args, &common),
            Some(Command::Push(args)) => push::run(&args, &common),
            Some(Command::Report(args)) => report::run(&args, &common),
            Some(Command::Diff(args)) => diff::run(&args, &common),
            Some(Command::Ls(args)) => ls::run(&args, common.format()),
            Some(Command::Show(args)) => show::run(&args, common.format()),
            Some(Command::Clean) => clean::run(common.dry_run),
            Some(Command::Doctor) => doctor::run(common.format()),
            Some(Command::Check(args)) => check::run(&args),
            Some(Command::Serve(args)) => serve::run(&args),
            Some(Command::Unwind(args)) => unwind::run(&args),
            Some(Command::Exec(args)) => exec::run(&args, common.dry_run),
            Some(Command::Recipe(words)) => words::run(&words, &common),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;
    use crate::options;

    #[test]
    fn the_table_of_options_has_all_commands() {
        let command = CommandLine::command();
        let names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        assert_eq!(options::commands(), names);
    }

    /// The instance, and the words of the command.
    fn exec_of(words: &[&OsStr]) -> Result<(Option<OsString>, Vec<OsString>), clap::Error> {
        let line = CommandLine::parse_from(["rhist", "exec"].map(OsStr::new).iter().chain(words))?;
        match line.command {
            Some(Command::Exec(args)) => Ok((args.instance, args.command)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn words_after_exec_belong_to_its_command() {
        for (given, instance, command) in [
            ("-i x ls -i --format y", Some("x"), "ls -i --format y"),
            ("-- -x --dry-run", None, "-x --dry-run"),
            ("-- ls -- -x", None, "ls -- -x"),
            ("ls -- -x", None, "ls -- -x"),
            ("", None, ""),
            ("-i a -i b ls -i c", Some("b"), "ls -i c"),
            ("-i -x ls", Some("-x"), "ls"),
            ("-ia ls", Some("a"), "ls"),
        ] {
            let words = |text: &str| text.split_whitespace().map(OsString::from).collect::<Vec<_>>();
            let given: Vec<&OsStr> = given.split_whitespace().map(OsStr::new).collect();
            let expected = (instance.map(OsString::from), words(command));
            assert_eq!(exec_of(&given).unwrap(), expected, "{given:?}");
        }
        let bytes = OsStr::from_bytes(b"\xff");
        let (instance, command) = exec_of(&[OsStr::new("-i"), bytes, bytes]).unwrap();
        assert_eq!((instance, command), (Some(bytes.to_owned()), vec![bytes.to_owned()]));
    }

    #[test]
    fn invalid_options_of_exec_end_with_125() {
        for given in [
            "-x true",
            "--nosuch true",
            "-V",
            "--version",
            "-i",
            "--instance",
            "--dry-run=x ls",
        ] {
            let words: Vec<&OsStr> = given.split(' ').map(OsStr::new).collect();
            assert!(exec_of(&words).is_err(), "{given}");
            let status = |line: String| usage_status(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
            assert_eq!(status(format!("rhist exec {given}")), 125, "{given}");
            assert_eq!(
                status(format!("rhist --dry-run --format text exec {given}")),
                125,
                "{given}"
            );
            assert_eq!(status(format!("rhist record exec {given}")), 2, "{given}");
        }
    }
}
