// SPDX-License-Identifier: GPL-2.0

//! The map under contention: several CPUs at once, each interrupted now and then, while one reads.
//! And its variables and wide cells: several CPUs that set one and take from it.
//!
//! Has no test harness, because the standard library's looks like a data race to ThreadSanitizer,
//! unless the library is instrumented as well.

#[path = "crowd/roomy.rs"]
mod roomy;

use std::collections::HashMap;
use std::collections::HashSet;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::sync::Barrier;
use std::sync::Mutex;

use kernel::error::code::EAGAIN;
use kernel::interrupt;
use kernel::sync::atomic::Atomic;
use rhist::counts;
use rhist::cpu::Cpu;
use rhist::map::Column;
use rhist::map::ColumnSet;
use rhist::map::Cpus;
use rhist::map::Extreme;
use rhist::map::Interval;
use rhist::map::Map;
use rhist::map::Read;
use rhist::map::Replace;
use rhist::map::Room;
use rhist::map::Shape;
use rhist::map::Totals;
use rhist::map::VarCell;
use rhist::map::VarMask;
use rhist::map::WideCell;

/// Number of CPUs.
const CPUS: usize = 4;

fn shape() -> Shape<'static> {
    Shape {
        bits: 7,
        key_size: 16,
        columns: &[Column::Hits],
        vars: 0,
        wide: &[],
        side: 0,
        clock: None,
        cpus: Cpus::uniform(CPUS),
        seed: 1,
        room: Room::fixed(0),
        request: None,
    }
}

/// One event on `cpu`.
fn hit(map: &Map, cpu: usize, number: u64) {
    let cpu = Cpu::enter(cpu);
    if let Some(elt) = map.read(cpu.preempt()).insert(cpu.preempt(), &key(number)) {
        elt.update(cpu.preempt(), &[], |&value: &u64| (value, ColumnSet::ONE));
    }
}

fn key(number: u64) -> [u8; 16] {
    (u128::from(number) << 64 | u128::from(number)).to_ne_bytes()
}

/// Checks that a reader finds whole keys at any time, and none twice.
fn read(map: &Map) {
    let (contents, mut keys) = (map.contents(), HashSet::new());
    for elt in contents.elts() {
        let key = counts::key(elt);
        assert_eq!(key[..8], key[8..], "half a key");
        assert!(keys.insert(key), "a key is there twice");
    }
    assert!(keys.len() <= map.contents().capacity());
}

/// Pseudo-random numbers (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

/// All CPUs, at once, fire `events` events each with some of `keys` keys. Asserts that nothing is
/// lost.
fn crowd(shape: Shape<'_>, events: u64, keys: u64, seed: u64) {
    let map = Arc::new(Map::new(shape).unwrap());
    let barrier = Barrier::new(CPUS + 1);
    let cpu = |cpu: usize| {
        let mut random = Random((seed << 8) + cpu as u64 + 1);
        let (mut fired, mut seen) = (0, HashSet::new());
        barrier.wait();
        for _ in 0..events {
            let number = random.below(keys);
            seen.insert(number);
            fired += 1;
            if random.below(4) > 0 {
                hit(&map, cpu, number);
                continue;
            }
            let other = random.below(keys);
            let handler = {
                let map = map.clone();
                move || hit(&map, cpu, other)
            };
            let point = random.below(14) as usize;
            if interrupt::at(point, handler, || hit(&map, cpu, number)).1 {
                seen.insert(other);
                fired += 1;
            }
        }
        (fired, seen)
    };
    let done = AtomicBool::new(false);
    let (fired, seen) = std::thread::scope(|scope| {
        let cpu = &cpu;
        let cpus: Vec<_> = (0..CPUS)
            .map(|number| scope.spawn(move || cpu(number)))
            .collect();
        let reader = scope.spawn(|| {
            barrier.wait();
            while !done.load(Ordering::Relaxed) {
                read(&map);
            }
        });
        let all = cpus.into_iter().fold((0, HashSet::new()), |mut all, cpu| {
            let (fired, seen) = cpu.join().unwrap();
            all.1.extend(seen);
            (all.0 + fired, all.1)
        });
        done.store(true, Ordering::Relaxed);
        reader.join().unwrap();
        all
    });
    read(&map);
    assert_eq!(counts::hits(&map) + map.drops(), fired);
    assert_eq!(
        map.contents().elts().count(),
        seen.len().min(map.contents().capacity())
    );
    assert_eq!(map.contents().len(), map.contents().elts().count());
    if seen.len() <= map.contents().capacity() {
        assert_eq!(map.drops(), 0);
    }
}

