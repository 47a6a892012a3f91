// SPDX-License-Identifier: GPL-2.0

//! Triggers of several events that are written, hit and removed.

#![no_main]

#[path = "../../rhist/tests/hist/events.rs"]
mod events;
#[path = "../../rhist/tests/hist/group_tree.rs"]
mod group_tree;
#[path = "../../rhist/tests/hist/scenario.rs"]
mod scenario;
#[path = "../../rhist/tests/hist/world.rs"]
mod world;

libfuzzer_sys::fuzz_target!(|input: &[u8]| scenario::exercise(input, |_| ()));
