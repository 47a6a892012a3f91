// SPDX-License-Identifier: MIT OR Apache-2.0

//! Completion for bash, zsh and fish. `COMPLETE=bash rhist` prints a script for the shell, which
//! then calls this program with the words typed so far. Thus events, fields, modifiers and recipes
//! are the ones of this machine.

mod bash;
mod line;
mod value;
mod zsh;

use std::ffi::OsStr;
use std::ffi::OsString;
use std::sync::Arc;

use clap::Command;
use clap::ValueHint;
use clap_complete::CompleteEnv;
use clap_complete::engine::ArgValueCompleter;
use clap_complete::engine::CompletionCandidate;
use clap_complete::env::Fish;
use clap_complete::env::Shells;

use crate::command_line;
use crate::commands;
use crate::recipes;
use bash::Bash;
use line::Line;
use zsh::Zsh;

/// Returns the completions of a word.
type Completer = fn(&Line, &str) -> Vec<CompletionCandidate>;

/// Completers for values of arguments, by the argument's ID, or by its value name if that is
/// unambiguous.
const COMPLETERS: [(&str, Completer); 13] = [
    ("event", value::events),
    ("start", value::events),
    ("end", value::events),
    ("by", value::keys),
    ("on", value::common_keys),
    ("sum", value::numbers),
    ("stat", value::numbers),
    ("dist", value::numbers),
    ("filter", value::filter),
    ("pid", value::processes),
    ("comm", value::comms),
    ("pattern", value::systems),
    ("instance", value::instances),
];

/// Commands that take a recipe, `count` or `between`, with its options after their own.
const WITH_RECIPE: [&str; 3] = ["top", "record", "push"];

/// If a shell has asked for completions, answers and exits.
pub fn run() {
    if std::env::var_os("COMPLETE").is_none() {
        return;
    }
    let words: Vec<OsString> = std::env::args_os().skip_while(|word| word != "--").skip(1).collect();
    let words = bash::join(words, 0).words;
    let line = Arc::new(Line::new(&words));
    CompleteEnv::with_factory(|| command(&line))
        .bin("rhist")
        .shells(Shells(&[&Bash, &Zsh, &Fish]))
        .complete();
}

/// Builds the command line, with recipes as commands, and with completers for values.
fn command(line: &Arc<Line>) -> Command {
    let mut command = command_line::program();
    let measurements: Vec<Command> = ["count", "between"]
        .iter()
        .filter_map(|name| command.find_subcommand(name).cloned())
        .collect();
    let recipes: Vec<Command> = recipes::names().iter().filter_map(|name| recipe(name, line)).collect();
    for name in WITH_RECIPE {
        if command.find_subcommand(name).is_some() {
            let all = measurements.iter().chain(&recipes).cloned();
            command = command.mut_subcommand(name, |command| command.subcommands(all));
        }
    }
    with_completers(command.subcommands(recipes), line)
}

/// A recipe as a command. Includes its arguments if the recipe is on the line.
fn recipe(name: &str, line: &Line) -> Option<Command> {
    // An unreadable recipe is reported when it is run.
    let recipe = recipes::find(name).ok()??;
    Some(match line.has_word(name) {
        true => commands::recipe::command(name, &recipe),
        false => Command::new(name.to_owned()).about(recipe.summary),
    })
}

fn with_completers(command: Command, line: &Arc<Line>) -> Command {
    let command = command.mut_args(|arg| {
        let id = arg.get_id().as_str();
        match COMPLETERS.iter().find(|(name, _)| *name == id) {
            Some((_, completer)) => {
                let line = Arc::clone(line);
                let complete = move |word: &OsStr| word.to_str().map(|word| completer(&line, word)).unwrap_or_default();
                arg.add(ArgValueCompleter::new(complete))
            }
            // These words are commands, not files.
            None if id == "words" || id == "command" => arg.value_hint(ValueHint::Other),
            None => arg,
        }
    });
    command.mut_subcommands(|command| with_completers(command, line))
}

#[cfg(test)]
mod tests;
