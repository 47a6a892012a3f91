// SPDX-License-Identifier: GPL-2.0

//! Descriptions of user events, and checks of their payloads.

#![cfg(not(loom))]

use kernel::error::code::*;
use kernel::error::Error;
use kernel::fault;
use kernel::prelude::KVec;
use rhist::user_events::abi::UserReg;
use rhist::user_events::abi::UserRegOriginal;
use rhist::user_events::abi::UserUnreg;
use rhist::user_events::description::Description;
use rhist::user_events::field::declares;
use rhist::user_events::field::normalized;
use rhist::user_events::field::UserFields;

fn fields(text: &str) -> UserFields {
    UserFields::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error:?}"))
}

fn declared(fields: &UserFields) -> String {
    let mut out = KVec::new();
    fields.declare(&mut out).unwrap();
    String::from_utf8(out.to_vec()).unwrap()
}

fn print_fmt(text: &str) -> String {
    let out = fields(text).print_fmt().unwrap();
    let (nul, text) = out.split_last().unwrap();
    assert_eq!(*nul, 0);
    String::from_utf8(text.to_vec()).unwrap()
}

#[test]
fn names() {
    let parse = |text: &'static str| Description::parse(text.as_bytes());
    for (text, name, fields) in [
        ("a", "a", ""),
        ("a ", "a", ""),
        ("a  ", "a", " "),
        ("a u32 b", "a", "u32 b"),
        ("a:", "", ""),
        ("\u{e0}-.x u32 b;u8 c", "\u{e0}-.x", "u32 b;u8 c"),
    ] {
        let expected = match name {
            "" => Err(EINVAL),
            _ => Ok((name.as_bytes(), fields.as_bytes())),
        };
        assert_eq!(parse(text).map(|d| (d.name, d.fields)), expected, "{text}");
    }
    for text in [
        "",
        " u32 a",
        ".",
        "..",
        ". u32 a",
        "a/b",
        "/",
        "a\tb",
        "a\n",
        "\x7f",
        "a:b u32 c",
        "a: u32 b",
        ":a",
        "enable",
        "enable u32 a",
        "filter",
        "#",
        "a#b",
    ] {
        assert_eq!(parse(text), Err(EINVAL), "{text:?}");
    }
    for text in ["enabled", "Enable", "filter_", "enable.1"] {
        assert!(parse(text).is_ok(), "{text:?}");
    }
}

#[test]
fn names_of_the_original_interface() {
    let parse = |text: &'static str| Description::parse_original(text.as_bytes());
    for (text, name, fields) in [
        ("a", "a", ""),
        ("a u32 b", "a", "u32 b"),
        ("a:", "a", ""),
        ("a:b:c u32 d:e", "a", "u32 d:e"),
        ("a u32 b:c", "a", "u32 b:c"),
    ] {
        let expected = Ok((name.as_bytes(), fields.as_bytes()));
        assert_eq!(parse(text).map(|d| (d.name, d.fields)), expected, "{text}");
    }
    for text in [
        "", ":", ":a", " u32 a", ".:a", "..", "a/b:c", "a\tb:c", "enable", "filter:a",
    ] {
        assert_eq!(parse(text), Err(EINVAL), "{text:?}");
    }
}

#[test]
fn types() {
    for (type_, size, signed, conversion) in [
        ("s64", 8, true, "%lld"),
        ("u64", 8, false, "%llu"),
        ("s32", 4, true, "%d"),
        ("int", 4, true, "%d"),
        ("u32", 4, false, "%u"),
        ("unsigned int", 4, false, "%u"),
        ("s16", 2, true, "%d"),
        ("short", 2, true, "%d"),
        ("u16", 2, false, "%u"),
        ("unsigned short", 2, false, "%u"),
        ("s8", 1, true, "%d"),
        ("char", 1, true, "%d"),
        ("u8", 1, false, "%u"),
        ("unsigned char", 1, false, "%u"),
        ("char[20]", 20, true, "%s"),
        ("char[1]", 1, true, "%s"),
        ("char[1024]", 1024, true, "%s"),
        ("char[0x10]", 16, true, "%s"),
        ("char[010]", 8, true, "%s"),
        ("char[+7]", 7, true, "%s"),
        ("char[4]x", 4, true, "%s"),
        ("unsigned char[8]", 8, false, "%s"),
        ("__data_loc char[]", 4, true, "%s"),
        ("__data_loc unsigned char[]", 4, true, "%s"),
        ("__rel_loc char[]", 4, true, "%s"),
        ("__rel_loc u8[]", 4, true, "%llu"),
        ("__data_loc whatever", 4, true, "%llu"),
    ] {
        let fields = fields(&format!("{type_} name"));
        let field = fields.iter().next().unwrap();
        assert_eq!(field.type_.to_str(), Ok(type_));
        assert_eq!(field.name.to_str(), Ok("name"));
        assert_eq!((field.size, field.is_signed()), (size, signed), "{type_}");
        assert_eq!(fields.min_size(), size as usize);
        assert!(print_fmt(&format!("{type_} name")).starts_with(&format!("\"name={conversion}\"")));
    }
}

