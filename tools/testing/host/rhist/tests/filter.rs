// SPDX-License-Identifier: GPL-2.0

//! Event filters: which records match, and which filters are refused.

#![cfg(not(loom))]

#[path = "filter/scene.rs"]
mod scene;
mod table;

use kernel::error::code::*;
use kernel::fault;
use rhist::cpu::Cpu;
use rhist::event::Hit;
use rhist::event::Record;
use rhist::filter::Filter;
use rhist::filter::FilterError;
use rhist::filter::FilterErrorText;
use rhist::filter::FilterErrorText::*;
use rhist::filter::Memory;
use scene::filter;
use scene::parse;
use scene::Scene;
use scene::KERNEL_BASE;
use scene::USER_BASE;
use std::time::Duration;
use std::time::Instant;

/// Checks whether the filter matches `scene`.
#[track_caller]
fn check(scene: &Scene, text: &str, holds: bool) {
    assert_eq!(scene.matches(&filter(text)), holds, "{text}");
}

#[track_caller]
fn check_all(scene: &Scene, holds: &[&str], fails: &[&str]) {
    for text in holds {
        check(scene, text, true);
    }
    for text in fails {
        check(scene, text, false);
    }
}

#[track_caller]
fn refused(text: &[u8]) -> FilterError {
    let Err(error) = parse(text) else {
        panic!("accepted: {}", String::from_utf8_lossy(text));
    };
    error
}

#[test]
fn numbers() {
    for (name, signed) in [
        ("s8", true),
        ("u8", false),
        ("s16", true),
        ("u16", false),
        ("s32", true),
        ("u32", false),
        ("s64", true),
        ("u64", false),
    ] {
        let scene = Scene::new(0, "").number(name, 42);
        let holds = [
            "== 42", "!= 41", "< 43", "<= 42", "<= 43", "> 41", ">= 42", ">= 0", "& 2", "& 0x2a",
        ];
        let fails = [
            "== 41", "!= 42", "< 42", "<= 41", "> 42", ">= 43", "< 0", "& 1", "& 0", "& 21",
        ];
        for op in holds {
            check(&scene, &format!("{name} {op}"), true);
            check(&scene, &format!("!{name} {op}"), false);
        }
        for op in fails {
            check(&scene, &format!("{name} {op}"), false);
        }
        // All bits set: the largest number, or minus one.
        let scene = Scene::new(0, "").number(name, u64::MAX);
        check(&scene, &format!("{name} > 0"), !signed);
        check(&scene, &format!("{name} >= 0"), !signed);
        check(&scene, &format!("{name} < 1"), signed);
        if signed {
            check(&scene, &format!("{name} == -1"), true);
            check(&scene, &format!("{name} > -2 && {name} <= -1"), true);
            check(&scene, &format!("{name} & -128"), true);
        } else {
            let minus = format!("{name} == -1");
            let error = refused(minus.as_bytes());
            assert_eq!((error.text, error.caret), (IllegalIntval, name.len() + 5));
        }
    }
}

#[test]
fn a_number_has_the_width_of_its_field() {
    let scene = Scene::new(0, "").number("u8", 44).number("s8", 0x80);
    check_all(
        &scene,
        &[
            "u8 == 300",
            "u8 < 301",
            "s8 == 128",
            "s8 == -128",
            "s8 <= 128",
        ],
        &["u8 < 300", "u8 != 300", "s8 < 128"],
    );
}

#[test]
fn bases_and_limits_of_numbers() {
    let scene = Scene::new(0, "")
        .number("u64", u64::MAX)
        .number("s64", i64::MIN as u64)
        .number("u8", 8);
    check_all(
        &scene,
        &[
            "u64 == 18446744073709551615",
            "u64 == 0xffffffffffffffff",
            "u64 == 0XFFFFFFFFFFFFFFFF",
            "u64 == 01777777777777777777777",
            "s64 == -9223372036854775808",
            "s64 == -0x8000000000000000",
            "s64 < 9223372036854775807",
            "u8 == 0x000000000000000000008",
            "u8==010",
        ],
        &[],
    );
    for text in [
        "u64 == 18446744073709551616",
        "s64 == 9223372036854775808",
        "s64 == -9223372036854775809",
        "s64 == 0xffffffffffffffff",
        "u64 == 08",
        "u64 == 0x",
        "u64 == 1a",
        "s64 == -",
    ] {
        let error = refused(text.as_bytes());
        assert_eq!((error.text, error.caret), (IllegalIntval, 8), "{text}");
    }
}

