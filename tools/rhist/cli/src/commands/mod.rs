// SPDX-License-Identifier: MIT OR Apache-2.0

//! Commands: one file for each.

pub mod check;
mod clean;
pub mod diff;
mod doctor;
pub mod exec;
pub mod ls;
pub mod push;
mod record;
pub mod report;
pub mod serve;
pub mod show;
mod status;
pub mod top;

use std::process::ExitCode;

use crate::args::Args;
use crate::args::Command;
use crate::measure;
use crate::query::Query;

/// Runs a command.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let common = args.common;
    common.check(args.command.as_ref().map_or("", Command::name))?;
    match args.command {
        None => status::run(common.dry_run),
        Some(Command::Count(args)) => measure::run(&Query::count(args, common)?),
        Some(Command::Between(args)) => measure::run(&Query::between(args, common)?),
        Some(Command::Record(args)) => record::run(&args, &common),
        Some(Command::Push(args)) => push::run(&args, &common),
        Some(Command::Top(args)) => top::run(&args, &common),
        Some(Command::Report(args)) => report::run(&args, &common),
        Some(Command::Diff(args)) => diff::run(&args, &common),
        Some(Command::Clean) => clean::run(common.dry_run),
        Some(Command::Ls(args)) => ls::run(&args, common.format()),
        Some(Command::Show(args)) => show::run(&args, common.format()),
        Some(Command::Doctor) => doctor::run(common.format()),
        Some(Command::Check(args)) => check::run(&args),
        Some(Command::Serve(args)) => serve::run(&args),
        Some(Command::Exec(args)) => exec::run(&args, common.dry_run),
        Some(Command::Recipe(words)) => measure::run(&Query::parse(&words, &common)?),
    }
}
