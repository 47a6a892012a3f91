// SPDX-License-Identifier: GPL-2.0

//! Maps that grow and lose entries, in a crowd: CPUs, the worker, readers of intervals and of the
//! counts so far, and lack of memory.

use std::collections::HashSet;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;
use std::sync::Barrier;

use kernel::error::code::EAGAIN;
use kernel::fault;
use kernel::interrupt;
use kernel::prelude::GFP_KERNEL;
use kernel::sync::atomic::Atomic;
use rhist::counts;
use rhist::cpu::Cpu;
use rhist::map::Column;
use rhist::map::ColumnSet;
use rhist::map::Extreme;
use rhist::map::Interval;
use rhist::map::Map;
use rhist::map::PerMap;
use rhist::map::Policy;
use rhist::map::Room;
use rhist::map::Shape;
use rhist::map::Tending;
use rhist::map::Totals;
use rhist::map::ELEMENT_SHIFT;

use super::Random;
use super::CPUS;

const COLUMNS: &[Column] = &[
    Column::Hits,
    Column::Sum,
    Column::Extreme(Extreme::min(false)),
    Column::Extreme(Extreme::max(false)),
];

/// Readers of intervals.
const READERS: usize = 3;

const SECOND: u64 = 1_000_000_000;

/// The clauses of a map: how large it may get, and which entries and hits it takes out or folds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clauses {
    pub(crate) bits: u32,
    pub(crate) bits_max: u32,
    pub(crate) folds: bool,
    pub(crate) idle: bool,
    pub(crate) taken: bool,
    pub(crate) recycle: bool,
    /// Keys that are hit at a time; others follow them.
    pub(crate) keys: u64,
}

fn map(clauses: Clauses) -> (Map, Tending) {
    let request = counts::request();
    let forgets = clauses.idle || clauses.taken || clauses.recycle;
    let room = |more| Room {
        bits_max: clauses.bits_max + more,
        others: clauses.folds || forgets,
        folds: clauses.folds,
        forgets,
        sparse: clauses.bits_max > clauses.bits,
        numbered: false,
    };
    let first = Shape {
        bits: clauses.bits,
        key_size: 8,
        columns: COLUMNS,
        vars: 1,
        // So wide that a chunk has 32 elements: the storage grows often.
        side: 129,
        room: room(0),
        request: Some(&request),
        ..super::shape()
    };
    let second = Shape {
        bits: clauses.bits + 2,
        key_size: 8,
        side: 129,
        room: Room {
            folds: false,
            ..room(2)
        },
        request: Some(&request),
        ..super::shape()
    };
    let map = Map::with_second(first, Some(second)).unwrap();
    let policy = Policy {
        idle_ns: clauses.idle.then_some(4 * SECOND),
        taken: clauses.taken.into(),
        wide_vars: 0,
        recycle: clauses.recycle,
        max_bytes: || usize::MAX,
        active: kernel::sync::Arc::new(Atomic::new(1), GFP_KERNEL).unwrap(),
    };
    let tending = Tending::new(&map, policy).unwrap();
    (map, tending)
}

/// A hit, with a value that belongs to its key.
fn fire(map: &Map, cpu: usize, key: u64) {
    let cpu = Cpu::enter(cpu);
    let generation = map.read(cpu.preempt());
    let Some(elt) = generation.insert_word(cpu.preempt(), key) else {
        return;
    };
    let bucket = u64::from(elt.number()) << ELEMENT_SHIFT | key % 2;
    let second = generation.second().unwrap();
    let bucket = second.insert_word(cpu.preempt(), bucket);
    bucket.inspect(|bucket| bucket.count(cpu.preempt()));
    rhist::sync::smp_wmb();
    elt.update(cpu.preempt(), &[1, 3], |&columns| match columns {
        1 => (key + 1, ColumnSet::ONE),
        _ => (key + 1, ColumnSet::of(&COLUMNS[2..])),
    });
    if generation
        .others()
        .all(|other| other.number() != elt.number())
    {
        assert!(elt.set_var(0, key));
    }
}

/// Hits in `totals`: of entries, of `other`, and drops. Fails if an entry has values of another
/// key.
fn hits_in(map: &Map, totals: &PerMap<Totals>) -> Result<u64, String> {
    let (contents, totals) = (map.contents(), &totals.first);
    let mut hits = totals.drops(&contents);
    let mut numbers = HashSet::new();
    for elt in contents.elts() {
        let of_elt: [u64; 4] = std::array::from_fn(|n| totals.column(elt.number(), n));
        let value = elt.key_words().next().unwrap() + 1;
        // The values of hits at work are there before them.
        let [hits_of, sum, min, max] = of_elt;
        let is_right = sum % value == 0 && sum >= hits_of * value && [min, max] == [value; 2];
        if hits_of > 0 && !is_right {
            return Err(format!("key {}: {of_elt:?}", value - 1));
        }
        if !numbers.insert(elt.number()) {
            return Err(format!("number {} is there twice", elt.number()));
        }
        hits += of_elt[0];
    }
    let others = contents.others();
    Ok(hits
        + others
            .map(|other| totals.column(other.number(), 0))
            .sum::<u64>())
}

/// Adds up an interval, once no counts move meanwhile.
fn show(map: &Map, reader: u64, interval: &mut Interval) -> u64 {
    loop {
        let held = map.hold();
        map.settle(reader, interval, GFP_KERNEL).unwrap();
        let hits = hits_in(map, &interval.totals);
        if held.is_whole() {
            return hits.unwrap();
        }
        drop(held);
        std::thread::yield_now();
    }
}

