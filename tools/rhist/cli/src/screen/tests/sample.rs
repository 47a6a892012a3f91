// SPDX-License-Identifier: MIT OR Apache-2.0

//! Sample data for the tests of the output.

use std::collections::BTreeMap;

use rhist_core::names::Names;
use rhist_core::question::Cost;
use rhist_core::question::Fill;
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

use crate::screen::*;

pub(super) const PAGE: Page = Page {
    width: 80,
    rows: 20,
    utf8: true,
    colour: false,
};

/// Settings for printing.
#[derive(Clone, Copy)]
pub(super) struct Setup {
    pub page: Page,
    pub format: Format,
    pub by: bool,
    pub quiet: bool,
}

pub(super) const TEXT: Setup = Setup {
    page: PAGE,
    format: Format::Text,
    by: false,
    quiet: false,
};
pub(super) const BY: Setup = Setup { by: true, ..TEXT };

pub(super) fn at(seconds: u64) -> Time {
    Time {
        realtime_ns: 1_795_621_132_000_000_000 + seconds * 1_000_000_000,
        monotonic_ns: (100 + seconds) * 1_000_000_000,
        boot_id: Some("ee0d0f94-5429-4d55-9290-40dcd13767ad".to_owned()),
    }
}

pub(super) fn printed(setup: Setup, question: &Question, view: &View<'_>) -> String {
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

/// Output at the end of a run of five seconds.
pub(super) fn total(setup: Setup, question: &Question, reading: &Reading) -> String {
    printed(setup, question, &View::total(reading, 5.0))
}

pub(super) fn question() -> Question {
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

/// Values around `middle`, most of them close to it, and the same each time.
pub(super) fn dist(scale: u8, middle: f64, count: u64) -> Dist {
    let mut dist = Dist::new(scale);
    for n in 0..count {
        let turn = |step: f64| (n as f64 * step).fract() - 0.5;
        let value = middle * 4f64.powf(turn(0.618_034) + turn(0.414_214) + turn(0.732_051) * 4.0 * turn(0.236_068));
        dist.record(value as i128, 1);
    }
    dist
}

pub(super) fn wait() -> Column {
    Column {
        name: "wait".to_owned(),
        unit: Unit::Nanoseconds,
        fold: Fold::Sum,
    }
}

pub(super) fn column(name: &str) -> Column {
    Column {
        name: name.to_owned(),
        ..Column::default()
    }
}

pub(super) fn row(keys: Vec<Key>, hits: u64, values: Vec<Value>) -> Row {
    Row {
        keys: keys.into(),
        hits,
        values,
        worst: None,
        begin: None,
        last_ns: None,
    }
}

pub(super) fn text(text: &str) -> Key {
    Key::Text(Text::from(text))
}

pub(super) fn reading(keys: Vec<Column>, values: Vec<Column>, rows: Vec<Row>) -> Reading {
    Reading {
        table: Table {
            keys,
            values,
            rows,
            losses: Losses {
                dropped: 0,
                dropped_starts: 0,
                no_bucket: Some(0),
                unresolved: Some(0),
                missed: Some(0),
                missed_hits: Some(0),
                expired_starts: Some(0),
            },
            time: at(5),
        },
        events: 61_725,
        rejected: Some(0),
        cost: Cost {
            event_ns: Some(62.0),
            ..Cost::default()
        },
        samples: None,
        fill: Fill {
            entries: 12,
            size: 2048,
            is_of_starts: false,
        },
    }
}

pub(super) fn worst(value: i128) -> Option<Worst> {
    Some(Worst {
        value,
        saved: vec![
            ("next_comm".into(), text("rcu_preempt")),
            ("next_pid".into(), Key::Number(15)),
            ("prev_comm".into(), text("sed")),
            ("prev_pid".into(), Key::Number(236)),
        ]
        .into(),
    })
}

/// Waits of some tasks, by name.
pub(super) fn waits() -> Reading {
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

pub(super) fn counts() -> (Question, Reading) {
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

pub(super) fn stack(symbols: &[&str]) -> Key {
    let frame = |symbol: &&str| Frame {
        address: None,
        symbol: Some((*symbol).to_owned()),
    };
    Key::Stack(symbols.iter().map(frame).collect())
}

pub(super) fn stacks() -> Reading {
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
