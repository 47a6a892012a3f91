// SPDX-License-Identifier: MIT OR Apache-2.0

//! Entries of the procedure linkage table.

use crate::file::*;
use rhist_elf::Machine;

const SLOT: u64 = 0x60_0018;
const JUMP_SLOT: u32 = 7;
const IRELATIVE: u32 = 37;
const AARCH64_JUMP_SLOT: u32 = 1026;

/// The distance from the end of an instruction to a slot.
fn distance(behind: u64, slot: u64) -> [u8; 4] {
    (slot.wrapping_sub(behind) as u32).to_le_bytes()
}

fn imports() -> Vec<Symbol> {
    ["read", "_ZN1a1bEv"]
        .map(|name| func(name, 0, 0).section(UNDEF))
        .to_vec()
}

/// Entries with 16 bytes each, whose jump is `at` bytes behind the begin.
fn entries(section: u64, first: u64, prefix: &[u8]) -> Vec<u8> {
    let mut code = vec![0xcc; 16 * first as usize];
    for number in 0..2 {
        let start = CODE_ADDRESS + section * CODE_SIZE + 16 * (first + number);
        let mut entry = [prefix, &[0xff, 0x25]].concat();
        entry.extend(distance(start + entry.len() as u64 + 4, SLOT + 8 * number));
        entry.resize(16, 0x90);
        code.extend(entry);
    }
    code
}

fn file() -> File {
    File {
        symtab: None,
        dynsym: Some(imports()),
        rela_plt: vec![(SLOT, JUMP_SLOT, 1, 0), (SLOT + 8, JUMP_SLOT, 2, 0)],
        ..File::new(Vec::new())
    }
}

#[test]
fn entries_of_x86_64() {
    let prefixes: [&[u8]; 5] = [
        &[],
        &[0xf2],
        &[0xf3, 0x0f, 0x1e, 0xfa],
        &[0xf3, 0x0f, 0x1e, 0xfa, 0xf2],
        &[0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0xbb, 0, 0, 0, 0],
    ];
    for prefix in prefixes {
        let file = File {
            plt: entries(1, 1, prefix),
            ..file()
        };
        let expected = [
            (0x1010, 0x1020, "read@plt".to_owned()),
            (0x1020, 0x1030, "a::b()@plt".to_owned()),
        ];
        assert_eq!(parts(&file.read().unwrap()), expected);
    }
}

#[test]
fn entries_in_two_sections() {
    let mut plt = vec![0xff, 0x35, 0, 0, 0, 0, 0xff, 0x25, 0, 0, 0, 0, 0xcc, 0xcc, 0xcc, 0xcc];
    for number in [1, 0, 2] {
        plt.extend([
            0xf3, 0x0f, 0x1e, 0xfa, 0x68, number, 0, 0, 0, 0xf2, 0xe9, 0, 0, 0, 0, 0x90,
        ]);
    }
    let file = File {
        plt,
        plt_sec: entries(2, 0, &[0xf3, 0x0f, 0x1e, 0xfa]),
        ..file()
    };
    let expected = [
        (0x1010, 0x1020, "a::b()@plt".to_owned()),
        (0x1020, 0x1030, "read@plt".to_owned()),
        (0x2000, 0x2010, "read@plt".to_owned()),
        (0x2010, 0x2020, "a::b()@plt".to_owned()),
    ];
    let symbols = file.read().unwrap();
    assert_eq!(parts(&symbols), expected);
    let (name, distance) = symbols.find(CODE + 0x1015).unwrap();
    assert_eq!((name.raw(), name.is_plt(), distance), (&b"_ZN1a1bEv"[..], true, 5));
}

#[test]
fn entries_for_functions_that_are_chosen() {
    let file = File {
        symtab: Some(vec![func("memcpy", 64, 8).kind(IFUNC)]),
        dynsym: None,
        plt: entries(1, 0, &[]),
        rela_plt: vec![
            (SLOT, IRELATIVE, 0, CODE_ADDRESS + 64),
            (SLOT + 8, IRELATIVE, 0, CODE_ADDRESS + 65),
        ],
        ..File::new(Vec::new())
    };
    let expected = [(64, 72, "memcpy".to_owned()), (0x1000, 0x1010, "memcpy@plt".to_owned())];
    assert_eq!(parts(&file.read().unwrap()), expected);
}

#[test]
fn entries_of_aarch64() {
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let page = |start: u64, slot: u64| {
        let pages = ((slot >> 12) as u32).wrapping_sub((start >> 12) as u32) & 0x1f_ffff;
        0x9000_0010 | (pages & 3) << 29 | (pages >> 2) << 5
    };
    // The table behind the data, and before it.
    for base in [SLOT, 0x1018] {
        for bti in [None, Some(0xd503_245f)] {
            let start = CODE_ADDRESS + CODE_SIZE;
            let load = |slot: u64| 0xf940_0211 | ((slot & 0xfff) as u32 / 8) << 10;
            let header = [
                0xa9bf_7bf0,
                page(start, base),
                load(base - 8),
                0x9100_0210,
                0xd61f_0220,
                0xd503_201f,
            ];
            let mut code = header.to_vec();
            for number in 0..2 {
                let slot = base + 8 * number;
                code.extend(bti);
                code.extend([page(start, slot), load(slot), 0x9100_0210, 0xd61f_0220]);
                code.extend(bti.map(|_| 0xd503_201f));
            }
            let file = File {
                machine: Machine::Aarch64,
                plt: words(&code),
                rela_plt: vec![(base, AARCH64_JUMP_SLOT, 1, 0), (base + 8, AARCH64_JUMP_SLOT, 2, 0)],
                ..file()
            };
            let size = if bti.is_some() { 24 } else { 16 };
            let expected = [
                (0x1018, 0x1018 + size, "read@plt".to_owned()),
                (0x1018 + size, 0x1018 + 2 * size, "a::b()@plt".to_owned()),
            ];
            assert_eq!(parts(&file.read().unwrap()), expected);
        }
    }
}

#[test]
fn functions_come_before_entries() {
    let file = File {
        symtab: Some(vec![func("own", CODE_SIZE, 8).section(PLT).bind(LOCAL)]),
        plt: entries(1, 0, &[]),
        ..file()
    };
    let expected = [
        (0x1000, 0x1008, "own".to_owned()),
        (0x1010, 0x1020, "a::b()@plt".to_owned()),
    ];
    assert_eq!(parts(&file.read().unwrap()), expected);
}
