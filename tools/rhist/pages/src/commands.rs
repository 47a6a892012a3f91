// SPDX-License-Identifier: MIT OR Apache-2.0

//! `rhist(1)`, and a page for each command.

use anyhow::Context;
use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::Roff;
use clap_mangen::roff::bold;
use clap_mangen::roff::roman;
use rhist::command_line;

use crate::Page;
use crate::recipes::Entry;

/// Text before the list of recipes.
const RECIPES: &str =
    "Any other command is the name of a recipe. rhist-recipes(7) has more of each, and of their options:";

/// Files, with their descriptions.
const FILES: [(&str, &str); 4] = [
    (
        "/usr/share/rhist/recipes",
        "The recipes of the package, for reading: the program has them built in. See rhist-recipes(7).",
    ),
    (
        "~/.config/rhist/recipes",
        "Your own recipes, which replace recipes of the package with the same name.",
    ),
    (
        "/run/rhist",
        "Journals of the objects that runs have made in the kernel. If a run is killed, the next one removes its objects.",
    ),
    (
        "/var/lib/rhist/push",
        "Queue of rhist push. For users other than root it is ~/.local/state/rhist/push.",
    ),
];

/// Exit statuses, with their meanings.
const STATUS: [(&str, &str); 5] = [
    ("0", "Success."),
    (
        "1",
        "A failure of reading or writing, or after the start; of rhist doctor: nothing can be measured.",
    ),
    (
        "2",
        "The command line is invalid, or not possible on this machine; nothing was changed.",
    ),
    (
        "125",
        "rhist exec could not run the command in this way, or its options are invalid.",
    ),
    ("127", "The command of rhist exec does not exist."),
];

/// Pages to read next.
const SEE_ALSO: &str = "rhist-recipes(7), rhist-hist(7), rhist(4)";

/// Pages of the program and its commands.
pub fn pages(recipes: &[Entry]) -> anyhow::Result<Vec<Page>> {
    let mut program = command_line::program();
    program.build();
    let commands: Vec<Command> = program
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .cloned()
        .collect();
    let mut whole = page(program)?;
    whole.text += &more(recipes);
    let mut pages = vec![whole];
    for command in commands {
        pages.push(page(command)?);
    }
    Ok(pages)
}

/// Page generated from the arguments of a command.
fn page(command: Command) -> anyhow::Result<Page> {
    let version = env!("CARGO_PKG_VERSION");
    let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
    let man = Man::new(command).source(format!("rhist {version}")).manual("rhist");
    let mut text = Vec::new();
    man.render(&mut text)?;
    let text = String::from_utf8(text).context("a page is not UTF-8")?;
    Ok(Page {
        file: format!("{name}.1"),
        text,
    })
}

/// Sections that the arguments of the program do not provide.
fn more(recipes: &[Entry]) -> String {
    let mut roff = Roff::new();
    roff.control("SH", ["RECIPES"]).text([roman(RECIPES)]);
    for Entry { name, recipe, .. } in recipes {
        roff.control("TP", []).text([bold(name)]).text([roman(&recipe.summary)]);
    }
    for (heading, list) in [("FILES", &FILES[..]), ("EXIT STATUS", &STATUS[..])] {
        roff.control("SH", [heading]);
        for (name, about) in list {
            roff.control("TP", []).text([bold(*name)]).text([roman(*about)]);
        }
    }
    roff.control("SH", ["SEE ALSO"]).text([roman(SEE_ALSO)]);
    roff.to_roff()
}
