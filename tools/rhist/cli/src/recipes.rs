// SPDX-License-Identifier: MIT OR Apache-2.0

//! Where recipes are: in the program, and in the user's own folder.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use rhist_core::recipe::Recipe;

/// Names and texts of the package's recipes, sorted by name.
const BUILT_IN: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/recipes.rs"));

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

/// The recipe of this name: the user's own, or else that of the package. `None` if there is none.
///
/// # Errors
///
/// The file cannot be read, or is no recipe.
pub fn find(name: &str) -> anyhow::Result<Option<Recipe>> {
    // A name, not a path.
    if name.contains(['/', '\0']) || name.starts_with('.') {
        return Ok(None);
    }
    if let Some(folder) = own_folder() {
        let path = folder.join(format!("{name}.toml"));
        match fs::read_to_string(&path) {
            Ok(text) => return Ok(Some(Recipe::parse(&text).with_context(|| path.display().to_string())?)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).with_context(|| path.display().to_string()),
        }
    }
    let Some((_, text)) = BUILT_IN.iter().find(|(other, _)| *other == name) else {
        return Ok(None);
    };
    Ok(Some(
        Recipe::parse(text).with_context(|| format!("recipe {name} of the package"))?,
    ))
}

/// What histograms cannot answer, for people who look for a tool of bcc by its name: what is not to be had, and what has it.
pub fn instead(name: &str) -> Option<&'static str> {
    Some(match name {
        _ if name.ends_with("snoop") => {
            "line for each event: trace-cmd record has, and bpftrace; rhist count EVENT --by KEYS counts them"
        }
        "memleak" | "argdist" | "stackcount" | "trace" => {
            "stacks or memory of programs: bpftrace has; rhist kmem counts allocations of the kernel"
        }
        "llcstat" | "cachestat" | "cachetop" | "cpuunclaimed" | "numamove" => {
            "hardware counters or inner counters of the kernel: perf stat has, and bpftrace"
        }
        _ => return None,
    })
}

/// `~/.config/rhist/recipes`.
fn own_folder() -> Option<PathBuf> {
    let config = match std::env::var_os("XDG_CONFIG_HOME").filter(|value| !value.is_empty()) {
        Some(config) => PathBuf::from(config),
        None => PathBuf::from(std::env::var_os("HOME")?).join(".config"),
    };
    Some(config.join("rhist/recipes"))
}
