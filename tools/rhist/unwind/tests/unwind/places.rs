// SPDX-License-Identifier: MIT OR Apache-2.0

//! Where rules are in the file: pages, gaps, functions that overlap, and segments.

use crate::file::*;
use crate::table::Table;
use rhist_elf::Machine::X86_64;
use rhist_elf::build_id;
use rhist_unwind::Error;
use rhist_unwind::Rule;
use rhist_unwind::Rules;
use rhist_unwind::compile;

const PAGE: i64 = 1 << 16;
/// Begin of the second page, relative to the code.
const SECOND: i64 = PAGE - CODE as i64;

/// The rule of a function by its number.
fn of(number: u8) -> Rule {
    Rule::Sp {
        cfa: 8 * i32::from(number),
        fp: 0,
        ra: -1,
    }
}

/// Compiles functions: begin, size, number.
fn functions(functions: &[(i64, u32, u8)]) -> Rules {
    let mut frames = Frames::default();
    let cie = frames.cie(&Cie::of(X86_64));
    for &(start, size, number) in functions {
        frames.fde(cie, start, size, &[DEF_CFA_OFFSET, 8 * number]);
    }
    File::new(X86_64, 5 * PAGE as usize, &frames).compile().unwrap()
}

const NONE: Rule = Rule::None;

#[test]
fn neighbours_with_equal_rules_are_one_row() {
    let rules = functions(&[(0, 16, 1), (16, 16, 1), (32, 16, 2), (48, 16, 1)]);
    assert_eq!(rows(&rules)[1..], [(0, of(1)), (32, of(2)), (48, of(1)), (64, NONE)]);
    assert_eq!(rules.distinct(), [NONE, of(1), of(2)]);
}

#[test]
fn gaps_have_no_rule() {
    let rules = functions(&[(16, 16, 1), (48, 16, 1)]);
    let expected = [(-(CODE as i64), NONE), (16, of(1)), (32, NONE), (48, of(1)), (64, NONE)];
    assert_eq!(rows(&rules), expected);
}

#[test]
fn a_function_that_ends_before_its_system_call() {
    let file = |end: &[u8], cfa: u8, more: i64| {
        let mut frames = Frames::default();
        let cie = frames.cie(&Cie::of(X86_64));
        frames.fde(cie, 0, 16, &[DEF_CFA_OFFSET, cfa]);
        frames.fde(cie, more, 16, &[DEF_CFA_OFFSET, 24]);
        let mut bytes = File::new(X86_64, 128, &frames).bytes();
        let at = CODE as usize + 16;
        bytes[at..at + end.len()].copy_from_slice(end);
        rows(&compile(&bytes).unwrap())[1..].to_vec()
    };
    let syscall = [0x0f, 0x05];
    let next = [(64, of(3)), (80, NONE)];
    assert_eq!(file(&syscall, 8, 64), [&[(0, of(1)), (48, NONE)][..], &next].concat());
    assert_eq!(file(&syscall, 8, 24), [(0, of(1)), (24, of(3)), (40, NONE)]);
    assert_eq!(file(&syscall, 8, 16), [(0, of(1)), (16, of(3)), (32, NONE)]);
    // With more on the stack, it would be wrong in the child; and others end anywhere.
    assert_eq!(file(&syscall, 16, 64), [&[(0, of(2)), (16, NONE)][..], &next].concat());
    assert_eq!(
        file(&[0x0f, 0x04], 8, 64),
        [&[(0, of(1)), (16, NONE)][..], &next].concat()
    );
}

