// SPDX-License-Identifier: GPL-2.0

//! The map, compared with a plain one, in all shapes, and interrupted at every point.

use std::alloc::GlobalAlloc;
use std::alloc::Layout;
use std::alloc::System;
use std::cell::Cell;
use std::collections::HashMap;
use std::collections::HashSet;
use std::ptr;
use std::rc::Rc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;

use kernel::alloc::NumaNode;
use kernel::error::code::EINVAL;
use kernel::error::code::ENOMEM;
use kernel::fault;
use kernel::interrupt;
use kernel::sync::atomic::Relaxed;
use proptest::prelude::*;
use rhist::cpu::Cpu;
use rhist::map::Column;
use rhist::map::ColumnSet;
use rhist::map::Cpus;
use rhist::map::Elt;
use rhist::map::Generation;
use rhist::map::Hash;
use rhist::map::Loss;
use rhist::map::Map;
use rhist::map::Read;
use rhist::map::Shape;

/// Number of CPUs in most tests.
const CPUS: usize = 2;

/// The count of hits and two sums.
const COLUMNS: &[Column] = &[Column::Hits, Column::Sum, Column::Sum];

std::thread_local! {
    /// Bytes that this thread has allocated and not freed.
    static ALLOCATED: Cell<isize> = const { Cell::new(0) };
}

/// Counts the bytes that each thread allocates.
struct Counting;

// SAFETY: All calls are forwarded to `System` with the caller's arguments; counting in thread-local
// storage does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATED.try_with(|bytes| bytes.set(bytes.get() + layout.size() as isize));
        // SAFETY: By the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        let _ = ALLOCATED.try_with(|bytes| bytes.set(bytes.get() - layout.size() as isize));
        // SAFETY: By the caller.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn shape() -> Shape<'static> {
    Shape {
        bits: 7,
        key_size: 8,
        columns: &COLUMNS[..1],
        vars: 0,
        wide: &[],
        side: 0,
        cpus: Cpus::uniform(CPUS),
        seed: 1,
    }
}

/// Largest nesting of contexts on a CPU.
const LEVELS: usize = 4;

/// Fires one event, `key` on `cpu`. Returns whether it found a place.
fn hit(map: &Map, cpu: usize, key: &[u8]) -> bool {
    hit_with(map, cpu, key, &[])
}

/// The same, with values.
fn hit_with(map: &Map, cpu: usize, key: &[u8], values: &[u64]) -> bool {
    let cpu = Cpu::enter(cpu);
    let elt = map.read(cpu.preempt()).insert(cpu.preempt(), key);
    if let Some(elt) = elt {
        assert_eq!(elt.key(), key);
        elt.update(cpu.preempt(), values, |&value| (value, ColumnSet::ONE));
    }
    elt.is_some()
}

fn key(number: u64) -> [u8; 8] {
    number.to_ne_bytes()
}

/// Invariants of the map while nobody uses it.
fn assert_consistent(map: &Map, fired: u64) {
    assert_eq!(map.contents().hits() + map.contents().drops(), fired);
    assert_eq!(map.contents().elts().count(), map.contents().len());
    assert!(map.contents().len() <= map.contents().capacity());
    let contents = map.contents();
    let keys: HashSet<_> = contents.elts().map(|elt| elt.key()).collect();
    assert_eq!(keys.len(), map.contents().len(), "a key is there twice");
    for elt in map.contents().elts() {
        assert_eq!(map.contents().lookup(elt.key()).unwrap().key(), elt.key());
    }
}

/// Checks the map after `fired` events with `distinct` different keys.
fn assert_complete(map: &Map, fired: u64, distinct: usize) {
    assert_consistent(map, fired);
    assert_eq!(
        map.contents().len(),
        distinct.min(map.contents().capacity())
    );
    if distinct <= map.contents().capacity() {
        assert_eq!(map.contents().drops(), 0);
    }
}