/// Number of readers of intervals that take at random times; one more waits for the end.
const READERS: usize = 3;

/// All CPUs, at once, fire `events` events each, some of them interrupted by another one, while the
/// worker makes cuts and replaces the slots, and readers take intervals. Asserts that each event is
/// in exactly one interval of each reader, and that no key has two elements.
fn crowd_replaced(bits: u32, events: u64, keys: u64) {
    const COLUMNS: &[Column] = &[
        Column::Hits,
        Column::Sum,
        Column::Extreme(Extreme::min(false)),
        Column::Extreme(Extreme::max(false)),
    ];
    let columns = COLUMNS;
    // It has a worker, so readers follow it.
    let request = counts::request();
    let map = Map::new(Shape {
        bits,
        columns,
        request: Some(&request),
        ..shape()
    })
    .unwrap();
    let map = Arc::new(map);
    let fire = |map: &Map, cpu: usize, number: u64, value: u64| {
        let cpu = Cpu::enter(cpu);
        if let Some(elt) = map.read(cpu.preempt()).insert(cpu.preempt(), &key(number)) {
            elt.update(cpu.preempt(), &[1, 3], |&columns| match columns {
                1 => (number, ColumnSet::ONE),
                _ => (value, ColumnSet::of(&COLUMNS[2..])),
            });
        }
    };
    let barrier = Barrier::new(CPUS + 2 + READERS);
    let cpu = |cpu: usize| {
        let mut random = Random(cpu as u64 + 1);
        let mut fired = Counts::new();
        barrier.wait();
        for _ in 0..events {
            let (number, other) = (random.below(keys), random.below(keys));
            let [value, other_value] = [(); 2].map(|()| random.below(1 << 30));
            let handler = {
                let map = map.clone();
                move || fire(&map, cpu, other, other_value)
            };
            // Half of the points come after the end of a hit that finds its key.
            let point = random.below(10) as usize;
            let hit = || fire(&map, cpu, number, value);
            let ((), came) = interrupt::at(point, handler, hit);
            add(&mut fired, number, [1, number, value, value]);
            if came {
                add(&mut fired, other, [1, other, other_value, other_value]);
            }
        }
        fired
    };
    let done = AtomicBool::new(false);
    let is_done = || done.load(Ordering::Relaxed);
    let work = || {
        barrier.wait();
        for round in 1.. {
            if is_done() {
                break;
            }
            counts::cut(&map, round);
            counts::renew(&map);
        }
    };
    let read_all = || {
        let mut last = Counts::new();
        barrier.wait();
        while !is_done() {
            read(&map);
            let now = counts_in(&map, &counts::totals(&map).first);
            for (key, [hits, ..]) in last {
                assert!(hits <= now[&key][0], "it falls");
            }
            last = now;
        }
    };
    let intervals = |reader: u64| {
        let mut random = Random(reader + 1);
        let mut all = Intervals::default();
        barrier.wait();
        while !is_done() {
            match counts::take(&map, reader, None) {
                Ok(interval) if random.below(4) > 0 => all.add(&map, &interval),
                Ok(interval) => map.put_back(reader, &interval),
                Err(error) => assert_eq!(error, EAGAIN),
            }
            (0..random.below(100)).for_each(|_| std::thread::yield_now());
        }
        all
    };
    let late = counts::add_reader_from_begin(&map);
    let readers = [(); READERS].map(|()| counts::add_reader_from_begin(&map));
    let (fired, mut read_by) = std::thread::scope(|scope| {
        let (cpu, intervals) = (&cpu, &intervals);
        let cpus = [0, 1, 2, 3].map(|number| scope.spawn(move || cpu(number)));
        let tasks = [scope.spawn(work), scope.spawn(read_all)];
        let readers = readers.map(|reader| (reader, scope.spawn(move || intervals(reader))));
        let cpus = cpus.map(|cpu| cpu.join());
        done.store(true, Ordering::Relaxed);
        let mut fired = Counts::new();
        for (key, columns) in cpus.into_iter().flat_map(|cpu| cpu.unwrap()) {
            add(&mut fired, key, columns);
        }
        tasks.map(|task| task.join().unwrap());
        let read_by = readers.map(|(reader, task)| (reader, task.join().unwrap()));
        (fired, Vec::from(read_by))
    });
    read_by.push((late, Intervals::default()));
    let total: u64 = fired.values().map(|[hits, ..]| hits).sum();
    let (contents, so_far) = (map.contents(), counts_in(&map, &counts::totals(&map).first));
    assert_eq!(
        contents.elts().count(),
        fired.len().min(contents.capacity())
    );
    for (reader, mut all) in read_by {
        all.add(
            &map,
            &counts::take(&map, reader, Some(counts::moment(u64::MAX / 2))).unwrap(),
        );
        let hits: u64 = all.counts.values().map(|[hits, ..]| hits).sum();
        assert_eq!(hits + all.drops, total, "after {} intervals", all.number);
        assert_eq!(all.counts, so_far);
        if fired.len() <= contents.capacity() {
            assert_eq!(all.counts, fired);
        }
    }
    read(&map);
}