#[test]
fn what_is_no_number_never_compares() {
    let scene = Scene::new(0, "").number("stack", 5);
    check_all(
        &scene,
        &["!(args == 0)", "stack == 5", "!(stacktrace == 0)"],
        &[
            "args == 0",
            "args != 0",
            "args & 1",
            "stacktrace != 0",
            "args == CPUS{1-2}",
            "args != CPUS{0}",
        ],
    );
}

#[test]
fn common_fields_come_last() {
    let scene = Scene::new(2, "bash")
        .number("common_pid", 7)
        .number("common_type", 300);
    check_all(
        &scene,
        &[
            "common_pid == 7",
            "common_type == 300",
            "CPU == 2",
            "cpu == 2",
            "common_cpu == 2",
            "COMM == 'bash'",
        ],
        &["common_pid == 8"],
    );
}

#[test]
fn cpu() {
    let scene = Scene::new(3, "");
    check_all(
        &scene,
        &[
            "cpu == 3",
            "cpu != 2",
            "cpu < 4",
            "cpu <= 3",
            "cpu > -1",
            "cpu >= 3",
            "cpu == CPUS{3}",
            "cpu & CPUS{3}",
            "cpu != CPUS{2}",
            "cpu & CPUS{2-3}",
            "cpu != CPUS{2-3}",
            "cpu == 4294967299",
        ],
        &[
            "cpu == 2",
            "cpu != 3",
            "cpu & 3",
            "cpu == CPUS{2}",
            "cpu & CPUS{4}",
            "cpu & CPUS{4-5}",
            "cpu == CPUS{2-3}",
        ],
    );
}

#[test]
fn numbers_that_are_cpus() {
    for name in ["u8", "u16", "s32", "u64"] {
        let scene = Scene::new(0, "").number(name, 65);
        for (value, holds) in [
            ("== CPUS{65}", true),
            ("!= CPUS{65}", false),
            ("& CPUS{65}", true),
            ("& CPUS{64}", false),
            ("& CPUS{64-65}", true),
            ("& CPUS{1-64}", false),
            ("== CPUS{64-65}", false),
            ("!= CPUS{64-65}", true),
            ("!= CPUS{1-2}", true),
        ] {
            check(&scene, &format!("{name} {value}"), holds);
        }
        // A number beyond the last CPU of this machine matches nothing.
        let scene = Scene::new(0, "").number(name, 70);
        for (value, holds) in [
            ("!= CPUS{64-65}", false),
            ("& CPUS{all}", false),
            ("!= CPUS{65}", true),
        ] {
            check(&scene, &format!("{name} {value}"), holds);
        }
    }
    let scene = Scene::new(0, "").number("u64", (1 << 32) + 3);
    check_all(
        &scene,
        &["u64 & CPUS{3-4}"],
        &["u64 & CPUS{3}", "u64 == CPUS{3}"],
    );
}

