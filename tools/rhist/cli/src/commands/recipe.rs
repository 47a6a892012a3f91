// SPDX-License-Identifier: MIT OR Apache-2.0

//! `rhist RECIPE`: the command line of a recipe.

use std::ffi::OsString;

use clap::Arg;
use clap::ArgAction;
use clap::Args as _;
use clap::FromArgMatches;
use rhist_core::plan::task_keys;
use rhist_core::query::Query;
use rhist_core::recipe::Recipe;

use crate::options;
use crate::options::Common;
use crate::options::RunArgs;
use crate::recipes;
use crate::run::Measurement;
use crate::screen::lines;
use crate::screen::plain;

/// Builds the command line of a recipe, for its help and for completion.
pub fn command(name: &str, recipe: &Recipe) -> clap::Command {
    let mut command = options::command(name);
    for arg in &recipe.args {
        command = command.arg(
            Arg::new(arg.name.clone())
                .help(plain(&arg.help))
                .value_name(arg.name.to_uppercase())
                .required(arg.default.is_none()),
        );
    }
    for (name, variant) in &recipe.variants {
        command = command.arg(
            Arg::new(name.clone())
                .long(name.clone())
                .help(plain(&variant.summary))
                .action(ArgAction::SetTrue),
        );
    }
    let keys = recipe.measure.keys.keys().map(String::as_str);
    let keys: Vec<&str> = keys.chain(task_keys(&recipe.measure).map(|(name, _)| name)).collect();
    let keys = match keys.is_empty() {
        true => String::new(),
        false => format!("\n\nKeys for --by: {}", keys.join(", ")),
    };
    // Set last, or the doc comments of argument structs would replace it.
    RunArgs::augment_args(command)
        .about(plain(&recipe.summary))
        .after_help(lines(&format!("{}{keys}", recipe.about.trim())))
}

/// The measurement of a recipe, by its words; the first one is its name. `before` has the options
/// in front of it.
pub fn measurement(name: &str, words: &[OsString], before: &Common) -> anyhow::Result<Measurement> {
    let recipe = recipes::required(name)?;
    let matches = command(name, &recipe).try_get_matches_from(words)?;
    let variants = recipe.variants.keys().map(String::as_str);
    let variants: Vec<&str> = variants.filter(|name| matches.get_flag(name)).collect();
    let args = recipe.args.iter().filter_map(|arg| {
        let value = matches.get_one::<String>(&arg.name)?;
        Some((arg.name.clone(), value.clone()))
    });
    let query = Query::recipe(name, &recipe, &variants, args.collect())?;
    let run = RunArgs::from_arg_matches(&matches)?;
    Ok(Measurement::new(query, run, before.with(Common::of(&matches))))
}