/// Columns of each key: hits, sum, minimum and maximum.
type Counts = HashMap<u64, [u64; 4]>;

fn add(counts: &mut Counts, key: u64, [hits, sum, min, max]: [u64; 4]) {
    let all = counts.entry(key).or_insert([0, 0, u64::MAX, 0]);
    *all = [
        all[0] + hits,
        all[1] + sum,
        all[2].min(min),
        all[3].max(max),
    ];
}

/// The columns of each key in `totals`.
fn counts_in(map: &Map, totals: &Totals) -> Counts {
    let contents = map.contents();
    let mut counts = Counts::new();
    for (key, columns) in counts::entries(&contents, totals) {
        let number = u64::from_ne_bytes(*key.first_chunk().unwrap());
        let other = counts.insert(number, columns);
        assert!(other.is_none(), "a key is there twice");
    }
    counts
}

/// The intervals of a reader so far.
#[derive(Default)]
struct Intervals {
    counts: Counts,
    drops: u64,
    number: u64,
}

impl Intervals {
    fn add(&mut self, map: &Map, interval: &Interval) {
        let totals = &interval.totals.first;
        for (key, columns) in counts_in(map, totals) {
            add(&mut self.counts, key, columns);
        }
        self.drops += totals.drops(&map.contents());
        self.number += 1;
    }
}

/// `n`, or `RHIST_TEST_ROUNDS` percent of it for slow tools.
fn rounds(n: u64) -> u64 {
    match std::env::var("RHIST_TEST_ROUNDS") {
        Ok(percent) => (n * percent.parse::<u64>().unwrap() / 100).max(1),
        Err(_) => n,
    }
}

fn few_keys() {
    crowd(shape(), rounds(50_000), 3, 1);
}

fn many_keys() {
    crowd(shape(), rounds(50_000), 128, 2);
}

fn too_many_keys() {
    crowd(shape(), rounds(50_000), 1000, 3);
}

/// Repeats the moment when the last place is taken.
fn full_map() {
    for round in 0..rounds(3000) {
        let bits = (round % 4) as u32;
        let keys = 1 + round % (2 << bits);
        crowd(Shape { bits, ..shape() }, 8, keys, round);
    }
}

