// SPDX-License-Identifier: MIT OR Apache-2.0

//! Compares tables with readelf's, at each byte of the code: of libraries and a program of this
//! machine, and of the files in `$RHIST_ELF_FILES`, separated by blanks.

use crate::machine::mapped_libraries;
use crate::table::Table;
use rhist_elf::Machine;
use rhist_elf::build_id;
use rhist_unwind::Rule;
use rhist_unwind::compile;
use std::collections::HashMap;
use std::env;
use std::fs;
use std::ops::Range;
use std::process::Command;

/// A row that readelf prints.
#[derive(Clone, Default)]
struct Row {
    addresses: Range<u64>,
    cfa: String,
    fp: String,
    ra: String,
    is_signal: bool,
}

fn readelf(option: &str, path: &str) -> String {
    let output = Command::new("readelf").args([option, "-W", path]).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Rows of all functions, and the addresses of the functions.
fn rows(path: &str, fp: &str) -> (Vec<Row>, Vec<Range<u64>>) {
    let text = readelf("--debug-dump=frames-interp", path);
    // Files may have debugging information of the same form.
    let text = text.split("Contents of the .debug_frame").next().unwrap();
    let hex = |text: &str| u64::from_str_radix(text, 16).unwrap();
    let (mut rows, mut functions): (Vec<Row>, Vec<Range<u64>>) = (Vec::new(), Vec::new());
    let mut cies: HashMap<u64, Row> = HashMap::new();
    let mut columns = Vec::new();
    // The CIE or the function that a row belongs to.
    let (mut in_cie, mut end) = (None, 0);
    for line in text.lines() {
        // Beside the number of a register is its name, in parentheses.
        let words: Vec<&str> = line.split_whitespace().filter(|word| !word.starts_with('(')).collect();
        match words[..] {
            [offset, _, _, "CIE", augmentation, ..] => {
                in_cie = Some(hex(offset));
                let row = Row {
                    is_signal: augmentation.contains('S'),
                    ..Row::default()
                };
                cies.insert(hex(offset), row);
            }
            [_, _, _, "FDE", cie, pc, ..] => {
                in_cie = None;
                let (start, behind) = pc.strip_prefix("pc=").unwrap().split_once("..").unwrap();
                functions.push(hex(start)..hex(behind));
                end = hex(behind);
                // Without a row of its own, it has the one of the CIE.
                let cie = &cies[&hex(cie.strip_prefix("cie=").unwrap())];
                rows.push(Row {
                    addresses: hex(start)..end,
                    ..cie.clone()
                });
            }
            ["LOC", ref names @ ..] => columns = names.iter().map(|&name| name.to_owned()).collect(),
            [location, ref cells @ ..] if cells.len() == columns.len() && location.len() == 16 => {
                let cell = |name: &str| {
                    let at = columns.iter().position(|column| column == name);
                    at.map_or("u", |at| cells[at]).to_owned()
                };
                let mut row = Row {
                    addresses: hex(location)..end,
                    cfa: cell("CFA"),
                    fp: cell(fp),
                    ra: cell("ra"),
                    is_signal: false,
                };
                match in_cie {
                    Some(offset) => {
                        row.is_signal = cies[&offset].is_signal;
                        cies.insert(offset, row);
                    }
                    None => {
                        let last = rows.last_mut().unwrap();
                        row.is_signal = last.is_signal;
                        last.addresses.end = row.addresses.start;
                        rows.push(row);
                    }
                }
            }
            _ => (),
        }
    }
    (rows, functions)
}

/// Executable segments: addresses, and the offset in the file.
fn segments(path: &str) -> Vec<(Range<u64>, u64)> {
    let hex = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
    readelf("--program-headers", path)
        .lines()
        .filter_map(|line| match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["LOAD", offset, address, _, size, _, ref flags @ .., _] if flags.contains(&"E") => {
                Some((hex(address)..hex(address) + hex(size), hex(offset)))
            }
            _ => None,
        })
        .collect()
}

/// `c-16` as words.
fn saved(cell: &str) -> Option<i16> {
    match cell {
        "u" | "s" => Some(0),
        _ => {
            let bytes: i64 = cell.strip_prefix('c')?.parse().ok()?;
            (bytes < 0 && bytes % 8 == 0).then(|| i16::try_from(bytes / 8).ok())?
        }
    }
}

/// The rule for a row. If readelf prints `exp` for an expression, it may be `ours`, if that stands
/// for one.
fn rule(machine: Machine, row: &Row, ours: Rule) -> Rule {
    let (sp, fp) = match machine {
        Machine::X86_64 => ("rsp", "rbp"),
        Machine::Aarch64 => ("sp", "x29"),
    };
    if row.is_signal {
        return Rule::Sigreturn;
    }
    let ra = match (machine, saved(&row.ra)) {
        (Machine::X86_64, _) if row.ra == "u" => return Rule::End,
        (Machine::X86_64, Some(-1)) => -1,
        (Machine::X86_64, _) if row.ra == "r5" => 0,
        // Undefined, or without a rule: readelf prints the same.
        (Machine::Aarch64, Some(0)) if ours == Rule::End => return Rule::End,
        (Machine::Aarch64, Some(ra)) => ra,
        _ => return Rule::Other,
    };
    if row.cfa == "exp" {
        return match ours {
            Rule::DerefSp { cfa, .. } if row.fp != "exp" => Rule::DerefSp {
                cfa,
                fp: saved(&row.fp).unwrap(),
                ra,
            },
            Rule::Plt { from, .. } if row.fp != "exp" => Rule::Plt {
                from,
                fp: saved(&row.fp).unwrap(),
                ra,
            },
            Rule::Deref { cfa, .. } if row.fp == "exp" => Rule::Deref { cfa, ra },
            _ => Rule::Other,
        };
    }
    let number = |name: &str| row.cfa.strip_prefix(name).and_then(|rest| rest.parse().ok());
    match (saved(&row.fp), number(sp), number(fp)) {
        (Some(fp), Some(cfa), _) => Rule::Sp { cfa, fp, ra },
        (Some(fp), _, Some(cfa)) => Rule::Fp { cfa, fp, ra },
        _ => Rule::Other,
    }
}

