// SPDX-License-Identifier: MIT OR Apache-2.0

//! Formats for programs.

use insta::assert_snapshot;
use rhist_core::question::Question;
use rhist_core::recipe::NameKind;
use rhist_core::table::Key;
use rhist_core::table::Value;

use super::sample::*;
use crate::screen::*;

#[test]
fn folded() {
    let folded = Setup {
        format: Format::Folded,
        ..BY
    };
    assert_snapshot!("folded_stacks", total(folded, &question(), &stacks()));
    let (question, reading) = counts();
    assert_snapshot!("folded_keys", total(folded, &question, &reading));
}

#[test]
fn folded_functions_keep_their_plus() {
    let folded = Setup {
        format: Format::Folded,
        ..BY
    };
    let functions = ["operator+(A, B)+0x1d", "foo<a+b>", "main+0x2f/0x90"];
    let rows = vec![row(vec![stack(&functions)], 7, Vec::new())];
    let reading = reading(vec![column("stacktrace")], Vec::new(), rows);
    assert_eq!(
        total(folded, &question(), &reading),
        "main;foo<a+b>;operator+(A, B) 7\n"
    );
}

#[test]
fn json() {
    let json = Setup {
        format: Format::Json,
        ..BY
    };
    let (question, mut reading) = counts();
    reading.table.rows[1].values[0] = Value::Number(u64::MAX.into());
    let printed = total(json, &question, &reading);
    assert!(printed.contains("[18446744073709551615,2147483648]"));
    let parsed: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_snapshot!("json", serde_json::to_string_pretty(&parsed).unwrap());
    let parsed: serde_json::Value = serde_json::from_str(&total(json, &super::sample::question(), &stacks())).unwrap();
    assert_eq!(parsed["rows"].as_array().unwrap().len(), 3);
}

/// In the order of the numbers, not of their digits.
#[test]
fn hexadecimal_keys() {
    let question = Question {
        names: [("flags.hex".to_owned(), NameKind::Hex)].into(),
        ..question()
    };
    let rows = [0x10, 0x9, -1].map(|number| row(vec![Key::Number(number)], 1, Vec::new()));
    let reading = reading(vec![column("flags.hex")], Vec::new(), rows.into());
    let text = total(BY, &question, &reading);
    let shown = text.lines().filter_map(|line| line.split_whitespace().next());
    let shown: Vec<&str> = shown.filter(|word| word.starts_with("0x")).collect();
    assert_eq!(shown, ["0xffffffffffffffff", "0x9", "0x10"], "{text}");
    let json = Setup {
        format: Format::Json,
        ..BY
    };
    let parsed: serde_json::Value = serde_json::from_str(&total(json, &question, &reading)).unwrap();
    assert_eq!(
        parsed["rows"][2]["keys"][0],
        serde_json::json!({"value": 16, "name": "0x10"})
    );
}

#[test]
fn pictures_have_names() {
    let svg = Setup {
        format: Format::Svg,
        ..BY
    };
    let (question, reading) = counts();
    let printed = total(svg, &question, &reading);
    assert!(printed.starts_with("<svg"), "{printed}");
    assert!(printed.contains("EAGAIN") && printed.contains("-9999"), "{printed}");
}
