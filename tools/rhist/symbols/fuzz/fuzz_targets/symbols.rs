// SPDX-License-Identifier: MIT OR Apache-2.0

//! Symbols of programs, perf maps, and how their names are shown.

#![no_main]

#[path = "../../tests/symbols/exercise.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    exercise::exercise(input);
});
