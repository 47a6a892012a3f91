// SPDX-License-Identifier: MIT OR Apache-2.0

//! Embeds the recipes of the package in the program.

use std::env;
use std::fmt::Write;
use std::fs;
use std::path::Path;

fn main() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../recipes");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files: Vec<_> = fs::read_dir(&folder)
        .expect("the folder of recipes")
        .map(|entry| entry.expect("an entry of the folder of recipes").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    let mut text = String::from("&[\n");
    for file in files {
        let name = file.file_stem().expect("the name of a recipe").to_string_lossy();
        writeln!(text, "    ({name:?}, include_str!({:?})),", file.display()).expect("memory");
    }
    text.push(']');
    let out = Path::new(&env::var_os("OUT_DIR").expect("cargo")).join("recipes.rs");
    fs::write(out, text).expect("the folder for generated files");
}
