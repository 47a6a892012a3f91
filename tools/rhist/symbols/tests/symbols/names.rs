// SPDX-License-Identifier: MIT OR Apache-2.0

//! How names are shown.

use crate::file::*;
use rhist_symbols::MOST_RAW;
use rhist_symbols::MOST_SHOWN;
use rhist_symbols::Name;
use rhist_symbols::Shown;
use std::time::Duration;
use std::time::Instant;

/// A name as it is shown, and the raw one.
fn names(name: &[u8]) -> (String, Vec<u8>) {
    let symbol = Symbol {
        name: name.to_vec(),
        ..func("", 0, 8)
    };
    let symbols = File::new(vec![symbol]).read().unwrap();
    let (name, _) = symbols.find(CODE).unwrap();
    (name.shown().to_string(), name.raw().to_vec())
}

fn assert_shown(rows: &[(&str, &str)]) {
    for (raw, shown) in rows {
        assert_eq!(names(raw.as_bytes()), ((*shown).to_owned(), raw.as_bytes().to_vec()));
    }
}

#[test]
fn rust() {
    assert_shown(&[
        (
            "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE",
            "core::fmt::Write::write_fmt",
        ),
        ("_ZN3foo3bar17h0123456789abcdefE.llvm.123", "foo::bar"),
        (
            "_ZN3foo28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE",
            "foo::{{closure}}",
        ),
        ("_RNvC6_123foo3bar", "123foo::bar"),
        ("_RNvCs4fqI2P2rA04_7mycrate3foo", "mycrate::foo"),
        ("_RNv", "_RNv"),
    ]);
}

#[test]
fn cpp() {
    assert_shown(&[
        ("_ZN3foo3barEi", "foo::bar(int)"),
        ("_ZN3foo3barE", "foo::bar"),
        ("_Znwm", "operator new(unsigned long)"),
        ("_Znwm@@GLIBCXX_3.4", "operator new(unsigned long)"),
        (
            "_ZNSt6vectorIiSaIiEE9push_backERKi",
            "std::vector<int, std::allocator<int> >::push_back(int const&)",
        ),
        ("_Z3foov.cold", "foo() [clone .cold]"),
        ("_Z", "_Z"),
        ("_Zfoo", "_Zfoo"),
        ("main", "main"),
        ("i", "i"),
    ]);
}

#[test]
fn versions() {
    assert_shown(&[
        ("memcpy@@GLIBC_2.14", "memcpy"),
        ("memcpy@GLIBC_2.2.5", "memcpy"),
        ("@V_1", "@V_1"),
        ("@@V_1", "@@V_1"),
        ("a@", "a@"),
        ("github.com/a@v1/b", "github.com/a@v1/b"),
    ]);
}

#[test]
fn what_a_terminal_interprets_is_escaped() {
    assert_shown(&[
        ("a\u{1b}[31mb", "a\\u{1b}[31mb"),
        ("a\nb\r\tc", "a\\u{a}b\\u{d}\\u{9}c"),
        ("a\\nb", "a\\\\nb"),
        ("a\u{202e}b\u{200b}\u{85}\u{7f}", "a\\u{202e}b\\u{200b}\\u{85}\\u{7f}"),
        ("größe_ñ", "größe_ñ"),
        ("a\u{a0}b\u{3000}c", "a\\u{a0}b\\u{3000}c"),
        ("a;b", "a:b"),
        ("a b", "a b"),
        (" a  b ", "\\u{20}a\\u{20} b\\u{20}"),
        ("  ", "\\u{20}\\u{20}"),
        // Nothing in a name of C++.
        ("_ZN3a\u{1b};3b  Ev", "_ZN3a\\u{1b}:3b\\u{20} Ev"),
    ]);
    assert_eq!(names(b"a\xff\xc3b").0, "a\\xff\\xc3b");
}