#[test]
fn shapes_out_of_range_are_refused() {
    let wrong = [
        Shape {
            bits: 22,
            ..shape()
        },
        Shape {
            key_size: 0,
            ..shape()
        },
        Shape {
            key_size: 12,
            ..shape()
        },
        Shape {
            key_size: 512,
            ..shape()
        },
        Shape {
            columns: &[],
            ..shape()
        },
        Shape {
            columns: &COLUMNS[1..],
            ..shape()
        },
        Shape {
            cpus: Cpus::uniform(0),
            ..shape()
        },
        Shape {
            cpus: Cpus {
                own: 3,
                ..Cpus::uniform(2)
            },
            ..shape()
        },
    ];
    for shape in wrong {
        assert_eq!(Map::new(shape).err(), Some(EINVAL));
    }
    for (side, cpus) in [(usize::MAX, 1), (1, usize::MAX), (usize::MAX / 8, 1)] {
        let cpus = Cpus::uniform(cpus);
        let shape = Shape {
            side,
            cpus,
            ..shape()
        };
        assert_eq!(Map::new(shape).err(), Some(ENOMEM));
    }
    for wide in [&[usize::MAX][..], &[usize::MAX / 3], &[1 << 60; 6]] {
        let shape = Shape { wide, ..shape() };
        assert_eq!(shape.size_bytes(), None);
        assert_eq!(Map::new(shape).err(), Some(ENOMEM));
    }
}

#[test]
fn every_allocation_may_fail() {
    let (map, allocations) = fault::each(
        || Map::new(shape()),
        |map| assert_eq!(map.err(), Some(ENOMEM)),
    );
    // Arrays shared by generations have an `Arc`, which is one more allocation. Elements' parts are
    // in chunks; a part that elements lack has none. Two arrays of chunks are shared, too.
    let (slots, keys, columns, cpu) = (2, 5, 2, 5);
    let (vars, wide, side) = (4, 4 + 1, 4);
    let (pool, cpus, generation) = (2, 2, 1);
    let all = slots + keys + columns + cpu * CPUS + vars + wide + side + pool + cpus + generation;
    assert_eq!(allocations, all);
    drop(map);
    assert_eq!(fault::live(), 0);
}

/// Runs `make`. Returns the memory that it takes in this thread, and its result.
fn taken<T>(make: impl FnOnce() -> T) -> (usize, T) {
    let before = ALLOCATED.get();
    let made = make();
    ((ALLOCATED.get() - before) as usize, made)
}

/// The size computed before a map is made is the size of its allocations: nothing is missing,
/// nothing counted twice. (Each array has some bytes more, for its reference count.)
#[test]
fn a_map_takes_the_memory_that_its_shape_says() {
    let (all, some) = (COLUMNS, &COLUMNS[..1]);
    for (bits, key_size, columns, vars, wide, side, [count, own]) in [
        (0, 8, some, 0, &[][..], 0, [1, 1]),
        (7, 8, some, 0, &[], 0, [2, 2]),
        (7, 8, some, 0, &[], 0, [512, 512]),
        (7, 8, all, 0, &[], 0, [512, 4]),
        (11, 8, some, 0, &[], 0, [4, 4]),
        (11, 504, some, 3, &[31, 5, 1], 2, [4, 2]),
        (12, 16, all, 16, &[1; 16], 32, [1, 1]),
        (17, 8, some, 0, &[], 0, [1, 1]),
        (17, 248, all, 0, &[31], 0, [2, 2]),
    ] {
        let cpus = Cpus {
            own,
            ..Cpus::uniform(count)
        };
        let shape = Shape {
            bits,
            key_size,
            columns,
            vars,
            wide,
            side,
            cpus,
            seed: 1,
        };
        let said = shape.size_bytes().unwrap();
        let (taken, map) = taken(|| Map::new(shape).unwrap());
        assert!(map.contents().is_empty());
        let small = 2048 + 96 * own;
        assert!(
            (said..=said + small).contains(&taken),
            "2^{bits} of {key_size}: said {said}, taken {taken}"
        );
    }
}

/// Spare elements for insertions, up to four for each CPU, are most of a small map on a large
/// machine.
#[test]
fn a_small_map_on_many_cpus_takes_megabytes() {
    let size = |columns| {
        let cpus = Cpus::uniform(512);
        let shape = Shape {
            columns,
            cpus,
            ..shape()
        };
        shape.size_bytes().unwrap() as f64 / 1e6
    };
    assert_eq!(format!("{:.1}", size(&COLUMNS[..1])), "9.1");
    assert_eq!(format!("{:.0}", size(&[Column::Hits; 25])), "223");
}

#[test]
fn exactly_as_many_keys_as_places_fit() {
    for bits in (0..=12).chain([17]) {
        let map = Map::new(Shape { bits, ..shape() }).unwrap();
        let places = 1 << bits;
        assert_eq!(
            (map.contents().capacity(), map.contents().is_empty()),
            (places as usize, true)
        );
        for number in 0..places {
            assert!(hit(&map, 0, &key(number)));
        }
        assert!(!hit(&map, 1, &key(places)));
        assert!(hit(&map, 1, &key(0)));
        assert!(map.contents().lookup(&key(places)).is_none());
        assert_complete(&map, places + 2, places as usize + 1);
        assert_eq!(map.contents().drops(), 1);
    }
}

