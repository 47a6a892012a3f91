// SPDX-License-Identifier: MIT OR Apache-2.0

//! Arbitrary symbols are found as by a simple model; arbitrary bytes lead to no panic.

use crate::exercise::check;
use crate::exercise::exercise;
use crate::exercise::safe;
use crate::file::*;
use crate::model;
use proptest::collection::vec;
use proptest::prelude::*;
use rhist_elf::Machine;
use std::fs;
use std::sync::LazyLock;

/// A library of this machine with many symbols.
static REAL: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let path = maps
        .lines()
        .filter_map(|line| line.split_whitespace().nth(5))
        .find(|path| path.contains("/libgcc_s.so"));
    fs::read(path.unwrap()).unwrap()
});

/// A file with a procedure linkage table.
static SMALL: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let symbols = vec![func("a", 0, 16), func("_Z1fv", 16, 0), func("b", 32, 8).kind(NOTYPE)];
    let file = File {
        dynsym: Some(symbols.clone()),
        plt: vec![0x68, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        rela_plt: vec![(DATA_ADDRESS, 7, 1, 0)],
        build_id: b"abcd".to_vec(),
        ..File::new(symbols)
    };
    file.bytes()
});

fn symbol() -> impl Strategy<Value = Symbol> {
    let name = prop_oneof!["[a-c]{1,2}", "_{1,2}[a-c]"];
    let kind = prop_oneof![3 => Just(FUNC), 1 => Just(IFUNC), 2 => Just(NOTYPE)];
    let bind = prop_oneof![Just(LOCAL), Just(WEAK), Just(GLOBAL)];
    let start = prop_oneof![6 => 0..40_u64, 1 => CODE_SIZE - 10..CODE_SIZE + 2];
    let size = prop_oneof![2 => Just(0), 3 => 1..12_u64, 1 => 1..60_u64];
    (name, kind, bind, start, size)
        .prop_map(|(name, kind, bind, start, size)| func(&name, start, size).kind(kind).bind(bind))
}

/// Changes bytes: some anywhere, some in the headers.
fn changed(file: &[u8], changes: &[(prop::sample::Index, u8)], head: &[(usize, u8)]) -> Vec<u8> {
    let mut file = file.to_vec();
    for (index, byte) in changes {
        let at = index.index(file.len());
        file[at] = *byte;
    }
    for (at, byte) in head {
        file[*at] = *byte;
    }
    file
}

proptest! {
    #[test]
    fn any_symbols(symtab in vec(symbol(), 0..14)) {
        let symbols = File::new(symtab.clone()).read().unwrap();
        for place in (0..120).chain(CODE_SIZE - 20..CODE_SIZE + 20) {
            let found = symbols.find(CODE + place).map(|(name, distance)| (name.shown().to_string(), distance));
            prop_assert_eq!(found, model::find(&symtab, place), "at {}", place);
        }
    }

    #[test]
    fn any_names(name in vec(1..=255_u8, 1..60), mangled in "_(Z|R|ZN)[a-zA-Z0-9_ ;.$\u{1b}]{0,60}E?") {
        for name in [name, mangled.into_bytes()] {
            let symbols = File::new(vec![Symbol { name, ..func("", 0, 8) }]).read().unwrap();
            safe(&symbols.find(CODE).unwrap().0.shown());
        }
    }

    #[test]
    fn any_bytes(bytes in vec(any::<u8>(), 0..300)) {
        check(&bytes);
        exercise(&bytes);
    }

    #[test]
    fn any_plt(machine in prop_oneof![Just(Machine::X86_64), Just(Machine::Aarch64)], plt in vec(any::<u8>(), 0..200), rela_plt in vec(any::<(u64, u32, u32, u64)>(), 0..5)) {
        let file = File { machine, plt, rela_plt, ..File::new(Vec::new()) };
        check(&file.bytes());
    }

    #[test]
    fn changed_files(changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..8), head in vec((0..0x78_usize, any::<u8>()), 0..3)) {
        check(&changed(&SMALL, &changes, &head));
    }

    #[test]
    fn changed_tables(changes in vec((0..1200_usize, any::<u8>()), 1..8)) {
        // The end of the file has the symbols, and the table of sections.
        let mut file = SMALL.clone();
        let size = file.len();
        for (at, byte) in changes {
            file[size - 1 - at] = byte;
        }
        check(&file);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn changed_libraries(changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..8), head in vec((0..0x400_usize, any::<u8>()), 0..3), size in any::<prop::sample::Index>()) {
        let file = changed(&REAL, &changes, &head);
        check(&file);
        check(&file[..size.index(file.len())]);
    }
}

/// Findings of the fuzzer stay mended.
#[test]
fn the_corpus_of_the_fuzzer() {
    let mut with_names = 0;
    for entry in fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus/symbols")).unwrap() {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        with_names += usize::from(exercise(&fs::read(path).unwrap()));
    }
    assert!(with_names >= 2, "{with_names}");
}

#[test]
fn unchanged_files_have_symbols() {
    assert!(check(&REAL) && check(&SMALL));
}
