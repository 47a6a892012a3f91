// SPDX-License-Identifier: MIT OR Apache-2.0

//! Tables of names as children write them, and as a hostile child may.

#[expect(dead_code, reason = "shared with the tests of symbols")]
#[path = "../../../symbols/tests/symbols/file.rs"]
mod file;

use std::fs;

use file::File;
use file::func;
use rhist_symbols::build_id;

use super::*;

#[test]
fn code_in_a_mapping() {
    let text = b"ff0 20 before\n1000 20 first\n1010 8 within\n1ff0 20 across\n200001000 10 far\n3000 10 behind\n";
    let map = PerfMap::read(text);
    let find = |mapping: Range<u64>, offset| {
        let table = NameTable::read(NameTable::write_mapping(&map, &mapping)?).unwrap();
        let (name, distance) = table.find(offset)?;
        Some((str::from_utf8(name.raw()).unwrap().to_owned(), distance))
    };
    let at = |offset| find(0x1000..0x2000, offset);
    let is = |name: &str, distance| Some((name.to_owned(), distance));
    assert_eq!(at(0), is("first", 0));
    assert_eq!(at(0x12), is("within", 2));
    // Its second part.
    assert_eq!(at(0x1a), is("first", 0x1a));
    // No function there, or not all of it.
    for offset in [0x20, 0xff0, 0x1000, 0x2000] {
        assert_eq!(at(offset), None, "{offset:x}");
    }
    // Offsets in tables have 32 bits.
    assert_eq!(find(0x1000..u64::MAX, 0x2000), is("behind", 0));
    assert_eq!(find(0x1000..u64::MAX, 0x2_0000_0000), None);
    assert_eq!(find(u64::MAX - 1..u64::MAX, 0), None);
}

/// The parts of a table, each of which a test may change.
#[derive(Clone)]
struct Parts {
    magic: Vec<u8>,
    /// Numbers in the header instead of the right ones.
    header: [Option<u32>; 4],
    rows: Vec<[u32; 4]>,
    ends: Vec<u32>,
    text: Vec<u8>,
    id: Vec<u8>,
}

