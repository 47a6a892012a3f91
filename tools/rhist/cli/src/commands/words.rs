// SPDX-License-Identifier: MIT OR Apache-2.0

//! Command line of a measurement, as words: a recipe, `count` or `between`, with options.

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
use crate::run;
use crate::run::Measurement;

/// Measures, and prints the results.
pub fn run(words: &[OsString], before: &Common) -> anyhow::Result<ExitCode> {
    run::run(&measurement(words, before)?)
}

/// The measurement of these words. `before` has the options in front of them.
pub fn measurement(words: &[OsString], before: &Common) -> anyhow::Result<Measurement> {
    let Some(name) = words.first() else {
        bail!("missing recipe, count or between: see rhist ls recipes")
    };
    let name = name.to_string_lossy();
    match &*name {
        "count" => {
            let (args, common) = parse(&name, words, before)?;
            count::measurement(args, common)
        }
        "between" => {
            let (args, common) = parse(&name, words, before)?;
            between::measurement(args, common)
        }
        _ => recipe::measurement(&name, words, before),
    }
}

/// Parses words of a command with these arguments.
fn parse<T: Args + FromArgMatches>(name: &str, words: &[OsString], before: &Common) -> anyhow::Result<(T, Common)> {
    // Help counts as an error, too, and is printed by `main`.
    let matches = T::augment_args(options::command(name)).try_get_matches_from(words)?;
    let common = before.with(Common::of(&matches));
    Ok((T::from_arg_matches(&matches)?, common))
}

#[cfg(test)]
mod tests {
    use rhist_core::problem::Problem;
    use rhist_core::query::Query;
    use rhist_core::query::QueryText;

    use super::super::planner::query;
    use super::*;
    use crate::recipes;

    /// The question of a text, as the configuration of the service has it: of the keyword
    /// `recipe`, and if it begins with `count` or `between`, of the keyword of this name, too.
    fn of_text(text: &str) -> Result<Query, Problem> {
        let of_recipe = query("recipe", &QueryText::new(text)?);
        let (name, rest) = text.split_once(' ').unwrap_or((text, ""));
        if matches!(name, "count" | "between") {
            let of_name = query(name, &QueryText::new(rest)?);
            assert_eq!(of_name.ok(), of_recipe.as_ref().ok().cloned(), "{text}");
        }
        of_recipe
    }

    #[test]
    fn texts_mean_the_same_as_command_lines() {
        for text in [
            "runqlat",
            "runqlat --by comm,pid --by=cpu",
            "runqlat --slower 10ms --faster=1s -c a* --self",
            "runqlat -ca --size 100 --backend c",
            "runqlat -c=a --size=131072 --backend=rhist --backend=auto",
            "runqlat --size 100..1000 --expire 90s",
            "runqlat --backend auto --by a,,b,",
            "syscount --errors --by comm",
            "funclatency vfs_read",
            "funclatency --by comm -- vfs_read",
            "count sched_switch",
            "count --sum a,b=c sched_switch --stat d --dist e --sum f --where x>3",
            "count kretprobe:vfs_read --dist ret",
            "between sched_waking sched_switch",
            "between a b --on pid=next_pid,x --on y --slower 1ms",
            "runqlat extra",
            "runqlat --nosuch",
            "runqlat -x",
            "runqlat --by",
            "runqlat --comm -x",
            "runqlat -c a -c b",
            "runqlat --self=x",
            "runqlat --size 64",
            "runqlat --size x",
            "runqlat --size 100..",
            "runqlat --expire 1",
            "syscount --errors --errors",
            "funclatency",
            "count",
            "count a b",
            "between a",
        ] {
            let words: Vec<OsString> = text.split(' ').map(OsString::from).collect();
            let by_words = measurement(&words, &Common::default()).map(|measurement| measurement.query);
            match (by_words, of_text(text)) {
                (Ok(by_words), Ok(of_text)) => assert_eq!(by_words, of_text, "{text}"),
                (Err(_), Err(_)) => {}
                different => panic!("{text}: {different:?}"),
            }
        }
    }

    #[test]
    fn texts_know_all_options_of_command_lines() {
        let recipe = recipes::required("runqlat").unwrap();
        for (before, command) in [
            ("runqlat", recipe::command("runqlat", &recipe)),
            ("count a", count::Args::augment_args(options::command("count"))),
            ("between a b", between::Args::augment_args(options::command("between"))),
        ] {
            let mut command = command;
            command.build();
            let args = command.get_arguments().filter(|arg| !arg.is_positional());
            let mut number = 0;
            for arg in args {
                let long = arg.get_long().map(|long| format!("--{long}"));
                let short = arg.get_short().map(|short| format!("-{short}"));
                let value = match arg.get_id().as_str() {
                    _ if !arg.get_action().takes_values() => "",
                    "size" => " 100",
                    "expire" => " 1h",
                    "backend" => " c",
                    _ => " x",
                };
                for name in long.into_iter().chain(short) {
                    number += 1;
                    let text = format!("{before} {name}{value}");
                    if let Err(problem) = of_text(&text) {
                        let is_refused = ["do not apply", "does not apply"]
                            .iter()
                            .any(|refused| problem.title.contains(refused));
                        assert!(is_refused, "{text}: {problem}");
                    }
                }
            }
            assert!(number > 20, "{before}: {number}");
        }
    }
}