/// Compares one file; returns the number of readelf's rows.
fn compare(path: &str) -> usize {
    let image = fs::read(path).unwrap();
    let rules = compile(&image).unwrap_or_else(|error| panic!("{path}: {error}"));
    let table = Table::read(&rules.to_bytes()).unwrap();
    let machine = rules.machine();
    let (rows, mut functions) = rows(path, if machine == Machine::X86_64 { "rbp" } else { "x29" });
    let segments = segments(path);
    let offset = |address: u64| {
        let found = segments.iter().find(|(addresses, _)| addresses.contains(&address));
        let (addresses, offset) = found.unwrap_or_else(|| panic!("{path}: {address:x}"));
        address - addresses.start + offset
    };
    let mut expected = Vec::new();
    for row in rows.iter().filter(|row| !row.addresses.is_empty()) {
        let (first, last) = (offset(row.addresses.start), offset(row.addresses.end - 1));
        let ours = table.rule(first);
        let rule = rule(machine, row, ours);
        let text = || format!("{path}: {:x?} {} {} {}", row.addresses, row.cfa, row.fp, row.ra);
        assert_eq!(ours, rule, "{}", text());
        assert_eq!(table.rule(last), rule, "{}", text());
        expected.push((first..last + 1, rule));
    }
    assert_eq!((rules.malformed, rules.outside, rules.overlapping), (0, 0, 0), "{path}");
    // Nothing changes within readelf's rows, and nothing is known in gaps.
    expected.sort_by_key(|(range, _)| range.start);
    // The last rule of some functions also holds behind a system call.
    let starts: Vec<u64> = expected.iter().skip(1).map(|(range, _)| range.start).collect();
    let syscall: &[u8] = match machine {
        Machine::X86_64 => &[0x0f, 0x05],
        Machine::Aarch64 => &[0x01, 0, 0, 0xd4],
    };
    for ((range, rule), next) in expected.iter_mut().zip(starts.into_iter().chain([u64::MAX])) {
        let is_leaf = matches!(rule, Rule::Sp { cfa: 8 | 0, fp: 0, .. });
        let ends = functions
            .iter()
            .any(|function| !function.is_empty() && offset(function.end - 1) + 1 == range.end);
        if is_leaf && ends && image[range.end as usize..].starts_with(syscall) {
            range.end = next.min(range.end + 32);
        }
    }
    // Code at the entry for which readelf has nothing is the outermost function's.
    let entry = u64::from_le_bytes(image[24..32].try_into().unwrap());
    let is_known = |place: u64| expected.iter().any(|(range, _)| range.contains(&place));
    if entry != 0 && !is_known(offset(entry)) && !rules.distinct().contains(&Rule::Frame) {
        let start = offset(entry);
        let next = expected.iter().map(|(range, _)| range.start).find(|&next| next > start);
        expected.push((start..next.unwrap_or(u64::MAX).min(start + 128), Rule::End));
        expected.sort_by_key(|(range, _)| range.start);
    }
    let at = |offset: u64| {
        let behind = expected.partition_point(|(range, _)| range.start <= offset);
        let last = expected[..behind].last().filter(|(range, _)| range.contains(&offset));
        last.map_or(Rule::None, |&(_, rule)| rule)
    };
    for (offset, rule) in rules.rows() {
        assert_eq!(at(offset), rule, "{path}: offset {offset:x}");
    }
    let end = expected.last().map_or(0, |(range, _)| range.end);
    for offset in (0..=end + 65536).step_by(65536) {
        assert_eq!(at(offset), table.rule(offset), "{path}: offset {offset:x}");
    }
    functions.retain(|function| !function.is_empty());
    functions.sort_by_key(|function| function.start);
    for pair in functions.windows(2) {
        if pair[0].end < pair[1].start {
            for gap in [offset(pair[0].end - 1) + 1, offset(pair[1].start) - 1] {
                assert_eq!(table.rule(gap), at(gap), "{path}: offset {gap:x}");
            }
        }
    }
    let notes = readelf("--notes", path);
    let id = build_id(&image)
        .unwrap()
        .map(|id| id.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    let readelfs = notes
        .lines()
        .find_map(|line| Some(line.split_once("Build ID: ")?.1.trim()));
    assert_eq!(id.as_deref(), readelfs, "{path}");
    rows.len()
}

#[test]
fn tables_are_as_readelf_prints_them() {
    if Command::new("readelf").arg("-v").output().is_err() {
        eprintln!("SKIP tables_are_as_readelf_prints_them: readelf is not installed");
        return;
    }
    let libraries = mapped_libraries();
    let mut paths: Vec<&str> = libraries.iter().map(String::as_str).collect();
    let more = env::var("RHIST_ELF_FILES").unwrap_or_default();
    paths.extend(["/bin/bash"].into_iter().chain(more.split_whitespace()));
    let rows: usize = paths.iter().map(|path| compare(path)).sum();
    println!("{rows} rows of {} files", paths.len());
    assert!(rows > 20_000, "{rows} rows of {paths:?}");
}
