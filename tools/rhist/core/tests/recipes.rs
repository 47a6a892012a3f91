// SPDX-License-Identifier: MIT OR Apache-2.0

//! Checks that all recipes of the package parse.

use std::collections::BTreeSet;

use proptest::prelude::*;
use rhist_core::recipe::Measure;
use rhist_core::recipe::Recipe;

/// Recipes whose events do not happen while the examples are recorded.
const WITHOUT_EXAMPLE: [&str; 3] = ["oomkills", "reclaim", "user-event"];

#[test]
fn all_recipes_parse_and_have_a_case_and_an_example() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../recipes");
    let tests = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../testing/selftests/command/recipes.py"
    );
    let tests = std::fs::read_to_string(tests).unwrap();
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        Recipe::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let name = path.file_stem().unwrap().to_str().unwrap();
        assert!(
            tests.contains(&format!("\"{name}")),
            "recipes.py has no case for {name}"
        );
        let example = format!("{folder}/examples/{name}.txt");
        let has_example = std::fs::exists(&example).unwrap();
        assert_eq!(has_example, !WITHOUT_EXAMPLE.contains(&name), "{example}");
        count += 1;
    }
    assert!(count >= 1);
}

/// The page for users.
fn page() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../Documentation/command.rst");
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn the_example_of_the_page_is_a_recipe() {
    let page = page();
    let (_, example) = page.split_once(".. code-block:: toml\n").unwrap();
    let lines = example
        .lines()
        .take_while(|line| line.is_empty() || line.starts_with("    "));
    let text: String = lines
        .map(|line| line.strip_prefix("    ").unwrap_or(line).to_owned() + "\n")
        .collect();
    let recipe = Recipe::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(recipe.measure.end[0].event, "syscalls:sys_exit_openat");
    assert_eq!(
        recipe.variants["failed"].measure.count[0].event,
        "syscalls:sys_exit_openat"
    );
}

/// Keywords of a recipe, without names that its author has chosen.
fn words(value: &toml::Value, words: &mut BTreeSet<String>) {
    match value {
        toml::Value::Table(table) => {
            for (name, value) in table {
                words.insert(name.clone());
                let chosen = matches!(name.as_str(), "keys" | "keep" | "names");
                match value {
                    _ if chosen => {}
                    toml::Value::Table(variants) if name == "variants" => {
                        words.remove("variants");
                        variants.values().for_each(|variant| self::words(variant, words));
                    }
                    _ => self::words(value, words),
                }
            }
        }
        toml::Value::Array(values) => values.iter().for_each(|value| self::words(value, words)),
        _ => {}
    }
}

#[test]
fn the_page_has_all_words() {
    let page = page();
    let (_, tables) = page.split_once("Entries of a recipe:").unwrap();
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../recipes")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let text = std::fs::read_to_string(&path).unwrap();
            words(&toml::Value::Table(text.parse().unwrap()), &mut found);
        }
    }
    // serde lists the valid members of a table after an unknown one, except for `Recipe` itself.
    let error = |table: &str| {
        Recipe::parse(&format!("summary = ''\nabout = ''\n{table}\nnone = 1\n"))
            .unwrap_err()
            .to_string()
    };
    for table in ["[[args]]", "[[count]]", "[[start]]"] {
        let error = error(table);
        let (_, expected) = error.split_once("expected one of ").unwrap();
        found.extend(expected.split('`').skip(1).step_by(2).map(str::to_owned));
    }
    assert!(found.len() > 30, "{found:?}");
    for word in found {
        let is_there = [
            format!("``{word}``"),
            format!("``[{word}]``"),
            format!("``[[{word}]]``"),
        ]
        .iter()
        .any(|form| tables.contains(form));
        assert!(is_there, "Documentation/command.rst has no {word}");
    }
}