fn replaced() {
    for (bits, keys) in [(2, 4), (7, 128), (7, 1000)] {
        crowd_replaced(bits, rounds(100_000), keys);
    }
    for round in 0..rounds(300) {
        crowd_replaced((round % 3) as u32, 16, 1 + round % 6);
    }
}

fn roomy() {
    let all = roomy::Clauses {
        bits: 3,
        bits_max: 7,
        folds: false,
        idle: false,
        taken: false,
        recycle: false,
        keys: 40,
    };
    for round in 0..rounds(24) {
        let clauses = roomy::Clauses {
            bits: (round % 5) as u32,
            bits_max: 5 + (round % 3) as u32,
            folds: round % 2 == 0,
            idle: round % 3 == 0,
            taken: round % 4 == 0,
            recycle: round % 5 < 2,
            ..all
        };
        let others = roomy::crowd(clauses, 3000, round);
        // All entries end in the last seconds, if idle ones do.
        assert!(!clauses.idle || others > 0, "{clauses:?}");
    }
    roomy::crowd(all, rounds(50_000), 100);
    let fixed = roomy::Clauses {
        bits: 6,
        bits_max: 6,
        idle: true,
        recycle: true,
        folds: true,
        ..all
    };
    assert!(roomy::crowd(fixed, rounds(50_000), 101) > 0);
}

fn mask() -> VarMask {
    VarMask::new(0x5bd1_e995_9d1b_54a5)
}

/// The `n`-th value of `cpu`. Both halves depend on both, so that a mix of two values shows.
fn value(cpu: u64, n: u64) -> u64 {
    let half = cpu << 24 | n;
    half << 32 | half
}

/// Splits `value` into its CPU and its sequence number there.
fn setter(value: u64) -> (u64, u64) {
    let half = value & 0xffff_ffff;
    assert_eq!(value >> 32, half, "half a value");
    (half >> 24, half & 0xff_ffff)
}

/// Asserts that no value was taken twice by all of `takers` together, and that each of them got the
/// values of a CPU in the order in which it set them. Returns the number of values.
fn assert_taken_once(takers: &[Vec<u64>]) -> u64 {
    let mut all = HashSet::new();
    for taken in takers {
        let mut last = [None; 4];
        for &value in taken {
            let (cpu, n) = setter(value);
            assert!(
                last[cpu as usize] < Some(n),
                "an older value after a newer one"
            );
            last[cpu as usize] = Some(n);
            assert!(all.insert(value), "taken twice");
        }
    }
    all.len() as u64
}

/// All CPUs set one variable and take from it. A value neither taken nor left was overwritten.
fn variable_overwritten() {
    let sets = rounds(100_000);
    let cell = VarCell::new();
    let barrier = Barrier::new(4);
    let cpu = |cpu: u64| {
        let mut random = Random(cpu + 1);
        let (mut taken, mut set) = (Vec::new(), 0);
        barrier.wait();
        while set < sets {
            match random.below(4) {
                0 | 1 => {
                    assert!(cell.set(mask(), value(cpu, set)));
                    set += 1;
                }
                2 => taken.extend(cell.take(mask())),
                _ => {
                    cell.get(mask()).map(setter);
                }
            }
        }
        taken
    };
    let mut takers = std::thread::scope(|scope| {
        let cpu = &cpu;
        let cpus = [0, 1, 2, 3].map(|number| scope.spawn(move || cpu(number)));
        cpus.map(|cpu| cpu.join().unwrap()).to_vec()
    });
    takers.push(cell.get(mask()).into_iter().collect());
    let found = assert_taken_once(&takers);
    assert!(found > 0 && found <= 4 * sets);
    for (cpu, n) in takers.into_iter().flatten().map(setter) {
        assert!(cpu < 4 && n < sets, "nobody set it");
    }
}

