// SPDX-License-Identifier: GPL-2.0

//! The cost of map, program and filter on this machine: one hit, on one thread, and on each of two
//! at once.

// criterion's macros make public functions.
#![allow(missing_docs)]

#[path = "../rhist/tests/hist/events.rs"]
mod events;
#[path = "../rhist/tests/hist/group_tree.rs"]
mod group_tree;
#[path = "../rhist/tests/filter/scene.rs"]
mod scene;

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use criterion::criterion_group;
use criterion::criterion_main;
use criterion::Criterion;
use rhist::cpu::Cpu;
use rhist::filter::Filter;
use rhist::map::Column;
use rhist::map::Cpus;
use rhist::map::Map;
use rhist::map::Room;
use rhist::map::Shape;

/// Number of keys, hit in turn.
const KEYS: usize = 256;

/// Runs `hit` `iters` times on each of `threads` threads, with the CPU and the number of the hit.
/// Returns the time of the slowest thread.
fn on_threads(threads: usize, iters: u64, hit: &(impl Fn(usize, usize) + Sync)) -> Duration {
    let barrier = Barrier::new(threads);
    let one = |cpu| {
        barrier.wait();
        let began = Instant::now();
        for number in 0..iters as usize {
            hit(cpu, number);
        }
        began.elapsed()
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
            .map(|cpu| scope.spawn(move || one(cpu)))
            .collect();
        let took = threads.into_iter().map(|thread| thread.join().unwrap());
        took.max().unwrap_or_default()
    })
}

fn measure(c: &mut Criterion, name: &str, hit: impl Fn(usize, usize) + Sync) {
    let mut group = c.benchmark_group(name);
    for (id, threads) in [("one thread", 1), ("two threads", 2)] {
        group.bench_function(id, |b| {
            b.iter_custom(|iters| on_threads(threads, iters, &hit));
        });
    }
    group.finish();
}

fn map(c: &mut Criterion) {
    let shape = |key_size| Shape {
        bits: 11,
        key_size,
        columns: &[Column::Hits],
        vars: 0,
        wide: &[],
        side: 0,
        clock: None,
        cpus: Cpus::uniform(2),
        seed: 1,
        room: Room::fixed(0),
        request: None,
    };
    let words = Map::new(shape(8)).unwrap();
    measure(c, "map, a word", |cpu, number| {
        let cpu = Cpu::enter(cpu);
        let elt = words
            .read(cpu.preempt())
            .insert_word(cpu.preempt(), black_box(number % KEYS) as u64);
        elt.unwrap().update(cpu.preempt(), &[], |&value| value);
    });
    let bytes = Map::new(shape(24)).unwrap();
    measure(c, "map, 24 bytes", |cpu, number| {
        let mut key = [0; 24];
        key[..8].copy_from_slice(&black_box(number % KEYS).to_ne_bytes());
        let cpu = Cpu::enter(cpu);
        bytes
            .read(cpu.preempt())
            .insert(cpu.preempt(), &key)
            .unwrap()
            .update(cpu.preempt(), &[], |&value| value);
    });
}

fn program(c: &mut Criterion) {
    let records: Vec<_> = (0..KEYS)
        .map(|pid| events::waking(b"a task\0", pid as i32))
        .collect();
    for params in [
        "keys=pid",
        "keys=pid,prio:vals=target_cpu",
        "keys=comm",
        "keys=pid.log2",
    ] {
        let hist = events::hist(&events::sched_waking(), params);
        measure(c, &format!("program, {params}"), |cpu, number| {
            black_box(&records[number % KEYS]).hit_in(&hist, cpu, b"task\0***********");
        });
        assert!(events::Hits::hits(&*hist) > 0 && hist.drops() == 0);
    }
}

fn filter(c: &mut Criterion) {
    let event = scene::event();
    let hit = scene::Scene::new(0, "a task")
        .number("u32", 5)
        .text(b"a_text_b");
    for text in ["u32 == 5", "u32 > 5 && s64 != 3 || u8 == 2", "text ~ 'a*b'"] {
        let filter = Filter::parse(text.as_bytes(), &event, 2, &scene::Kernel);
        let filter = filter.unwrap_or_else(|_| panic!("{text}"));
        measure(c, &format!("filter, {text}"), |_, _| {
            black_box(black_box(&hit).matches(&filter));
        });
    }
}

fn short() -> Criterion {
    Criterion::default()
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(2))
}

criterion_group! {
    name = benches;
    config = short();
    targets = map, program, filter
}
criterion_main!(benches);