/// Each recipe with each of its measurements.
fn measures() -> Vec<(String, Measure)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../recipes");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let recipe = Recipe::parse(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let variants = recipe.variants.into_values().map(|variant| variant.measure);
        for measure in std::iter::once(recipe.measure).chain(variants) {
            found.extend(measure.alternatives.iter().map(|other| (name.clone(), other.clone())));
            found.push((name.clone(), measure));
        }
    }
    found
}

#[test]
fn each_recipe_of_times_says_what_becomes_of_starts() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../recipes");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let recipe = Recipe::parse(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let variants = recipe.variants.values().map(|variant| &variant.measure);
        let has_starts = std::iter::once(&recipe.measure)
            .chain(variants)
            .any(|measure| !measure.start.is_empty());
        assert_eq!(recipe.starts.is_some(), has_starts, "{}", path.display());
        for (what, text) in recipe.starts.iter().flat_map(|starts| starts.each()) {
            assert!(
                text.ends_with('.') && text.len() < 300,
                "{}: {what}: {text}",
                path.display()
            );
        }
    }
}

#[test]
fn what_recipes_refer_to_is_there() {
    for (name, measure) in measures() {
        assert!(!measure.noun.is_empty(), "{name}: no noun");
        assert_eq!(
            measure.count.is_empty(),
            !measure.start.is_empty(),
            "{name}: counts, or times"
        );
        assert_eq!(
            measure.start.is_empty(),
            measure.end.is_empty(),
            "{name}: starts and ends"
        );
        for point in measure.end.iter().chain(&measure.forget) {
            let starts = match point.of {
                Some(of) => &measure.start[of..=of],
                None => &measure.start[..],
            };
            for start in starts {
                assert_eq!(
                    start.on.len(),
                    point.on.len(),
                    "{name}: {} and {}",
                    start.event,
                    point.event
                );
            }
            assert!(
                point.given.is_none_or(|given| given < measure.start.len()),
                "{name}: given"
            );
        }
        for key in measure.keys.values() {
            if let Some(kept) = key.strip_prefix('$') {
                assert!(
                    measure.start.iter().all(|start| start.keep.contains_key(kept)),
                    "{name}: {key}"
                );
            }
        }
        for key in &measure.by {
            assert!(measure.keys.contains_key(key), "{name}: by {key}");
        }
        let mut rest = measure.worst.as_str();
        while let Some((_, after)) = rest.split_once('{') {
            let (field, after) = after.split_once('}').unwrap();
            assert!(
                measure.save.iter().any(|saved| saved.trim_start_matches('$') == field),
                "{name}: {{{field}}}"
            );
            rest = after;
        }
    }
}

#[test]
fn a_name_that_is_not_known_is_told() {
    let text = "summary = 'x'\nabout = 'y'\n";
    for (more, name) in [
        ("colour = 1", "colour"),
        ("[[count]]\nevent = 'a:b'\nsums = ['c']", "sums"),
        ("[[start]]\nevent = 'a:b'\non = ['c']\nkeeps = 1", "keeps"),
        ("[variants.other]\nsummary = 'z'\nname = 'other'", "name"),
        ("[[alternatives]]\nnouns = 'x'", "nouns"),
    ] {
        let error = Recipe::parse(&format!("{text}{more}")).unwrap_err().to_string();
        assert!(error.contains(&format!("unknown field `{name}`")), "{more}: {error}");
    }
}

proptest! {
    #[test]
    fn any_text_is_a_recipe_or_an_error(text in "\\PC*") {
        let _ = Recipe::parse(&text);
    }

    #[test]
    fn any_piece_of_a_recipe_is_one_or_an_error(from in 0usize..3000, to in 0usize..3000, other in "[\\]\\[={}\"'a-z0-9\n$.]{0,8}") {
        let text = include_str!("../../recipes/biolatency.toml");
        let piece = |range: std::ops::Range<usize>| text.get(range).unwrap_or_default().to_owned();
        let _ = Recipe::parse(&(piece(0..from.min(text.len())) + &other + &piece(to.min(text.len())..text.len())));
    }
}
