// SPDX-License-Identifier: GPL-2.0

//! Any text: no panic, no loss on the way through the printer, no memory left behind.

#[path = "trigger/exercise.rs"]
mod exercise;
#[path = "trigger/print.rs"]
mod print;
#[path = "trigger/shape.rs"]
mod shape;
#[path = "trigger/strategy.rs"]
mod strategy;
#[path = "trigger/walk.rs"]
mod walk;

use exercise::exercise;
use kernel::fault;
use kernel::prelude::KVec;
use kernel::prelude::ENOMEM;
use print::print;
use proptest::collection::vec;
use proptest::prelude::*;
use rhist::trigger::*;
use strategy::pieces;
use strategy::sums;
use strategy::triggers;

proptest! {
    #![proptest_config(ProptestConfig { cases: 8192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes(written in vec(any::<u8>(), 0..512)) {
        exercise(&written);
        exercise(&[b"hist:", &written[..]].concat());
        exercise(&[b"hist:keys=pid:", &written[..]].concat());
    }

    #[test]
    fn any_pieces(written in pieces()) {
        exercise(&[b"hist:", &written[..]].concat());
        exercise(&[b"hist:keys=pid:", &written[..]].concat());
        exercise(&[b"hist:keys=", &written[..]].concat());
        exercise(&[b"hist:keys=pid:x=", &written[..]].concat());
    }

    #[test]
    fn any_trigger(written in triggers()) {
        exercise(format!("hist:{written}").as_bytes());
    }

    #[test]
    fn any_sums(written in sums()) {
        exercise(format!("hist:{written}").as_bytes());
    }

    #[test]
    fn any_number(value: u64) {
        prop_assert_eq!(number(value.to_string().as_bytes()), Ok(value));
        prop_assert_eq!(number(format!("{value:#x}").as_bytes()), Ok(value));
        prop_assert_eq!(number(format!("0{value:o}").as_bytes()), Ok(value));
    }

    /// The kernel's search for `if`, one byte after the other.
    #[test]
    fn any_filter(text in "[if \tx]{0,8}", tail in "[if \tx]{0,6}") {
        let params = format!("k{text}:keys=pid{tail}");
        let params = params.trim_end_matches([' ', '\t']);
        let expected = (1..params.len()).find_map(|at| {
            let blank = |byte: Option<char>| matches!(byte, Some(' ' | '\t'));
            let (before, rest) = params.split_at(at);
            (rest.starts_with("if") && blank(before.chars().next_back())).then_some(())?;
            match rest.len() {
                0..=3 => Some(None),
                _ => blank(rest.chars().nth(2)).then_some(Some(at)),
            }
        });
        let found = match Trigger::parse(params.as_bytes()) {
            Ok(trigger) => Some(trigger.filter.map(|filter| filter.clause.start - 5)),
            Err(_) => None,
        };
        match expected {
            // Nothing after it.
            Some(None) => prop_assert_eq!(found, None),
            Some(Some(at)) if found.is_some() => prop_assert_eq!(found, Some(Some(at))),
            Some(Some(_)) => (),
            None => prop_assert!(matches!(found, None | Some(None))),
        }
    }

    /// Every allocation fails once.
    #[test]
    fn no_memory(written in triggers()) {
        let live = fault::live();
        let parse = || Trigger::parse(written.as_bytes());
        let (trigger, _) = fault::each(parse, |result| {
            assert_eq!(result.err(), Some(Error::silent(ENOMEM)));
        });
        if let Ok(trigger) = trigger {
            let print = || {
                let mut out = KVec::new();
                print(&trigger, &mut out)
            };
            let (result, allocations) = fault::each(print, |result| {
                assert_eq!(result, Err(Error::silent(ENOMEM)));
            });
            prop_assert_eq!(result, Ok(()));
            prop_assert!(allocations > 0);
            drop(trigger);
        }
        prop_assert_eq!(fault::live(), live);
    }
}

/// Past findings of these tests, which were bugs of the printer.
#[test]
fn found() {
    exercise(b"hist:keys=-.sym-offset.percentonchange($x)");
    exercise(b"hist:keys=snapshot()  if\n if vals=-(trace(,y=");
}

/// The longest possible commands, full of repeated pieces that stress the grammar.
#[test]
fn hostile() {
    let fill = |prefix: &str, unit: &str| {
        let mut text = prefix.to_owned();
        while text.len() + unit.len() < 4096 {
            text += unit;
        }
        text
    };
    for prefix in [
        "hist:keys=",
        "hist:keys=pid:x=",
        "hist:",
        "hist:keys=pid:onmax($x).save(",
    ] {
        for unit in [
            "(",
            "-(",
            "-",
            "(-",
            ")",
            ")-",
            "+",
            "a+",
            "+a",
            "a*",
            "*",
            "-(a)",
            ".",
            "a.",
            "$",
            "$a",
            ",",
            "a,",
            ",a=1",
            ":",
            "a=1:",
            ":a",
            "if",
            " if",
            "if ",
            " ifx",
            ".sym-offset",
            "-a.sym-offset",
            "onmax(",
            ":onmax($x).save(ab)",
            "a",
            "\u{b}",
            "0",
            "1",
            "0x",
            "=",
            "a=",
            "sort=a,",
            "ab,",
        ] {
            exercise(fill(prefix, unit).as_bytes());
        }
    }
    let nested = "-(".repeat(1000) + &")".repeat(1000);
    exercise(format!("hist:keys={nested}").as_bytes());
    exercise(format!("hist:keys=pid:x=-({nested})").as_bytes());
}