#[test]
fn sums_wrap() {
    let columns = &COLUMNS[..2];
    let map = Map::new(Shape { columns, ..shape() }).unwrap();
    let cpus = [0, 1].map(Cpu::enter);
    let elt = map
        .read(cpus[0].preempt())
        .insert(cpus[0].preempt(), &key(1))
        .unwrap();
    elt.update(cpus[0].preempt(), &[u64::MAX], |&value| {
        (value, ColumnSet::ONE)
    });
    elt.update(cpus[1].preempt(), &[3], |&value| (value, ColumnSet::ONE));
    assert_eq!((elt.column(0), elt.column(1)), (2, 2));
    elt.update(cpus[0].preempt(), &[1 << 63], |&value| {
        (value, ColumnSet::ONE)
    });
    elt.update(cpus[0].preempt(), &[1 << 63], |&value| {
        (value, ColumnSet::ONE)
    });
    assert_eq!((elt.column(0), elt.column(1)), (4, 2));
}

/// Side data is zero at first, an element's own, and the same on all CPUs; in the last chunk as in
/// the first, with any number of elements in each.
#[test]
fn side_data_belongs_to_its_element() {
    for side in [1, 2, 3, 33, 63, 129, 300] {
        side_data(12, side);
    }
}

fn side_data(bits: u32, side: usize) {
    let cpus = [0, 1].map(Cpu::enter);
    let map = Map::new(Shape {
        bits,
        side,
        ..shape()
    })
    .unwrap();
    let elts: Vec<_> = (0..1 << bits)
        .map(|n| {
            map.read(cpus[0].preempt())
                .insert(cpus[0].preempt(), &key(n))
                .unwrap()
        })
        .collect();
    for (elt, n) in elts.iter().zip(1..) {
        assert_eq!(elt.side().len(), side);
        for word in elt.side() {
            assert_eq!(word.load(Relaxed), 0);
            word.store(n, Relaxed);
        }
    }
    for n in 0..1 << bits {
        let elt = map
            .read(cpus[1].preempt())
            .insert(cpus[1].preempt(), &key(n))
            .unwrap();
        assert!(elt.side().iter().all(|word| word.load(Relaxed) == n + 1));
    }
    assert!(Map::new(shape())
        .unwrap()
        .read(cpus[0].preempt())
        .insert(cpus[0].preempt(), &key(1))
        .unwrap()
        .side()
        .is_empty());
}

/// Variables are unset at first, an element's own, and the same on all CPUs; in the last chunk as
/// in the first.
#[test]
fn variables_belong_to_their_element() {
    let cpus = [0, 1].map(Cpu::enter);
    let (bits, vars) = (12, 2);
    let map = Map::new(Shape {
        bits,
        vars,
        ..shape()
    })
    .unwrap();
    for n in 0..1 << bits {
        let elt = map
            .read(cpus[0].preempt())
            .insert(cpus[0].preempt(), &key(n))
            .unwrap();
        assert_eq!([elt.var(0), elt.var(1)], [None; 2]);
        assert!(elt.set_var(1, n));
    }
    for n in 0..1 << bits {
        let elt = map
            .read(cpus[1].preempt())
            .insert(cpus[1].preempt(), &key(n))
            .unwrap();
        assert_eq!([elt.var(0), elt.var(1)], [None, Some(n)]);
        assert_eq!([elt.take_var(1), elt.take_var(1)], [Some(n), None]);
        // The map has only two variables.
        assert!(!elt.set_var(2, n) && elt.var(2).is_none() && elt.take_var(2).is_none());
    }
}