#[test]
fn masks() {
    let scene = Scene::new(0, "").cpus(&[1, 65]);
    check_all(
        &scene,
        &[
            "mask == CPUS{1,65}",
            "mask != CPUS{1}",
            "mask & CPUS{1}",
            "mask & CPUS{64-66}",
            "mask != CPUS{1,64}",
            "mask != CPUS{,}",
        ],
        &[
            "mask != CPUS{65,1}",
            "mask == CPUS{1}",
            "mask & CPUS{0,2-64,66-69}",
            "mask == CPUS{1-65}",
            "mask & CPUS{,}",
        ],
    );
    let scene = Scene::new(0, "").cpus(&[65]);
    check_all(
        &scene,
        &["mask == CPUS{65}", "mask & CPUS{65}", "mask & CPUS{0-65}"],
        &["mask != CPUS{65}", "mask == CPUS{64}", "mask & CPUS{64}"],
    );
    check_all(
        &Scene::new(0, "").cpus(&[]),
        &["mask == CPUS{,}", "mask != CPUS{all}"],
        &["mask & CPUS{all}"],
    );
    let all: Vec<_> = (0..scene::CPUS).collect();
    check_all(
        &Scene::new(0, "").cpus(&all),
        &["mask == CPUS{all}", "mask == CPUS{0-N}"],
        &["mask == CPUS{0-68}"],
    );
    // A record that ends too early has an empty mask of CPUs.
    let mut scene = Scene::new(0, "").cpus(&[1]);
    scene.record.truncate(scene::END);
    check_all(&scene, &["mask == CPUS{,}"], &["mask & CPUS{all}"]);
}

#[test]
fn lists_of_cpus() {
    let list = |list: &str| {
        let filter = filter(&format!("mask & CPUS{{{list}}}"));
        let cpus = 0..scene::CPUS;
        cpus.filter(|&cpu| Scene::new(0, "").cpus(&[cpu]).matches(&filter))
            .collect::<Vec<_>>()
    };
    let all: Vec<_> = (0..scene::CPUS).collect();
    for (text, cpus) in [
        ("5", &[5][..]),
        ("0-3", &[0, 1, 2, 3]),
        ("1,3, 5\t7", &[1, 3, 5, 7]),
        (",, 2 ,", &[2]),
        ("N", &[69]),
        ("68-N", &[68, 69]),
        ("all", &all),
        ("aLL", &all),
        ("all:1/32", &[0, 32, 64]),
        ("0-9:2/4", &[0, 1, 4, 5, 8, 9]),
        ("1-6:3/3", &[1, 2, 3, 4, 5, 6]),
        ("0-9:0/4", &[]),
        ("4-6:1/100", &[4]),
        ("2-3:1/4294967295", &[2]),
        ("0-3:1/2 9", &[0, 2, 9]),
        ("0-3:1/2N", &[0, 2, 69]),
        // The list ends at a newline, unless an element follows the newline.
        ("1\n2", &[1]),
        ("1,\n2", &[1, 2]),
        ("007", &[7]),
    ] {
        assert_eq!(list(text), cpus, "{text}");
    }
    for text in [
        "70",
        "0-70",
        "3-1",
        "-1",
        "1-",
        "1--2",
        "a",
        "1a",
        "0x1",
        "0-3:",
        "0-3:1",
        "0-3:1/",
        "0-3:3/2",
        "0-3:1/0",
        "5:1/2",
        "4294967296",
        "4294967295",
        "99999999999999999999",
        "N-0",
        "alles",
        "0-3:1/2,x",
        "al",
        "+1",
    ] {
        let text = format!("cpu == CPUS{{{text}}}");
        let error = refused(text.as_bytes());
        assert_eq!(
            (error.text, error.caret, error.errno),
            (InvalidCpulist, text.len(), EINVAL),
            "{text}"
        );
    }
}

#[test]
fn strings() {
    let scene = Scene::new(0, "bash")
        .text(b"bash\0xyz")
        .dynamic("dyn", b"bash\0")
        .dynamic("rel", b"bash\0")
        .number("ptr", KERNEL_BASE as u64 + 5);
    for name in ["text", "dyn", "rel", "ptr", "comm", "COMM"] {
        let holds = [
            "== 'bash'",
            "== \"bash\"",
            "!= 'sh'",
            "!= ''",
            "!= 'ba'",
            "!= 'bashx'",
            "~ 'bash'",
            "~ 'ba*'",
            "~ '*sh'",
            "~ '*as*'",
            "~ '*'",
            "~ '**'",
            "~ '***'",
            "~ 'b*h'",
            "~ 'b??h'",
            "~ '[a-c]ash'",
            "~ '[!a]ash'",
            "~ 'b[]a]sh'",
            "~ 'b\\ash'",
            "~ '*[s]h'",
            "~ '!sh*'",
            "~ '!*ba'",
            "~ '!'",
            "~ '!*x*'",
            "~ '!b?'",
        ];
        let fails = [
            "== 'bas'",
            "== 'BASH'",
            "== ''",
            "!= 'bash'",
            "== 'ba*'",
            "== '!x'",
            "~ 'ba'",
            "~ 'sh*'",
            "~ '*ba'",
            "~ '*sa*'",
            "~ 'b*'x",
            "~ 'b?h'",
            "~ '[!b]ash'",
            "~ '[b-]'",
            "~ '!bash'",
            "~ '!ba*'",
            "~ '!*sh'",
            "~ '!*as*'",
            "~ '!b*h'",
            "~ ''",
        ];
        for op in holds {
            check(&scene, &format!("{name} {op}"), true);
            check(&scene, &format!("!{name} {op}"), false);
        }
        for op in fails.iter().filter(|op| !op.ends_with('x')) {
            check(&scene, &format!("{name} {op}"), false);
        }
    }
}

