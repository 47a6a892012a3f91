// SPDX-License-Identifier: MIT OR Apache-2.0

//! What many keys cost. Only tells something of an optimized build:
//! `cargo test --release -p rhist --lib load -- --ignored --nocapture`.

use std::fs;

use rhist_core::question::Reading;
use rhist_core::table::Dist;
use rhist_core::table::Key;
use rhist_core::table::Value;
use rustix::time::ClockId;
use rustix::time::clock_gettime;

use super::sample;
use crate::top::look::Look;

const KEYS: usize = 2000;
const SECONDS: u64 = 60;

/// Most that may be taken of a CPU at one interval a second, as a part of it.
const CPU: f64 = 0.01;

/// Most memory, in KiB.
const MEMORY: u64 = 16 << 10;

/// Totals of many tasks, each with waits of many sizes.
fn reading(second: u64) -> Reading {
    let mut reading = sample::reading(1);
    reading.table.time.monotonic_ns = (1000 + second) * 1_000_000_000;
    let row = reading.table.rows.remove(0);
    let rows = (0..KEYS).map(|key| {
        let mut dist = Dist::new(3);
        // Twelve buckets are hit in each interval, of thirty.
        for at in 0..30 {
            let count = (0..second).filter(|second| (at + second + key as u64) % 10 < 4).count();
            dist.record(1000 << (at / 2), count as u64 * (1 + at % 5));
        }
        let mut row = row.clone();
        row.keys = vec![Key::Text(format!("task-{key:04}").as_str().into())];
        row.hits = dist.count;
        row.values = vec![Value::Dist(dist)];
        row
    });
    reading.table.rows = rows.collect();
    reading
}

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn memory(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
#[ignore = "only of use in a release build"]
fn two_thousand_keys() {
    let mut state = sample::state(reading, 0);
    let mut used = 0.0;
    for second in 1..=SECONDS {
        let reading = reading(second);
        let begin = cpu_seconds();
        state.read(reading);
        sample::draw(&mut state, Look::default(), 80, 24);
        used += cpu_seconds() - begin;
    }
    let part = used / SECONDS as f64;
    let most = memory("VmHWM");
    println!(
        "{:.2} % of a CPU, {most} KiB, of which now {} KiB",
        part * 100.0,
        memory("VmRSS")
    );
    assert_eq!(state.shown().lines.len(), KEYS);
    assert!(part <= CPU);
    assert!(most <= MEMORY);
}