/// Wide cells are unset at first, an element's own, and the same on all CPUs; in the last chunk as
/// in the first.
#[test]
fn wide_cells_belong_to_their_element() {
    let cpus = [0, 1].map(Cpu::enter);
    let (bits, wide) = (12, &[3, 0, 2]);
    let map = Map::new(Shape {
        bits,
        wide,
        ..shape()
    })
    .unwrap();
    for n in 0..1 << bits {
        let elt = map
            .read(cpus[0].preempt())
            .insert(cpus[0].preempt(), &key(n))
            .unwrap();
        for (number, &words) in wide.iter().enumerate() {
            let cell = elt.wide(number).unwrap();
            assert_eq!(cell.read(&mut []), Read::Unset);
            // All buffers, with at least as many words as fit.
            for last in 0..4 {
                let value = std::iter::repeat_n(n ^ last << 20 ^ (words as u64) << 40, 9);
                assert!(cell.write(value));
            }
        }
        assert!(elt.wide(3).is_none());
    }
    for n in 0..1 << bits {
        let elt = map
            .read(cpus[1].preempt())
            .insert(cpus[1].preempt(), &key(n))
            .unwrap();
        for (number, &words) in wide.iter().enumerate() {
            let mut value = [0; 9];
            assert_eq!(elt.wide(number).unwrap().take(&mut value), Read::Done);
            assert_eq!(
                value[..words],
                vec![n ^ 3 << 20 ^ (words as u64) << 40; words]
            );
            assert!(value[words..].iter().all(|&word| word == 0));
            assert_eq!(elt.wide(number).unwrap().read(&mut value), Read::Unset);
        }
    }
    assert!(Map::new(shape())
        .unwrap()
        .read(cpus[0].preempt())
        .insert(cpus[0].preempt(), &key(1))
        .unwrap()
        .wide(0)
        .is_none());
}

/// Lookups by one word find the same as lookups by bytes; the fast one finds some of it.
#[test]
fn lookups_of_words() {
    let cpus = [Cpu::enter(0)];
    for words in [1, 2] {
        let key_size = words * 8;
        let map = Map::new(Shape {
            key_size,
            ..shape()
        })
        .unwrap();
        assert_eq!(map.contents().key_size(), key_size);
        for number in 0..128 {
            assert!(map.contents().lookup_word(number).is_none());
            map.read(cpus[0].preempt())
                .insert_word(cpus[0].preempt(), number)
                .unwrap();
        }
        let mut first_slot = 0;
        for number in 0..128 {
            let contents = map.contents();
            let elt = contents.lookup_word(number).unwrap();
            assert_eq!(elt.key()[..8], key(number));
            let fast = contents.lookup_word_first_slot(number);
            assert!(fast.is_none_or(|fast| fast.key() == elt.key()));
            first_slot += usize::from(fast.is_some());
        }
        assert!((64..128).contains(&first_slot), "{first_slot}");
        assert!(map.contents().lookup_word(128).is_none());
        assert!(map.contents().lookup_word_first_slot(128).is_none());
    }
}

/// CPUs without columns of their own share a set: nothing is lost, and it takes the memory of one.
#[test]
fn some_cpus_share_columns() {
    const HITS: u64 = 10_000;
    let new = |own| {
        let cpus = Cpus {
            own,
            ..Cpus::uniform(4)
        };
        let columns = COLUMNS;
        let shape = Shape {
            columns,
            cpus,
            ..shape()
        };
        taken(|| Map::new(shape).unwrap())
    };
    let (_, map) = new(2);
    std::thread::scope(|scope| {
        let map = &map;
        for cpu in 0..4 {
            scope.spawn(move || {
                for n in 0..HITS {
                    assert!(hit_with(map, cpu, &key(n % 100), &[n, 2]));
                }
            });
        }
    });
    assert_complete(&map, 4 * HITS, 100);
    let sum = |column| {
        map.contents()
            .elts()
            .map(|elt| elt.column(column))
            .sum::<u64>()
    };
    assert_eq!(sum(1), 4 * (0..HITS).sum::<u64>());
    assert_eq!(sum(2), 4 * HITS * 2);

    assert!(!hit(&map, 3, &[0; 16]));
    assert_eq!(map.contents().drops(), 1);

    let sizes = [2, 3, 4].map(|own| new(own).0);
    // The remaining CPU has columns of its own.
    assert!(sizes[2].abs_diff(sizes[1]) < 128, "{sizes:?}");
    assert!(sizes[2] - sizes[0] > 128 * COLUMNS.len() * 8);
}

/// Each CPU's columns are allocated on its node.
#[test]
fn memory_is_asked_for_near_its_cpu() {
    static ASKED: [AtomicU32; 3] = [const { AtomicU32::new(0) }; 3];
    let node = |cpu: usize| {
        ASKED[cpu].fetch_add(1, Ordering::Relaxed);
        NumaNode::NO_NODE
    };
    let cpus = Cpus {
        count: 3,
        own: 3,
        node,
    };
    let _map = Map::new(Shape { cpus, ..shape() }).unwrap();
    assert!(ASKED.iter().all(|asked| asked.load(Ordering::Relaxed) == 1));
}

