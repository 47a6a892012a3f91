// SPDX-License-Identifier: MIT OR Apache-2.0

//! `rhist RECIPE`: the command line of a recipe.

use std::collections::BTreeMap;
use std::ffi::OsString;

use anyhow::bail;
use clap::Arg;
use clap::ArgAction;
use clap::Args as _;
use clap::FromArgMatches;
use rhist_core::recipe::Recipe;

use crate::diagnostic;
use crate::options;
use crate::options::Common;
use crate::options::RunArgs;
use crate::query::Query;
use crate::recipes;
use crate::screen::lines;
use crate::screen::plain;

/// Loads a recipe. If it does not exist, the error suggests another.
pub fn find(name: &str) -> anyhow::Result<Recipe> {
    if let Some(recipe) = recipes::find(name)? {
        return Ok(recipe);
    }
    if options::commands().contains(&name) {
        bail!("{name} does not measure: expected a recipe, count or between")
    }
    if let Some(instead) = recipes::instead(name) {
        bail!("no recipe {name}: histograms have no {instead}");
    }
    if name.starts_with('-') {
        bail!("unknown option {}", plain(name));
    }
    let recipes = recipes::names();
    let names = recipes.iter().map(String::as_str).chain(options::commands());
    Err(diagnostic::unknown_name("RECIPE", name, "recipe", names).into())
}

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
    let keys: Vec<&str> = recipe.measure.keys.keys().map(String::as_str).collect();
    let keys = match keys.is_empty() {
        true => String::new(),
        false => format!("\n\nKeys for --by: {}", keys.join(", ")),
    };
    // Set last, or the doc comments of argument structs would replace it.
    RunArgs::augment_args(command)
        .about(plain(&recipe.summary))
        .after_help(lines(&format!("{}{keys}", recipe.about.trim())))
}

/// The question of a recipe, by its words; the first one is its name. `before` has the options in
/// front of it.
pub fn query(name: &str, words: &[OsString], before: &Common) -> anyhow::Result<Query> {
    let recipe = find(name)?;
    let matches = command(name, &recipe).try_get_matches_from(words)?;
    let mut chosen = None;
    for variant in recipe.variants.keys() {
        if matches.get_flag(variant)
            && let Some(other) = chosen.replace(variant)
        {
            bail!("--{other} and --{variant} exclude each other: use one of them");
        }
    }
    let (summary, measure) = match chosen.and_then(|name| recipe.variants.get(name)) {
        Some(variant) => (&variant.summary, &variant.measure),
        None => (&recipe.summary, &recipe.measure),
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
    let common = before.with(Common::of(&matches));
    Ok(Query::recipe(name, summary, measure, values, run, common))
}
