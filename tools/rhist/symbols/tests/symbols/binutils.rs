// SPDX-License-Identifier: MIT OR Apache-2.0

//! Compares symbols with readelf's, names with c++filt's, and entries of the procedure linkage
//! table with objdump's: of the libraries of this program, of the program itself, of libraries and
//! programs of this machine, and of the files in `$RHIST_ELF_FILES`, separated by blanks.

use crate::machine::mapped_libraries;
use rhist_symbols::Symbols;
use std::collections::BTreeMap;
use std::collections::HashMap;
use std::env;
use std::fs;
use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::process::Command;
use std::process::Stdio;
use std::thread;

/// Files of Debian that are compared if they are there: C++, a program without a table of its own,
/// and one that is linked statically.
const FILES: [&str; 6] = [
    "/bin/bash",
    "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
    "/usr/lib/aarch64-linux-gnu/libstdc++.so.6",
    "/usr/lib/x86_64-linux-gnu/libLLVM.so.19.1",
    "/usr/sbin/ldconfig",
    "/usr/bin/git",
];

fn output(program: &str, arguments: &[&str], path: &str) -> String {
    let output = Command::new(program).args(arguments).arg(path).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Executable segments: addresses, and the offset in the file.
fn segments(path: &str) -> Vec<(Range<u64>, u64)> {
    let hex = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
    output("readelf", &["-lW"], path)
        .lines()
        .filter_map(|line| match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["LOAD", offset, address, _, size, _, ref flags @ .., _] if flags.contains(&"E") => {
                Some((hex(address)..hex(address) + hex(size), hex(offset)))
            }
            _ => None,
        })
        .collect()
}

fn without_version(name: &str) -> &str {
    name.split_once('@').map_or(name, |(name, _)| name)
}

/// Functions by readelf: address, size, name.
fn functions(path: &str) -> Vec<(u64, u64, String)> {
    let text = output("readelf", &["--syms", "--dyn-syms", "-W"], path);
    let row = |line: &str| match line.split_whitespace().collect::<Vec<_>>()[..] {
        [_, value, size, "FUNC" | "IFUNC", _, _, ref rest @ ..] => {
            // Between them, there may be words about the visibility.
            let section = rest.iter().position(|word| word.parse::<u32>().is_ok())?;
            let name = rest.get(section + 1)?;
            let size = match size.strip_prefix("0x") {
                Some(hex) => u64::from_str_radix(hex, 16).unwrap(),
                None => size.parse().unwrap(),
            };
            let value = u64::from_str_radix(value, 16).unwrap();
            Some((value, size, without_version(name).to_owned()))
        }
        _ => None,
    };
    text.lines().filter_map(row).collect()
}

