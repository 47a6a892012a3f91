// SPDX-License-Identifier: MIT OR Apache-2.0

//! Files that would take much time or memory.

use crate::file::*;
use rhist_elf::Machine::X86_64;
use rhist_elf::build_id;
use rhist_unwind::Error;
use rhist_unwind::Rule;
use rhist_unwind::compile;

#[test]
fn too_many_rows() {
    let mut frames = Frames::default();
    let cie = frames.cie(&Cie::of(X86_64));
    let code = [ADVANCE | 1, DEF_CFA_OFFSET, 16, ADVANCE | 1, DEF_CFA_OFFSET, 8];
    // Each byte of the code has a row, up to the last one.
    let with = |pairs: usize| {
        let mut frames = frames.clone();
        frames.fde(cie, 0, 1 << 30, &code.repeat(pairs));
        compile(&File::new(X86_64, 5 << 20, &frames).bytes())
    };
    let most = with((1 << 21) - 100).unwrap();
    assert!(most.row_count() > (1 << 22) - 300);
    assert_eq!(with(1 << 21), Err(Error::TooManyRows));
}

#[test]
fn too_many_rules() {
    let with = |rules: u64| {
        let mut frames = Frames::default();
        let cie = frames.cie(&Cie::of(X86_64));
        let code = (1..=rules).flat_map(|cfa| [&[DEF_CFA_OFFSET], &uleb(8 * cfa)[..], &[ADVANCE | 1]].concat());
        frames.fde(cie, 0, 1 << 20, &code.collect::<Vec<u8>>());
        File::new(X86_64, 1 << 20, &frames).compile()
    };
    assert_eq!(with(65534).unwrap().distinct().len(), 65535);
    assert_eq!(with(65535), Err(Error::TooManyRules));
}

#[test]
fn cies_that_are_read_too_often() {
    let mut frames = Frames::default();
    let mut cie = Cie::of(X86_64);
    cie.instructions.resize(1 << 16, 0);
    let cie = frames.cie(&cie);
    for at in 0..10_000 {
        frames.fde(cie, at, 1, &[]);
    }
    assert_eq!(File::new(X86_64, 1 << 16, &frames).compile(), Err(Error::TooCostly));
}

#[test]
fn states_that_are_remembered_without_end() {
    let mut frames = Frames::default();
    let cie = frames.cie(&Cie::of(X86_64));
    frames.fde(cie, 0, 16, &vec![REMEMBER; 1 << 20]);
    frames.fde(cie, 16, 16, &[REMEMBER, RESTORE_STATE].repeat(1 << 20));
    let rules = File::new(X86_64, 64, &frames).compile().unwrap();
    assert_eq!(rules.malformed, 1);
    assert_eq!(
        rows(&rules)[1..],
        [(16, Rule::Sp { cfa: 8, fp: 0, ra: -1 }), (32, Rule::None)]
    );
}

#[test]
fn instructions_behind_the_function_are_not_read() {
    let mut frames = Frames::default();
    let cie = frames.cie(&Cie::of(X86_64));
    frames.fde(
        cie,
        0,
        4,
        &[ADVANCE | 1, DEF_CFA_OFFSET, 16, ADVANCE | 1, DEF_CFA_OFFSET, 8].repeat(1 << 20),
    );
    assert_eq!(File::new(X86_64, 64, &frames).compile().unwrap().row_count(), 6);
}

#[test]
fn segments_that_lie() {
    let mut frames = Frames::default();
    let cie = frames.cie(&Cie::of(X86_64));
    frames.fde(cie, 0, 0x7fff_ffff, &[]);
    let bytes = File::new(X86_64, 64, &frames).bytes();
    // Offset, address and size of the segment of code.
    for field in [8, 16, 32] {
        for value in [0, 1, 64, 0x1000, u64::MAX >> 1, u64::MAX - 64, u64::MAX] {
            let mut wrong = bytes.clone();
            wrong[64 + 56 + field..][..8].copy_from_slice(&value.to_le_bytes());
            let rules = compile(&wrong).unwrap();
            // Nothing lies behind the file.
            assert!(rules.rows().all(|(offset, _)| offset <= wrong.len() as u64));
        }
    }
}

#[test]
fn many_segments_of_notes() {
    let mut bytes = File::new(X86_64, 64, &Frames::default()).bytes();
    let table = bytes.len() as u64;
    bytes[32..40].copy_from_slice(&table.to_le_bytes());
    bytes[56..58].copy_from_slice(&0xfff0_u16.to_le_bytes());
    for _ in 0..0xfff0 {
        bytes.extend([4, 0, 0, 0, 4, 0, 0, 0]);
        for number in [0, 0, 0, 0x1000, 0x1000, 4_u64] {
            bytes.extend(number.to_le_bytes());
        }
    }
    assert_eq!(build_id(&bytes), Ok(None));
}