#[test]
fn offsets_are_packed() {
    let fields = fields("u8 a;struct my_type b 20; u16 c;__rel_loc char[] d;char[3] e;u64 f;");
    let places: Vec<_> = fields
        .iter()
        .map(|f| (f.name.to_str().unwrap(), f.offset, f.size))
        .collect();
    let expected = [
        ("a", 8, 1),
        ("b", 9, 20),
        ("c", 29, 2),
        ("d", 31, 4),
        ("e", 35, 3),
        ("f", 38, 8),
    ];
    assert_eq!(places, expected);
    assert_eq!(fields.min_size(), 38);
    assert_eq!(fields.len(), 6);
}

#[test]
fn no_fields() {
    for text in ["", " ", ";", " ; ;; "] {
        let fields = fields(text);
        assert!(fields.is_empty());
        assert_eq!(fields.min_size(), 0);
        assert_eq!(print_fmt(text), "\"\"");
        assert_eq!(declared(&fields), "");
    }
}

#[test]
fn bad_fields() {
    for text in [
        "u32",
        "u32 ",
        "u32  a",
        "u32 a ",
        "u32 a 4",
        "u32\ta",
        "a",
        "long a",
        "unsigned long a",
        "unsigned",
        "unsigned ",
        "unsigned int",
        "unsigned  int a",
        "U32 a",
        "char[] a",
        "char[0] a",
        "char[1025] a",
        "char[-1] a",
        "char[x] a",
        "char[4 a",
        "char[0x0000000000001] a",
        "char[4]xxxxxx a",
        "u8[4] a",
        "unsigned u8[4] a",
        "struct a",
        "struct a b",
        "struct a b 0",
        "struct a b 0x10",
        "struct a b -1",
        "struct a b ",
        "struct a b 65537",
        "struct a b 4294967295",
        "struct a b 4294967296",
        "struct a b 4 4",
        "struct a b 40000;struct c d 40000",
        "__data_loc",
        "__data_loc char[]",
        "__rel_loc char[]",
        "__data_loc char[] a 4",
        "u32 a;long b",
        "u32 a,u32 b",
        "u32 a\nb",
        "u32 a\n",
        "u32 a\t;u8 b",
        "struct a\nb c 4",
        "struct a b 4\n",
        "__rel_loc\rchar a",
        "u32 a\x7f",
        "u32 a\x1b[0m",
        "u32 a#b",
        "u32 a%n",
        "u32 a\"",
        "u32 a\\",
        "struct \"a\" b 4",
        "int common_pid",
        "u8 a;__rel_loc char[] common_",
    ] {
        assert_eq!(
            UserFields::parse(text.as_bytes()).err(),
            Some(EINVAL),
            "{text}"
        );
    }
    for text in [
        "struct a b 65536",
        "struct a b +4",
        "struct a b 65535;u8 c",
        "u32 cpu;u32 comm;u32 stacktrace;u32 hitcount",
        "u32 common;u32 uncommon_pid;struct common_x a 4",
    ] {
        fields(text);
    }
}

#[test]
fn print_formats() {
    for (text, expected) in [
        ("u32 a;s8 b", "\"a=%u b=%d\", REC->a, REC->b"),
        ("__data_loc char[] a", "\"a=%s\", __get_str(a)"),
        (
            "__rel_loc unsigned char[] a;u64 b",
            "\"a=%s b=%llu\", __get_rel_str(a), REC->b",
        ),
        ("__rel_loc u32[] a", "\"a=%llu\", REC->a"),
        ("__data_loc char a", "\"a=%llu\", __get_str(a)"),
        ("struct x a 4", "\"a=%llu\", REC->a"),
    ] {
        assert_eq!(print_fmt(text), expected, "{text}");
    }
}

