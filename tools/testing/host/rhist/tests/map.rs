// SPDX-License-Identifier: GPL-2.0

//! The map, compared with a plain one, in all shapes, and interrupted at every point.

#[path = "map/cuts.rs"]
mod cuts;
#[path = "map/room.rs"]
mod room;
#[path = "map/storage.rs"]
mod storage;
#[path = "map/tend.rs"]
mod tend;

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
use kernel::error::code::EAGAIN;
use kernel::error::code::EINVAL;
use kernel::error::code::ENOMEM;
use kernel::fault;
use kernel::interrupt;
use kernel::prelude::GFP_KERNEL;
use kernel::sync::atomic::Relaxed;
use proptest::prelude::*;
use rhist::counts;
use rhist::counts::hits;
use rhist::cpu::Cpu;
use rhist::errno::eusers;
use rhist::map::Column;
use rhist::map::ColumnSet;
use rhist::map::Cpus;
use rhist::map::FirstSlot;
use rhist::map::Hash;
use rhist::map::Loss;
use rhist::map::Map;
use rhist::map::PerMap;
use rhist::map::Read;
use rhist::map::Room;
use rhist::map::Shape;
use rhist::map::Totals;

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
        // SAFETY: The caller guarantees that the layout is not of size 0.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        let _ = ALLOCATED.try_with(|bytes| bytes.set(bytes.get() - layout.size() as isize));
        // SAFETY: The caller guarantees that the memory is from `alloc`, which is `System`'s, with
        // this layout.
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
        clock: None,
        cpus: Cpus::uniform(CPUS),
        seed: 1,
        room: Room::fixed(0),
        request: None,
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
        assert!(elt.is(key));
        elt.update(cpu.preempt(), values, |&value| (value, ColumnSet::ONE));
    }
    elt.is_some()
}

fn key(number: u64) -> [u8; 8] {
    number.to_ne_bytes()
}

