// SPDX-License-Identifier: MIT OR Apache-2.0

//! A question, and readings similar to the ones of a real machine.

use std::mem;
use std::ops::Deref;
use std::ops::DerefMut;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use rhist_core::names::Names;
use rhist_core::question::Cost;
use rhist_core::question::Fill;
use rhist_core::question::Question;
use rhist_core::question::Reading;
use rhist_core::table::Column;
use rhist_core::table::Dist;
use rhist_core::table::Fold;
use rhist_core::table::Key;
use rhist_core::table::Losses;
use rhist_core::table::Row;
use rhist_core::table::Table;
use rhist_core::table::Time;
use rhist_core::table::Unit;
use rhist_core::table::Value;
use rhist_core::table::Worst;

use crate::commands::top::input;
use crate::commands::top::keyboard;
use crate::commands::top::keyboard::Request;
use crate::commands::top::look::Look;
use crate::commands::top::screen;
use crate::commands::top::state::State;

/// Tasks, with their shortest wait in ns, and the number of waits per second.
const TASKS: &[(&str, i128, u64)] = &[
    ("rcu_preempt", 900, 250),
    ("ksoftirqd/0", 2_300, 40),
    ("postgres", 14_000, 1_200),
    ("nginx", 5_100, 3_400),
    ("systemd-journal", 31_000, 12),
    ("kworker/u8:2", 64_000, 90),
    ("sshd", 120_000, 3),
    ("node", 800_000, 310),
];

pub fn question() -> Question {
    Question {
        name: "runqlat".into(),
        summary: "How long tasks wait for a CPU".into(),
        noun: "waits".into(),
        unit: Unit::Nanoseconds,
        worst: "{next_comm} behind {prev_comm} ({prev_pid})".into(),
        triggers: vec![
            "echo 'hist:keys=pid:ts0=common_timestamp' >>events/sched/sched_wakeup/trigger".into(),
            "echo 'hist:keys=next_comm:vals=hitcount,$lat.dist:lat=on(pid=next_pid,ts0)' >>events/sched/sched_switch/trigger"
                .into(),
        ],
        notes: vec!["Tasks that were woken up before the start are not counted.".into()],
        host: "debian".into(),
        kernel: "6.12.57-amd64".into(),
        cpus: 4,
        ..Question::default()
    }
}

/// Totals after some seconds. Waits of node grow with time.
pub fn reading(second: u64) -> Reading {
    let mut rows = Vec::new();
    let mut hits = 0;
    for (i, &(comm, least, rate)) in TASKS.iter().enumerate() {
        let mut dist = Dist::new(3);
        for at in 1..=second {
            let wave = 1 + (at * (i as u64 + 3)) % 7;
            let slower = if comm == "node" { 1 + i128::from(at) / 4 } else { 1 };
            dist.record(least * slower, rate * wave / 4);
            dist.record(least * slower * 2, rate * wave / 8);
            dist.record(least * slower * 9, rate * wave / 60);
        }
        hits += dist.count;
        rows.push(Row {
            keys: [Key::Text(comm.into())].into(),
            hits: dist.count,
            worst: dist.max.map(|value| Worst {
                value,
                saved: vec![
                    ("next_comm".into(), Key::Text(comm.into())),
                    ("prev_comm".into(), Key::Text("sed".into())),
                    ("prev_pid".into(), Key::Number(236)),
                ]
                .into(),
            }),
            values: vec![Value::Dist(dist)],
            begin: None,
            last_ns: None,
        });
    }
    // Real histograms have no entries with 0 hits.
    rows.retain(|row| row.hits > 0);
    Reading {
        samples: None,
        fill: Fill {
            entries: rows.len() as u64,
            size: 2048,
            is_of_starts: false,
        },
        table: table("comm", Unit::Nanoseconds, Fold::Sum, rows, second),
        events: 3 * hits,
        rejected: Some(0),
        cost: Cost {
            event_ns: Some(110.0),
            ..Cost::default()
        },
    }
}

