// SPDX-License-Identifier: MIT OR Apache-2.0

//! Unwind information of programs, compiled to a table.

#![no_main]

#[path = "../../tests/unwind/exercise.rs"]
mod exercise;
#[expect(dead_code, reason = "tests also use its names of instructions and registers")]
#[path = "../../tests/unwind/file.rs"]
mod file;
#[path = "../../tests/unwind/table.rs"]
mod table;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    exercise::exercise(input);
});