/// Invariants of the map while nobody uses it.
fn assert_consistent(map: &Map, fired: u64) {
    assert_eq!(hits(map) + map.drops(), fired);
    assert_eq!(map.contents().elts().count(), map.contents().len());
    assert!(map.contents().len() <= map.contents().capacity());
    let contents = map.contents();
    let keys: HashSet<_> = contents.elts().map(counts::key).collect();
    assert_eq!(keys.len(), map.contents().len(), "a key is there twice");
    for elt in contents.elts() {
        let found = contents.lookup(&counts::key(elt)).unwrap();
        assert_eq!(found.number(), elt.number());
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
        assert_eq!(map.drops(), 0);
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
    // The set that CPUs share and the counts of `other` are empty.
    let (shared, losses, others) = (1, 2, 1);
    let (vars, wide, side, births) = (4, 4 + 1, 4, 4);
    let (pool, cpus, generation, state, moved) = (2, 2, 1, 1, 1);
    let counters = columns + cpu * CPUS + shared + losses + others;
    let parts = slots + keys + counters + vars + wide + side + births + pool + cpus;
    let all = parts + generation + state + moved;
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
        let clock: Option<fn() -> u64> = (vars > 0).then_some(|| NOW.get());
        let shape = Shape {
            bits,
            key_size,
            columns,
            vars,
            wide,
            side,
            clock,
            cpus,
            seed: 1,
            room: Room::fixed(0),
            request: None,
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
/// machine, but their columns are in few sets.
#[test]
fn a_small_map_on_many_cpus() {
    let size = |columns| {
        let cpus = Cpus::uniform(512);
        let shape = Shape {
            columns,
            cpus,
            ..shape()
        };
        shape.size_bytes().unwrap() as f64 / 1e6
    };
    assert_eq!(format!("{:.1}", size(&COLUMNS[..1])), "0.6");
    assert_eq!(format!("{:.0}", size(&[Column::Hits; 25])), "14");
    let buckets = Shape {
        bits: 13,
        cpus: Cpus::uniform(512),
        ..shape()
    };
    let bytes = buckets.size_bytes().unwrap();
    assert_eq!(format!("{:.1}", bytes as f64 / 1e6), "2.8");
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
        assert_eq!(map.drops(), 1);
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
    assert_eq!(counts::columns(&map, &key(1)), [2, 2]);
    elt.update(cpus[0].preempt(), &[1 << 63], |&value| {
        (value, ColumnSet::ONE)
    });
    elt.update(cpus[0].preempt(), &[1 << 63], |&value| {
        (value, ColumnSet::ONE)
    });
    assert_eq!(counts::columns(&map, &key(1)), [4, 2]);
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
    let sum = |column: usize| {
        let entries = entries(&map).into_values();
        entries.map(|columns| columns[column]).sum::<u64>()
    };
    assert_eq!(sum(1), 4 * (0..HITS).sum::<u64>());
    assert_eq!(sum(2), 4 * HITS * 2);

    assert!(!hit(&map, 3, &[0; 16]));
    assert_eq!(map.drops(), 1);

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
        node,
        ..Cpus::uniform(3)
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
    assert_eq!((hits(&map), map.drops(), map.contents().len()), (1, 6, 1));
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
            assert_eq!(elt.key(), &key[..]);
            assert_eq!(counts::columns(&map, short), [round + 1]);
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
                assert_eq!(counts::columns(&map, &key(number)), [round]);
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
        let shape = Shape { bits, key_size: words * 8, columns, vars: 0, wide: &[], side: 0, clock: None, cpus, seed, room: Room::fixed(0), request: None };
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
        prop_assert_eq!(map.drops(), drops);
        let entries = entries(&map).into_iter();
        let entries = entries.map(|(key, columns)| (key, columns[..sums].to_vec()));
        prop_assert_eq!(entries.collect::<HashMap<_, _>>(), plain);
    }
}

/// The entries so far by key: hits and two sums.
fn entries(map: &Map) -> HashMap<Vec<u8>, [u64; 3]> {
    entries_in(map, &counts::totals(map).first)
}

/// The entries with hits in `totals`.
fn entries_in(map: &Map, totals: &Totals) -> HashMap<Vec<u8>, [u64; 3]> {
    let contents = map.contents();
    let entries = counts::entries(&contents, totals);
    entries
        .map(|(key, columns)| (key.to_vec(), columns))
        .collect()
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

/// An interval of a reader has the hits since its last one. Elements, variables, wide cells and
/// side data live on.
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
    let [all, later] = [counts::add_reader_from_begin, counts::add_reader].map(|add| add(&map));
    let take = |reader| counts::take(&map, reader, None).map(|taken| taken.totals.first);
    let so_far = || (hits(&map), map.drops(), map.losses(Loss::Unresolved));
    assert_eq!(entries_in(&map, &take(all).unwrap()), HashMap::new());
    assert_eq!(take(later).err(), Some(EAGAIN));

    counts::cut(&map, 1);
    let first = take(all).unwrap();
    let sums = |n: u64| (key(n).to_vec(), [1, n, 1]);
    assert_eq!(entries_in(&map, &first), (0..100).map(sums).collect());
    assert_eq!(first.drops(&map.contents()), 1);
    assert_eq!(first.loss(Loss::Unresolved), 1);
    assert_eq!(so_far(), (100, 1, 1));
    let none = take(later).unwrap();
    assert_eq!(entries_in(&map, &none), HashMap::new());
    assert_eq!(
        (none.drops(&map.contents()), none.loss(Loss::Unresolved)),
        (0, 0)
    );

    for n in 50..110 {
        hit_with(&map, 0, &key(n), &[n, 2]);
    }
    counts::cut(&map, 2);
    let sums = |n: u64| (key(n).to_vec(), [1, n, 2]);
    for reader in [all, later] {
        let second = take(reader).unwrap();
        assert_eq!(entries_in(&map, &second), (50..110).map(sums).collect());
        assert_eq!(second.loss(Loss::Unresolved), 0);
        assert_eq!(entries_in(&map, &take(reader).unwrap()), HashMap::new());
    }
    assert_eq!(so_far(), (160, 1, 1));
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

std::thread_local! {
    /// The time of this thread's hits.
    static NOW: Cell<u64> = const { Cell::new(0) };
}

/// A map whose elements keep the time of their insertion.
fn timed_shape() -> Shape<'static> {
    Shape {
        clock: Some(|| NOW.get()),
        ..shape()
    }
}

/// The time at which the entry of `number` was inserted.
#[track_caller]
fn birth(map: &Map, number: u64) -> Option<u64> {
    map.contents().lookup(&key(number)).unwrap().birth()
}

/// An element keeps the time of its insertion: later hits, intervals and other slots leave it. A
/// map without a clock keeps none.
#[test]
fn births() {
    let map = Map::with_second(timed_shape(), Some(shape())).unwrap();
    for now in 1..=100 {
        NOW.set(now);
        (0..now).for_each(|number| assert!(hit(&map, 0, &key(number))));
    }
    let assert_kept = || {
        for number in 0..100 {
            assert_eq!(birth(&map, number), Some(number + 1));
        }
    };
    assert_kept();
    counts::add_reader(&map);
    counts::cut(&map, 1);
    assert_kept();
    for _ in 0..2 {
        counts::renew(&map);
        assert_kept();
        assert!(hit(&map, 0, &key(5)));
        assert_kept();
    }
    let cpu = Cpu::enter(0);
    let second = map.read(cpu.preempt()).second().unwrap();
    assert_eq!(second.insert_word(cpu.preempt(), 1).unwrap().birth(), None);
}

/// A key that an interrupt inserts first has the time of that insertion. The interrupted context
/// keeps its element for another key, whose time it gets.
#[test]
fn births_of_interrupted_insertions() {
    let mut firsts = HashSet::new();
    for point in 0.. {
        let map = Rc::new(Map::new(timed_shape()).unwrap());
        NOW.set(1);
        let handler = {
            let map = map.clone();
            move || {
                NOW.set(2);
                hit(&map, 0, &key(7));
            }
        };
        let (_, came) = interrupt::at(point, handler, || hit(&map, 0, &key(7)));
        if !came {
            break;
        }
        let first = birth(&map, 7);
        firsts.insert(first);
        NOW.set(3);
        hit(&map, 0, &key(8));
        assert_eq!((birth(&map, 7), birth(&map, 8)), (first, Some(3)));
    }
    assert_eq!(firsts, HashSet::from([Some(1), Some(2)]));
}

/// A map has so many readers at once, and no more.
#[test]
fn readers_of_intervals() {
    let map = Map::new(shape()).unwrap();
    assert_eq!(map.readers_and_cuts(), None);
    assert_eq!(map.add_reader(None, GFP_KERNEL).err(), Some(EINVAL));
    assert_eq!(map.cut(counts::moment(1)).err(), Some(EINVAL));
    let mut readers: Vec<_> = (0..32).map(|_| counts::add_reader(&map)).collect();
    let more = || map.add_reader(Some(counts::moment(0)), GFP_KERNEL);
    assert_eq!(more(), Err(eusers()));
    counts::cut(&map, 1);
    assert_eq!(map.readers_and_cuts(), Some((32, 1)));
    let closed = readers.swap_remove(7);
    map.remove_reader(closed);
    assert_eq!(map.readers_and_cuts(), Some((31, 1)));
    assert_eq!(counts::take(&map, closed, None).err(), Some(EINVAL));
    readers.push(more().unwrap());
    assert!(!readers.contains(&closed));
    assert_eq!(more(), Err(eusers()));
}

/// Intervals take as much memory as they say.
#[test]
fn intervals_take_the_memory_that_is_said() {
    let second = Shape { bits: 9, ..shape() };
    for second in [None, Some(second)] {
        let map = Map::with_second(full_shape(), second).unwrap();
        let mut all = 0;
        assert_eq!(map.interval_bytes(), all);
        for _ in 0..3 {
            let said = map.reader_bytes().unwrap();
            let (taken, _) = taken(|| counts::add_reader(&map));
            assert!(
                (said..=said + 2048).contains(&taken),
                "said {said}, taken {taken}"
            );
            all += said;
            assert_eq!(map.interval_bytes(), all);
        }
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
    let count = |totals: PerMap<Totals>| {
        let contents = map.contents();
        let second = contents.second().unwrap();
        assert!(second.lookup_word(1).is_none());
        counts::columns_in(second, &totals.second.unwrap(), &key(2))
    };
    let so_far = || count(counts::totals(&map));
    hit_both();
    hit_both();
    counts::renew(&map);
    assert_eq!(so_far(), [2]);
    let reader = counts::add_reader_from_begin(&map);
    let cut = |edge| {
        counts::cut(&map, edge);
        count(counts::take(&map, reader, None).unwrap().totals)
    };
    assert_eq!(cut(1), [2]);
    hit_both();
    assert_eq!(so_far(), [3]);
    counts::renew(&map);
    assert_eq!((cut(2), cut(3), so_far()), ([1], [0], [3]));
    assert_eq!(map.contents().second().unwrap().len(), 1);

    let huge = Shape {
        bits: Shape::BITS_MAX + 1,
        ..shape()
    };
    let failed = Map::with_second(shape(), Some(huge));
    assert_eq!(failed.err(), Some(EINVAL));
}

/// With other slots, elements are found as before, with all their data. Drops stay
/// drops.
#[test]
fn other_slots() {
    let bits = 4;
    let map = Map::new(Shape {
        bits,
        ..full_shape()
    })
    .unwrap();
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
        counts::renew(&map);
        assert_eq!(numbers(&map), before);
        let sums = |n: u64| (key(n).to_vec(), [round, n * round, round]);
        assert_eq!(entries(&map), (0..16).map(sums).collect());
        assert_complete(&map, 17 * round, 17);
    }
}

/// Replaces the table while each allocation in turn fails, and so do the ones after it. Calls
/// `check` with the number of failures.
fn renew_with_faults(map: &Map, check: impl Fn(usize)) {
    let mut tending = counts::tending(map);
    tending.renew(false);
    let (mut failed, mut now_ns) = (0, 0);
    while !tending.is_at_rest() {
        // One more allocation than before succeeds.
        fault::after(failed, || counts::beats(map, &mut tending, now_ns));
        // The longest time until it is tried again.
        now_ns += 64_000_000_000;
        failed += usize::from(!tending.is_at_rest());
        check(failed);
    }
}

/// A replacement that lacks memory changes nothing, and is tried again.
#[test]
fn replacements_that_fail() {
    let map = Map::new(full_shape()).unwrap();
    for n in 0..100 {
        hit_with(&map, 0, &key(n), &[n, 1]);
    }
    let before = entries(&map);
    renew_with_faults(&map, |failed| {
        assert!(failed > 0);
        assert_eq!(entries(&map), before);
    });
    let (begun, allocations) = fault::each(
        || map.begin_intervals(counts::moment(0)),
        |result| {
            assert_eq!(result.err(), Some(ENOMEM));
            assert_eq!(map.readers_and_cuts(), None);
            assert_eq!(entries(&map), before);
        },
    );
    assert!(begun.is_ok() && allocations > 5);
    let (reader, _) = fault::each(
        || map.add_reader(Some(counts::moment(0)), GFP_KERNEL),
        |result| {
            assert_eq!(result.err(), Some(ENOMEM));
            assert_eq!(map.readers_and_cuts(), Some((0, 0)));
        },
    );
    // A cut needs no memory.
    fault::after(0, || counts::cut(&map, 1));
    renew_with_faults(&map, |_| assert_eq!(entries(&map), before));
    let (taken, _) = fault::each(
        || counts::take(&map, reader.unwrap(), None),
        |result| assert_eq!(result.err(), Some(ENOMEM)),
    );
    assert_eq!(entries_in(&map, &taken.unwrap().totals.first), before);
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
        let fired = hits(&map) + map.drops();
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
    let points = [8; LEVELS];
    assert!(nest(&map, &[1, 2, 3, 4, 5], &points));
    assert_eq!((hits(&map), map.drops()), (4, 1));
    assert!(map.contents().lookup(&key(5)).is_none());
    assert!(nest(&map, &[6, 7, 8, 9, 1], &points));
    assert_eq!((hits(&map), map.drops()), (9, 1));
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
