// SPDX-License-Identifier: MIT OR Apache-2.0

//! The form of tables, right ones and others.

use crate::file::Cie;
use crate::file::File;
use crate::file::Frames;
use rhist_elf::Machine;
use rhist_unwind::Form;
use rhist_unwind::MOST_PAGES;
use rhist_unwind::MOST_ROWS;

fn table() -> Vec<u8> {
    let mut frames = Frames::default();
    let cie = frames.cie(&Cie::of(Machine::X86_64));
    frames.fde(cie, 0, 64, &[]);
    File::new(Machine::X86_64, 64, &frames).compile().unwrap().to_bytes()
}

#[test]
fn a_table_has_the_numbers_of_its_header() {
    let table = table();
    let form = Form::of(&table).unwrap();
    assert_eq!((form.rules, form.pages, form.rows), (2, 1, 3));
    assert_eq!(form.bytes(), table.len());
    assert!(form.bytes() <= Form::MOST_BYTES);
}

#[test]
fn a_table_of_another_length_has_no_form() {
    let mut table = table();
    for len in 0..table.len() {
        assert_eq!(Form::of(&table[..len]), None, "{len}");
    }
    table.push(0);
    assert_eq!(Form::of(&table), None);
}

#[test]
fn a_header_with_another_number_has_no_form() {
    // Machine and first page are left to the module.
    for at in [0, 1, 2, 3, 6, 7, 8, 9, 10, 11, 16, 17, 18, 19, 20, 21, 22, 23] {
        let mut table = table();
        table[at] ^= 1;
        assert_eq!(Form::of(&table), None, "{at}");
    }
}

#[test]
fn a_table_beyond_a_limit_has_no_form() {
    let with = |rules: u16, pages: usize, rows: usize| {
        let mut table = table();
        table[6..8].copy_from_slice(&rules.to_le_bytes());
        table[8..12].copy_from_slice(&(rows as u32).to_le_bytes());
        table[16..20].copy_from_slice(&(pages as u32).to_le_bytes());
        table.resize(24 + 12 * usize::from(rules) + 4 * pages + 4 * rows, 0);
        Form::of(&table).is_some()
    };
    assert!(with(1, MOST_PAGES, MOST_ROWS));
    assert!(!with(0, 0, 0));
    assert!(!with(1, MOST_PAGES + 1, 0));
    assert!(!with(1, 0, MOST_ROWS + 1));
}
