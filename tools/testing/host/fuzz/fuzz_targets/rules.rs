// SPDX-License-Identifier: GPL-2.0

//! Rules for walking stacks, as they are written to the module, and a walk by them.

#![no_main]

#[path = "../../rhist/tests/user_stack/exercise.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|input: &[u8]| exercise::exercise(input));
