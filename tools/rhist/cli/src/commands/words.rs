// SPDX-License-Identifier: MIT OR Apache-2.0

//! Command line of a question, as words: a recipe, `count` or `between`, with options.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use clap::FromArgMatches;

use super::between;
use super::count;
use super::recipe;
use crate::options;
use crate::options::Common;
use crate::query::Query;
use crate::run;

/// Measures the question of these words, and prints the results.
pub fn run(words: &[OsString], before: &Common) -> anyhow::Result<ExitCode> {
    run::run(&query(words, before)?)
}

/// The question of these words. `before` has the options in front of them.
pub fn query(words: &[OsString], before: &Common) -> anyhow::Result<Query> {
    let Some(name) = words.first() else {
        bail!("missing recipe, count or between: see rhist ls recipes")
    };
    let name = name.to_string_lossy();
    match &*name {
        "count" => {
            let (args, common) = parse(&name, words, before)?;
            count::query(args, common)
        }
        "between" => {
            let (args, common) = parse(&name, words, before)?;
            between::query(args, common)
        }
        _ => recipe::query(&name, words, before),
    }
}

/// Parses words of a command with these arguments.
fn parse<T: Args + FromArgMatches>(name: &str, words: &[OsString], before: &Common) -> anyhow::Result<(T, Common)> {
    // Help counts as an error, too, and is printed by `main`.
    let matches = T::augment_args(options::command(name)).try_get_matches_from(words)?;
    let common = before.with(Common::of(&matches));
    Ok((T::from_arg_matches(&matches)?, common))
}