#[test]
fn the_entry_without_unwind_information_is_the_outermost_function() {
    let file = |entry: u64, functions: &[(i64, u32, u8)]| {
        let mut frames = Frames::default();
        let cie = frames.cie(&Cie::of(X86_64));
        for &(start, size, number) in functions {
            frames.fde(cie, start, size, &[DEF_CFA_OFFSET, 8 * number]);
        }
        let mut bytes = File::new(X86_64, 512, &frames).bytes();
        bytes[24..32].copy_from_slice(&entry.to_le_bytes());
        rows(&compile(&bytes).unwrap())[1..].to_vec()
    };
    let at = |offset| CODE_ADDRESS + offset;
    assert_eq!(
        file(at(16), &[(0, 16, 1), (300, 16, 2)]),
        [(0, of(1)), (16, Rule::End), (144, NONE), (300, of(2)), (316, NONE)]
    );
    assert_eq!(
        file(at(20), &[(0, 16, 1), (64, 16, 2)]),
        [(0, of(1)), (16, NONE), (20, Rule::End), (64, of(2)), (80, NONE)]
    );
    // A function that has some keeps it.
    for entry in [at(0), at(8), at(15)] {
        assert_eq!(file(entry, &[(0, 16, 1)]), [(0, of(1)), (16, NONE)]);
    }
    assert_eq!(
        file(at(500), &[(0, 16, 1)]),
        [(0, of(1)), (16, NONE), (500, Rule::End), (512, NONE)]
    );
    // Libraries have none, and a hostile file anything.
    for entry in [0, 1, at(512), at(100_000), u64::MAX] {
        assert_eq!(file(entry, &[(0, 16, 1)]), [(0, of(1)), (16, NONE)], "{entry:#x}");
    }
}

#[test]
fn code_of_go_has_frame_pointers() {
    let mut frames = Frames::default();
    let cie = frames.cie(&Cie::of(X86_64));
    frames.fde(cie, 16, 16, &[]);
    for other in [".gopclntab", ".note.go.buildid"] {
        let file = File {
            other,
            ..File::new(X86_64, 64, &frames)
        };
        let rules = file.compile().unwrap();
        let expected = [(-(CODE as i64), Rule::Frame), (16, of(1)), (32, Rule::Frame)];
        assert_eq!(rows(&rules), expected);
        let file = File {
            eh_frame: Vec::new(),
            ..file
        };
        let rules = file.compile().unwrap();
        assert_eq!((rules.distinct(), rules.row_count()), (&[Rule::Frame][..], 0));
    }
    let file = File {
        eh_frame: Vec::new(),
        ..File::new(X86_64, 64, &frames)
    };
    assert_eq!(file.compile(), Err(Error::NoFrames));
}

#[test]
fn linkage_tables_without_unwind_information() {
    let file = |function: i64, at: u64, code: &[u8]| {
        let mut frames = Frames::default();
        let cie = frames.cie(&Cie::of(X86_64));
        frames.fde(cie, function, 16, &[DEF_CFA_OFFSET, 24]);
        let file = File {
            other: ".plt",
            other_range: Some((CODE + at, code.len() as u64)),
            ..File::new(X86_64, 256, &frames)
        };
        let mut bytes = file.bytes();
        let at = (CODE + at) as usize;
        bytes[at..at + code.len()].copy_from_slice(code);
        rows(&compile(&bytes).unwrap())[1..].to_vec()
    };
    let mut lazy = [0x90; 48];
    (lazy[16 + 6], lazy[32 + 6]) = (0x68, 0x68);
    let plt = Rule::Plt {
        from: 11,
        fp: 0,
        ra: -1,
    };
    assert_eq!(file(0, 32, &lazy), [(0, of(3)), (16, NONE), (32, plt), (80, NONE)]);
    assert_eq!(file(128, 32, &lazy), [(32, plt), (80, NONE), (128, of(3)), (144, NONE)]);
    lazy[32 + 6] = 0x90;
    assert_eq!(
        file(128, 32, &lazy),
        [(32, of(1)), (80, NONE), (128, of(3)), (144, NONE)]
    );
    // With unwind information, that counts.
    assert_eq!(file(64, 32, &lazy), [(64, of(3)), (80, NONE)]);
    assert_eq!(file(20, 32, &lazy), [(20, of(3)), (36, NONE)]);
}

