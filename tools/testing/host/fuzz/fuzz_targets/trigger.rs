// SPDX-License-Identifier: GPL-2.0

//! Text written to a `trigger` file.

#![no_main]

#[path = "../../rhist/tests/hist/events.rs"]
mod events;
#[path = "../../rhist/tests/hist/group_tree.rs"]
mod group_tree;
#[path = "../../rhist/tests/hist/exercise.rs"]
mod hist;
#[path = "../../rhist/tests/trigger/print.rs"]
mod print;
#[path = "../../rhist/tests/trigger/shape.rs"]
mod shape;
#[path = "../../rhist/tests/trigger/exercise.rs"]
mod trigger;
#[path = "../../rhist/tests/trigger/walk.rs"]
mod walk;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    trigger::exercise(input);
    hist::exercise(input, |_| ());
});