#[test]
fn a_pattern_of_a_digit_has_no_wildcards() {
    let scene = Scene::new(0, "1*");
    check_all(
        &scene,
        &["comm ~ '1*'", "comm ~ '*1*'", "comm ~ '[1]*'"],
        &["comm ~ '!1*'"],
    );
    check_all(
        &Scene::new(0, "1a"),
        &["comm ~ '!1*'"],
        &["comm ~ '1*'", "comm ~ '1?'"],
    );
}

#[test]
fn brackets_that_are_not_closed_are_literal() {
    let scene = Scene::new(0, "").dynamic("dyn", b"[a-x\0");
    check_all(
        &scene,
        &[
            "dyn ~ '[a-x'",
            "dyn ~ '[a-*'",
            "dyn ~ '*[a-x'",
            "dyn ~ '\\[a-x'",
            "dyn ~ '[[]a-x'",
            "dyn ~ '?a[-]x'",
        ],
        &["dyn ~ '[a-x]'", "dyn ~ '[a'"],
    );
    let scene = Scene::new(0, "").dynamic("dyn", b"a\0");
    check_all(
        &scene,
        &["dyn ~ '[!b-]'", "dyn ~ '[z-aa]'"],
        &[
            "dyn ~ '[]-a'",
            "dyn ~ '[z-a]'",
            "dyn ~ '[b-a]*'",
            "dyn ~ 'a\\?'",
        ],
    );
    // A backslash at the end matches the end.
    check(&scene, "dyn ~ 'a\\'", true);
    check(&scene, "dyn ~ '*\\'", true);
    check(&scene, "dyn ~ 'b\\'", false);
}

/// C compares with the end of the whole array instead.
#[test]
fn a_string_ends_at_its_nul() {
    let scene = Scene::new(0, "sh")
        .text(b"sh\0bash\0")
        .dynamic("dyn", b"sh\0bash\0");
    for name in ["text", "dyn", "comm"] {
        check(&scene, &format!("{name} ~ '*sh'"), true);
        check(&scene, &format!("{name} ~ '*as*'"), false);
        check(&scene, &format!("{name} ~ '*s?'"), true);
    }
}

#[test]
fn strings_without_nul() {
    let scene = Scene::new(0, "exactly-16-bytes")
        .text(b"12345678")
        .dynamic("dyn", b"xy")
        .dynamic("rel", b"");
    check_all(
        &scene,
        &[
            "text == '12345678'",
            "text ~ '*78'",
            "text ~ '*78*'",
            "text ~ '[1]*'",
            "text ~ '??34567?'",
            "dyn == 'xy'",
            "dyn ~ '*y'",
            "dyn ~ 'x?'",
            "rel == ''",
            "rel ~ '*'",
            "rel ~ '!?*'",
            "comm ~ '*bytes'",
        ],
        &[
            "text == '123456789'",
            "text == '1234567'",
            "dyn ~ 'x??'",
            "dyn ~ 'xyz*'",
            "rel != ''",
            "rel ~ '?'",
        ],
    );
}

