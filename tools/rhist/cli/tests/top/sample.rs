// SPDX-License-Identifier: MIT OR Apache-2.0

//! A recording similar to one of a real machine.

use std::path::Path;

use rhist_core::names::Names;
use rhist_core::question::Cost;
use rhist_core::question::Fill;
use rhist_core::question::Question;
use rhist_core::question::Reading;
use rhist_core::recipe::NameKind;
use rhist_core::recording::Writer;
use rhist_core::table::Column;
use rhist_core::table::Dist;
use rhist_core::table::Key;
use rhist_core::table::Row;
use rhist_core::table::Table;
use rhist_core::table::Time;
use rhist_core::table::Unit;
use rhist_core::table::Value;

/// Tasks, with their shortest wait in ns, and the number of waits per second.
const TASKS: [(&str, u64, u64); 9] = [
    ("rcu_preempt", 900, 250),
    ("ksoftirqd/0", 2_300, 40),
    ("postgres", 14_000, 1_200),
    ("nginx", 5_100, 3_400),
    ("systemd-journal", 31_000, 12),
    ("kworker/u8:2", 64_000, 90),
    ("sshd", 120_000, 3),
    ("node", 800_000, 310),
    ("\x1b]2;owned\x07", 7_000, 20),
];

/// Writes a recording of some seconds.
pub fn write(path: &Path, seconds: u64) {
    let question = Question {
        name: "runqlat".into(),
        summary: "How long tasks wait for a CPU".into(),
        noun: "waits".into(),
        unit: Unit::Nanoseconds,
        triggers: vec!["echo 'hist:keys=pid:ts0=common_timestamp' >>events/sched/sched_wakeup/trigger".into()],
        host: "debian".into(),
        kernel: "6.12.57-amd64".into(),
        cpus: 4,
        ..Question::default()
    };
    let _ = std::fs::remove_file(path);
    let mut writer = Writer::create(path, &question).unwrap();
    let mut dists = TASKS.map(|_| Dist::new(3));
    let mut before = reading(0, &dists);
    let mut random = 1u64;
    for second in 1..=seconds {
        for (dist, (comm, least, rate)) in dists.iter_mut().zip(TASKS) {
            let load = 40 + (second * 13 + least) % 60;
            for _ in 0..rate * load / 100 {
                // xorshift: every run has the same numbers.
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                // Most are small, few are large.
                let factor = 1.0 / (0.002 + (random >> 11) as f64 / (1u64 << 53) as f64);
                let slower = if comm == "node" { 1.0 + second as f64 / 4.0 } else { 1.0 };
                dist.record((least as f64 * slower * factor.sqrt()) as i128, 1);
            }
        }
        let now = reading(second, &dists);
        writer.append(&now.since(before), &Names::elsewhere()).unwrap();
        before = now;
    }
}

/// Writes a recording of one second of interrupts, by number, on a machine with names for them.
pub fn write_interrupts(path: &Path, proc: &Path) {
    std::fs::write(
        proc.join("interrupts"),
        " 28:  1  PCI-MSIX-0000:00:01.0   0-edge      virtio0-input\n",
    )
    .unwrap();
    let question = Question {
        name: "hardirqs".into(),
        names: [("irq".into(), NameKind::Irq)].into(),
        ..Question::default()
    };
    let reading = |second: u64| Reading {
        table: Table {
            keys: vec![Column {
                name: "irq".into(),
                ..Column::default()
            }],
            rows: vec![Row {
                keys: [Key::Number(28)].into(),
                hits: second,
                values: Vec::new(),
                worst: None,
                begin: None,
                last_ns: None,
            }],
            time: Time {
                realtime_ns: second * 1_000_000_000,
                monotonic_ns: second * 1_000_000_000,
                boot_id: None,
            },
            ..Table::default()
        },
        ..Reading::default()
    };
    let mut writer = Writer::create(path, &question).unwrap();
    writer
        .append(&reading(2).since(reading(1)), &Names::with_proc(proc))
        .unwrap();
}

fn reading(second: u64, dists: &[Dist]) -> Reading {
    let row = |(&(comm, ..), dist): (&(&str, u64, u64), &Dist)| Row {
        keys: [Key::Text(comm.into())].into(),
        hits: dist.count,
        values: vec![Value::Dist(dist.clone())],
        worst: None,
        begin: None,
        last_ns: None,
    };
    let mut rows: Vec<_> = TASKS.iter().zip(dists).map(row).collect();
    rows.retain(|row| row.hits > 0);
    let hits: u64 = rows.iter().map(|row| row.hits).sum();
    let column = |name: &str, unit| Column {
        name: name.into(),
        unit,
        ..Column::default()
    };
    Reading {
        samples: None,
        fill: Fill {
            entries: rows.len() as u64,
            size: 2048,
            is_of_starts: false,
        },
        table: Table {
            keys: vec![column("comm", Unit::Plain)],
            values: vec![column("wait", Unit::Nanoseconds)],
            rows,
            time: Time {
                realtime_ns: (1_795_675_505 + second) * 1_000_000_000,
                monotonic_ns: (1000 + second) * 1_000_000_000,
                boot_id: None,
            },
            ..Table::default()
        },
        events: 3 * hits,
        rejected: Some(0),
        cost: Cost {
            event_ns: Some(110.0),
            ..Cost::default()
        },
    }
}
