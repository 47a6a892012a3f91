// SPDX-License-Identifier: GPL-2.0

//! Filters, that is the text after `if`, and records for them.

#![no_main]

#[path = "../../rhist/tests/filter/exercise.rs"]
mod exercise;
#[path = "../../rhist/tests/filter/scene.rs"]
mod scene;

libfuzzer_sys::fuzz_target!(|input: &[u8]| exercise::exercise(input));
