// SPDX-License-Identifier: GPL-2.0

//! Random filters.

#![allow(dead_code, reason = "each test uses some of it")]

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::sample::Index;

const NUMBERS: &[&str] = &[
    "0",
    "1",
    "3",
    "5",
    "42",
    "0x2a",
    "052",
    "64",
    "69",
    "70",
    "127",
    "128",
    "-1",
    "-42",
    "-128",
    "-129",
    "255",
    "256",
    "32767",
    "-32768",
    "65535",
    "2147483647",
    "2147483648",
    "-2147483648",
    "4294967295",
    "4294967296",
    "4294967299",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "0xffffffffffffffff",
    "0x",
    "08",
    "5a",
    "-",
    "--1",
    "0x1000",
    "12345678901234567890123",
    "123456789012345678901234",
];

const STRINGS: &[&str] = &[
    "",
    "a",
    "bash",
    "ba",
    "*",
    "**",
    "***",
    "b*",
    "*sh",
    "*as*",
    "!bash",
    "!*sh",
    "!b*",
    "!",
    "!!",
    "1*",
    "b?sh",
    "?",
    "????",
    "[ab]*",
    "[a-b]ash",
    "[!a]*",
    "[!b]*",
    "[]",
    "[]]*",
    "[a",
    "[a-",
    "[!]",
    "*[a-z]",
    "\\*",
    "*\\**",
    "\\",
    "a\\",
    "k*r*",
    "*a*b",
    "*a*a*ab",
    "*:?",
    "x*x",
    "sched",
    "number",
    "kworkers",
    "kworker/u8:1",
    "fifteen-letters",
    "[[]a]*",
    "a b",
    "(",
    ")",
    "&&",
    "||",
    "if",
];

const CPUS: &[&str] = &[
    "0",
    "3",
    "69",
    "70",
    "0-3",
    "3-0",
    "0-69",
    "all",
    "ALL",
    "all:1/2",
    "N",
    "0-N",
    "N-0",
    "1,64",
    "1, 64",
    ",",
    " ",
    "1,,3",
    "0-10:2/4",
    "0-10:0/4",
    "0-10:5/4",
    "0-10:2/0",
    "1-",
    "-1",
    "a",
    "5\n7",
    "5,\n7",
    "0-3:1/2N",
    "0-3:1/2 7",
    "4294967295",
    "4294967296",
    "99999999999999999999",
    "0-3:1/2a",
    "3-5:1/4294967295",
    "0,1,2,3,69",
    "(",
    ")",
    "\"",
    "N:1/1",
    "0-3:N/N",
    "alles",
    "5 5 5",
];

const FIELDS: &[&str] = &[
    "s8",
    "u8",
    "s16",
    "u16",
    "s32",
    "u32",
    "s64",
    "u64",
    "text",
    "dyn",
    "rel",
    "ptr",
    "uptr",
    "mask",
    "ip",
    "args",
    "stack",
    "fn",
    "cpu",
    "CPU",
    "common_cpu",
    "comm",
    "COMM",
    "stacktrace",
    "common_pid",
    "common_type",
    "nosuch",
];

const OPS: &[&str] = &["==", "!=", "<", "<=", ">", ">=", "&", "~"];

fn words(words: &'static [&'static str]) -> BoxedStrategy<String> {
    select(words).prop_map(String::from).boxed()
}

fn quoted() -> BoxedStrategy<String> {
    let quote = select(&["'", "\""][..]);
    let text = prop_oneof![
        9 => words(STRINGS),
        3 => "[ab*?!\\[\\]-]{0,6}",
        1 => select(&[255usize, 256][..]).prop_map(|n| "x".repeat(n)),
    ];
    (quote, text)
        .prop_map(|(quote, text)| format!("{quote}{text}{quote}"))
        .boxed()
}

fn cpus() -> BoxedStrategy<String> {
    words(CPUS)
        .prop_map(|list| format!("CPUS{{{list}}}"))
        .boxed()
}