impl Parts {
    fn new() -> Self {
        Self {
            magic: MAGIC.to_vec(),
            header: [None; 4],
            rows: vec![[16, 32, 0, 0], [32, 40, 0, 1 | PLT], [48, 64, 32, 0]],
            ends: vec![3, 7],
            text: b"oneplus".to_vec(),
            id: vec![0xab; 20],
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let numbers = [self.id.len(), self.rows.len(), self.ends.len(), self.text.len()];
        let mut bytes = self.magic.clone();
        let header = self.header.iter().zip(numbers);
        let header = header.map(|(other, number)| other.unwrap_or(number as u32));
        let words = header.chain(self.rows.as_flattened().iter().copied());
        let words = words.chain(self.ends.iter().copied());
        bytes.extend(words.flat_map(u32::to_le_bytes));
        bytes.extend(&self.text);
        bytes.extend(&self.id);
        bytes
    }

    fn read(change: impl FnOnce(&mut Self)) -> Option<NameTable> {
        let mut parts = Self::new();
        change(&mut parts);
        NameTable::read(parts.bytes())
    }
}

fn found(table: &NameTable, offset: u64) -> Option<(String, u64)> {
    let (name, distance) = table.find(offset)?;
    Some((name.shown().to_string(), distance))
}

#[test]
fn names_by_place() {
    let table = Parts::read(|_| ()).unwrap();
    let name = |name: &str, distance| Some((name.to_owned(), distance));
    for (offset, expected) in [
        (0, None),
        (15, None),
        (16, name("one", 0)),
        (31, name("one", 15)),
        (32, name("plus@plt", 0)),
        (39, name("plus@plt", 7)),
        (40, None),
        (47, None),
        (48, name("one", 32)),
        (63, name("one", 47)),
        (64, None),
        (u64::from(u32::MAX), None),
        ((1 << 32) + 16, None),
        (u64::MAX, None),
    ] {
        assert_eq!(found(&table, offset), expected, "{offset}");
    }
    assert_eq!(
        (table.build_id(), table.size()),
        (&[0xab; 20][..], Parts::new().bytes().len())
    );
}

#[test]
fn a_file_without_functions() {
    let bytes = NameTable::write(&Symbols::default(), &[7; 16]).unwrap();
    let table = NameTable::read(bytes).unwrap();
    assert_eq!((table.build_id(), table.find(0)), (&[7; 16][..], None));
}

#[test]
fn all_places_have_the_names_of_the_symbols() {
    let image = fs::read("/proc/self/exe").unwrap();
    let symbols = Symbols::read(&image).unwrap();
    let id = build_id(&image).unwrap().unwrap_or_default();
    let table = NameTable::read(NameTable::write(&symbols, id).unwrap()).unwrap();
    let mut count = 0;
    let mut before = 0;
    for (part, _) in symbols.iter() {
        for offset in [part.start, part.start.midpoint(part.end), part.end - 1] {
            assert_eq!(table.find(offset), symbols.find(offset), "{offset:#x}");
        }
        for offset in before..part.start.min(before + 3) {
            assert_eq!(table.find(offset), None, "{offset:#x}");
        }
        before = part.end;
        count += 1;
    }
    assert!(count > 1000, "{count}");
    assert_eq!(table.build_id(), id);
    println!("{count} parts, {} bytes", table.size());
}

#[test]
fn strange_tables_are_refused() {
    type Change = fn(&mut Parts);
    let long = |parts: &mut Parts| {
        parts.text = vec![b'a'; MOST_RAW + 4];
        parts.ends = vec![MOST_RAW as u32 + 1, MOST_RAW as u32 + 4];
    };
    let changes: &[(&str, Change)] = &[
        ("rules", |parts| parts.magic = b"RUR1".to_vec()),
        ("no magic", |parts| parts.magic.clear()),
        ("overlapping parts", |parts| parts.rows[1][0] = 31),
        ("parts out of order", |parts| parts.rows.swap(0, 1)),
        ("the same part twice", |parts| parts.rows[1] = parts.rows[0]),
        ("an empty part", |parts| parts.rows[1][1] = 32),
        ("a part that ends before it begins", |parts| parts.rows[1][1] = 31),
        ("a function that begins before the file", |parts| parts.rows[0][2] = 17),
        ("a missing name", |parts| parts.rows[2][3] = 2),
        ("a missing entry", |parts| parts.rows[2][3] = 2 | PLT),
        ("names without a number", |parts| parts.ends.clear()),
        ("an empty name", |parts| parts.ends = vec![0, 7]),
        ("another empty name", |parts| parts.ends = vec![7, 7]),
        ("ends out of order", |parts| parts.ends = vec![4, 3]),
        ("an end behind the text", |parts| parts.ends[1] = 8),
        ("an end in the build id", |parts| parts.ends = vec![20, 21]),
        ("text behind the last name", |parts| parts.ends[1] = 6),
        ("a zero byte", |parts| parts.text[5] = 0),
        ("a long name", long),
        ("a long build id", |parts| parts.id = vec![1; MOST_ID + 1]),
        ("a shorter build id", |parts| parts.header[0] = Some(19)),
        ("more rows", |parts| parts.header[1] = Some(4)),
        ("all rows", |parts| parts.header[1] = Some(u32::MAX)),
        ("all names", |parts| parts.header[2] = Some(u32::MAX)),
        ("all text", |parts| parts.header[3] = Some(u32::MAX)),
        ("all numbers", |parts| parts.header = [Some(u32::MAX); 4]),
        ("less text", |parts| parts.header[3] = Some(6)),
    ];
    for (what, change) in changes {
        assert_eq!(Parts::read(change), None, "{what}");
    }
    // Rows may be without names only if neither is there.
    assert!(Parts::read(|parts| (parts.rows, parts.ends, parts.text) = Default::default()).is_some());
}

#[test]
fn no_byte_leads_out_of_a_table() {
    let bytes = Parts::new().bytes();
    for len in 0..bytes.len() {
        assert_eq!(NameTable::read(bytes[..len].to_vec()), None, "{len}");
    }
    let more = [&bytes[..], b"\0"].concat();
    assert_eq!(NameTable::read(more), None);
    let mut accepted = 0;
    for at in 0..bytes.len() {
        for byte in [0, 1, 2, 3, 8, 0x7f, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[at] = byte;
            if let Some(table) = NameTable::read(changed) {
                accepted += 1;
                for offset in (0..100).chain([u64::from(u32::MAX)]) {
                    found(&table, offset);
                }
            }
        }
    }
    assert!(accepted > 100, "{accepted}");
}

#[test]
fn huge_tables_are_left_out() {
    let symbols = |count: usize| {
        let symbol = |number: usize| func(&format!("{number:016000}"), number as u64, 1);
        File::new((0..count).map(symbol).collect()).read().unwrap()
    };
    assert!(NameTable::write(&symbols(2000), &[]).is_some());
    assert_eq!(NameTable::write(&symbols(2100), &[]), None);
    assert_eq!(NameTable::read(vec![0; NameTable::MOST_BYTES + 1]), None);
    let mut longest = Parts::new();
    longest.ends = vec![3, 7];
    longest.text = vec![b'a'; NameTable::MOST_BYTES];
    assert_eq!(NameTable::read(longest.bytes()), None);
}
