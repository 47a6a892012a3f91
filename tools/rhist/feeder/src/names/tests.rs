// SPDX-License-Identifier: MIT OR Apache-2.0

use rhist_symbols::Symbols;

use super::*;
use crate::list;

/// A table that is larger than half of all.
fn large(byte: u8) -> NameTable {
    table(&vec![[byte | 1; 16_000]; NameTable::MOST_BYTES / 16_020])
}

/// A table whose names are at places 0, 1 and so on.
fn table<const LEN: usize>(names: &[[u8; LEN]]) -> NameTable {
    let mut bytes = b"RUN1".to_vec();
    let mut words = |number: usize| bytes.extend_from_slice(&(number as u32).to_le_bytes());
    [0, names.len(), names.len(), names.len() * LEN]
        .into_iter()
        .for_each(&mut words);
    for at in 0..names.len() {
        [at, at + 1, 0, at].into_iter().for_each(&mut words);
    }
    (1..=names.len()).for_each(|at| words(at * LEN));
    bytes.extend(names.as_flattened());
    NameTable::read(bytes).unwrap()
}

const LIST: &str = "# number kind device inode generation size changed process state
0 vdso - - - - - - rules
3 file 8:1 123 7 4567 1 - readable
5 memory - - - - - 77 released
6 memory - - - - - - released
";

#[test]
fn frames_of_each_kind() {
    let names = Names::default();
    let frame = |object, offset, is_exact| names.frame(object, offset, is_exact);
    assert_eq!(frame(3, 0x1d, true), "[object 3]+0x1d");
    let objects = list::parse(LIST);
    names.list(&objects);
    assert_eq!(frame(3, 0x1d, true), "[object 3]+0x1d");
    assert_eq!(frame(5, 0x12, false), "[memory of 77]+0x12");
    assert_eq!(frame(6, 0x12, false), "[object 6]+0x12");
    assert_eq!(frame(12, 0x9a1d, false), "[object 12]+0x9a1d");
    names.set_base_name(&objects[1], b"libc.so.6");
    assert_eq!(frame(3, 0x1d, true), "libc.so.6+0x1d");
    assert!(names.set_table(&objects[1], table(&[*b"puts", *b"gets"])));
    for (offset, is_exact, expected) in [
        (0, true, "puts+0x0"),
        (0, false, "libc.so.6+0x0"),
        (1, true, "gets+0x0"),
        (1, false, "puts+0x1"),
        (2, true, "libc.so.6+0x2"),
        (2, false, "gets+0x1"),
        (u64::MAX, true, "libc.so.6+0xffffffffffffffff"),
    ] {
        assert_eq!(frame(3, offset, is_exact), expected);
    }
    // Without offsets only in functions.
    assert_eq!(names.function(3, 1, false), "puts");
    assert_eq!(names.function(3, 2, true), "libc.so.6+0x2");
    // After the program and its object are gone, too.
    names.list(&objects[..1]);
    assert_eq!(frame(3, 1, true), "gets+0x0");
    assert_eq!(names.clone().frame(3, 1, true), "gets+0x0");
}

#[test]
fn nothing_is_interpreted_by_a_terminal() {
    let names = Names::default();
    let objects = list::parse(LIST);
    names.list(&objects);
    names.set_base_name(&objects[1], b"\x1b[2J a;b\n@@V1\xff ");
    assert_eq!(names.frame(3, 7, true), "\\u{1b}[2J a:b\\u{a}@@V1\\xff\\u{20}+0x7");
    // The file's name is not one of C++.
    names.set_base_name(&objects[1], b"_Z1fv");
    assert_eq!(names.frame(3, 7, true), "_Z1fv+0x7");
    assert!(names.set_table(&objects[1], table(&[*b"a\n\x1b];c", *b"_Z1fv\x7f"])));
    assert_eq!(names.frame(3, 0, true), "a\\u{a}\\u{1b}]:c+0x0");
    assert_eq!(names.frame(3, 1, true), "_Z1fv\\u{7f}+0x0");
}

#[test]
fn another_object_with_the_same_number() {
    let names = Names::default();
    let before = list::parse(LIST);
    names.list(&before);
    names.set_base_name(&before[1], b"sh");
    assert!(names.set_table(&before[1], table(&[*b"main"])));
    let now = list::parse(&LIST.replace(" 123 ", " 124 "));
    names.list(&now);
    assert_eq!(names.frame(3, 0, true), "[object 3]+0x0");
    assert!(names.has(&now[1]) && !names.has(&before[1]));
    // A child that began before.
    names.set_base_name(&before[1], b"sh");
    assert!(names.set_table(&before[1], table(&[*b"main"])));
    assert_eq!(names.frame(3, 0, true), "[object 3]+0x0");
}

#[test]
fn memory_is_limited() {
    let names = Names::default();
    let lines: String = (1..=10)
        .map(|at| format!("{at} file 8:1 {at} 0 1 2 - readable\n"))
        .collect();
    let objects = list::parse(&lines);
    names.list(&objects);
    for (at, fits) in [(0, true), (1, true), (2, true), (3, true), (4, false)] {
        assert_eq!(names.set_table(&objects[at], large(2 * at as u8 + 1)), fits, "{at}");
    }
    assert!(!names.frame(5, 0, true).contains("\\u"));
    // The same contents take no more.
    assert!(names.set_table(&objects[4], large(1)));
    assert!(names.frame(5, 0, true).starts_with("\\u{1}\\u{1}"));
    // If objects are others now, their names make room.
    names.list(&list::parse(&lines.replace("8:1", "8:2")));
    let objects = list::parse(&lines.replace("8:1", "8:2"));
    assert!(names.set_table(&objects[4], large(9)));
    // As do objects in excess, the oldest first.
    let many: String = (0..MOST_OBJECTS + 100)
        .map(|at| format!("{at} file 8:2 {at} 0 1 2 - readable\n"))
        .collect();
    names.list(&list::parse(&many));
    let objects = list::parse(&many);
    assert!(names.has(&objects[0]) && !names.has(&objects[100]) && names.has(&objects[101]));
}

#[test]
fn names_are_awaited_for_a_while() {
    let names = Names::default();
    assert!(!names.are_awaited());
    names.await_more(true, None);
    assert!(names.are_awaited());
    names.await_more(false, Some(Instant::now() + Duration::from_millis(50)));
    assert!(names.are_awaited());
    names.wait(Duration::from_millis(60));
    assert!(!names.are_awaited());
}

#[test]
fn a_file_without_functions_has_its_name() {
    let names = Names::default();
    let objects = list::parse(LIST);
    names.list(&objects);
    names.set_base_name(&objects[1], b"stripped");
    let table = NameTable::write(&Symbols::default(), &[]).unwrap();
    assert!(names.set_table(&objects[1], NameTable::read(table).unwrap()));
    assert_eq!(names.frame(3, 0x77, false), "stripped+0x77");
}
