// SPDX-License-Identifier: MIT OR Apache-2.0

//! Reads arbitrary bytes, for properties, for the corpus of the fuzzer, and for the fuzzer.

use rhist_elf::build_id;
use rhist_symbols::MOST_SHOWN;
use rhist_symbols::PerfMap;
use rhist_symbols::Shown;
use rhist_symbols::Symbols;

/// Reads a file, and checks its symbols. Returns whether it has symbols.
pub fn check(file: &[u8]) -> bool {
    let _ = build_id(file);
    let _ = Symbols::read_with_debug(file, file);
    let Ok(symbols) = Symbols::read(file) else {
        return false;
    };
    let mut last = 0;
    for (range, name) in symbols.iter() {
        assert!(last <= range.start && range.start < range.end && range.end <= file.len() as u64);
        last = range.end;
        assert!(!name.raw().is_empty() && !name.raw().contains(&0));
        safe(&name.shown());
        for offset in [range.start, range.end - 1] {
            assert_eq!(symbols.find(offset).unwrap().0, name);
        }
    }
    assert_eq!(symbols.find(last), None);
    !symbols.is_empty()
}

/// Reads input of the fuzzer: an ELF file, or otherwise a perf map.
pub fn exercise(input: &[u8]) -> bool {
    if input.starts_with(b"\x7f") {
        return check(input);
    }
    let map = PerfMap::read(input);
    for line in input.split(|&byte| byte == b'\n') {
        let digits = line.split(|&byte| byte == b' ').next().unwrap();
        if let Ok(address) = u64::from_str_radix(&String::from_utf8_lossy(digits), 16)
            && let Some((name, _)) = map.find(address)
        {
            safe(&name.shown());
        }
    }
    !map.is_empty()
}

/// Checks that a name is safe to show.
pub fn safe(name: &Shown) {
    assert!(!name.is_empty() && name.len() <= MOST_SHOWN + "…@plt".len());
    let is_safe = |character: char| {
        character == ' ' || !(character.is_control() || character.is_whitespace() || character == ';')
    };
    assert!(name.chars().all(is_safe), "{name:?}");
    assert!(!name.contains("  ") && name.trim() == &**name, "{name:?}");
}
