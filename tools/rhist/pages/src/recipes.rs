// SPDX-License-Identifier: MIT OR Apache-2.0

//! `rhist-recipes(7)`: descriptions of the recipes, with the output of their examples.

use std::fs;
use std::path::Path;

use anyhow::Context;
use clap::Args as _;
use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::Inline;
use clap_mangen::roff::Roff;
use clap_mangen::roff::bold;
use clap_mangen::roff::italic;
use clap_mangen::roff::roman;
use rhist::options::RunArgs;
use rhist_core::recipe::Recipe;

use crate::Page;

/// A recipe with its name and example.
pub struct Entry {
    /// Name on the command line.
    pub name: String,
    /// Contents of its file.
    pub recipe: Recipe,
    /// Command line and output from `examples/NAME.txt`; empty if the file does not exist.
    pub example: String,
}

/// Introduction before the recipes.
const ABOUT: [&str; 3] = [
    "A recipe is a question about the kernel with a name. It is a file: which events are counted, or between which of them \
     time passes, and how the answer is read. rhist makes triggers from it, which count in the kernel; --dry-run prints \
     them instead, and they can be written by hand as well.",
    "Counts are exact. If events could not be counted, or times have no beginning, the answer says how many.",
    "Your own recipes are files in ~/.config/rhist/recipes. They have the form of those in /usr/share/rhist/recipes, which \
     are good to begin with. Your recipe replaces one of the package that has the same name.",
];

/// Reads the recipes of a folder, sorted by name.
pub fn read(folder: &Path) -> anyhow::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for file in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = file?.path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let recipe = Recipe::parse(&text).with_context(|| path.display().to_string())?;
        let example = fs::read_to_string(folder.join("examples").join(format!("{name}.txt"))).unwrap_or_default();
        entries.push(Entry { name, recipe, example });
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}

/// Generates the page of these recipes.
pub fn page(entries: &[Entry]) -> anyhow::Result<Page> {
    let mut roff = Roff::new();
    let version = concat!("rhist ", env!("CARGO_PKG_VERSION"));
    roff.control("TH", ["rhist-recipes", "7", "", version, "rhist"]);
    roff.control("SH", ["NAME"])
        .text([roman("rhist-recipes - questions that rhist knows how to ask")]);
    roff.control("SH", ["SYNOPSIS"]);
    roff.text([
        bold("rhist"),
        roman(" "),
        italic("RECIPE"),
        roman(" ["),
        italic("ARGUMENT"),
        roman("...] ["),
        italic("OPTION"),
        roman("...]"),
    ]);
    roff.control("SH", ["DESCRIPTION"]);
    paragraphs(&mut roff, &ABOUT.join("\n\n"));
    let mut text = roff.render();
    text += &options()?;
    let mut roff = Roff::new();
    roff.control("SH", ["RECIPES"]);
    for entry in entries {
        section(&mut roff, entry);
    }
    roff.control("SH", ["SEE ALSO"])
        .text([roman("rhist(1), rhist-hist(7)")]);
    text += &roff.to_roff();
    Ok(Page {
        file: "rhist-recipes.7".to_owned(),
        text,
    })
}

/// Section with the options common to all recipes.
fn options() -> anyhow::Result<String> {
    let command = RunArgs::augment_args(Command::new("rhist").disable_help_flag(true));
    let mut text = Vec::new();
    Man::new(command).render_options_section(&mut text)?;
    let mut roff = Roff::new();
    paragraphs(
        &mut roff,
        "Options of all commands, such as `--format` and `--dry-run`, are in rhist(1).",
    );
    Ok(String::from_utf8(text).context("options are not UTF-8")? + &roff.to_roff())
}