#[test]
fn strings_behind_pointers() {
    let at = |kernel: u64, user: u64| Scene::new(0, "").number("ptr", kernel).number("uptr", user);
    let (kernel, user) = (KERNEL_BASE as u64, USER_BASE as u64);
    let scene = at(kernel + 100, user + 5);
    check_all(
        &scene,
        &[
            "ptr == 'a string of the kernel'",
            "ptr ~ '*kernel'",
            "uptr.ustring == '/bin/bash'",
            "uptr.ustring ~ '*/bash'",
        ],
        &[
            "ptr == 'bash'",
            "uptr.ustring != '/bin/bash'",
            "uptr ~ '*'",
            "ptr.ustring ~ '*'",
        ],
    );
    // Longer strings are cut off.
    let scene = at(kernel + 200, user);
    let all = "x".repeat(254);
    check_all(
        &scene,
        &[&format!("ptr ~ '{all}*'")],
        &[&format!("ptr == '{all}'")],
    );
    // After a fault, every comparison is false, also `!=`.
    for scene in [
        at(0, 0),
        at(kernel - 1, user - 1),
        at(kernel + 2040, user + 2047),
        at(u64::MAX, u64::MAX - 20),
    ] {
        check_all(
            &scene,
            &["!(ptr == 'x')", "!uptr.ustring ~ '*'"],
            &[
                "ptr == 'x'",
                "ptr != 'x'",
                "ptr ~ '*'",
                "ptr ~ '!x'",
                "uptr.ustring != ''",
            ],
        );
    }
    // `.ustring` has no effect on strings in the record.
    check(
        &Scene::new(0, "bash"),
        "comm.ustring == 'bash' && text.ustring == ''",
        true,
    );
    check(
        &Scene::new(0, "bash").number("u8", 1),
        "u8.ustring == 1",
        true,
    );
}

/// Memory full of endless strings. Counts the bytes that are read.
struct Endless(std::cell::Cell<usize>);

impl Memory for Endless {
    fn read_kernel(&self, to: &mut [u8], _: usize) -> bool {
        self.0.set(self.0.get() + to.len());
        to.fill(b'x');
        true
    }

    fn read_user(&self, _: &mut [u8], _: usize) -> bool {
        unreachable!()
    }
}

#[test]
fn no_more_than_1024_bytes_are_read() {
    let filter = filter("ptr ~ '*x'");
    for address in [0x10000, 0x10001, 0x1000f, u64::MAX] {
        let scene = Scene::new(0, "").number("ptr", address);
        let memory = Endless(0.into());
        let cpu = Cpu::enter(0);
        let hit = Hit::new(Record::new(&scene.record), cpu.preempt(), &scene);
        assert!(filter.matches(&hit, &memory));
        assert_eq!(memory.0.get(), 1024);
    }
}

#[test]
fn functions() {
    for (ip, inside) in [
        (0xfff, false),
        (0x1000, true),
        (0x103f, true),
        (0x1040, false),
        (u64::MAX, false),
    ] {
        let scene = Scene::new(0, "").number("ip", ip);
        check(&scene, "ip.function == schedule", inside);
        check(&scene, "ip.function != schedule", !inside);
        check(&scene, "ip.function == 0x1020", inside);
        check(
            &scene,
            "ip.function == 4096 && ip.function != last ",
            inside,
        );
        check(&scene, "ip.function == empty", false);
        check(&scene, "ip.function != empty", true);
    }
    // A name goes up to the next blank, whatever it contains.
    check(
        &Scene::new(0, "").number("ip", 0x1000),
        "(ip.function == schedule )",
        true,
    );
    let error = refused(b"(ip.function == schedule)");
    assert_eq!((error.text, error.caret), (NoFunction, 26));
}