fn any_value() -> BoxedStrategy<String> {
    prop_oneof![
        words(NUMBERS),
        quoted(),
        cpus(),
        words(&["word", "schedule", "CPUS", "CPUS{", "CPUS{}", "CPUS{1", "'", "", "{}"]),
    ]
    .boxed()
}

fn joined(
    field: &'static [&'static str],
    op: &'static [&'static str],
    value: BoxedStrategy<String>,
) -> BoxedStrategy<String> {
    let blank = || select(&["", " ", "\t ", "\u{b}"][..]);
    (select(field), blank(), select(op), blank(), value, blank())
        .prop_map(|(field, b1, op, b2, value, b3)| format!("{field}{b1}{op}{b2}{value}{b3}"))
        .boxed()
}

/// Predicates, mostly valid.
pub(crate) fn predicates() -> BoxedStrategy<String> {
    const COMPARE: &[&str] = &["==", "!=", "<", "<=", ">", ">=", "&"];
    const EQUAL: &[&str] = &["==", "!="];
    const MATCH: &[&str] = &["==", "!=", "~", "~", "~"];
    const MEMBER: &[&str] = &["==", "!=", "&"];
    prop_oneof![
        8 => joined(&FIELDS[..8], COMPARE, words(NUMBERS)),
        6 => joined(&["text", "dyn", "rel", "ptr", "comm", "uptr.ustring"], MATCH, quoted()),
        4 => joined(
            &["cpu", "mask", "u8", "u16", "s32", "u64", "args", "stack"],
            MEMBER,
            cpus(),
        ),
        2 => joined(&["cpu", "args", "stack", "stacktrace", "mask"], COMPARE, words(NUMBERS)),
        2 => joined(
            &["ip.function", "u64.function", "ptr.ustring.function", "u32.function"],
            EQUAL,
            words(&["schedule ", "odd) ", "odd)", "last ", "empty ", "0x1010", "0x4000", "4096", "no "]),
        ),
        3 => joined(FIELDS, OPS, any_value()),
    ]
    .boxed()
}

/// Expressions, mostly valid.
pub(crate) fn expressions() -> BoxedStrategy<String> {
    predicates()
        .prop_recursive(5, 24, 2, |inner| {
            prop_oneof![
                3 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a} && {b}")),
                3 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a}||{b}")),
                2 => inner.clone().prop_map(|a| format!("({a})")),
                2 => inner.clone().prop_map(|a| format!("!({a})")),
                1 => inner.prop_map(|a| format!("!{a}")),
            ]
        })
        .boxed()
}

/// Pieces of filters in any order.
pub(crate) fn pieces() -> BoxedStrategy<Vec<u8>> {
    const PIECES: &[&str] = &[
        "(",
        ")",
        "(",
        ")",
        "!",
        "&&",
        "||",
        "&",
        "|",
        "==",
        "!=",
        "~",
        "<",
        ">=",
        " ",
        " ",
        "\"",
        "'",
        "u8",
        "u8==1",
        "text~'b*'",
        "comm",
        "cpu",
        ".function",
        ".ustring",
        "CPUS",
        "{",
        "}",
        "1",
        "-1",
        "nosuch",
        "!~",
        "=",
        ".",
        "\u{a0}",
    ];
    let piece = prop_oneof![
        20 => select(PIECES).prop_map(|piece| piece.as_bytes().to_vec()),
        1 => vec(1u8.., 1..3),
        3 => predicates().prop_map(String::into_bytes),
    ];
    vec(piece, 0..12).prop_map(|pieces| pieces.concat()).boxed()
}

/// Expressions with a few bytes removed, added, or changed.
pub(crate) fn mutated() -> BoxedStrategy<Vec<u8>> {
    let change = (
        any::<Index>(),
        0..3usize,
        vec(select(&b"()!&|='\"~< 1a_{}.-*\xe9\xd7\xa0"[..]), 0..3),
    );
    (expressions(), vec(change, 1..3))
        .prop_map(|(text, changes)| {
            let mut text = text.into_bytes();
            for (at, remove, insert) in changes {
                let at = at.index(text.len() + 1);
                let end = text.len().min(at + remove);
                text.splice(at..end, insert);
            }
            text
        })
        .boxed()
}
