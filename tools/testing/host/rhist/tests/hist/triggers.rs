// SPDX-License-Identifier: GPL-2.0

//! Random triggers: any text is accepted or refused, and an accepted trigger can be shown.

use proptest::prelude::*;

use super::events::*;
use super::exercise::exercise;
use super::jsonl;

/// Pieces of triggers, which make sense often enough.
fn piece() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "keys=",
        "vals=",
        "sort=",
        "size=",
        "hitcount",
        "u8",
        "s16",
        "s64",
        "odd",
        "even",
        "dyn",
        "rel",
        "ptr",
        "mask",
        "stack",
        "ip",
        "args",
        "fits",
        "long",
        "cpu",
        "common_cpu",
        "comm",
        "common_comm",
        "common_pid",
        "stacktrace",
        "common_timestamp",
        "nosuch",
        ".hex",
        ".log2",
        ".sym-offset",
        ".buckets=7",
        ".buckets=0",
        ".percent",
        ".graph",
        ".usecs",
        ".descending",
        ".stacktrace",
        ".execname",
        ",",
        ",",
        ":",
        ":",
        ":",
        "nohitcount",
        "pause",
        "+",
        "-",
        "*",
        "/",
        "-(",
        ")",
        "$x",
        "x=",
        "7",
        "0x10",
        "128",
        " if ",
        "onmax($x).save(u8)",
        "a.b.",
    ])
}

/// A list of fields with modifiers that are accepted as keys.
fn keys() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec![
        "u8",
        "s16",
        "s64",
        "ptr",
        "mask",
        "cpu",
        "CPU",
        "common_cpu",
        "common_pid",
        "hitcount",
        "7",
    ]);
    let modifier = prop::sample::select(vec!["", ".hex", ".log2", ".buckets=3", ".usecs"]);
    let key = (name, modifier).prop_map(|(name, modifier)| match name {
        "7" => name.to_string(),
        _ => format!("{name}{modifier}"),
    });
    let string = prop::sample::select(vec!["odd", "even", "dyn", "rel", "comm", "common_comm"]);
    (prop::collection::vec(key, 1..=2), prop::option::of(string)).prop_map(|(mut keys, string)| {
        keys.extend(string.map(String::from));
        keys.join(",")
    })
}

proptest! {
    #[test]
    fn anything(pieces in prop::collection::vec(piece(), 0..12)) {
        exercise(format!("hist:keys={}", pieces.concat()).as_bytes(), jsonl::check);
    }

    #[test]
    fn lines_are_commands(
        keys in keys(),
        vals in prop::option::of(prop::sample::select(vec![
            "hitcount", "u16", "u16.hex,s8", "hitcount,u8.percent", "u16.graph,hitcount", "5,s8",
        ])),
        sort in prop::option::of(prop::sample::select(vec![
            "hitcount", "hitcount.descending", "hitcount,hitcount.descending",
        ])),
        nohitcount: bool,
        bits in 7u32..=9,
        more in prop::option::of(1u32..=3),
        idle in prop::option::of((1u64..=60_000, prop::sample::select(vec!["s", "m"]))),
        full in prop::option::of(prop::sample::select(vec!["other", "recycle", "other,recycle"])),
    ) {
        let mut params = format!("keys={keys}:size={}", 1 << bits);
        if let Some(more) = more {
            params += &format!("..{}", 1 << (bits + more));
        }
        if let Some((idle, unit)) = idle {
            params += &format!(":expire({idle}{unit})");
        }
        if let Some(full) = full {
            params += &format!(":full({full})");
        }
        if let Some(vals) = vals {
            params += &format!(":vals={vals}");
        }
        if let Some(sort) = sort {
            params += &format!(":sort={sort}");
        }
        if nohitcount && vals.is_some_and(|vals| vals != "hitcount") {
            params += ":nohitcount";
        }
        let added = hist(&zoo(), &params);
        let shown = line(&added);
        let command = shown.strip_prefix("hist:").unwrap();
        let again = hist(&zoo(), command.strip_suffix(" [active]\n").unwrap());
        prop_assert!(added.spec().matches(again.spec()) && again.spec().matches(added.spec()));
        prop_assert_eq!(added.spec().room(), again.spec().room());
        prop_assert_eq!(line(&again), shown);
    }
}
