// SPDX-License-Identifier: MIT OR Apache-2.0

//! Measures the memory for pushing many keys while the receiver is down and the queue is full.

use std::process::Command;

use rhist_core::table::Key;

use super::batches::export;
use super::batches::exporter;
use super::batches::interval;
use super::batches::row;
use super::receiver::Port;
use crate::measure::cpu_ms;
use crate::push::Batch;
use crate::push::Encoding;
use crate::push::Limits;
use crate::push::Pace;
use crate::push::Pusher;
use crate::push::Queue;
use crate::push::Temporality;

/// Limit of memory beyond the readings themselves.
const MOST_MIB: u64 = 8;

/// Runs in a process of its own, to measure only this test's memory.
#[test]
fn a_full_queue_takes_little_memory() {
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "push::tests::load::push_to_nobody",
            "--ignored",
            "--nocapture",
        ])
        .env("MALLOC_ARENA_MAX", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{output:?}");
    assert!(said.contains(" MiB"), "{said}");
}

/// Run by the test above.
#[test]
#[ignore = "part of another test"]
fn push_to_nobody() {
    let port = Port::reserve();
    let endpoint = port.endpoint();
    let state = tempfile::tempdir().unwrap();
    let queue = Queue::open(state.path(), endpoint.url(), Limits::default()).unwrap();
    let pusher = Pusher::start(endpoint, queue, Pace::default(), |_| ());
    // Maximum number of files.
    for _ in 0..17_000 {
        pusher.push(Batch {
            encoding: Encoding::Protobuf,
            body: vec![0; 100],
        });
    }
    let values: Vec<i128> = (0..30).map(|i| 1_000 << (i / 3)).collect();
    let rows = (0..1_000).map(|key| row(Key::Number(key), &values)).collect();
    let mut interval = interval(0, rows);
    let before = peak_kib();
    let (mut ms, mut bytes) = (0.0, 0);
    const INTERVALS: usize = 20;
    for _ in 0..INTERVALS {
        let mut exporter = exporter(Encoding::Protobuf, Temporality::Delta);
        interval.events += 1;
        let begin = cpu_ms();
        for batch in export(&mut exporter, &interval) {
            bytes += batch.body.len();
            pusher.push(batch);
        }
        ms += cpu_ms() - begin;
    }
    let (peak, totals) = (peak_kib(), pusher.totals());
    let mib = (peak - before) / 1024;
    println!(
        "{mib} MiB, of {} MiB; {:.1} ms of a CPU and {} bytes for 1,000 keys; {totals:?}",
        peak / 1024,
        ms / INTERVALS as f64,
        bytes / INTERVALS
    );
    assert!(
        totals.dropped > 600 && totals.bytes <= Limits::default().bytes,
        "{totals:?}"
    );
    assert!(mib <= MOST_MIB, "{mib} MiB");
}

/// Peak memory of this process, in KiB.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().strip_suffix(" kB").unwrap().parse().unwrap()
}
