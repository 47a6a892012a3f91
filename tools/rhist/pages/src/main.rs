// SPDX-License-Identifier: MIT OR Apache-2.0

//! Writes the manual pages of rhist: `rhist(1)` and a page for each command, generated from its
//! arguments; `rhist-recipes(7)`, generated from the recipes and the output of their examples; and
//! the pages written by hand.

mod commands;
mod recipes;

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::path::PathBuf;

use anyhow::Context;
use anyhow::bail;

/// Pages written by hand, about other subjects than commands and recipes.
const WRITTEN: [(&str, &str); 2] = [
    ("rhist.service.8", include_str!("../written/rhist.service.8")),
    ("rhist.toml.5", include_str!("../written/rhist.toml.5")),
];

/// A page: the name of its file, and its text.
struct Page {
    file: String,
    text: String,
}

fn main() -> anyhow::Result<()> {
    let words: Vec<OsString> = env::args_os().skip(1).collect();
    let [recipes, out] = words.as_slice() else {
        bail!("usage: rhist-pages RECIPES FOLDER: writes all pages to FOLDER; RECIPES is the folder of the recipes");
    };
    let out = PathBuf::from(out);
    fs::create_dir_all(&out).with_context(|| out.display().to_string())?;
    for page in pages(Path::new(recipes))? {
        let path = out.join(page.file);
        fs::write(&path, page.text).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

/// Generates all pages. `folder` contains the recipes.
fn pages(folder: &Path) -> anyhow::Result<Vec<Page>> {
    let recipes = recipes::read(folder)?;
    let mut pages = commands::pages(&recipes)?;
    pages.push(recipes::page(&recipes)?);
    pages.extend(WRITTEN.map(|(file, text)| Page {
        file: file.to_owned(),
        text: text.to_owned(),
    }));
    Ok(pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recipes of the package.
    const RECIPES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../recipes");

    #[test]
    fn each_page_has_a_title_and_a_name_of_its_own() {
        let pages = pages(Path::new(RECIPES)).unwrap();
        let mut files: Vec<&str> = pages.iter().map(|page| page.file.as_str()).collect();
        files.sort_unstable();
        assert!(files.windows(2).all(|pair| pair[0] != pair[1]), "{files:?}");
        assert!(
            files.contains(&"rhist.1") && files.contains(&"rhist-recipes.7"),
            "{files:?}"
        );
        for page in &pages {
            let (name, section) = page.file.rsplit_once('.').unwrap();
            assert!(page.text.contains(&format!("\n.TH {name} {section} ")), "{}", page.file);
            // Programs that index pages parse this line.
            let named = page.text.lines().skip_while(|line| *line != ".SH NAME").nth(1).unwrap();
            assert!(
                named.starts_with(&name.replace('-', "\\-")) && named.contains(" \\- "),
                "{}: {named}",
                page.file
            );
        }
    }

    #[test]
    fn each_recipe_is_in_the_manual() {
        let recipes = recipes::read(Path::new(RECIPES)).unwrap();
        assert!(!recipes.is_empty());
        let page = recipes::page(&recipes).unwrap().text;
        for entry in &recipes {
            assert!(
                page.contains(&format!(".SS {}\n", entry.name.replace('-', "\\-"))),
                "{}",
                entry.name
            );
        }
    }
}
