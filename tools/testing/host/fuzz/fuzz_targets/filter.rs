// SPDX-License-Identifier: GPL-2.0

//! What follows `if`, and records for it.

#![no_main]

#[path = "../../rhist/tests/filter/exercise.rs"]
mod exercise;
#[path = "../../rhist/tests/filter/scene.rs"]
mod scene;

libfuzzer_sys::fuzz_target!(|input: &[u8]| exercise::exercise(input));