#[test]
fn matching() {
    let matches = |ours: &str, said: &str| {
        let ours = fields(ours).normalized().unwrap();
        let same = ours[..] == normalized(said.as_bytes()).unwrap()[..];
        assert_eq!(declares(said.as_bytes(), &ours), same, "{said}");
        same
    };
    for (ours, said) in [
        ("", ""),
        ("", "  \t"),
        ("u32 a", "u32 a"),
        ("u32 a", "u32 a;"),
        ("u32 a;", "u32 a"),
        ("u32 a", " u32\t  a "),
        ("u32 a;u32 b", "u32 a; u32 b"),
        ("u32 a; u32 b", "u32 a;u32 b;"),
        (
            "unsigned int a;__rel_loc char[] b",
            "unsigned  int a;\n__rel_loc char[] b",
        ),
        ("struct x a 4", "struct x a 4"),
        ("struct x a 4;u8 b", "struct x a 4;u8 b"),
    ] {
        assert!(matches(ours, said), "{ours:?} {said:?}");
    }
    for (ours, said) in [
        ("", "u32 a"),
        ("", ";"),
        ("u32 a", ""),
        ("u32 a", "u32 b"),
        ("u32 a", "s32 a"),
        ("u32 a", "u32 a u32 b"),
        ("u32 a", "u32 a; u32 b"),
        ("u32 a;u32 b", "u32 a"),
        ("u32 a;u32 b", "u32 a u32 b"),
        ("u32 a;u32 b", "u32 b;u32 a"),
        ("u32 a", "u32 a ;"),
        ("u32 a", "u32 a;;"),
        ("struct x a 4", "struct x a"),
        ("struct x a 4", "struct x a 04"),
        ("struct x a 4", "struct x a 5"),
    ] {
        assert!(!matches(ours, said), "{ours:?} {said:?}");
    }
}

/// Encodes a string's place in 32 bits.
fn place(offset: u32, len: u32) -> [u8; 4] {
    (len << 16 | offset).to_ne_bytes()
}

#[test]
fn relative_strings() {
    let fields = fields("__rel_loc char[] msg;u8 n");
    let payload = |offset, len, rest: &[u8]| [&place(offset, len)[..], rest].concat();
    for (offset, len, rest, expected) in [
        (1, 3, &b"nhi\0"[..], true),
        (1, 2, b"nhi\0", false),
        (1, 4, b"nhi\0", false),
        (2, 3, b"nhi\0", false),
        (3, 1, b"nhi\0", true),
        (4, 0, b"nhi\0", true),
        (5, 0, b"nhi\0", false),
        (0xffff, 0xffff, b"nhi\0", false),
        (0, 0xffff, b"nhi\0", false),
        // Empty: the byte before it is the highest byte of its length.
        (0, 0, b"n", true),
        (0, 1, b"\0", true),
        (0, 1, b"n", false),
    ] {
        let payload = payload(offset, len, rest);
        assert_eq!(fields.accept(&payload), expected, "{offset} {len}");
    }
}

#[test]
fn strings_in_the_record() {
    let fields = fields("u8 n;__data_loc char[] msg");
    // The field is at 9, the bytes behind it at 13.
    for (offset, len, rest, expected) in [
        (13, 3, &b"hi\0"[..], true),
        (13, 2, b"hi\0", false),
        (13, 4, b"hi\0", false),
        (14, 2, b"hi\0", true),
        (16, 0, b"hi\0", true),
        (17, 0, b"hi\0", false),
        // In front of the payload, where no string can end.
        (0, 0, b"hi\0", false),
        (0, 8, b"hi\0", false),
        (4, 4, b"hi\0", false),
        // The NUL belongs to the field before.
        (0, 9, b"hi\0", true),
    ] {
        let payload = [&[0][..], &place(offset, len), rest].concat();
        assert_eq!(fields.accept(&payload), expected, "{offset} {len}");
    }
}

