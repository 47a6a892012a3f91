// SPDX-License-Identifier: MIT OR Apache-2.0

//! Pages of various widths, without colours or UTF-8, with hostile names, or empty.

use insta::assert_snapshot;
use proptest::prelude::*;
use rhist_core::question::Question;
use rhist_core::question::Reading;
use rhist_core::table::Key;
use rhist_core::table::Row;
use rhist_core::table::Text;
use rhist_core::table::Value;

use super::sample::*;
use crate::screen::*;

#[test]
fn hostile_names() {
    let names = [
        "\u{1b}[2J\u{1b}]0;title\u{7}",
        "a\u{202e}cba",
        "new\nline\ttab",
        "\u{9b}31m",
        &"x".repeat(10_000),
    ];
    let mut rows: Vec<_> = names.iter().map(|name| row(vec![text(name)], 7, Vec::new())).collect();
    rows.push(row(vec![Key::Text(Text::from(&b"caf\xe9 \\"[..]))], 6, Vec::new()));
    rows.push(row(vec![text("漢字")], 5, Vec::new()));
    let question = Question {
        summary: "A summary\u{1b}[1m with an escape".to_owned(),
        noun: "\u{1b}[31mhits".to_owned(),
        notes: vec!["a note\u{202e}".to_owned(), "y".repeat(500)],
        triggers: vec!["echo 'hist:keys=\u{1b}[2J if a ~ \"\\*\"' >>trigger".to_owned()],
        ..Question::default()
    };
    let reading = reading(vec![column("co\u{1b}mm")], Vec::new(), rows);
    assert_snapshot!("hostile", total(BY, &question, &reading));
    let page = Page { utf8: false, ..PAGE };
    assert_snapshot!("hostile_ascii", total(Setup { page, ..BY }, &question, &reading));
    let mut short = reading.clone();
    short.table.rows.remove(4);
    assert_snapshot!(
        "hostile_json",
        total(
            Setup {
                format: Format::Json,
                ..BY
            },
            &question,
            &short
        )
    );
    assert_snapshot!(
        "hostile_folded",
        total(
            Setup {
                format: Format::Folded,
                ..BY
            },
            &question,
            &short
        )
    );
}

#[test]
fn narrow() {
    let page = Page { width: 40, ..PAGE };
    assert_snapshot!("narrow", total(Setup { page, ..TEXT }, &question(), &waits()));
    assert_snapshot!("narrow_by_key", total(Setup { page, ..BY }, &question(), &waits()));
}

#[test]
fn wide() {
    let page = Page { width: 140, ..PAGE };
    assert_snapshot!("wide", total(Setup { page, ..TEXT }, &question(), &waits()));
    assert_snapshot!("wide_by_key", total(Setup { page, ..BY }, &question(), &waits()));
}

#[test]
fn ascii() {
    let page = Page { utf8: false, ..PAGE };
    assert_snapshot!("ascii", total(Setup { page, ..TEXT }, &question(), &waits()));
    assert_snapshot!("ascii_by_key", total(Setup { page, ..BY }, &question(), &waits()));
}

#[test]
fn colours() {
    let page = Page { colour: true, ..PAGE };
    let mut reading = waits();
    reading.table.losses.dropped = 1;
    let printed = total(
        Setup {
            page,
            quiet: true,
            ..BY
        },
        &question(),
        &reading,
    );
    assert_snapshot!(printed.replace('\u{1b}', "ESC"));
}

#[test]
fn nothing() {
    let empty = reading(vec![column("comm")], vec![wait()], Vec::new());
    let quiet = Setup { quiet: true, ..TEXT };
    assert_snapshot!("nothing", total(quiet, &question(), &empty));
    assert_eq!(
        total(quiet, &question(), &empty),
        total(Setup { by: true, ..quiet }, &question(), &empty)
    );
    assert_eq!(
        total(
            Setup {
                format: Format::Folded,
                ..BY
            },
            &question(),
            &empty
        ),
        ""
    );
    // Nothing is known, not even a time.
    let json = Setup {
        format: Format::Json,
        ..BY
    };
    let (question, reading) = (Question::default(), Reading::default());
    let view = View::total(&reading, 0.0);
    assert_snapshot!("nothing_at_all", printed(TEXT, &question, &view));
    assert_snapshot!("nothing_json", printed(json, &question, &view));
}

proptest! {
    /// For any counts: only triggers are wider than the page, and no control character remains.
    #[test]
    fn pages_hold_all_lines(
        width in 20..150usize,
        utf8 in any::<bool>(),
        rows in prop::collection::vec((".{0,30}", any::<u64>(), any::<i64>(), 0..30u64, any::<bool>()), 0..12),
        by in any::<bool>(),
        known in any::<bool>(),
        noun in ".{0,20}",
    ) {
        let rows: Vec<_> = rows
            .iter()
            .enumerate()
            .map(|(at, (name, hits, number, count, is_stack))| {
                let key = if *is_stack && *count > 25 { stack(&[name, name]) } else { text(name) };
                let mut dist = dist(3, *number as f64, *count);
                if !known {
                    (dist.min, dist.max, dist.count) = (None, None, dist.count + 1);
                }
                Row {
                    worst: worst((*number).into()),
                    ..row(vec![key, Key::Number(at as i128)], *hits, vec![Value::Number((*number).into()), Value::Dist(dist)])
                }
            })
            .collect();
        let reading = reading(vec![column(&noun), column("n")], vec![column("sum"), wait()], rows);
        let question = Question { noun, triggers: Vec::new(), ..question() };
        let page = Page { width, utf8, ..PAGE };
        let printed = total(Setup { page, by, ..TEXT }, &question, &reading);
        for line in printed.lines() {
            prop_assert!(page::columns(line) <= width, "{line}");
            prop_assert!(utf8 || line.is_ascii(), "{line}");
            prop_assert!(!line.contains(char::is_control));
        }
        let json = total(Setup { format: Format::Json, by, ..TEXT }, &question, &reading);
        prop_assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok());
        prop_assert!(json.trim_end().bytes().all(|byte| (b' '..=b'~').contains(&byte)));
    }
}