#[test]
fn functions_in_any_order() {
    let sorted = functions(&[(0, 16, 1), (16, 16, 2), (40, 8, 3)]);
    assert_eq!(rows(&sorted), rows(&functions(&[(40, 8, 3), (0, 16, 1), (16, 16, 2)])));
}

#[test]
fn a_function_over_several_pages_has_a_row_in_each() {
    let rules = functions(&[(16, 3 * PAGE as u32, 1)]);
    let expected = [
        (-(CODE as i64), NONE),
        (16, of(1)),
        (SECOND, of(1)),
        (SECOND + PAGE, of(1)),
        (SECOND + 2 * PAGE, of(1)),
        (16 + 3 * PAGE, NONE),
    ];
    assert_eq!(rows(&rules), expected);
}

#[test]
fn a_function_ends_with_its_page() {
    let rules = functions(&[(SECOND - 16, 16, 1)]);
    assert_eq!(rows(&rules)[1..], [(SECOND - 16, of(1))]);
    let rules = functions(&[(SECOND - 16, 16, 1), (SECOND, 16, 1)]);
    assert_eq!(
        rows(&rules)[1..],
        [(SECOND - 16, of(1)), (SECOND, of(1)), (SECOND + 16, NONE)]
    );
    let rules = functions(&[(SECOND - 16, 16, 1), (SECOND + 1, 16, 1)]);
    let expected = [
        (SECOND - 16, of(1)),
        (SECOND, NONE),
        (SECOND + 1, of(1)),
        (SECOND + 17, NONE),
    ];
    assert_eq!(rows(&rules)[1..], expected);
}

#[test]
fn a_function_ends_one_byte_before_or_behind_its_page() {
    let rules = functions(&[(SECOND - 16, 15, 1)]);
    assert_eq!(rows(&rules)[1..], [(SECOND - 16, of(1)), (SECOND - 1, NONE)]);
    let rules = functions(&[(SECOND - 16, 17, 1)]);
    assert_eq!(
        rows(&rules)[1..],
        [(SECOND - 16, of(1)), (SECOND, of(1)), (SECOND + 1, NONE)]
    );
}

#[test]
fn pages_without_functions() {
    let rules = functions(&[(0, 16, 1), (SECOND + 2 * PAGE, 16, 1)]);
    let expected = [
        (0, of(1)),
        (16, NONE),
        (SECOND + 2 * PAGE, of(1)),
        (SECOND + 2 * PAGE + 16, NONE),
    ];
    assert_eq!(rows(&rules)[1..], expected);
    let table = Table::read(&rules.to_bytes()).unwrap();
    assert_eq!(table.rule((2 * PAGE) as u64), NONE);
    // The table begins with the page of the first function.
    let rules = functions(&[(SECOND + PAGE, 16, 1)]);
    assert_eq!(rows(&rules), [(SECOND + PAGE, of(1)), (SECOND + PAGE + 16, NONE)]);
    let bytes = rules.to_bytes();
    assert_eq!(bytes[12..20], [2, 0, 0, 0, 1, 0, 0, 0]);
    assert_eq!(bytes.len(), rules.size());
}

#[test]
fn a_table_without_rows() {
    let rules = functions(&[]);
    assert_eq!(rules.row_count(), 0);
    assert_eq!(rules.to_bytes().len(), 24 + 12);
}

#[test]
fn functions_that_overlap() {
    let overlapping = |list: &[(i64, u32, u8)], expected: &[(i64, Rule)]| {
        let rules = functions(list);
        assert_eq!(rows(&rules)[1..], *expected);
        rules.overlapping
    };
    // The rest of the first one is left out.
    let inner = [(0, of(1)), (16, of(2)), (32, NONE)];
    assert_eq!(overlapping(&[(0, 64, 1), (16, 16, 2)], &inner), 1);
    assert_eq!(overlapping(&[(16, 16, 2), (0, 64, 1)], &inner), 1);
    // Of two at the same place, the first entry counts.
    assert_eq!(overlapping(&[(0, 64, 1), (0, 32, 2)], &[(0, of(1)), (64, NONE)]), 1);
    assert_eq!(overlapping(&[(0, 32, 2), (0, 64, 1)], &[(0, of(2)), (32, NONE)]), 1);
}

