// SPDX-License-Identifier: GPL-2.0

//! The corpus of the fuzzer, without the fuzzer: its past findings stay mended.

#![cfg(not(loom))]

#[path = "hist/events.rs"]
mod events;
#[path = "filter/exercise.rs"]
mod filter;
#[path = "hist/group_tree.rs"]
mod group_tree;
#[path = "hist/exercise.rs"]
mod hist;
#[path = "trigger/print.rs"]
mod print;
#[path = "hist/scenario.rs"]
mod scenario;
#[path = "filter/scene.rs"]
mod scene;
#[path = "trigger/shape.rs"]
mod shape;
#[path = "trigger/exercise.rs"]
mod trigger;
#[path = "user_stack/exercise.rs"]
mod user_stack;
#[path = "trigger/walk.rs"]
mod walk;
#[path = "hist/world.rs"]
mod world;

use std::path::Path;

/// Runs `exercise` on each file of the corpus `name`, whose path is in the output of a failed test.
fn replay(name: &str, exercise: impl Fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../fuzz/corpus")
        .join(name);
    let mut files: Vec<_> = std::fs::read_dir(&corpus)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(files.len() >= 10, "{}: {files:?}", corpus.display());
    for file in files {
        println!("{}", file.display());
        exercise(&std::fs::read(file).unwrap());
    }
}

#[test]
fn triggers() {
    replay("trigger", |input| {
        trigger::exercise(input);
        hist::exercise(input, |_| ());
    });
}

#[test]
fn filters() {
    replay("filter", filter::exercise);
}

#[test]
fn scenarios() {
    replay("scenario", |input| scenario::exercise(input, |_| ()));
}

#[test]
fn rules() {
    replay("rules", user_stack::exercise);
}