/// Totals after some seconds: bytes sent, and the longest queue. No distributions.
pub fn counts(second: u64) -> Reading {
    let row = |pid: u64| Row {
        keys: vec![Key::Number(pid.into()), Key::Text("curl".into())].into(),
        hits: second * pid,
        values: vec![Value::Number((second * pid * 1460).into()), Value::Number(pid.into())],
        worst: None,
        begin: None,
        last_ns: None,
    };
    let mut reading = Reading {
        table: table("pid", Unit::Bytes, Fold::Sum, vec![row(7), row(100), row(20)], second),
        events: second * 127,
        rejected: None,
        cost: Cost::default(),
        samples: None,
        fill: Fill {
            entries: 3,
            size: 3,
            is_of_starts: false,
        },
    };
    reading.table.keys.push(Column {
        name: "comm".into(),
        ..Column::default()
    });
    reading.table.values.push(Column {
        name: "queue".into(),
        fold: Fold::Max,
        ..Column::default()
    });
    reading.table.losses = Losses {
        dropped: second * 12_345,
        missed: Some(3),
        ..Losses::default()
    };
    reading
}

fn table(key: &str, unit: Unit, fold: Fold, rows: Vec<Row>, second: u64) -> Table {
    Table {
        keys: vec![Column {
            name: key.into(),
            ..Column::default()
        }],
        values: vec![Column {
            name: "sent".into(),
            unit,
            fold,
        }],
        rows,
        losses: Losses::default(),
        time: Time {
            realtime_ns: (1_795_675_505 + second) * 1_000_000_000,
            monotonic_ns: (1000 + second) * 1_000_000_000,
            boot_id: None,
        },
    }
}

/// A state, and the total at the end of the last interval.
pub struct Fed {
    pub state: State,
    pub total: Reading,
}

impl Fed {
    /// Begins with this total.
    pub fn new(question: Question, total: Reading) -> Self {
        Fed {
            state: State::new(question, Names::elsewhere()),
            total,
        }
    }
}

impl Deref for Fed {
    type Target = State;

    fn deref(&self) -> &State {
        &self.state
    }
}

impl DerefMut for Fed {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.state
    }
}

/// Takes the interval from the last total to this one.
pub fn feed(fed: &mut Fed, total: Reading) {
    let last = mem::replace(&mut fed.total, total);
    fed.state.read(&fed.total.since(last), &fed.total);
}

/// State after that many intervals of a second.
pub fn state(totals: impl Fn(u64) -> Reading, seconds: u64) -> Fed {
    let mut fed = Fed::new(question(), totals(0));
    for second in 1..=seconds {
        feed(&mut fed, totals(second));
    }
    fed
}

/// Presses keys. Keys other than characters have names in angle brackets.
pub fn press(fed: &mut Fed, keys: &str) -> Option<Request> {
    let mut last = None;
    let mut rest = keys;
    while let Some(first) = rest.chars().next() {
        let (code, length) = match rest {
            _ if rest.starts_with("<Enter>") => (input::Key::Enter, 7),
            _ if rest.starts_with("<Esc>") => (input::Key::Esc, 5),
            _ if rest.starts_with("<Up>") => (input::Key::Up, 4),
            _ if rest.starts_with("<Down>") => (input::Key::Down, 6),
            _ if rest.starts_with("<Home>") => (input::Key::Home, 6),
            _ if rest.starts_with("<End>") => (input::Key::End, 5),
            _ if rest.starts_with("<BS>") => (input::Key::Backspace, 4),
            _ => (input::Key::Char(first), first.len_utf8()),
        };
        last = keyboard::press(&mut fed.state, &fed.total, code);
        rest = &rest[length..];
    }
    last
}

/// Draws the screen.
pub fn draw(fed: &mut Fed, look: Look, width: u16, height: u16) -> Buffer {
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
    screen::draw(&mut fed.state, &fed.total, look, &mut buffer);
    buffer
}

/// The screen as text.
pub fn show(fed: &mut Fed, look: Look, width: u16, height: u16) -> String {
    let buffer = draw(fed, look, width, height);
    let lines = buffer.content().chunks(width.into()).map(|line| {
        let line: String = line.iter().map(|cell| cell.symbol()).collect();
        format!("{}\n", line.trim_end())
    });
    lines.collect()
}
