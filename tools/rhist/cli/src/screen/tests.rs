// SPDX-License-Identifier: MIT OR Apache-2.0

//! Screens as they are printed.

use std::collections::BTreeMap;

use insta::assert_snapshot;
use proptest::prelude::*;
use rhist_core::names::Names;
use rhist_core::question::Backend;
use rhist_core::question::Interval;
use rhist_core::question::Question;
use rhist_core::question::Reading;
use rhist_core::recipe::NameKind;
use rhist_core::table::Column;
use rhist_core::table::Dist;
use rhist_core::table::Fold;
use rhist_core::table::Frame;
use rhist_core::table::Key;
use rhist_core::table::Losses;
use rhist_core::table::Row;
use rhist_core::table::Table;
use rhist_core::table::Text;
use rhist_core::table::Time;
use rhist_core::table::Unit;
use rhist_core::table::Value;
use rhist_core::table::Worst;

use super::*;

const PAGE: Page = Page {
    width: 80,
    rows: 20,
    utf8: true,
    colour: false,
};

/// How something is printed.
#[derive(Clone, Copy)]
struct Setup {
    page: Page,
    format: Format,
    by: bool,
    quiet: bool,
}

const TEXT: Setup = Setup {
    page: PAGE,
    format: Format::Text,
    by: false,
    quiet: false,
};
const BY: Setup = Setup { by: true, ..TEXT };

fn at(seconds: u64) -> Time {
    Time {
        realtime_ns: 1_795_621_132_000_000_000 + seconds * 1_000_000_000,
        monotonic_ns: (100 + seconds) * 1_000_000_000,
        boot_id: Some("ee0d0f94-5429-4d55-9290-40dcd13767ad".to_owned()),
    }
}

fn printed(setup: Setup, question: &Question, view: &View<'_>) -> String {
    let screen = Screen {
        question,
        names: &Names::elsewhere(),
        page: setup.page,
        format: setup.format,
        by: setup.by,
        quiet: setup.quiet,
    };
    let mut out = Vec::new();
    screen.print(&mut out, view).unwrap();
    String::from_utf8(out).unwrap()
}

/// What is printed at the end of five seconds.
fn total(setup: Setup, question: &Question, reading: &Reading) -> String {
    printed(setup, question, &View::total(reading, 5.0))
}

fn question() -> Question {
    Question {
        name: "runqlat".to_owned(),
        summary: "How long tasks wait for a CPU".to_owned(),
        noun: "waits".to_owned(),
        unit: Unit::Nanoseconds,
        worst: "{next_comm} ({next_pid}) behind {prev_comm} ({prev_pid})".to_owned(),
        triggers: vec![
            "echo 'hist:keys=pid:ts=common_timestamp' >>events/sched/sched_wakeup/trigger".to_owned(),
            "echo 'hist:keys=next_comm:on(next_pid):vals=(common_timestamp-$ts).dist' >>events/sched/sched_switch/trigger"
                .to_owned(),
        ],
        host: "db1".to_owned(),
        kernel: "6.12.48".to_owned(),
        cpus: 8,
        ..Question::default()
    }
}

/// Values around `middle`, most of them near it, and the same each time.
fn dist(scale: u8, middle: f64, count: u64) -> Dist {
    let mut dist = Dist::new(scale);
    for n in 0..count {
        let turn = |step: f64| (n as f64 * step).fract() - 0.5;
        let value = middle * 4f64.powf(turn(0.618_034) + turn(0.414_214) + turn(0.732_051) * 4.0 * turn(0.236_068));
        dist.record(value as i128, 1);
    }
    dist
}

fn wait() -> Column {
    Column {
        name: "wait".to_owned(),
        unit: Unit::Nanoseconds,
        fold: Fold::Sum,
    }
}

fn column(name: &str) -> Column {
    Column {
        name: name.to_owned(),
        ..Column::default()
    }
}

fn row(keys: Vec<Key>, hits: u64, values: Vec<Value>) -> Row {
    Row {
        keys,
        hits,
        values,
        worst: None,
    }
}

fn text(text: &str) -> Key {
    Key::Text(Text::from(text))
}

fn reading(keys: Vec<Column>, values: Vec<Column>, rows: Vec<Row>) -> Reading {
    Reading {
        table: Table {
            keys,
            values,
            rows,
            losses: Losses {
                dropped: 0,
                no_bucket: Some(0),
                unresolved: Some(0),
                missed: Some(0),
            },
            time: at(5),
        },
        events: 61_725,
        cost_ns: Some(62.0),
        fill: (12, 2048),
    }
}