/// Passes names through c++filt.
fn filtered(names: &[&str]) -> Vec<String> {
    let mut child = Command::new("c++filt")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let text = names.join("\n") + "\n";
    let writer = thread::spawn(move || input.write_all(text.as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect()
}

#[derive(Default)]
struct Compared {
    functions: usize,
    cpp: usize,
    other_form: usize,
    entries: usize,
}

/// Compares one file.
fn compare(path: &str, all: &mut Compared) {
    let symbols = Symbols::read(&fs::read(path).unwrap()).unwrap_or_else(|error| panic!("{path}: {error}"));
    let segments = segments(path);
    let offset = |address: u64| {
        let (addresses, offset) = segments.iter().find(|(addresses, _)| addresses.contains(&address))?;
        Some(address - addresses.start + offset)
    };
    let mut by_start: BTreeMap<u64, Vec<(u64, String)>> = BTreeMap::new();
    for (address, size, name) in functions(path) {
        let Some(start) = offset(address) else {
            continue;
        };
        by_start.entry(start).or_default().push((size, name));
    }
    for (&start, aliases) in &by_start {
        let is_alias = |raw: &[u8]| {
            aliases
                .iter()
                .any(|(_, name)| name == without_version(&String::from_utf8_lossy(raw)))
        };
        let (name, distance) = symbols
            .find(start)
            .unwrap_or_else(|| panic!("{path}: offset {start:x}, {aliases:?}"));
        assert!(
            distance == 0 && !name.is_plt() && is_alias(name.raw()),
            "{path}: {name:?} for {aliases:?}"
        );
        all.functions += 1;
        for &(size, _) in aliases.iter().filter(|alias| alias.0 > 0) {
            let last = start + size - 1;
            // Another one may begin in it.
            if by_start.range(start + 1..last.max(start) + 1).next().is_some() {
                continue;
            }
            let (name, distance) = symbols.find(last).unwrap();
            assert!(
                distance == size - 1 && is_alias(name.raw()),
                "{path}: {name:?} for {aliases:?}"
            );
        }
    }
    // Nothing else is named but labels without a size.
    let ends: HashMap<u64, u64> = by_start
        .iter()
        .map(|(&start, aliases)| (start, start + aliases.iter().map(|alias| alias.0).max().unwrap()))
        .collect();
    for (range, name) in symbols.iter().filter(|(_, name)| !name.is_plt()) {
        let (_, distance) = symbols.find(range.start).unwrap();
        let start = range.start - distance;
        if let Some(&end) = ends.get(&start) {
            assert!(range.end <= end || end == start, "{path}: {name:?} at {range:x?}");
        }
    }
    demangled(path, &symbols, all);
    linkage(path, &symbols, &offset, all);
}

/// Compares names of C++ with c++filt's. cpp_demangle writes literals in another form, `(unsigned
/// int)8` for `8u`, types of functions without a space, and abbreviations such as `std::ostream`.
fn demangled(path: &str, symbols: &Symbols, all: &mut Compared) {
    let mut names: Vec<(String, String)> = symbols
        .iter()
        .filter(|(_, name)| name.raw().starts_with(b"_Z") && !name.is_plt())
        .map(|(_, name)| {
            let raw = String::from_utf8(name.raw().to_vec()).unwrap();
            (without_version(&raw).to_owned(), name.shown().to_string())
        })
        .collect();
    names.sort();
    names.dedup();
    let raw: Vec<&str> = names.iter().map(|(raw, _)| raw.as_str()).collect();
    if raw.is_empty() {
        return;
    }
    let mut examples = 0;
    for ((raw, shown), theirs) in names.iter().zip(filtered(&raw)) {
        // Older names of Rust have a hash for c++filt; names that are cut differ.
        if theirs.contains("::h") || shown.ends_with('…') {
            continue;
        }
        all.cpp += 1;
        if *shown != theirs {
            all.other_form += 1;
            if examples < 3 {
                examples += 1;
                println!("# {path}: {raw}\n#   {shown}\n#   {theirs}");
            }
        }
    }
}

/// Compares entries of the procedure linkage table.
fn linkage(path: &str, symbols: &Symbols, offset: &impl Fn(u64) -> Option<u64>, all: &mut Compared) {
    let text = output(
        "objdump",
        &["-d", "-j", ".plt", "-j", ".plt.sec", "-j", ".plt.got"],
        path,
    );
    for line in text.lines() {
        let entry = line.strip_suffix("@plt>:").and_then(|line| line.split_once(" <"));
        let Some((address, theirs)) = entry.filter(|entry| !entry.1.starts_with("*ABS*")) else {
            continue;
        };
        let start = offset(u64::from_str_radix(address, 16).unwrap()).unwrap();
        let (name, distance) = symbols.find(start).unwrap_or_else(|| panic!("{path}: {line}"));
        assert!(name.is_plt() && distance == 0, "{path}: {line}: {name:?}");
        assert_eq!(
            String::from_utf8_lossy(name.raw()),
            without_version(theirs),
            "{path}: {line}"
        );
        assert!(name.shown().ends_with("@plt"));
        all.entries += 1;
    }
}

#[test]
fn symbols_are_as_binutils_print_them() {
    if Command::new("readelf").arg("-v").output().is_err() {
        eprintln!("SKIP symbols_are_as_binutils_print_them: readelf is not installed");
        return;
    }
    let libraries = mapped_libraries();
    let mut paths: Vec<&str> = libraries.iter().map(String::as_str).collect();
    let own = env::current_exe().unwrap();
    paths.push(own.to_str().unwrap());
    paths.extend(FILES.iter().filter(|path| Path::new(path).exists()));
    let more = env::var("RHIST_ELF_FILES").unwrap_or_default();
    paths.extend(more.split_whitespace());
    let mut all = Compared::default();
    for path in &paths {
        compare(path, &mut all);
    }
    let Compared {
        functions,
        cpp,
        other_form,
        entries,
    } = all;
    println!(
        "{functions} functions of {} files; {cpp} names of C++, {other_form} of which c++filt writes in another form; \
         {entries} entries",
        paths.len()
    );
    assert!(
        functions > 3_000 && entries > 10,
        "{functions} functions, {entries} entries"
    );
    // Both write most names in the same form.
    assert!(other_form * 10 <= cpp, "{other_form} of {cpp}");
}