/// Two CPUs set a variable, but only while it is unset, and two take. So all values are taken, and
/// none is overwritten.
fn variable_handed_over() {
    let sets = rounds(20_000);
    let cell = VarCell::new();
    let setters = Mutex::new(());
    let done = AtomicBool::new(false);
    let set = |cpu: u64| {
        for n in 0..sets {
            loop {
                let _alone = setters.lock().unwrap();
                if cell.get(mask()).is_none() {
                    assert!(cell.set(mask(), value(cpu, n)));
                    break;
                }
                std::thread::yield_now();
            }
        }
    };
    let take = || {
        let mut taken = Vec::new();
        while !done.load(Ordering::Relaxed) {
            match cell.take(mask()) {
                Some(value) => taken.push(value),
                None => std::thread::yield_now(),
            }
        }
        taken
    };
    let mut takers = std::thread::scope(|scope| {
        let (set, take) = (&set, &take);
        let setters = [0, 1].map(|cpu| scope.spawn(move || set(cpu)));
        let takers = [0, 1].map(|_| scope.spawn(take));
        let setters = setters.map(|setter| setter.join());
        // End the takers even if a setter has failed.
        done.store(true, Ordering::Relaxed);
        setters.into_iter().for_each(|setter| setter.unwrap());
        takers.map(|taker| taker.join().unwrap()).to_vec()
    });
    takers.push(cell.get(mask()).into_iter().collect());
    assert_eq!(assert_taken_once(&takers), 2 * sets);
}

/// Memory of a wide cell for [`WIDE`] words.
fn cell_words() -> Vec<Atomic<u64>> {
    let size = WideCell::size(WIDE).unwrap();
    (0..size).map(|_| Atomic::new(0)).collect()
}

/// Words of a value in a wide cell.
const WIDE: usize = 5;

/// A wide value: each word depends on `first`, and differs from all others.
fn wide(first: u64) -> [u64; WIDE] {
    std::array::from_fn(|n| first.rotate_left(n as u32 * 12))
}

/// Reads the cell by `read`. Returns the first word of its value, if it is set. Counts in `busy` if
/// it cannot be read.
fn whole(read: impl Fn(&mut [u64]) -> Read, busy: &mut u64) -> Option<u64> {
    let mut value = [0; WIDE];
    match read(&mut value) {
        Read::Done => {
            assert_eq!(value, wide(value[0]), "parts of several values");
            Some(value[0])
        }
        Read::Unset => None,
        Read::Busy => {
            *busy += 1;
            None
        }
    }
}

/// All CPUs write one wide cell and take from it. A value neither taken nor left was overwritten,
/// or counted as lost.
fn wide_overwritten() {
    let writes = rounds(100_000);
    let words = cell_words();
    let cell = WideCell::new(&words).unwrap();
    let barrier = Barrier::new(4);
    let cpu = |cpu: u64| {
        let mut random = Random(cpu + 1);
        let (mut taken, mut lost, mut busy) = (Vec::new(), 0, 0);
        let mut written = 0;
        barrier.wait();
        while written < writes {
            match random.below(4) {
                0 | 1 => {
                    lost += u64::from(!cell.write(wide(value(cpu, written))));
                    written += 1;
                }
                2 => taken.extend(whole(|to| cell.take(to), &mut busy)),
                _ => {
                    whole(|to| cell.read(to), &mut busy).map(setter);
                }
            }
        }
        (taken, lost, busy)
    };
    let cpus = std::thread::scope(|scope| {
        let cpu = &cpu;
        let cpus = [0, 1, 2, 3].map(|number| scope.spawn(move || cpu(number)));
        cpus.map(|cpu| cpu.join().unwrap())
    });
    let lost: u64 = cpus.iter().map(|(_, lost, _)| lost).sum();
    let busy: u64 = cpus.iter().map(|(_, _, busy)| busy).sum();
    println!(
        "wide_overwritten: {lost} of {} writes lost, {busy} reads busy",
        4 * writes
    );
    let mut takers = cpus.map(|(taken, _, _)| taken).to_vec();
    let mut none = 0;
    takers.push(whole(|to| cell.read(to), &mut none).into_iter().collect());
    assert_eq!(none, 0);
    let found = assert_taken_once(&takers);
    assert!(found > 0 && found + lost <= 4 * writes);
    for (cpu, n) in takers.into_iter().flatten().map(setter) {
        assert!(cpu < 4 && n < writes, "nobody wrote it");
    }
}