#[test]
fn keys_of_another_size_are_dropped() {
    let cpus = [Cpu::enter(0)];
    let map = Map::new(Shape {
        key_size: 16,
        ..shape()
    })
    .unwrap();
    for size in [0, 7, 9, 15, 17, 24] {
        assert!(map
            .read(cpus[0].preempt())
            .insert(cpus[0].preempt(), &vec![0; size])
            .is_none());
        assert!(map.contents().lookup(&vec![0; size]).is_none());
    }
    assert!(hit(&map, 0, &[0; 16]));
    assert!(!map.contents().lookup(&[0; 16]).unwrap().is(&[0; 8]));
    assert_eq!(
        (
            map.contents().hits(),
            map.contents().drops(),
            map.contents().len()
        ),
        (1, 6, 1)
    );
}

/// Zeros at the end of a key may be left out of a lookup, and are part of the key; zeros before
/// that may not.
#[test]
fn zeros_at_the_end() {
    let cpus = [Cpu::enter(0)];
    let map = Map::new(Shape {
        key_size: 32,
        ..shape()
    })
    .unwrap();
    let whole = |words: [u64; 4]| words.map(u64::to_ne_bytes).concat();
    let keys = [
        [0, 0, 0, 0],
        [1, 0, 0, 0],
        [0, 1, 0, 0],
        [1, 0, 2, 0],
        [1, 0, 0, 3],
        [1, 0, 2, 3],
    ];
    for round in 0..2 {
        for key in keys {
            let key = whole(key);
            let last = key.iter().rposition(|&byte| byte != 0).unwrap_or(0);
            let short = &key[..(last + 1).next_multiple_of(8)];
            let elt = map
                .read(cpus[0].preempt())
                .insert(cpus[0].preempt(), if round == 0 { short } else { &key });
            elt.unwrap().update(cpus[0].preempt(), &[], |&value: &u64| {
                (value, ColumnSet::ONE)
            });
            let contents = map.contents();
            let elt = contents.lookup(short).unwrap();
            assert_eq!((elt.key(), elt.column(0)), (&key[..], round + 1));
            assert!(ptr::eq(
                map.contents().lookup(&key).unwrap().key(),
                elt.key()
            ));
        }
    }
    assert_eq!(map.contents().len(), keys.len());
}

/// Keys whose whole hash is the same are still different keys, also around the end of the table.
#[test]
fn collisions() {
    let hash = Hash::new(shape().seed);
    let mut numbers: Vec<(u32, u64)> = (0..400_000)
        .map(|number| ((hash.of([number].into_iter()) >> 32) as u32, number))
        .collect();
    numbers.sort_unstable();
    let same: Vec<u64> = numbers
        .windows(2)
        .filter(|pair| pair[0].0 == pair[1].0)
        .flat_map(|pair| [pair[0].1, pair[1].1])
        .collect();
    assert!(
        same.len() >= 4,
        "{} keys with the hash of another",
        same.len()
    );
    // All keys' first slot is the last slot.
    let last: Vec<u64> = numbers.iter().rev().map(|n| n.1).take(100).collect();
    for keys in [same, last] {
        let map = Map::new(shape()).unwrap();
        for round in 1..=2 {
            for &number in &keys {
                assert!(hit(&map, 0, &key(number)));
                assert_eq!(
                    map.contents().lookup(&key(number)).unwrap().column(0),
                    round
                );
            }
        }
        assert_complete(&map, 2 * keys.len() as u64, keys.len());
    }
}