/// Adds the section of a recipe.
fn section(roff: &mut Roff, entry: &Entry) {
    let Entry { name, recipe, example } = entry;
    roff.control("SS", [name.replace('-', "\\-").as_str()]);
    roff.text([roman(format!("{}.", recipe.summary))]);
    paragraphs(roff, &recipe.about);
    for arg in &recipe.args {
        let default = arg
            .default
            .as_ref()
            .map(|default| format!(" By default {default}."))
            .unwrap_or_default();
        term(
            roff,
            italic(arg.name.to_uppercase()),
            &format!("{}.{default}", arg.help),
        );
    }
    for (variant, what) in &recipe.variants {
        term(roff, bold(format!("--{variant}")), &format!("{}.", what.summary));
    }
    if !recipe.measure.keys.is_empty() {
        let keys: Vec<&str> = recipe.measure.keys.keys().map(String::as_str).collect();
        term(roff, bold("--by"), &format!("Has short names for {}.", keys.join(", ")));
    }
    if let Some(starts) = &recipe.starts {
        paragraphs(roff, "How starts are treated:");
        for (what, text) in starts.each() {
            term(roff, italic(what), text);
        }
    }
    if !recipe.peers.is_empty() {
        paragraphs(roff, "Beside the tools of bcc (libbpf-tools):");
        for peer in &recipe.peers {
            term(roff, bold(&*peer.tool), &peer.about);
        }
    }
    if !example.is_empty() {
        as_it_is(roff, example);
    } else if !recipe.example.is_empty() {
        as_it_is(roff, &format!("$ rhist {}", recipe.example));
    }
}

/// Adds a term with its explanation.
fn term(roff: &mut Roff, word: Inline, about: &str) {
    roff.control("TP", []).text([word]).text(inlines(about));
}

/// Adds paragraphs, which are separated by empty lines.
fn paragraphs(roff: &mut Roff, text: &str) {
    for paragraph in text
        .split("\n\n")
        .map(str::trim)
        .filter(|paragraph| !paragraph.is_empty())
    {
        roff.control("PP", []);
        let line = paragraph.lines().map(str::trim).collect::<Vec<_>>().join(" ");
        roff.text(inlines(&line));
    }
}

/// Formats a text; the parts between backquotes become bold.
fn inlines(text: &str) -> Vec<Inline> {
    let parts = text.split('`').enumerate();
    parts
        .map(|(i, part)| if i % 2 == 1 { bold(part) } else { roman(part) })
        .collect()
}

/// Adds lines without filling, such as the output of a terminal.
fn as_it_is(roff: &mut Roff, text: &str) {
    roff.control("PP", []).control("RS", ["4"]).control("nf", []);
    for line in text.trim_end().lines() {
        roff.text([roman(line)]);
    }
    roff.control("fi", []).control("RE", []);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipe_with_all_parts() {
        let recipe = Recipe::parse(
            r#"
summary = "What is counted"
about = """
One paragraph, \
see `--other`.

.Another, with a \\ and 'quotes'.
"""
example = "name X"
args = [{ name = "x", help = "what it is", default = "1" }]
unit = "ns"
noun = "things"
keys = { cpu = "common_cpu" }
count = [{ event = "a:b" }]
peers = [{ tool = "its-tool", about = "Counts `all` of it." }]

[variants.other]
summary = "Counted in another way"
count = [{ event = "a:c" }]
"#,
        )
        .unwrap();
        let entry = |example: &str| Entry {
            name: "some-name".to_owned(),
            recipe: recipe.clone(),
            example: example.to_owned(),
        };
        let section = |entry: Entry| {
            let mut roff = Roff::new();
            super::section(&mut roff, &entry);
            roff.to_roff()
        };
        insta::assert_snapshot!(section(entry("$ rhist name 2\n.5 ms  |###|\n")), @r#"
        .SS some\-name
        What is counted.
        .PP
        One paragraph, see \fB\-\-other\fR.
        .PP
        \&.Another, with a \\ and 'quotes'.
        .TP
        \fIX\fR
        what it is. By default 1.
        .TP
        \fB\-\-other\fR
        Counted in another way.
        .TP
        \fB\-\-by\fR
        Has short names for cpu.
        .PP
        Beside the tools of bcc (libbpf\-tools):
        .TP
        \fBits\-tool\fR
        Counts \fBall\fR of it.
        .PP
        .RS 4
        .nf
        $ rhist name 2
        \&.5 ms  |###|
        .fi
        .RE
        "#);
        assert!(section(entry("")).contains("rhist name X"));
    }
}