/// All CPUs, each interrupted now and then, store into one maximum, which one reads. It never
/// falls, and only values counted as lost are missing.
fn wide_maximum() {
    let hits = rounds(50_000);
    let words = Arc::new(cell_words());
    let hit = |words: &[Atomic<u64>], value: u64| {
        let greater = |old: Option<u64>| old.is_none_or(|old| value > old);
        let cell = WideCell::new(words).unwrap();
        (value, cell.replace_if(greater, wide(value)))
    };
    let barrier = Barrier::new(CPUS + 1);
    let cpu = |cpu: u64| {
        let mut random = Random(cpu + 1);
        let mut all = Vec::new();
        barrier.wait();
        for n in 0..hits {
            // Grows, so that new maxima come all the time.
            let mut value = || n << 20 | random.below(1 << 20);
            let (mine, other, point) = (value(), value(), value() as usize % 24);
            let theirs = Arc::new(Mutex::new(None));
            let handler = {
                let (words, theirs) = (words.clone(), theirs.clone());
                move || *theirs.lock().unwrap() = Some(hit(&words, other))
            };
            all.push(interrupt::at(point, handler, || hit(&words, mine)).0);
            all.extend(*theirs.lock().unwrap());
        }
        all
    };
    let done = AtomicBool::new(false);
    let cell = WideCell::new(&words).unwrap();
    let (all, busy) = std::thread::scope(|scope| {
        let cpu = &cpu;
        let cpus = [0, 1, 2, 3].map(|number| scope.spawn(move || cpu(number)));
        let reader = scope.spawn(|| {
            let (mut last, mut busy) = (None, 0);
            barrier.wait();
            while !done.load(Ordering::Relaxed) {
                if let Some(value) = whole(|to| cell.read(to), &mut busy) {
                    assert!(last <= Some(value), "it falls");
                    last = Some(value);
                }
            }
            busy
        });
        let cpus = cpus.map(|cpu| cpu.join());
        done.store(true, Ordering::Relaxed);
        let all: Vec<_> = cpus.into_iter().flat_map(|cpu| cpu.unwrap()).collect();
        (all, reader.join().unwrap())
    });
    let lost = all.iter().filter(|(_, result)| *result == Replace::Lost);
    println!(
        "wide_maximum: {} of {} hits lost, {busy} reads busy",
        lost.count(),
        all.len()
    );
    let mut none = 0;
    let last = whole(|to| cell.read(to), &mut none);
    let not_lost = all
        .into_iter()
        .filter(|(_, result)| *result != Replace::Lost);
    assert_eq!(last, not_lost.map(|(value, _)| value).max());
}

fn main() {
    let tests: [(&str, fn()); 10] = [
        ("few_keys", few_keys),
        ("many_keys", many_keys),
        ("too_many_keys", too_many_keys),
        ("full_map", full_map),
        ("replaced", replaced),
        ("roomy", roomy),
        ("variable_overwritten", variable_overwritten),
        ("variable_handed_over", variable_handed_over),
        ("wide_overwritten", wide_overwritten),
        ("wide_maximum", wide_maximum),
    ];
    let mut failed = 0;
    for (name, test) in tests {
        let ok = std::panic::catch_unwind(test).is_ok();
        println!("test {name} ... {}", if ok { "ok" } else { "FAILED" });
        failed += usize::from(!ok);
    }
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    let passed = tests.len() - failed;
    println!("test result: {verdict}. {passed} passed; {failed} failed; 0 ignored; 0 measured; 0 filtered out");
    std::process::exit(i32::from(failed > 0));
}