#[test]
fn long_names_are_cut() {
    let name = "x".repeat(MOST_SHOWN);
    assert_eq!(names(name.as_bytes()).0, name);
    assert_eq!(names((name.clone() + "y").as_bytes()).0, name.clone() + "…");
    let (shown, raw) = names("é".repeat(MOST_RAW).as_bytes());
    assert_eq!((raw.len(), shown.len()), (MOST_RAW, MOST_SHOWN + "…".len()));
    // Demangled, it is shorter; cut, it is not a mangled name.
    let mangled = |size: usize| format!("_Z{size}{}v", "x".repeat(size));
    assert_eq!(names(mangled(4000).as_bytes()).0, "x".repeat(4000) + "()");
    assert_eq!(names(mangled(MOST_SHOWN).as_bytes()).0, name + "…");
    assert!(names(mangled(MOST_RAW).as_bytes()).0.starts_with("_Z16384xxx"));
}

/// Mangled names that stand for much longer ones, or that nest without end.
#[test]
fn hostile_names_take_no_time() {
    let nested = |open: &str, inner: &str, close: &str| {
        let count = (MOST_RAW - 100) / (open.len() + close.len()).max(1);
        format!("_Z1fI{}{inner}{}Evv", open.repeat(count), close.repeat(count))
    };
    // Each substitution doubles the length.
    let mut doubling = "_Z1fI1aIiiE".to_owned();
    for number in 0..60 {
        let digits = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
        let sequence = match number {
            0 => "S_".to_owned(),
            1..36 => format!("S{}_", digits[number - 1] as char),
            _ => format!(
                "S{}{}_",
                digits[(number - 1) / 36] as char,
                digits[(number - 1) % 36] as char
            ),
        };
        doubling += &format!("1aI{sequence}{sequence}E");
    }
    doubling += "Evv";
    let names_of_files = [
        nested("P", "i", ""),
        nested("1aI", "i", "E"),
        nested("F", "i", "E"),
        nested("A1_", "i", ""),
        nested("DpT_", "", ""),
        nested("X", "Li1E", "E"),
        nested("XadL_Z1f", "", "EE"),
        nested("Dv4_", "i", ""),
        nested("J", "i", "E"),
        nested("N", "1a", "E"),
        nested("Z1av", "", "E"),
        nested("cv", "i", ""),
        nested("T_", "", ""),
        nested("S_", "", ""),
        doubling,
        format!("_RNv{}", "C".repeat(MOST_RAW - 10)),
        format!("_RI{}", "B_".repeat(8000)),
        format!("_RNvC1a{}", "u".repeat(MOST_RAW - 10)),
        format!("_RINvC1a1b{}E", "TB9_B9_B9_B9_B9_".repeat(900)),
        format!("_ZN{}17h0123456789abcdefE", "1a".repeat(8000)),
    ];
    for raw in names_of_files {
        let begin = Instant::now();
        let (shown, _) = names(raw.as_bytes());
        assert!(shown.len() <= MOST_SHOWN + "…".len());
        assert!(
            begin.elapsed() < Duration::from_secs(2),
            "{:?} for {}",
            begin.elapsed(),
            &raw[..40]
        );
    }
}

#[test]
fn names_of_another_process() {
    let shown = |raw, is_plt| Name::new(raw, is_plt).map(|name| name.shown().to_string());
    assert_eq!(shown(b"_ZN3foo3barEi", false).unwrap(), "foo::bar(int)");
    assert_eq!(shown(b"memcpy@@GLIBC_2.14", true).unwrap(), "memcpy@plt");
    assert_eq!(shown(b"a\n", false).unwrap(), "a\\u{a}");
    assert_eq!(shown(b"", false), None);
    assert_eq!(shown(b"a\0b", false), None);
    assert!(Name::new(&vec![b'a'; MOST_RAW], false).is_some());
    assert!(Name::new(&vec![b'a'; MOST_RAW + 1], false).is_none());
}

/// Texts are not taken apart as names are.
#[test]
fn texts() {
    for (text, shown) in [
        (&b"libc.so.6"[..], "libc.so.6"),
        (b"_ZN3foo3barEi", "_ZN3foo3barEi"),
        (b"unit@2", "unit@2"),
        (b"a b;\x1b[2J\xff ", "a b:\\u{1b}[2J\\xff\\u{20}"),
        (b"", "?"),
    ] {
        assert_eq!(&*Shown::of_text(text), shown);
    }
    assert_eq!(
        Shown::of_text(&vec![b'a'; MOST_SHOWN + 1]).len(),
        MOST_SHOWN + '…'.len_utf8()
    );
}
