// SPDX-License-Identifier: MIT OR Apache-2.0

//! Finds recipes, in the program and in the user's folder.

use std::fs;
use std::io;
use std::path::Path;
use std::path::PathBuf;

use anyhow::Context;
use anyhow::bail;
use rhist_core::query::Error;
use rhist_core::recipe::Recipe;
use rhist_core::table::Text;

use crate::options::commands;
use crate::options::is_recipe_option;

/// Names and texts of the package's recipes, sorted by name.
const BUILT_IN: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/recipes.rs"));

/// Limit of a recipe's file, in bytes.
const MAX_SIZE: u64 = 1 << 20;

/// Names of all recipes, sorted.
pub fn names() -> Vec<String> {
    let mut names: Vec<String> = BUILT_IN.iter().map(|(name, _)| (*name).to_owned()).collect();
    if let Some(folder) = own_folder() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if let Some(name) = entry.file_name().to_str().and_then(|name| name.strip_suffix(".toml")) {
                names.push(name.to_owned());
            }
        }
    }
    names.sort_unstable();
    names.dedup();
    names
}

/// Loads a recipe: the user's own, or else the package's. `None` if neither exists.
///
/// # Errors
///
/// The file cannot be read, or does not parse.
pub fn find(name: &str) -> anyhow::Result<Option<Recipe>> {
    // Rejects paths and options.
    if name.contains(['/', '\0']) || name.starts_with(['.', '-']) {
        return Ok(None);
    }
    if let Some(folder) = own_folder() {
        let path = folder.join(format!("{name}.toml"));
        if let Some(recipe) = own(name, &path).with_context(|| path.display().to_string())? {
            return Ok(Some(recipe));
        }
    }
    let Some((_, text)) = BUILT_IN.iter().find(|(other, _)| *other == name) else {
        return Ok(None);
    };
    Ok(Some(
        Recipe::parse(text).with_context(|| format!("recipe {name} of the package"))?,
    ))
}

/// Loads a recipe. If it does not exist, the error suggests another.
pub fn required(name: &str) -> anyhow::Result<Recipe> {
    if let Some(recipe) = find(name)? {
        return Ok(recipe);
    }
    if commands().contains(&name) {
        bail!("{name} does not measure: expected a recipe, count or between")
    }
    if let Some(instead) = instead(name) {
        bail!("no recipe {}: histograms have no {instead}", Text::from(name));
    }
    if name.starts_with('-') {
        bail!("expected a recipe, count or between before {}", Text::from(name));
    }
    let recipes = names();
    let names = recipes.iter().map(String::as_str).chain(commands());
    Err(Error::unknown("RECIPE", name, "recipe", names).into())
}

/// Explains which tool to use instead, for people who look for a tool of bcc that histograms cannot
/// replace.
pub fn instead(name: &str) -> Option<&'static str> {
    Some(match name {
        _ if name.ends_with("snoop") => {
            "line for each event. Use trace-cmd record or bpftrace; to count the events: rhist count EVENT --by KEYS"
        }
        "memleak" | "argdist" | "stackcount" | "trace" => {
            "stacks or memory of programs. Use bpftrace; for allocations of the kernel: rhist kmem"
        }
        "llcstat" | "cachestat" | "cachetop" | "cpuunclaimed" | "numamove" => {
            "counters of the hardware or inside the kernel. Use perf stat or bpftrace"
        }
        _ => return None,
    })
}

/// Loads a user's recipe from this file. `None` if the file does not exist.
fn own(name: &str, path: &Path) -> anyhow::Result<Option<Recipe>> {
    match fs::metadata(path) {
        // A file with such a long name cannot exist.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidFilename) => {
            return Ok(None);
        }
        Err(error) => return Err(error.into()),
        Ok(file) if !file.is_file() || file.len() > MAX_SIZE => bail!("not a regular file, or larger than 1 MiB"),
        Ok(_) => {}
    }
    if commands().contains(&name) {
        bail!("{name} is a command of rhist: give the recipe another name");
    }
    let recipe = Recipe::parse(&fs::read_to_string(path)?)?;
    if let Some(option) = recipe.names().find(|name| is_recipe_option(name)) {
        bail!("{option} is an option of all recipes: give the argument or variant another name");
    }
    Ok(Some(recipe))
}

/// Folder of the user's recipes: `~/.config/rhist/recipes`.
fn own_folder() -> Option<PathBuf> {
    let config = match std::env::var_os("XDG_CONFIG_HOME").filter(|value| !value.is_empty()) {
        Some(config) => PathBuf::from(config),
        None => PathBuf::from(std::env::var_os("HOME")?).join(".config"),
    };
    Some(config.join("rhist/recipes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, text: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(format!("{name}.toml"));
        fs::write(&path, format!("summary = \"s\"\nabout = \"a\"\n{text}")).unwrap();
        match own(name, &path) {
            Ok(Some(_)) => "a recipe".to_owned(),
            Ok(None) => "none".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn no_recipe_has_a_name_that_is_too_long() {
        let folder = tempfile::tempdir().unwrap();
        let name = "x".repeat(300);
        assert!(
            own(&name, &folder.path().join(format!("{name}.toml")))
                .unwrap()
                .is_none()
        );
    }

    #[test]
    fn words_that_are_no_recipes() {
        for (name, said) in [
            ("--by", "expected a recipe, count or between before --by"),
            ("-x\n\x1b", "expected a recipe, count or between before -x\\u{a}\\u{1b}"),
            ("clean", "clean does not measure: expected a recipe, count or between"),
        ] {
            assert_eq!(required(name).unwrap_err().to_string(), said);
        }
        let snoop = required("\nsnoop").unwrap_err().to_string();
        assert!(snoop.starts_with("no recipe \\u{a}snoop: "), "{snoop}");
    }

    #[test]
    fn names_that_rhist_has_itself() {
        for option in [
            "pid", "where", "filter", "dry-run", "dry_run", "format", "help", "by", "backend",
        ] {
            let error = format!("{option} is an option of all recipes: give the argument or variant another name");
            assert_eq!(found("mine", &format!("[variants.{option}]\nsummary = \"v\"\n")), error);
            assert_eq!(
                found("mine", &format!("[[args]]\nname = \"{option}\"\nhelp = \"h\"\n")),
                error
            );
        }
        assert_eq!(found("mine", "[variants.errors]\nsummary = \"v\"\n"), "a recipe");
        for command in commands() {
            assert!(found(command, "").starts_with(&format!("{command} is a command of rhist")));
        }
    }

    #[test]
    fn no_files_of_recipes() {
        let folder = tempfile::tempdir().unwrap();
        assert!(own("mine", &folder.path().join("mine.toml")).unwrap().is_none());
        assert_eq!(
            own("mine", folder.path()).unwrap_err().to_string(),
            "not a regular file, or larger than 1 MiB"
        );
        assert_eq!(
            found("mine", &"#".repeat(1 << 20)),
            "not a regular file, or larger than 1 MiB"
        );
        // Reading it would never end.
        assert_eq!(
            own("mine", Path::new("/dev/zero")).unwrap_err().to_string(),
            "not a regular file, or larger than 1 MiB"
        );
    }
}
