// SPDX-License-Identifier: MIT OR Apache-2.0

//! Files with a fault: the errors, and functions that a malformed one does not spoil.

use crate::file::*;
use rhist_elf::Machine::X86_64;
use rhist_unwind::Error;
use rhist_unwind::Rule;
use rhist_unwind::compile;

/// A file with one function, of which `change` changes the bytes.
fn error(change: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut frames = Frames::default();
    let cie = frames.cie(&Cie::of(X86_64));
    frames.fde(cie, 0, 16, &[]);
    let mut bytes = File::new(X86_64, 64, &frames).bytes();
    assert!(compile(&bytes).is_ok());
    change(&mut bytes);
    compile(&bytes).unwrap_err().to_string()
}

#[test]
fn headers() {
    assert_eq!(error(|bytes| bytes.clear()), "not an ELF file");
    assert_eq!(error(|bytes| bytes[1] = b'e'), "not an ELF file");
    assert_eq!(
        error(|bytes| bytes.truncate(4)),
        "not an ELF file of 64 bits, little-endian"
    );
    assert_eq!(error(|bytes| bytes[4] = 1), "not an ELF file of 64 bits, little-endian");
    assert_eq!(error(|bytes| bytes[5] = 2), "not an ELF file of 64 bits, little-endian");
    assert_eq!(error(|bytes| bytes.truncate(63)), "the ELF header is not in the file");
    assert_eq!(
        error(|bytes| bytes[18] = 243),
        "code of another architecture (e_machine 243)"
    );
    assert_eq!(
        error(|bytes| bytes[16] = 1),
        "neither a program nor a library (e_type 1)"
    );
    assert_eq!(error(|bytes| bytes[39] = 1), "the table of segments is not in the file");
    // The table of sections lies behind the file: as without sections.
    assert_eq!(
        compile(&[&b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0"[..], &[0; 44]].concat()),
        Err(Error::NoFrames)
    );
}

#[test]
fn the_section() {
    let section = |bytes: &[u8]| u64::from_le_bytes(bytes[40..48].try_into().unwrap()) as usize + 64;
    assert_eq!(
        error(|bytes| {
            let at = section(bytes);
            bytes[at + 29] = 1;
        }),
        "the section .eh_frame is not in the file"
    );
    // Its type is NOBITS, as in a file with nothing but debugging information; the header for the
    // unwinder leads to the contents.
    let mut frames = Frames::default();
    frames.cie(&Cie::of(X86_64));
    let mut bytes = File::new(X86_64, 64, &frames).bytes();
    let at = section(&bytes);
    bytes[at + 4] = 8;
    assert!(compile(&bytes).is_ok());
    bytes[64 + 2 * 56] = 0;
    assert_eq!(compile(&bytes), Err(Error::NoFrames));
    assert_eq!(
        File::new(X86_64, 64, &Frames::default()).compile(),
        Err(Error::NoFrames)
    );
}

#[test]
fn lengths_that_lie() {
    let mut frames = Frames::default();
    let cie = frames.cie(&Cie::of(X86_64));
    let at = frames.fde(cie, 0, 16, &[]);
    for length in [14, 0x7fff_ffff, 0xffff_fff0, 0xffff_ffff_u32, 3, 1] {
        let mut wrong = frames.clone();
        wrong.bytes[at..at + 4].copy_from_slice(&length.to_le_bytes());
        assert_eq!(
            File::new(X86_64, 64, &wrong).compile(),
            Err(Error::Length(at as u64)),
            "{length:x}"
        );
    }
    let text = Error::Length(16).to_string();
    assert_eq!(
        text,
        ".eh_frame is malformed at offset 0x10: the entry ends behind the section"
    );
}

/// Compiles three functions, of which the second one has this entry, and expects the first and the
/// last to be as ever.
fn second(cie: &Cie, instructions: &[u8], malformed: usize) {
    let mut frames = Frames::default();
    let right = frames.cie(&Cie::of(X86_64));
    frames.fde(right, 0, 16, &[]);
    let wrong = frames.cie(cie);
    frames.fde(wrong, 16, 16, instructions);
    frames.fde(right, 32, 16, &[]);
    let rules = File::new(X86_64, 64, &frames).compile().unwrap();
    assert_eq!(rules.malformed, malformed, "{instructions:x?}");
    let usual = Rule::Sp { cfa: 8, fp: 0, ra: -1 };
    let expected = [(0, usual), (16, Rule::None), (32, usual), (48, Rule::None)];
    assert_eq!(rows(&rules)[1..], expected, "{instructions:x?}");
}

#[test]
fn functions_beside_a_malformed_one_keep_their_rules() {
    let cie = Cie::of(X86_64);
    for code in [
        // Operands are missing.
        &[DEF_CFA][..],
        &[ADVANCE | 4, DEF_CFA_OFFSET],
        &[ADVANCE | 4, DEF_CFA_EXPRESSION, 5, 0],
        &[ADVANCE4, 1, 0],
        // A number without an end, and one that is too large.
        &[ADVANCE | 4, DEF_CFA_OFFSET, 0xff, 0xff],
        &[
            DEF_CFA_OFFSET,
            0xff,
            0xff,
            0xff,
            0xff,
            0xff,
            0xff,
            0xff,
            0xff,
            0xff,
            0xff,
            1,
        ],
        // Unknown, and of another architecture.
        &[0x3f],
        &[ADVANCE | 4, 0x1d],
        &[NEGATE_RA_STATE],
        // Nothing is remembered; too much is.
        &[ADVANCE | 4, RESTORE_STATE],
        &[REMEMBER; 9],
        // Of an expression.
        &[DEF_CFA_EXPRESSION, 1, 0x96, DEF_CFA_OFFSET, 16],
    ] {
        second(&cie, code, 1);
    }
    // Backwards: to a place some KiB before the code.
    let back = (CODE_ADDRESS - 0x2000).wrapping_sub(FRAME_ADDRESS) as u32;
    second(&cie, &[&[ADVANCE | 4, SET_LOC], &back.to_le_bytes()[..]].concat(), 1);
}

#[test]
fn functions_of_a_malformed_cie() {
    let cie = Cie::of(X86_64);
    second(
        &Cie {
            version: 2,
            ..cie.clone()
        },
        &[],
        1,
    );
    second(
        &Cie {
            augmentation: "zRQ",
            ..cie.clone()
        },
        &[],
        1,
    );
    second(
        &Cie {
            augmentation: "eh",
            ..cie.clone()
        },
        &[],
        1,
    );
    // Relative to a section of data; an encoding that does not exist; none.
    second(
        &Cie {
            encoding: 0x3b,
            ..cie.clone()
        },
        &[],
        1,
    );
    second(
        &Cie {
            encoding: 0x0d,
            ..cie.clone()
        },
        &[],
        1,
    );
    second(
        &Cie {
            encoding: 0xff,
            ..cie.clone()
        },
        &[],
        1,
    );
    second(
        &Cie {
            instructions: vec![DEF_CFA],
            ..cie.clone()
        },
        &[],
        1,
    );
    second(
        &Cie {
            instructions: vec![RESTORE | RBP],
            ..cie
        },
        &[],
        1,
    );
}

#[test]
fn cies_that_are_none() {
    let mut frames = Frames::default();
    let right = frames.cie(&Cie::of(X86_64));
    let function = frames.fde(right, 0, 16, &[]);
    // Another function, a place behind the section, before it, and within an entry.
    for distance in [frames.bytes.len() - function + 4, 0, usize::MAX >> 1, 1 << 20, 7] {
        let at = frames.bytes.len();
        frames.fde(right, 16, 16, &[]);
        frames.bytes[at + 4..at + 8].copy_from_slice(&(distance as u32).max(1).to_le_bytes());
    }
    let rules = File::new(X86_64, 64, &frames).compile().unwrap();
    assert_eq!(rules.malformed, 5);
    assert_eq!(rules.row_count(), 3);
}

#[test]
fn ranges_that_wrap() {
    let mut frames = Frames::default();
    let cie = frames.cie(&Cie {
        augmentation: "",
        ..Cie::of(X86_64)
    });
    let mut fde = |start: u64, size: u64| {
        let mut contents = (frames.bytes.len() as u32 + 4 - cie as u32).to_le_bytes().to_vec();
        contents.extend(start.to_le_bytes());
        contents.extend(size.to_le_bytes());
        frames.entry(&contents);
    };
    fde(CODE_ADDRESS, u64::MAX);
    fde(u64::MAX, 2);
    fde(CODE_ADDRESS + 16, u64::MAX - CODE_ADDRESS - 16);
    let rules = File::new(X86_64, 64, &frames).compile().unwrap();
    assert_eq!((rules.malformed, rules.outside), (2, 0));
    assert_eq!(
        rows(&rules)[1..],
        [(16, Rule::Sp { cfa: 8, fp: 0, ra: -1 }), (64, Rule::None)]
    );
}