#[test]
fn precedence_and_negation() {
    let scene = |a: u64, b: u64, c: u64| {
        Scene::new(0, "")
            .number("u8", a)
            .number("u16", b)
            .number("u32", c)
    };
    for bits in 0..8 {
        let (a, b, c) = (bits & 1 != 0, bits & 2 != 0, bits & 4 != 0);
        let scene = scene(a.into(), b.into(), c.into());
        let (x, y, z) = ("u8 == 1", "u16 == 1", "u32 == 1");
        for (text, holds) in [
            (format!("{x} && {y} || {z}"), a && b || c),
            (format!("{x} || {y} && {z}"), a || b && c),
            (format!("({x} || {y}) && {z}"), (a || b) && c),
            (format!("{x} && ({y} || {z})"), a && (b || c)),
            (format!("!{x} && {y} || {z}"), !a && b || c),
            (format!("!({x} && {y}) || {z}"), !(a && b) || c),
            (format!("!(!{x} && !({y} || {z}))"), a || b || c),
            (format!("!!{x} && ! ! !{y}"), a && !b),
            (format!("(({x}))&&(((({y})))&&{z})"), a && b && c),
            (format!("{x}||{y}||{z}"), a || b || c),
            (format!("!({x} || {y} && !{z})"), !(a || b && !c)),
            (
                format!("{x} && {y} && !{z} || !{x} && {z}"),
                a && b && !c || !a && c,
            ),
        ] {
            check(&scene, &text, holds);
        }
    }
}

#[test]
fn blanks_are_free() {
    let scene = Scene::new(0, "").number("u8", 1);
    check_all(
        &scene,
        &[
            " u8==1 ",
            "\tu8\n==\x0b1\r",
            "( ! ( u8 != 1 ) )",
            "u8==1&&u8==1||u8==2",
        ],
        &[],
    );
    // The no-break space of Latin-1 counts as a blank, too.
    assert!(scene.matches(&parse(b"\xa0u8\xa0==\xa01\xa0").ok().unwrap()));
}

#[test]
fn the_text_ends_at_a_nul() {
    let scene = Scene::new(0, "").number("u8", 1);
    assert!(scene.matches(&parse(b"u8 == 1\0 && u8 == 2").ok().unwrap()));
    assert_eq!(refused(b"\0u8 == 1"), refused(b""));
}

#[test]
fn errors() {
    let rows = table::rows(&["filter", "host-filter"]);
    for row in &rows {
        let found = refused(&row.command);
        let text = String::from_utf8_lossy(&row.command);
        assert_eq!(found.errno, row.errno, "{text:?}");
        if found.text.as_str() == row.sentence {
            assert_eq!(found.caret, row.caret, "{text:?}");
            continue;
        }
        let hint = found.hint.expect(&text);
        let both = format!("{}: {}", found.text.as_str(), hint.text.as_str());
        assert_eq!(
            (&both[..], hint.caret),
            (row.sentence, row.caret),
            "{text:?}"
        );
    }
    // Strings have 255 bytes at most.
    let long = format!("comm == '{}'", "x".repeat(255));
    filter(&long);
    let long = format!("comm == '{}'", "x".repeat(256));
    let error = refused(long.as_bytes());
    assert_eq!(
        (error.text, error.caret, error.errno),
        (OperandTooLong, 266, EINVAL)
    );
    // Every sentence has occurred.
    for error in FilterErrorText::ALL {
        assert!(
            *error == OperandTooLong || rows.iter().any(|row| row.sentence == error.as_str()),
            "{error:?}"
        );
    }
    assert_eq!(refused(b"nosuch == 1").hint, None);
    assert_eq!(refused(b"u8 == 1 &&").hint, None);
}

#[test]
fn letters_of_latin_1_are_letters() {
    for (text, error, caret) in [
        (&b"u\xe9 == 1"[..], FieldNotFound, 3),
        (b"u8\xd7 == 1", InvalidOp, 3),
        (b"u8 == 1\xe9", IllegalIntval, 7),
        (b"u8 == 1\xf7", TooManyPreds, 7),
    ] {
        let refusal = refused(text);
        assert_eq!((refusal.text, refusal.caret), (error, caret));
    }
}

#[test]
fn sentences() {
    assert_eq!(
        InvalidValue.as_str(),
        "Invalid value (did you forget quotes)?"
    );
    assert_eq!(TooManyClose.as_str(), "Too few '('");
    assert_eq!(rhist::filter::LOCATION, b"event filter parse error");
}

