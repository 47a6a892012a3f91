// SPDX-License-Identifier: MIT OR Apache-2.0

//! The command line.

use std::ffi::OsString;

use clap::Parser;
use clap::Subcommand;
use clap::ValueEnum;

/// Questions about a running kernel, answered by histograms of its trace events
#[derive(Debug, Parser)]
#[command(name = "rhist", version, disable_help_subcommand = true)]
pub struct Args {
    /// What to do; without it, the state of rhist on this machine.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Options of all commands.
    #[command(flatten)]
    pub common: Common,
}

/// Options that all commands take.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Common {
    /// Print what would be written to the kernel, and write nothing
    #[arg(long, global = true)]
    pub dry_run: bool,
    /// How to print what was found
    #[arg(long, global = true, value_enum, default_value_t)]
    pub format: Format,
    /// Leave the triggers when done, and print how to remove them
    #[arg(long, global = true)]
    pub keep: bool,
    /// Print only what was found
    #[arg(short, long, global = true)]
    pub quiet: bool,
}

/// How to print what was found.
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

/// Commands. Each has a file in `commands/` with its arguments and a function `run`.
#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant)]
pub enum Command {
    /// A recipe: its name, and what follows.
    #[command(external_subcommand)]
    Recipe(Vec<OsString>),
}
