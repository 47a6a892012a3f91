// SPDX-License-Identifier: MIT OR Apache-2.0

//! Tests of the printed output.

mod pages;
mod programs;
mod sample;

use insta::assert_snapshot;
use rhist_core::question::Cost;
use rhist_core::question::Fill;
use rhist_core::question::Interval;
use rhist_core::question::Question;
use rhist_core::question::Reading;
use rhist_core::table::Column;
use rhist_core::table::Dist;
use rhist_core::table::Fold;
use rhist_core::table::Frame;
use rhist_core::table::Key;
use rhist_core::table::Losses;
use rhist_core::table::Other;
use rhist_core::table::Table;
use rhist_core::table::Unit;
use rhist_core::table::Value;
use rhist_core::tracefs::Backend;

use super::*;
use sample::*;

#[test]
fn latency() {
    assert_snapshot!(total(TEXT, &question(), &waits()));
}

#[test]
fn latency_by_key() {
    assert_snapshot!(total(BY, &question(), &waits()));
}

#[test]
fn count_by_keys() {
    let (question, reading) = counts();
    assert_snapshot!(total(BY, &question, &reading));
}

#[test]
fn counts_of_all() {
    let (question, reading) = counts();
    assert_snapshot!(total(TEXT, &question, &reading));
}

#[test]
fn count_without_values() {
    let rows = (0..123)
        .map(|n| row(vec![Key::Number(n)], 1000 - n as u64 * 7, Vec::new()))
        .collect();
    let page = Page { rows: 5, ..PAGE };
    let question = Question {
        summary: "Hits of sched:sched_switch".to_owned(),
        ..Question::default()
    };
    assert_snapshot!(total(
        Setup { page, ..BY },
        &question,
        &reading(vec![column("pid")], Vec::new(), rows)
    ));
}

#[test]
fn ranges() {
    let range = |exponent: u32| Key::Range {
        first: (1 << exponent) / 2 + 1,
        last: 1 << exponent,
    };
    let keys = vec![Column {
        unit: Unit::Bytes,
        ..column("bytes")
    }];
    let rows = [(12, 400), (9, 3), (13, 1200), (20, 17)];
    let rows = rows.map(|(exponent, hits)| row(vec![range(exponent)], hits, Vec::new()));
    assert_snapshot!(total(
        Setup { quiet: true, ..BY },
        &question(),
        &reading(keys, Vec::new(), rows.to_vec())
    ));
}

/// Counts of keys without a line: these come last, as one line for people.
fn others() -> Reading {
    let other = |other, hits| row(vec![Key::Other(other); 2], hits, Vec::new());
    let rows = vec![
        other(Other::Expired, 400),
        row(vec![Key::Number(7), text("sed")], 30, Vec::new()),
        other(Other::Folded, 50),
        row(vec![Key::Number(8), text("cat")], 20, Vec::new()),
        row(vec![Key::Number(9), text("dd")], 10, Vec::new()),
    ];
    reading(vec![column("pid"), column("comm")], Vec::new(), rows)
}

#[test]
fn keys_without_a_line() {
    let page = Page { rows: 2, ..PAGE };
    let quiet = Setup {
        page,
        quiet: true,
        ..BY
    };
    assert_snapshot!(total(quiet, &question(), &others()));
}

#[test]
fn keys_without_a_line_for_programs() {
    let keys_and_hits = |format| {
        let json = Setup { format, ..BY };
        total(json, &question(), &others())
    };
    let json: serde_json::Value = serde_json::from_str(&keys_and_hits(Format::Json)).unwrap();
    let rows = json["rows"].as_array().unwrap().iter();
    let rows: Vec<_> = rows.map(|row| format!("{} {}", row["keys"], row["hits"])).collect();
    let expected = [
        r#"[7,"sed"] 30"#,
        r#"[8,"cat"] 20"#,
        r#"[9,"dd"] 10"#,
        r#"[{"other":"folded"},{"other":"folded"}] 50"#,
        r#"[{"other":"expired"},{"other":"expired"}] 400"#,
    ];
    assert_eq!(rows, expected);
    assert_eq!(
        keys_and_hits(Format::Folded),
        "7;sed 30\n8;cat 20\n9;dd 10\nother 450\n"
    );
    let svg = keys_and_hits(Format::Svg);
    let place = |text: &str| svg.find(text).unwrap();
    assert!(place("9, dd") < place(">other<"), "{svg}");
}

#[test]
fn stacks_with_their_hits() {
    assert_snapshot!(total(BY, &question(), &stacks()));
}

#[test]
fn more_stacks_than_are_shown() {
    let page = Page {
        rows: 4,
        width: 40,
        ..PAGE
    };
    assert_snapshot!(total(
        Setup {
            page,
            quiet: true,
            ..BY
        },
        &question(),
        &stacks()
    ));
}

#[test]
fn losses() {
    let mut reading = waits();
    reading.table.losses = Losses {
        dropped: 12_345,
        dropped_starts: 2_000,
        no_bucket: Some(1),
        unresolved: Some(5),
        missed: Some(2),
        missed_hits: Some(1_912),
        expired_starts: Some(1),
    };
    if let Value::Dist(dist) = &mut reading.table.rows[0].values[0] {
        dist.count += 1;
    }
    let question = Question {
        notes: vec![
            "A wake-up of a task that runs already is no wait, and forgotten when it is switched out.".to_owned(),
        ],
        ..question()
    };
    assert_snapshot!(total(TEXT, &question, &reading));
}