/// Common kinds of numbers spread like random ones. With half the slots full, finding a key takes
/// 1.5 probes on average then, and a free slot 2.5 (Knuth, volume 3, 6.4).
#[test]
fn numbers_spread() {
    const BITS: u32 = 12;
    type Kind = (&'static str, fn(u64) -> u64);
    let kinds: [Kind; 8] = [
        ("sequence", |n| n),
        ("even", |n| n * 2),
        ("aligned objects", |n| 0xffff_8880_1234_0000 + n * 192),
        ("aligned pages", |n| 0xffff_8880_0000_0000 + (n << 12)),
        ("upper half", |n| n << 32),
        ("highest bits", |n| n << 53),
        ("reversed", |n| n.reverse_bits()),
        ("negative", |n| n.wrapping_neg()),
    ];
    for (kind, number) in kinds {
        for seed in 0..1000 {
            let hash = Hash::new(seed);
            let mut slots = vec![false; 1 << BITS];
            let mut probes = 0;
            for n in 0..1 << (BITS - 1) {
                let mut slot = (hash.of([number(n)].into_iter()) >> (u64::BITS - BITS)) as usize;
                loop {
                    probes += 1;
                    if !std::mem::replace(&mut slots[slot], true) {
                        break;
                    }
                    slot = (slot + 1) % slots.len();
                }
            }
            let mean = f64::from(probes) / f64::from(1 << (BITS - 1));
            assert!(mean < 1.75, "{kind}, seed {seed}: {mean} probes");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// The same operations on a plain map give the same.
    #[test]
    fn agrees_with_a_plain_map(
        bits in 0u32..6,
        words in prop_oneof![Just(1), Just(2), Just(63), 1usize..=63],
        sums in 1usize..=3,
        seed: u64,
        events in prop::collection::vec((0usize..3, 0u64..80, any::<u64>()), 0..400),
    ) {
        let (columns, cpus) = (&COLUMNS[..sums], Cpus::uniform(3));
        let shape = Shape { bits, key_size: words * 8, columns, vars: 0, wide: &[], side: 0, cpus, seed };
        let map = Map::new(shape).unwrap();
        let mut plain: HashMap<Vec<u8>, Vec<u64>> = HashMap::new();
        let mut drops = 0;
        for &(cpu, number, value) in &events {
            // Keys that differ in a single word, any of them.
            let mut key = vec![0; shape.key_size];
            let word = number as usize % words;
            key[word * 8..][..8].copy_from_slice(&number.to_be_bytes());
            prop_assert_eq!(map.contents().lookup(&key).is_some(), plain.contains_key(&key));
            let fits = plain.contains_key(&key) || plain.len() < map.contents().capacity();
            let values: Vec<u64> = (1..sums).map(|i| value.rotate_left(i as u32)).collect();
            prop_assert_eq!(hit_with(&map, cpu, &key, &values), fits);
            if fits {
                let sum = plain.entry(key.clone()).or_insert(vec![0; sums]);
                for (sum, &value) in sum.iter_mut().zip(std::iter::once(&1).chain(&values)) {
                    *sum = sum.wrapping_add(value);
                }
            } else {
                drops += 1;
            }
        }
        assert_consistent(&map, events.len() as u64);
        prop_assert_eq!(map.contents().drops(), drops);
        let contents = map.contents();
        let entries: HashMap<Vec<u8>, Vec<u64>> = contents
            .elts()
            .map(|elt| (elt.key().to_vec(), (0..sums).map(|i| elt.column(i)).collect()))
            .collect();
        prop_assert_eq!(entries, plain);
    }
}

/// The entries of a generation by key: hits and two sums.
fn entries(contents: &Generation) -> HashMap<Vec<u8>, [u64; 3]> {
    let columns = |elt: Elt<'_>| [0, 1, 2].map(|column| elt.column(column));
    let entries = contents
        .elts()
        .map(|elt| (elt.key().to_vec(), columns(elt)))
        .filter(|(_, columns)| columns[0] > 0);
    entries.collect()
}

fn full_shape() -> Shape<'static> {
    Shape {
        columns: COLUMNS,
        vars: 1,
        wide: &[2],
        side: 1,
        ..shape()
    }
}

/// An interval has the hits since the last one. Elements, variables, wide cells and side data live
/// on.
#[test]
fn intervals() {
    let map = Map::new(full_shape()).unwrap();
    let number = |n: u64| {
        let cpu = Cpu::enter(0);
        let elt = map
            .read(cpu.preempt())
            .insert_word(cpu.preempt(), n)
            .unwrap();
        elt.number()
    };
    for n in 0..100 {
        hit_with(&map, n as usize % CPUS, &key(n), &[n, 1]);
        let cpu = Cpu::enter(0);
        let elt = map.read(cpu.preempt()).lookup_word(n).unwrap();
        assert!(elt.set_var(0, n) && elt.wide(0).unwrap().write([n, n]));
        elt.side()[0].store(n, Relaxed);
    }
    let numbers: Vec<_> = (0..100).map(number).collect();
    let cpu = Cpu::enter(1);
    map.read(cpu.preempt())
        .lose(cpu.preempt(), Loss::Unresolved);
    assert!(!hit(&map, 1, &[0; 16]));
    drop(cpu);
    let first = map.take_interval().unwrap();
    let sums = |n: u64| (key(n).to_vec(), [1, n, 1]);
    assert_eq!(entries(&first), (0..100).map(sums).collect());
    assert_eq!((first.hits(), first.drops()), (100, 1));
    assert_eq!(first.losses(Loss::Unresolved), 1);
    assert_eq!(
        (
            map.contents().hits(),
            map.contents().drops(),
            map.contents().len()
        ),
        (0, 0, 100)
    );
    assert_eq!(map.contents().losses(Loss::Unresolved), 0);

    for n in 50..110 {
        hit_with(&map, 0, &key(n), &[n, 2]);
    }
    let second = map.take_interval().unwrap();
    let sums = |n: u64| (key(n).to_vec(), [1, n, 2]);
    assert_eq!(entries(&second), (50..110).map(sums).collect());
    // A taken interval does not change.
    assert_eq!(first.hits(), 100);
    assert!(entries(&map.contents()).is_empty());
    assert_eq!((0..100).map(number).collect::<Vec<_>>(), numbers);
    let cpu = Cpu::enter(0);
    for n in 0..100 {
        let elt = map.read(cpu.preempt()).lookup_word(n).unwrap();
        assert_eq!((elt.var(0), elt.side()[0].load(Relaxed)), (Some(n), n));
        let mut value = [0; 2];
        assert_eq!(elt.wide(0).unwrap().read(&mut value), Read::Done);
        assert_eq!(value, [n, n]);
    }
}

/// The second map has keys of its own. Hits find it by the same pointer, its counters are of the
/// same intervals, and other slots of the first map leave it as it is.
#[test]
fn second_map() {
    let map = Map::with_second(full_shape(), Some(shape())).unwrap();
    assert!(Map::new(shape()).unwrap().contents().second().is_none());
    let hit_both = || {
        let cpu = Cpu::enter(0);
        let generation = map.read(cpu.preempt());
        generation.insert_word(cpu.preempt(), 1).unwrap();
        let second = generation.second().unwrap();
        let elt = second.insert_word(cpu.preempt(), 2).unwrap();
        elt.count(cpu.preempt());
    };
    let count = |generation: &Generation| {
        let second = generation.second().unwrap();
        assert!(second.lookup_word(1).is_none());
        second.lookup_word(2).unwrap().column(0)
    };
    hit_both();
    hit_both();
    assert_eq!(map.replace_table(4), Err(EINVAL));
    map.replace_table(9).unwrap();
    assert_eq!(count(&map.contents()), 2);
    let taken = map.take_interval().unwrap();
    assert_eq!((count(&taken), count(&map.contents())), (2, 0));
    hit_both();
    assert_eq!((count(&taken), count(&map.contents())), (2, 1));
    assert_eq!(map.contents().second().unwrap().len(), 1);

    let huge = Shape {
        bits: Shape::BITS_MAX + 1,
        ..shape()
    };
    let failed = Map::with_second(shape(), Some(huge));
    assert_eq!(failed.err(), Some(EINVAL));
}

/// With other slots, more or fewer, elements are found as before, with all their data. Drops stay
/// drops.
#[test]
fn other_slots() {
    let bits = 4;
    let map = Map::new(Shape {
        bits,
        ..full_shape()
    })
    .unwrap();
    assert_eq!(map.replace_table(bits - 1), Err(EINVAL));
    assert_eq!(map.replace_table(22), Err(EINVAL));
    for round in 1..10 {
        for n in 0..16 {
            assert!(hit_with(&map, 0, &key(n), &[n, 1]));
        }
        assert!(!hit(&map, 0, &key(round + 100)));
        let numbers = |map: &Map| {
            let contents = map.contents();
            let number = |n| contents.lookup(&key(n)).unwrap().number();
            (0..16).map(number).collect::<Vec<_>>()
        };
        let before = numbers(&map);
        map.replace_table(bits + round as u32 % 3 * 3).unwrap();
        assert_eq!(numbers(&map), before);
        let sums = |n: u64| (key(n).to_vec(), [round, n * round, round]);
        assert_eq!(entries(&map.contents()), (0..16).map(sums).collect());
        assert_complete(&map, 17 * round, 17);
    }
}

/// A failed replacement changes nothing.
#[test]
fn replacements_that_fail() {
    let map = Map::new(full_shape()).unwrap();
    for n in 0..100 {
        hit_with(&map, 0, &key(n), &[n, 1]);
    }
    let before = entries(&map.contents());
    let mut failed = 0;
    let (replaced, _) = fault::each(
        || map.replace_table(8),
        |result| {
            assert_eq!(result, Err(ENOMEM));
            assert_eq!(entries(&map.contents()), before);
            failed += 1;
        },
    );
    assert!(failed > 2 && replaced.is_ok());
    let (first, _) = fault::each(
        || map.take_interval(),
        |result| {
            assert_eq!(result.err(), Some(ENOMEM));
            assert_eq!(entries(&map.contents()), before);
        },
    );
    assert_eq!(entries(&first.unwrap()), before);
}

/// Inserts `keys[0]`, interrupted at its atomic operation `points[0]` by an insert of `keys[1]`,
/// which is interrupted by the next, and so on. Returns whether all interrupts came.
fn nest(map: &Rc<Map>, keys: &[u64], points: &[usize]) -> bool {
    let Some((&point, points)) = points.split_first() else {
        hit(map, 0, &key(keys[0]));
        return true;
    };
    let came = Rc::new(std::cell::Cell::new(false));
    let handler = {
        let (map, came) = (map.clone(), came.clone());
        let (keys, points) = (keys[1..].to_vec(), points.to_vec());
        move || came.set(nest(&map, &keys, &points))
    };
    interrupt::at(point, handler, || hit(map, 0, &key(keys[0])));
    came.get()
}

/// Calls `f` with all points of interruption of `depth` nested inserts. Returns the number of
/// cases.
fn at_all_points(depth: usize, f: &dyn Fn(&[usize]) -> bool) -> usize {
    fn go(points: &mut Vec<usize>, depth: usize, f: &dyn Fn(&[usize]) -> bool) -> usize {
        let mut cases = 0;
        for point in 0.. {
            points.push(point);
            let found = if depth == 1 {
                usize::from(f(points))
            } else {
                go(points, depth - 1, f)
            };
            points.pop();
            if found == 0 {
                break;
            }
            cases += found;
        }
        cases
    }
    go(&mut Vec::new(), depth, f)
}

/// All ways in which `keys.len()` inserts can interrupt each other, in a map with few places, and
/// again in the same map when it contains the keys.
fn interrupted(bits: u32, keys: &[u64]) -> usize {
    let distinct = keys.iter().collect::<HashSet<_>>().len();
    at_all_points(keys.len() - 1, &|points| {
        let map = Rc::new(Map::new(Shape { bits, ..shape() }).unwrap());
        let came = nest(&map, keys, points);
        let fired = map.contents().hits() + map.contents().drops();
        if came {
            assert_complete(&map, keys.len() as u64, distinct);
        }
        // No spare element is lost: all keys still fit.
        let all = map.contents().capacity() as u64;
        for number in 0..2 * all {
            hit(&map, 0, &key(number));
        }
        assert_complete(&map, fired + 2 * all, distinct.max(2 * all as usize));
        came
    })
}

#[test]
fn interrupted_once() {
    for bits in 0..2 {
        assert!(interrupted(bits, &[7, 7]) > 10);
        assert!(interrupted(bits, &[7, 8]) > 10);
    }
}

#[test]
fn interrupted_in_interrupts() {
    for bits in 0..2 {
        for keys in [[7, 7, 7], [7, 8, 7], [7, 7, 8], [7, 8, 8], [7, 8, 9]] {
            assert!(interrupted(bits, &keys) > 100);
        }
    }
}

/// Task, softirq, hardirq, NMI.
#[test]
fn interrupted_at_all_levels() {
    for keys in [[7, 7, 7, 7], [7, 8, 9, 10], [7, 8, 7, 8]] {
        assert!(interrupted(1, &keys) > 1000);
    }
}

/// A fifth nested context finds existing keys; a new key is dropped and counted. Nothing else
/// suffers.
#[test]
fn nested_too_deep() {
    let map = Rc::new(Map::new(shape()).unwrap());
    // Between going up a level and publishing.
    let points = [6; LEVELS];
    assert!(nest(&map, &[1, 2, 3, 4, 5], &points));
    assert_eq!((map.contents().hits(), map.contents().drops()), (4, 1));
    assert!(map.contents().lookup(&key(5)).is_none());
    assert!(nest(&map, &[6, 7, 8, 9, 1], &points));
    assert_eq!((map.contents().hits(), map.contents().drops()), (9, 1));
    for number in 0..CPUS as u64 * 100 {
        hit(&map, 0, &key(number));
    }
    assert_complete(&map, 10 + CPUS as u64 * 100, 200);
}

/// The loser of a race uses its element for the next key: elements do not run out.
#[test]
fn losers_keep_their_elements() {
    let map = Rc::new(Map::new(shape()).unwrap());
    let places = map.contents().capacity() as u64;
    for number in 0..places {
        assert!(nest(&map, &[number, number], &[4]));
    }
    assert_complete(&map, 2 * places, places as usize);
}
