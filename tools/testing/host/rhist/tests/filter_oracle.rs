// SPDX-License-Identifier: GPL-2.0

//! The kernel's own filters as the judge: for each filter, both log and return the same, and both
//! match the same hits.
//!
//! The pieces that filters are made of are taken out of the kernel's source and compiled with
//! `filter/oracle.c`.

#![cfg(not(loom))]

mod oracle;
#[path = "filter/scene.rs"]
mod scene;
#[path = "filter/strategy.rs"]
mod strategy;
mod table;

use oracle::between;
use oracle::kernel_file;
use oracle::rounds;
use oracle::Oracle;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::fmt::Write as _;

/// Bugs of C, corrected so that its intention can be compared.
const CORRECTIONS: &[(&str, &str)] = &[
    // C reads a dynamic string without bytes up to a NUL somewhere behind it.
    (
        "if (!len)\n\t\treturn strcmp(str, r->pattern) == 0;",
        "if (!len)\n\t\treturn !*r->pattern;",
    ),
    ("if (len && len < r->len)", "if (len < r->len)"),
    ("if (!len)\n\t\treturn strstr(str, r->pattern) != NULL;", ""),
    // Bytes behind the NUL do not belong to the string, and only its end counts as the end.
    (
        "strnstr(str, r->pattern, len)",
        "strnstr(str, r->pattern, strnlen(str, len))",
    ),
    ("int strlen = len - 1;", "int strlen = strnlen(str, len);"),
    // C's step from one group of CPUs to the next wraps around.
    (
        "unsigned int start;\n\n\tfor (start = r->start;",
        "unsigned long start;\n\n\tfor (start = r->start;",
    ),
];

/// Pieces of the kernel's source, corrected.
fn corrected(pieces: &[&str]) -> String {
    let mut text = pieces.concat();
    for (wrong, right) in CORRECTIONS {
        text = text.replace(wrong, right);
    }
    text
}

