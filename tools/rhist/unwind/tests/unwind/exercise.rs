// SPDX-License-Identifier: MIT OR Apache-2.0

//! Compiles arbitrary bytes, for properties, for the corpus of the fuzzer, and for the fuzzer.

use crate::file::File;
use crate::file::Frames;
use crate::table::Table;
use rhist_elf::Machine;
use rhist_elf::build_id;
use rhist_unwind::compile;

/// Compiles a file, and checks the table. Returns whether it has rows.
pub fn check(file: &[u8]) -> bool {
    let _ = build_id(file);
    let Ok(rules) = compile(file) else {
        return false;
    };
    let bytes = rules.to_bytes();
    assert_eq!(bytes.len(), rules.size());
    Table::read(&bytes).unwrap().assert_equal(&rules);
    assert_eq!(compile(file).unwrap().to_bytes(), bytes);
    rules.row_count() > 0
}

/// Compiles input of the fuzzer: an ELF file, or otherwise contents of `.eh_frame` behind a byte,
/// whose lowest bit is set for AArch64, and the next one for a file without sections.
pub fn exercise(input: &[u8]) -> bool {
    match input {
        [] => false,
        [0x7f, ..] => check(input),
        [kind, bytes @ ..] => {
            let machine = match kind & 1 {
                0 => Machine::X86_64,
                _ => Machine::Aarch64,
            };
            let frames = Frames { bytes: bytes.to_vec() };
            let file = File {
                has_sections: kind & 2 == 0,
                ..File::new(machine, 1 << 17, &frames)
            };
            check(&file.bytes())
        }
    }
}
