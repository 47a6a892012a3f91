// SPDX-License-Identifier: MIT OR Apache-2.0

//! Embeds the recipes of the package in the program.
//!
//! Cargo runs it in the folder of this file, and may run one that was compiled in another checkout.

use std::env;
use std::fmt::Write;
use std::fs;
use std::path::Path;

const FOLDER: &str = "../recipes";

fn main() {
    println!("cargo::rerun-if-changed={FOLDER}");
    let mut files: Vec<_> = fs::read_dir(FOLDER)
        .expect("the folder of recipes")
        .map(|entry| entry.expect("an entry of the folder of recipes").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    let mut text = String::from("&[\n");
    for file in files {
        let name = file.file_stem().expect("the name of a recipe").to_string_lossy();
        let recipe = fs::read_to_string(&file).expect("a recipe");
        writeln!(text, "    ({name:?}, {recipe:?}),").expect("memory");
    }
    text.push(']');
    let out = Path::new(&env::var_os("OUT_DIR").expect("cargo")).join("recipes.rs");
    fs::write(out, text).expect("the folder for generated files");
}