fn worst(value: i128) -> Option<Worst> {
    Some(Worst {
        value,
        saved: vec![
            ("next_comm".to_owned(), text("rcu_preempt")),
            ("next_pid".to_owned(), Key::Number(15)),
            ("prev_comm".to_owned(), text("sed")),
            ("prev_pid".to_owned(), Key::Number(236)),
        ],
    })
}

/// Waits of some tasks, by name.
fn waits() -> Reading {
    let tasks = [
        ("rcu_preempt", 9_000.0, 12_345),
        ("kworker/u16:3-events_unbound", 31_000.0, 4_711),
        ("sed", 140_000.0, 815),
        ("postgres", 2_500.0, 30_340),
    ];
    let rows = tasks.map(|(comm, middle, hits)| {
        let dist = dist(3, middle, hits);
        let worst = worst(dist.max.unwrap());
        Row {
            worst,
            ..row(vec![text(comm)], hits, vec![Value::Dist(dist)])
        }
    });
    reading(vec![column("comm")], vec![wait()], rows.to_vec())
}

fn counts() -> (Question, Reading) {
    let question = Question {
        name: "count".to_owned(),
        summary: "Bytes read, by system call and error".to_owned(),
        noun: "calls".to_owned(),
        names: BTreeMap::from([("ret".to_owned(), NameKind::Errno)]),
        ..Question::default()
    };
    let bytes = Column {
        name: "count".to_owned(),
        unit: Unit::Bytes,
        fold: Fold::Sum,
    };
    let largest = Column {
        fold: Fold::Max,
        ..bytes.clone()
    };
    let call = |number: i64, name: &str| Key::Syscall {
        number,
        name: Some(name.to_owned()),
    };
    let rows = vec![
        row(
            vec![call(0, "read"), Key::Number(-2)],
            12_345,
            vec![Value::Number(12_900_000), Value::Number(65536)],
        ),
        row(
            vec![call(17, "pread64"), Key::Number(-11)],
            3,
            vec![Value::Number(1 << 32), Value::Number(1 << 31)],
        ),
        row(
            vec![call(45, "recvfrom"), Key::Number(-9999)],
            1,
            vec![Value::Number(0), Value::Unknown],
        ),
    ];
    (
        question,
        reading(vec![column("id"), column("ret")], vec![bytes, largest], rows),
    )
}

fn stack(symbols: &[&str]) -> Key {
    let frame = |symbol: &&str| Frame {
        address: None,
        symbol: Some((*symbol).to_owned()),
    };
    Key::Stack(symbols.iter().map(frame).collect())
}

fn stacks() -> Reading {
    let rows = vec![
        row(
            vec![
                stack(&[
                    "schedule+0x2f/0x90",
                    "do_nanosleep+0x67/0x1a0",
                    "do_syscall_64+0x5d/0x90",
                ]),
                text("sed"),
            ],
            4_711,
            vec![Value::Dist(dist(3, 1e6, 4_711))],
        ),
        row(
            vec![
                stack(&["schedule+0x2f/0x90", "worker_thread+0x1c0/0x3a0"]),
                text("kworker/0:1"),
            ],
            12_345,
            vec![Value::Dist(dist(3, 4e6, 12_345))],
        ),
        row(vec![stack(&[]), text("x;y")], 1, vec![Value::Dist(dist(3, 1e3, 1))]),
    ];
    reading(vec![column("stacktrace"), column("comm")], vec![wait()], rows)
}

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
        no_bucket: Some(1),
        unresolved: Some(5),
        missed: Some(2),
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
    reading.fill = (2_000, 2_048);
    reading.cost_ns = None;
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
        dist.positive.insert(index, count);
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
    let interval: Interval = later.since(&earlier);
    assert_snapshot!("interval", printed(TEXT, &question(), &View::interval(&interval)));
    assert_snapshot!("interval_by_key", printed(BY, &question(), &View::interval(&interval)));
    let json = Setup {
        format: Format::Json,
        ..TEXT
    };
    assert_snapshot!("interval_json", printed(json, &question(), &View::interval(&interval)));
}

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
    rows.push(row(vec![Key::Text(Text(b"caf\xe9 \\".to_vec()))], 6, Vec::new()));
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
    // Not even a time.
    let json = Setup {
        format: Format::Json,
        ..BY
    };
    let (question, reading) = (Question::default(), Reading::default());
    let view = View::total(&reading, 0.0);
    assert_snapshot!("nothing_at_all", printed(TEXT, &question, &view));
    assert_snapshot!("nothing_json", printed(json, &question, &view));
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
    let parsed: serde_json::Value = serde_json::from_str(&total(json, &super::tests::question(), &stacks())).unwrap();
    assert_eq!(parsed["rows"].as_array().unwrap().len(), 3);
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

proptest! {
    /// Whatever is counted: nothing but triggers is too wide, and nothing is interpreted by a terminal.
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
