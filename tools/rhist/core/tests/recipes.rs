// SPDX-License-Identifier: MIT OR Apache-2.0

//! All recipes of the package can be read.

use std::collections::BTreeSet;

use rhist_core::recipe::Recipe;

#[test]
fn all_recipes_parse() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../recipes");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        Recipe::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
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

/// Words of a recipe that are not names that its author has chosen.
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
    let (_, tables) = page.split_once("What a recipe can have:").unwrap();
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../recipes")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let text = std::fs::read_to_string(&path).unwrap();
            words(&toml::Value::Table(text.parse().unwrap()), &mut found);
        }
    }
    // serde lists the words of a table where it finds another one, but not those of `Recipe` itself.
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