/// All CPUs, at once, fire `events` events each, some of them interrupted by another one, with keys
/// that change, while the worker makes cuts and beats, of which some lack memory, and readers take
/// intervals. Asserts that each event is in exactly one interval of each reader, in an entry of its
/// key, in `other`, or a drop. Returns the events that are not in entries.
pub(crate) fn crowd(clauses: Clauses, events: u64, seed: u64) -> u64 {
    let (map, mut tending) = map(clauses);
    let map = std::sync::Arc::new(map);
    let barrier = Barrier::new(CPUS + 2 + READERS);
    let done = AtomicBool::new(false);
    let is_done = || done.load(Ordering::Relaxed);
    let fired = AtomicU32::new(0);
    let cpu = |cpu: usize| {
        let mut random = Random((seed << 8) + cpu as u64 + 1);
        barrier.wait();
        for n in 0..events {
            let base = n * clauses.keys * 8 / events * clauses.keys;
            let mut next = || base + random.below(clauses.keys);
            let (key, other) = (next(), next());
            let handler = {
                let map = map.clone();
                move || fire(&map, cpu, other)
            };
            let point = random.below(24) as usize;
            let ((), came) = interrupt::at(point, handler, || fire(&map, cpu, key));
            fired.fetch_add(1 + u32::from(came), Ordering::Relaxed);
            if clauses.taken && random.below(2) == 0 {
                let cpu = Cpu::enter(cpu);
                let elt = map.read(cpu.preempt()).lookup_word(key);
                elt.and_then(|elt| elt.take_var(0));
            }
        }
    };
    let work = || {
        let mut random = Random(seed + 77);
        let mut now = 1;
        barrier.wait();
        for edge in 1.. {
            if is_done() {
                break;
            }
            now += random.below(SECOND);
            match random.below(8) {
                0 => fault::after(random.below(12) as usize, || {
                    counts::beats(&map, &mut tending, now);
                }),
                1 => counts::cut(&map, edge),
                2 => {
                    drop(map.cut(counts::moment(edge)).unwrap());
                    counts::beats(&map, &mut tending, now);
                    map.fold(|| ());
                    kernel::sync::rcu::synchronize_rcu();
                    map.end_cut();
                }
                _ => counts::beats(&map, &mut tending, now),
            }
        }
        now
    };
    let read_all = || {
        let mut last = 0;
        barrier.wait();
        while !is_done() {
            let hits = map.whole(|held| {
                let totals = held.totals(GFP_KERNEL, &|| Ok(()))?;
                Ok(hits_in(&map, &totals))
            });
            let hits = hits.unwrap().unwrap();
            assert!(hits >= last, "it falls");
            last = hits;
        }
    };
    let intervals = |reader: u64| {
        let mut random = Random(reader + 1);
        let mut all = 0;
        barrier.wait();
        while !is_done() {
            match counts::take(&map, reader, None) {
                Ok(mut interval) => {
                    (0..random.below(100)).for_each(|_| std::thread::yield_now());
                    match random.below(4) {
                        0 => map.put_back(reader, &interval),
                        _ => all += show(&map, reader, &mut interval),
                    }
                }
                Err(error) => assert_eq!(error, EAGAIN),
            }
            (0..random.below(100)).for_each(|_| std::thread::yield_now());
        }
        all
    };
    let late = counts::add_reader_from_begin(&map);
    let readers = [(); READERS].map(|()| counts::add_reader_from_begin(&map));
    let (mut read_by, now) = std::thread::scope(|scope| {
        let (cpu, intervals) = (&cpu, &intervals);
        let cpus = [0, 1, 2, 3].map(|number| scope.spawn(move || cpu(number)));
        let worker = scope.spawn(work);
        let reader = scope.spawn(read_all);
        let readers = readers.map(|reader| (reader, scope.spawn(move || intervals(reader))));
        cpus.map(|cpu| cpu.join().unwrap());
        done.store(true, Ordering::Relaxed);
        let now = worker.join().unwrap();
        reader.join().unwrap();
        let read_by = readers.map(|(reader, task)| (reader, task.join().unwrap()));
        (Vec::from(read_by), now)
    });
    // Until all entries are idle. Readers would make the worker wait.
    for second in 1..=40 {
        counts::beats(&map, &mut tending, now + second * SECOND);
    }
    read_by.push((late, 0));
    let fired = u64::from(fired.load(Ordering::Relaxed));
    let totals = counts::totals(&map);
    assert_eq!(hits_in(&map, &totals).unwrap(), fired, "{clauses:?}");
    let end = Some(counts::moment(u64::MAX / 2));
    for (reader, all) in read_by {
        let mut rest = counts::take(&map, reader, end).unwrap();
        assert_eq!(all + show(&map, reader, &mut rest), fired, "{clauses:?}");
    }
    let (contents, second) = (map.contents(), totals.second.unwrap());
    let buckets = contents.second().unwrap();
    let values: u64 = buckets
        .elts()
        .map(|elt| second.column(elt.number(), 0))
        .sum();
    let rows = || contents.elts().chain(contents.others());
    let hits: u64 = rows().map(|elt| totals.first.column(elt.number(), 0)).sum();
    assert!(values <= hits, "{clauses:?}");
    if second.drops(buckets) == 0 {
        assert_eq!(values, hits, "{clauses:?}");
    }
    let others = contents.others();
    others
        .map(|other| totals.first.column(other.number(), 0))
        .sum()
}