/// Compiles the oracle. Returns `None` without the kernel's source.
fn build() -> Option<Oracle> {
    let filter = kernel_file("kernel/trace/trace_events_filter.c")?;
    let header = kernel_file("kernel/trace/trace.h")?;
    let glob = kernel_file("lib/glob.c")?;
    let list = kernel_file("lib/bitmap-str.c")?;
    let ctype = kernel_file("lib/ctype.c")?;
    let numbers = kernel_file("lib/kstrtox.c")?;
    let macros = kernel_file("include/linux/ctype.h")?;
    for (wrong, _) in CORRECTIONS {
        let found = [&filter, &list].iter().any(|text| text.contains(wrong));
        assert!(found, "C is not what it was: {wrong}");
    }
    let library = [
        between(&macros, "#define _U", "#if __has_builtin"),
        "#define isdigit(c) ((c) >= '0' && (c) <= '9')\n",
        between(
            &macros,
            "static inline char _tolower",
            "/* Fast check for octal",
        ),
        between(&ctype, "const unsigned char _ctype", "EXPORT_SYMBOL"),
        between(
            &numbers,
            "const char *_parse_integer_fixup_radix",
            "noinline\nunsigned int _parse_integer_limit",
        ),
        between(
            &numbers,
            "noinline\nunsigned int _parse_integer_limit",
            "/**\n * kstrtoull - convert",
        ),
        between(
            &numbers,
            "noinline\nint kstrtoull",
            "EXPORT_SYMBOL(kstrtoull)",
        ),
        between(
            &numbers,
            "noinline\nint kstrtoll",
            "EXPORT_SYMBOL(kstrtoll)",
        ),
        between(&list, "struct region {", "EXPORT_SYMBOL(bitmap_parselist)"),
        between(&glob, "static bool __pure glob_match_str", "/**"),
        between(
            &glob,
            "bool __pure glob_match_len",
            "EXPORT_SYMBOL(glob_match_len)",
        ),
        glob.rsplit_once("EXPORT_SYMBOL(glob_match_len);")
            .unwrap()
            .1,
    ];

    let types = [
        between(
            &header,
            "typedef int (*regex_match_func)",
            "static inline bool is_function_field",
        ),
        between(&header, "struct event_filter {", "struct event_subsystem"),
    ];

    let pieces = [
        between(
            &filter,
            "/* Due to token parsing",
            "static void remove_filter_string",
        ),
        between(
            &filter,
            "static void append_filter_err",
            "static inline struct event_filter *event_filter",
        ),
        between(
            &filter,
            "static enum filter_pred_fn select_comparison_fn",
            "static inline void event_set_filtered_flag",
        ),
    ];
    Some(Oracle::new(
        "filter/oracle.c",
        &[
            ("library.h", corrected(&library)),
            ("types.h", corrected(&types)),
            ("filter.h", corrected(&pieces)),
        ],
    ))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The scene in the oracle's input format.
fn setting() -> String {
    let mut lines = format!("n {}\n", scene::CPUS);
    for fields in [scene::FIELDS, scene::GENERIC, scene::COMMON] {
        for &(_, name, offset, size, signed, filter) in fields {
            let (signed, filter) = (u32::from(signed), filter as u32);
            writeln!(lines, "e {name} {offset} {size} {signed} {filter}").unwrap();
        }
    }
    for (name, start, size) in scene::FUNCTIONS {
        writeln!(lines, "s {name} {start} {size}").unwrap();
    }
    for (space, base, bytes) in [
        ('k', scene::KERNEL_BASE, scene::kernel_bytes()),
        ('u', scene::USER_BASE, scene::user_bytes()),
    ] {
        writeln!(lines, "m{space} {base} {}", hex(&bytes)).unwrap();
    }
    for scene in scene::scenes() {
        let (cpu, comm, record) = (scene.cpu, hex(&scene.comm), hex(&scene.record));
        writeln!(lines, "r {cpu} {comm} {record}").unwrap();
    }
    lines
}

/// The logged errors, the errno, and the matching hits of a filter here, in the oracle's form.
fn verdict(scenes: &[scene::Scene], text: &[u8]) -> String {
    match scene::parse(text) {
        Ok(filter) => {
            let holds = scenes.iter().map(|scene| scene.matches(&filter));
            let holds: String = holds.map(|holds| if holds { '1' } else { '0' }).collect();
            format!("0 {holds}")
        }
        Err(error) => format!(
            "[{}: {}@{}] {}",
            std::str::from_utf8(rhist::filter::LOCATION).unwrap(),
            error.text.as_str(),
            error.caret,
            error.errno.to_errno()
        ),
    }
}

fn filters() -> Vec<Vec<u8>> {
    let mut runner = TestRunner::default();
    let bytes = vec(1u8.., 0..24).boxed();
    let predicates = strategy::predicates().prop_map(String::into_bytes).boxed();
    let expressions = strategy::expressions().prop_map(String::into_bytes).boxed();
    let strategies = [
        bytes,
        predicates.clone(),
        predicates,
        expressions.clone(),
        expressions,
        strategy::mutated(),
        strategy::mutated(),
        strategy::pieces(),
    ];
    let errors = table::rows(&["filter"]).into_iter();
    let mut filters: Vec<_> = errors.map(|row| row.command).collect();
    for _ in 0..rounds(4000) {
        for strategy in &strategies {
            filters.push(strategy.new_tree(&mut runner).unwrap().current());
        }
    }
    filters
}

#[test]
fn judges_as_the_kernel_does() {
    let Some(oracle) = build() else {
        return;
    };
    let filters = filters();
    let mut input = setting();
    for filter in &filters {
        writeln!(input, "f {}", hex(filter)).unwrap();
    }

    let said = oracle.ask(input);
    let scenes = scene::scenes();
    let (mut accepted, mut held) = (0, 0);
    for (filter, said) in filters.iter().zip(&said) {
        let text = String::from_utf8_lossy(filter);
        let verdict = verdict(&scenes, filter);
        assert_eq!(verdict, *said, "{text:?}");
        if let Some(holds) = verdict.strip_prefix("0 ") {
            accepted += 1;
            held += usize::from(holds.contains('0') && holds.contains('1'));
        }
    }
    assert_eq!(said.len(), filters.len());
    // The filters have told hits apart, so the judge had something to compare.
    assert!(accepted > filters.len() / 4, "{accepted}");
    assert!(held > filters.len() / 8, "{held}");
}
