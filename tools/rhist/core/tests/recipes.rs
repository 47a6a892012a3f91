// SPDX-License-Identifier: MIT OR Apache-2.0

//! All recipes of the package can be read.

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
