// SPDX-License-Identifier: MIT OR Apache-2.0

//! Arbitrary bytes: nothing panics, and each table is well-formed.

use crate::exercise::check;
use crate::exercise::exercise;
use crate::file::*;
use proptest::collection::vec;
use proptest::prelude::*;
use rhist_elf::Machine;
use std::fs;
use std::sync::LazyLock;

/// A program of this machine.
static REAL: LazyLock<Vec<u8>> = LazyLock::new(|| fs::read("/bin/true").unwrap());

fn machine() -> impl Strategy<Value = Machine> {
    prop_oneof![Just(Machine::X86_64), Just(Machine::Aarch64)]
}

/// Bytes of which many are instructions that take part in rules.
fn code() -> impl Strategy<Value = Vec<u8>> {
    let instruction = prop_oneof![
        4 => any::<u8>().prop_map(|byte| vec![byte]),
        2 => (0..64_u8).prop_map(|by| vec![ADVANCE | by]),
        1 => any::<u16>().prop_map(|by| [&[ADVANCE2], &by.to_le_bytes()[..]].concat()),
        2 => (prop_oneof![Just(RBP), Just(RSP), Just(X29), Just(SP)], 0..5000_u64)
            .prop_map(|(register, offset)| [&[DEF_CFA, register], &uleb(offset)[..]].concat()),
        2 => (prop_oneof![Just(RBP), Just(RIP), Just(X29), Just(X30)], 0..100_u64)
            .prop_map(|(register, offset)| [&[OFFSET | register], &uleb(offset)[..]].concat()),
        1 => prop_oneof![Just(REMEMBER), Just(RESTORE_STATE), Just(RESTORE | RBP)].prop_map(|byte| vec![byte]),
        1 => Just(vec![DEF_CFA_EXPRESSION, 3, 0x76, 0x78, 6, EXPRESSION, RBP, 2, 0x76, 0]),
    ];
    vec(instruction, 0..40).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn any_bytes(bytes in vec(any::<u8>(), 0..300)) {
        check(&bytes);
    }

    #[test]
    fn any_section(machine in machine(), bytes in vec(any::<u8>(), 0..300), has_sections in any::<bool>()) {
        let frames = Frames { bytes };
        check(&File { has_sections, ..File::new(machine, 1 << 10, &frames) }.bytes());
    }

    #[test]
    fn any_instructions(
        machine in machine(),
        initial in code(),
        functions in vec((-200..150_000_i64, 0..100_000_u32, code()), 0..20),
    ) {
        let mut frames = Frames::default();
        let cie = frames.cie(&Cie::of(machine));
        let mut wild = Cie::of(machine);
        wild.instructions.extend(initial);
        let wild = frames.cie(&wild);
        for (at, (start, size, code)) in functions.iter().enumerate() {
            frames.fde(if at % 3 == 0 { wild } else { cie }, *start, *size, code);
        }
        check(&File::new(machine, 200_000, &frames).bytes());
    }

    #[test]
    fn changed_files(changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..8), head in vec((0..0x400_usize, any::<u8>()), 0..3)) {
        let mut file = REAL.clone();
        for (index, byte) in changes {
            let at = index.index(file.len());
            file[at] = byte;
        }
        for (at, byte) in head {
            file[at] = byte;
        }
        check(&file);
    }

    #[test]
    fn changed_frames(changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..20)) {
        let mut frames = Frames { bytes: SECTION.clone() };
        for (index, byte) in changes {
            let at = index.index(frames.bytes.len());
            frames.bytes[at] = byte;
        }
        check(&File::new(Machine::X86_64, 1 << 16, &frames).bytes());
    }

    #[test]
    fn cut_files(size in any::<prop::sample::Index>()) {
        check(&REAL[..size.index(REAL.len())]);
    }
}

/// A section with functions of several kinds.
static SECTION: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut frames = Frames::default();
    let cie = frames.cie(&Cie::of(Machine::X86_64));
    for at in 0..50 {
        frames.fde(
            cie,
            100 * at,
            90,
            &[
                ADVANCE | 1,
                DEF_CFA_OFFSET,
                16,
                OFFSET | RBP,
                2,
                ADVANCE | 3,
                DEF_CFA_REGISTER,
                RBP,
            ],
        );
    }
    frames.bytes
});

#[test]
fn unchanged_files_have_rows() {
    assert!(check(&REAL));
    assert!(check(
        &File::new(Machine::X86_64, 1 << 16, &Frames { bytes: SECTION.clone() }).bytes()
    ));
}

/// Findings of the fuzzer stay mended.
#[test]
fn the_corpus_of_the_fuzzer() {
    let mut with_rows = 0;
    for entry in fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus/unwind")).unwrap() {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        with_rows += usize::from(exercise(&fs::read(path).unwrap()));
    }
    assert!(with_rows >= 6, "{with_rows}");
}
