// SPDX-License-Identifier: MIT OR Apache-2.0

//! Perf maps.

use proptest::collection::vec;
use proptest::prelude::*;
use rhist_symbols::MOST_LINES;
use rhist_symbols::MOST_MAP_BYTES;
use rhist_symbols::MOST_SHOWN;
use rhist_symbols::PerfMap;

fn at(map: &PerfMap, address: u64) -> Option<(String, u64)> {
    let (name, distance) = map.find(address)?;
    Some((name.shown().to_string(), distance))
}

fn found(name: &str, distance: u64) -> Option<(String, u64)> {
    Some((name.to_owned(), distance))
}

#[test]
fn parts() {
    let map = PerfMap::read(b"2000 10 last\n1000 20 first\n1010 8 within\n");
    let parts: Vec<_> = map
        .iter()
        .map(|(part, name, distance)| (part, name.shown().to_string(), distance))
        .collect();
    let expected = [
        (0x1000..0x1010, "first".to_owned(), 0),
        (0x1010..0x1018, "within".to_owned(), 0),
        (0x1018..0x1020, "first".to_owned(), 0x18),
        (0x2000..0x2010, "last".to_owned(), 0),
    ];
    assert_eq!(parts, expected);
}

#[test]
fn lines() {
    let map = PerfMap::read(b"7f00 10 LazyCompile:*f /srv/a.js:12\n0x8000 0x8 Lcom/A;::b\r\nAbC0 f x\n");
    assert_eq!(
        (map.len(), map.malformed, map.is_cut, map.is_empty()),
        (3, 0, false, false)
    );
    assert_eq!(at(&map, 0x7f00), found("LazyCompile:*f /srv/a.js:12", 0));
    assert_eq!(at(&map, 0x7f0f), found("LazyCompile:*f /srv/a.js:12", 15));
    assert_eq!((at(&map, 0x7f10), at(&map, 0x7eff)), (None, None));
    assert_eq!(at(&map, 0x8007), found("Lcom/A:::b", 7));
    assert_eq!(at(&map, 0xabce), found("x", 14));
    assert_eq!(at(&map, 0xabcf), None);
}

#[test]
fn later_lines_count() {
    let map = PerfMap::read(b"100 40 a\n110 10 b\n130 20 c\n100 8 d\n200 8 e\n200 8 f\n");
    let names = [
        (0x100, "d", 0),
        (0x108, "a", 8),
        (0x110, "b", 0),
        (0x120, "a", 0x20),
        (0x130, "c", 0),
        (0x14f, "c", 0x1f),
        (0x200, "f", 0),
    ];
    for (address, name, distance) in names {
        assert_eq!(at(&map, address), found(name, distance));
    }
    assert_eq!(at(&map, 0x150), None);
}

#[test]
fn malformed_lines() {
    let text = b"\n1\n1 2\n1 2 \nx 1 a\n1 x a\n-1 1 a\n+1 1 a\n1 0 a\nffffffffffffffff 1 a\nffffffffffffffff 2 a\n\
        10000000000000000 1 a\n1 1 a\0b\n 1 1 a\n0x 1 a\n50 1 good\n60 1 not whole";
    let map = PerfMap::read(text);
    assert_eq!((map.len(), map.malformed), (1, 15));
    assert_eq!(at(&map, 0x50), found("good", 0));
    assert!(PerfMap::read(b"").is_empty());
}

#[test]
fn the_last_address() {
    let map = PerfMap::read(b"fffffffffffffff0 f a\n");
    assert_eq!(at(&map, u64::MAX - 1), found("a", 14));
    assert_eq!(at(&map, u64::MAX), None);
}

#[test]
fn too_much_text() {
    let lines = MOST_LINES + 10;
    let map = PerfMap::read("1 1 a\n".repeat(lines).as_bytes());
    assert_eq!((map.len(), map.is_cut), (MOST_LINES, true));
    let mut text = b"1 1 a\n2 1 ".to_vec();
    text.resize(MOST_MAP_BYTES + 100, b'x');
    text.extend(b"\n3 1 c\n");
    let map = PerfMap::read(&text);
    assert_eq!((map.len(), map.is_cut, map.malformed), (1, true, 0));
    let map = PerfMap::read(&[b"1 1 ", &vec![b'x'; 1 << 20][..], b"\n"].concat());
    assert_eq!(at(&map, 1).unwrap().0.len(), MOST_SHOWN + "…".len());
}

proptest! {
    #[test]
    fn any_text(text in vec(prop_oneof![any::<u8>(), Just(b'\n'), Just(b' '), b'0'..=b'9'], 0..500)) {
        let map = PerfMap::read(&text);
        for address in 0..200 {
            let _ = at(&map, address);
        }
    }

    #[test]
    fn any_entries(entries in vec((0..100_u64, 1..40_u64), 0..30)) {
        let text: String = (0..).zip(&entries).map(|(number, (start, size))| format!("{start:x} {size:x} n{number}\n")).collect();
        let map = PerfMap::read(text.as_bytes());
        prop_assert_eq!((map.len(), map.malformed), (entries.len(), 0));
        for address in 0..150 {
            let last = entries.iter().rposition(|&(start, size)| (start..start + size).contains(&address));
            let expected = last.map(|number| (format!("n{number}"), address - entries[number].0));
            prop_assert_eq!(at(&map, address), expected);
        }
    }
}