#[test]
fn rows_end_with_their_function() {
    let mut frames = Frames::default();
    let cie = frames.cie(&Cie::of(X86_64));
    frames.fde(
        cie,
        0,
        16,
        &[
            ADVANCE | 15,
            DEF_CFA_OFFSET,
            16,
            ADVANCE | 1,
            DEF_CFA_OFFSET,
            24,
            ADVANCE | 1,
            DEF_CFA_OFFSET,
            32,
        ],
    );
    frames.fde(cie, 24, 8, &[]);
    let rules = File::new(X86_64, 64, &frames).compile().unwrap();
    assert_eq!(
        rows(&rules)[1..],
        [(0, of(1)), (15, of(2)), (16, NONE), (24, of(1)), (32, NONE)]
    );
}

#[test]
fn functions_outside_of_the_code() {
    let end = 5 * PAGE;
    let rules = functions(&[
        (-16, 32, 1),
        (end, 16, 1),
        (end - 16, 64, 2),
        (-0x40_0000, 16, 3),
        (0, 0, 4),
        (0, 16, 5),
    ]);
    assert_eq!((rules.outside, rules.malformed, rules.overlapping), (3, 0, 0));
    let last: Vec<_> = rows(&rules).into_iter().filter(|row| row.1 != NONE).collect();
    // Cut at the end of the segment.
    assert_eq!(last, [(0, of(5)), (end - 16, of(2))]);
}

#[test]
fn without_sections() {
    let mut frames = Frames::default();
    let cie = frames.cie(&Cie::of(X86_64));
    frames.fde(cie, 0, 16, &[]);
    let with = File::new(X86_64, 64, &frames).compile().unwrap();
    // The end, and other contents of the segment.
    frames.bytes.extend([0; 4]);
    frames.bytes.extend([0xee; 40]);
    let without = File {
        has_sections: false,
        ..File::new(X86_64, 64, &frames)
    };
    assert_eq!(without.compile().unwrap(), with);
}

#[test]
fn an_end_within_the_section_is_skipped() {
    let mut frames = Frames::default();
    let cie = frames.cie(&Cie::of(X86_64));
    frames.fde(cie, 0, 16, &[]);
    frames.bytes.extend([0; 4]);
    let cie = frames.cie(&Cie::of(X86_64));
    frames.fde(cie, 16, 16, &[DEF_CFA_OFFSET, 16]);
    let rules = File::new(X86_64, 64, &frames).compile().unwrap();
    assert_eq!(rows(&rules)[1..], [(0, of(1)), (16, of(2)), (32, NONE)]);
}

#[test]
fn build_ids() {
    let file = |notes: &[u8]| {
        File {
            notes: notes.to_vec(),
            ..File::new(X86_64, 64, &Frames::default())
        }
        .bytes()
    };
    let note = |name: &[u8; 4], kind: u32, id: &[u8; 4]| {
        [&[4, 0, 0, 0, 4, 0, 0, 0], &kind.to_le_bytes()[..], name, id].concat()
    };
    let other = note(b"ABC\0", 3, b"1111");
    assert_eq!(build_id(&file(&note(b"GNU\0", 3, b"abcd"))), Ok(Some(&b"abcd"[..])));
    assert_eq!(
        build_id(&file(&[other.clone(), note(b"GNU\0", 3, b"abcd")].concat())),
        Ok(Some(&b"abcd"[..]))
    );
    assert_eq!(build_id(&file(&[other, note(b"GNU\0", 1, b"abcd")].concat())), Ok(None));
    assert_eq!(build_id(&file(&[])), Ok(None));
    assert_eq!(build_id(&file(&[0xff; 20])), Ok(None));
    assert!(build_id(b"text").is_err());
}