#[test]
fn what_is_no_string() {
    let fields = fields("__data_loc u8[] a;__rel_loc u32[] b");
    let accept =
        |a: [u8; 4], b: [u8; 4], rest: &[u8]| fields.accept(&[&a[..], &b[..], rest].concat());
    assert!(accept(place(16, 3), place(0, 3), b"abc"));
    assert!(accept(place(0, 0), place(3, 0), b"abc"));
    assert!(!accept(place(16, 4), place(0, 3), b"abc"));
    assert!(!accept(place(16, 3), place(0, 4), b"abc"));
}

#[test]
fn no_memory() {
    let text = b"u32 a;struct x b 20;__rel_loc char[] c";
    let live = fault::live();
    let fail = |result: Result<(), Error>| assert_eq!(result, Err(ENOMEM));
    let parse = || UserFields::parse(text).map(drop);
    let (result, allocations) = fault::each(parse, fail);
    assert_eq!(result, Ok(()));
    assert!(allocations >= 3, "{allocations}");
    let fields = UserFields::parse(text).unwrap();
    for work in [
        &(|| normalized(text).map(drop)) as &dyn Fn() -> Result<(), Error>,
        &|| fields.normalized().map(drop),
        &|| fields.print_fmt().map(drop),
        &|| fields.declare(&mut KVec::new()),
    ] {
        let (result, allocations) = fault::each(work, fail);
        assert_eq!(result, Ok(()));
        assert!(allocations > 0);
    }
    drop(fields);
    assert_eq!(fault::live(), live);
}

#[test]
fn registrations() {
    let bytes = |bit: u8, size: u8, flags: u16, addr: u64| {
        let mut bytes = [0xff; UserReg::SIZE];
        bytes[4..6].copy_from_slice(&[bit, size]);
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        bytes[8..16].copy_from_slice(&addr.to_ne_bytes());
        bytes[16..24].copy_from_slice(&0x1234_5678_9abcu64.to_ne_bytes());
        bytes
    };
    let parse = |bit, size, flags, addr| UserReg::parse(&bytes(bit, size, flags, addr));
    let expected = UserReg {
        bit: 63,
        size: 8,
        persistent: false,
        multi: true,
        addr: 0x1000,
        description: 0x1234_5678_9abc,
    };
    assert_eq!(parse(63, 8, 2, 0x1000), Ok(expected));
    assert!(parse(31, 4, 1, 0x1004).is_ok_and(|register| register.persistent && !register.multi));
    for size in 0..=u8::MAX {
        assert_eq!(
            parse(0, size, 0, 0).is_ok(),
            matches!(size, 4 | 8),
            "{size}"
        );
    }
    for (bit, size, flags, addr) in [
        (32, 4, 0, 0),
        (255, 4, 0, 0),
        (64, 8, 0, 0),
        (0, 4, 4, 0),
        (0, 4, 0x8000, 0),
        (0, 4, 0, 2),
        (0, 8, 0, 4),
    ] {
        assert_eq!(
            parse(bit, size, flags, addr),
            Err(EINVAL),
            "{bit} {size} {flags} {addr}"
        );
    }
}

#[test]
fn unregistrations() {
    let mut bytes = [0; UserUnreg::SIZE];
    bytes[4] = 17;
    bytes[8..].copy_from_slice(&0x7fff_0000_1234u64.to_ne_bytes());
    let expected = UserUnreg {
        bit: 17,
        addr: 0x7fff_0000_1234,
    };
    assert_eq!(UserUnreg::parse(&bytes), Ok(expected));
    for reserved in 5..8 {
        let mut bytes = bytes;
        bytes[reserved] = 1;
        assert_eq!(UserUnreg::parse(&bytes), Err(EINVAL));
    }
}

#[test]
fn requests_of_the_original_interface() {
    let mut bytes = [0xff; UserRegOriginal::SIZE];
    bytes[..4].copy_from_slice(&20u32.to_ne_bytes());
    bytes[4..12].copy_from_slice(&0x1234_5678_9abcu64.to_ne_bytes());
    let description = 0x1234_5678_9abc;
    assert_eq!(
        UserRegOriginal::parse(&bytes),
        UserRegOriginal { description }
    );
    assert_eq!(UserRegOriginal::RESULTS + 8, UserRegOriginal::SIZE);
}
