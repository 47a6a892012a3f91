// SPDX-License-Identifier: MIT OR Apache-2.0

//! Files that would take much time or memory.

use crate::file::*;
use rhist_symbols::Error;
use rhist_symbols::MOST_SYMBOLS;
use rhist_symbols::Symbols;

/// A file with a table of symbols behind the rest, to which rows are to be appended.
fn open_ended(rows: usize) -> Vec<u8> {
    let name = "_".repeat(1 << 16);
    let mut bytes = File::new(vec![func(&name, 0, 8)]).bytes();
    let sections = u64::from_le_bytes(bytes[40..48].try_into().unwrap()) as usize;
    let offset = bytes.len() as u64;
    let header = sections + 5 * 64;
    bytes[header + 24..header + 32].copy_from_slice(&offset.to_le_bytes());
    bytes[header + 32..header + 40].copy_from_slice(&(24 * rows as u64).to_le_bytes());
    bytes
}

/// A file with functions: names, as offsets in one long name, begins and sizes.
fn with_rows(rows: usize, row: impl Fn(u64) -> (u32, u64, u64)) -> Vec<u8> {
    let mut bytes = open_ended(rows);
    for number in 0..rows as u64 {
        let (name, start, size) = row(number);
        bytes.extend(name.to_le_bytes());
        bytes.extend([GLOBAL << 4 | FUNC, 0, TEXT as u8, 0]);
        bytes.extend((CODE_ADDRESS + start).to_le_bytes());
        bytes.extend(size.to_le_bytes());
    }
    bytes
}

#[test]
fn too_many_symbols() {
    let with = |rows: usize| {
        let mut bytes = open_ended(rows);
        bytes.resize(bytes.len() + 24 * rows, 0);
        Symbols::read(&bytes)
    };
    // The table of dynamic symbols is empty.
    assert!(with(MOST_SYMBOLS).unwrap().is_empty());
    assert_eq!(with(MOST_SYMBOLS + 1).unwrap_err(), Error::TooManySymbols);
}

#[test]
fn names_and_functions_that_overlap() {
    const ROWS: usize = 10_000;
    // All names are parts of one, all functions begin at one place, or lie in each other.
    let same = with_rows(ROWS, |number| (1 + (number % 0xff00) as u32, 0, 8));
    assert_eq!(Symbols::read(&same).unwrap().iter().count(), 1);
    let same = with_rows(ROWS, |number| (1 + (number % 0xff00) as u32, 0, number));
    assert_eq!(Symbols::read(&same).unwrap().iter().count(), 0x1000);
    let nested = with_rows(ROWS, |number| (1, number % 0x800, 0x1000 - 2 * (number % 0x800)));
    assert_eq!(Symbols::read(&nested).unwrap().iter().count(), 0xfff);
}

#[test]
fn fields_that_lie() {
    let bytes = File::new(vec![func("a", 0, 8), func("b", 16, 0)]).bytes();
    let sections = u64::from_le_bytes(bytes[40..48].try_into().unwrap()) as usize;
    // Offset, size and address of each section; offset, address and size of the segment.
    let of_sections = (0..12).flat_map(|number| [16, 24, 32, 40].map(|field| sections + 64 * number + field));
    for at in of_sections.chain([8, 16, 32].map(|field| 64 + field)) {
        for value in [0, 1, 64, 0x1000, u64::MAX >> 1, u64::MAX - 64, u64::MAX] {
            let mut wrong = bytes.clone();
            wrong[at..at + 8].copy_from_slice(&value.to_le_bytes());
            crate::exercise::check(&wrong);
        }
    }
}

#[test]
fn errors() {
    let error = |bytes: &[u8]| Symbols::read(bytes).unwrap_err().to_string();
    assert_eq!(error(b"text"), "not an ELF file");
    let bytes = File::new(vec![func("a", 0, 8)]).bytes();
    let sections = u64::from_le_bytes(bytes[40..48].try_into().unwrap()) as usize;
    let with = |section: usize, field: usize| {
        let mut wrong = bytes.clone();
        wrong[sections + 64 * section + field + 5] = 1;
        error(&wrong)
    };
    assert_eq!(with(5, 24), "the section .symtab is not in the file");
    assert_eq!(with(6, 24), "the names of symbols is not in the file");
}