#[test]
fn nearly_full() {
    let mut reading = waits();
    reading.fill = Fill {
        entries: 2_000,
        size: 2_048,
        is_of_starts: true,
    };
    reading.cost = Cost::default();
    let printed = total(BY, &question(), &reading);
    let lines: Vec<_> = printed
        .lines()
        .filter(|line| line.starts_with("full") || line.starts_with("cost"))
        .collect();
    assert_snapshot!(lines.join("\n"));
}

#[test]
fn kernel_without_rhist() {
    let mut dist = Dist {
        scale: 0,
        count: 693,
        one_has_zero: true,
        ..Dist::default()
    };
    for (index, count) in [(-1, 21), (4, 23), (5, 95), (6, 259), (7, 160), (8, 130), (14, 5)] {
        dist.positive.add(index, count);
    }
    let values = vec![Column {
        unit: Unit::Microseconds,
        ..wait()
    }];
    let mut reading = reading(Vec::new(), values, vec![row(Vec::new(), 693, vec![Value::Dist(dist)])]);
    reading.table.losses = Losses::default();
    let question = Question {
        backend: Backend::C,
        notes: vec!["Times are whole microseconds, and buckets powers of two.".to_owned()],
        ..question()
    };
    assert_snapshot!(total(TEXT, &question, &reading));
}

#[test]
fn interval() {
    let earlier = Reading {
        table: Table {
            time: at(4),
            ..waits().table
        },
        events: 50_000,
        ..waits()
    };
    let mut later = waits();
    for row in &mut later.table.rows {
        row.hits += 10;
        if let Value::Dist(value) = &mut row.values[0] {
            value.merge(&dist(3, 5_000.0, 10));
        }
    }
    later.table.losses.unresolved = Some(3);
    let interval: Interval = later.since(earlier);
    assert_snapshot!("interval", printed(TEXT, &question(), &View::interval(&interval)));
    assert_snapshot!("interval_by_key", printed(BY, &question(), &View::interval(&interval)));
    let json = Setup {
        format: Format::Json,
        ..TEXT
    };
    assert_snapshot!("interval_json", printed(json, &question(), &View::interval(&interval)));
}

#[test]
fn several_distributions() {
    let other = Column {
        name: "bytes".to_owned(),
        unit: Unit::Bytes,
        fold: Fold::Sum,
    };
    let rows = vec![
        row(
            vec![text("a")],
            40,
            vec![Value::Dist(dist(3, 1e6, 40)), Value::Dist(dist(3, 4096.0, 40))],
        ),
        row(vec![text("b")], 5, vec![Value::Dist(dist(3, 2e6, 5)), Value::Unknown]),
    ];
    let reading = reading(vec![column("comm")], vec![wait(), other], rows);
    let page = Page { width: 120, ..PAGE };
    assert_snapshot!("several", total(Setup { quiet: true, ..TEXT }, &question(), &reading));
    assert_snapshot!(
        "several_by_key",
        total(
            Setup {
                page,
                quiet: true,
                ..BY
            },
            &question(),
            &reading
        )
    );
}

#[test]
fn functions_are_one_row() {
    let site = |address| {
        Key::Address(Frame {
            address: Some(address),
            symbol: Some("copy_process".to_owned()),
        })
    };
    let unknown = Key::Address(Frame {
        address: Some(0xffff_ffff_8100_0000),
        symbol: None,
    });
    let rows = [(site(1), 3), (site(2), 4), (unknown, 5)];
    let rows = rows.map(|(key, hits)| row(vec![key], hits, Vec::new())).to_vec();
    let reading = reading(vec![column("function")], Vec::new(), rows);
    assert_snapshot!(total(Setup { quiet: true, ..BY }, &question(), &reading));
    let json = Setup {
        format: Format::Json,
        ..BY
    };
    assert_eq!(total(json, &question(), &reading).matches("copy_process").count(), 2);
}

#[test]
fn statistics() {
    let bytes = |name: &str, fold| Column {
        name: name.to_owned(),
        unit: Unit::Bytes,
        fold,
    };
    let values = vec![
        bytes("bytes_req", Fold::Sum),
        bytes("bytes_req.min", Fold::Min),
        bytes("bytes_req.max", Fold::Max),
    ];
    let numbers = |numbers: [i128; 3]| numbers.map(Value::Number).to_vec();
    let rows = vec![
        row(vec![text("ls")], 10, numbers([40_000, 16, 8_192])),
        row(vec![text("sed")], 4, numbers([1_024, 256, 256])),
    ];
    let reading = reading(vec![column("comm")], values, rows);
    assert_snapshot!(
        "statistics_by_key",
        total(Setup { quiet: true, ..BY }, &question(), &reading)
    );
    assert_snapshot!(
        "statistics",
        total(Setup { quiet: true, ..TEXT }, &question(), &reading)
    );
}