#[test]
fn no_text_takes_long() {
    let nested = |n: usize| format!("{}u8 == 1{}", "(".repeat(n), ")".repeat(n));
    let texts = [
        nested(2040),
        format!("!{}", nested(2000)),
        "!".repeat(4096),
        "(".repeat(4096),
        ")".repeat(4096),
        "'".repeat(4096),
        "u8==1||".repeat(580) + "u8==2",
        "u8==1&&".repeat(580) + "u8==2",
        "(u8==1||".repeat(400) + "u8==2" + &")".repeat(400),
        "!(u8==1&&".repeat(350) + "u8==2" + &")".repeat(350),
        format!("mask & CPUS{{{}}}", "all,".repeat(1000)),
        format!("mask & CPUS{{{}}}", "0-N:1/1,".repeat(500)),
        "9".repeat(4096),
        "a".repeat(4096),
        format!("comm ~ '{}'", "*a".repeat(127)),
    ];
    let scenes = scene::scenes();
    let start = Instant::now();
    for text in texts {
        if let Ok(filter) = parse(text.as_bytes()) {
            for scene in &scenes {
                scene.matches(&filter);
            }
        }
    }
    assert!(
        start.elapsed() < Duration::from_secs(2),
        "{:?}",
        start.elapsed()
    );
}

#[test]
fn a_long_string_does_not_take_long() {
    // A matcher that tries each way would run for ever.
    let scene = Scene::new(0, "").dynamic("dyn", &[b'a'; 4000]);
    let filter = filter(&format!("dyn ~ '{}b'", "*a".repeat(127)));
    let start = Instant::now();
    assert!(!scene.matches(&filter));
    assert!(
        start.elapsed() < Duration::from_secs(1),
        "{:?}",
        start.elapsed()
    );
}

#[test]
fn long_programs_hold_for_what_they_say() {
    let equal = |n: u32| format!("u16 == {n}");
    let text = (0..300).map(equal).collect::<Vec<_>>().join(" || ");
    let (any, none) = (filter(&text), filter(&format!("!({text})")));
    for number in [0, 1, 150, 299, 300, 65535] {
        let scene = Scene::new(0, "").number("u16", number);
        assert_eq!(scene.matches(&any), number < 300);
        assert_eq!(scene.matches(&none), number >= 300);
    }
}

#[test]
fn any_allocation_may_fail() {
    let event = scene::event();
    for (text, most) in [
        ("u8 == 1", 10),
        (
            "comm == 'bash' && (text ~ 'a*' || dyn ~ '*?') && rel ~ '!x'",
            40,
        ),
        (
            "cpu & CPUS{1-3} || mask == CPUS{all} || u8 != CPUS{1,2}",
            40,
        ),
        ("ip.function == schedule", 10),
        ("((((u8 == 1))))", 10),
    ] {
        let live = fault::live();
        let (result, allocations) = fault::each(
            || Filter::parse(text.as_bytes(), &event, scene::CPUS, &scene::Kernel).map(drop),
            |failed| {
                let expected = FilterError {
                    text: Errno,
                    caret: 0,
                    hint: None,
                    errno: ENOMEM,
                };
                assert_eq!(failed, Err(expected), "{text}");
            },
        );
        assert_eq!(result, Ok(()), "{text}");
        assert!((5..most).contains(&allocations), "{text}: {allocations}");
        assert_eq!(fault::live(), live);
    }
}

#[test]
fn a_hit_allocates_nothing() {
    let filters = [
        "comm ~ '*a*b' || text == 'x' || dyn ~ 'k*' || rel != 'a'",
        "ptr ~ '*sh' || uptr.ustring == 'user'",
        "mask & CPUS{1-3} && u8 & CPUS{3-4} || cpu == 3",
    ]
    .map(filter);
    let scenes = scene::scenes();
    let run = || {
        let pairs = scenes
            .iter()
            .flat_map(|s| filters.iter().map(move |f| (s, f)));
        pairs
            .map(|(scene, filter)| scene.matches(filter))
            .collect::<Vec<_>>()
    };
    let free = run();
    let (result, allocations) = fault::each(run, |_| ());
    assert_eq!((result, allocations), (free, 0));
}
