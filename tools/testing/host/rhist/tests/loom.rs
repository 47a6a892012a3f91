// SPDX-License-Identifier: GPL-2.0

//! The map under all interleavings and all memory orders of C11, as far as loom models them.
#![cfg(loom)]

#[path = "loom/beats.rs"]
mod beats;
#[path = "loom/cuts.rs"]
mod cuts;
#[path = "loom/hits.rs"]
mod hits;
#[path = "loom/room.rs"]
mod room;
#[path = "loom/stacks.rs"]
mod stacks;
#[path = "loom/stock.rs"]
mod stock;

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use kernel::interrupt;
use kernel::sync::atomic::Atomic;
use kernel::sync::atomic::Relaxed;
use loom::sync::Arc;
use loom::thread;
use rhist::counts;
use rhist::cpu::Cpu;
use rhist::map::Column;
use rhist::map::ColumnSet;
use rhist::map::Cpus;
use rhist::map::Elt;
use rhist::map::Extreme;
use rhist::map::Map;
use rhist::map::OnceText;
use rhist::map::Read;
use rhist::map::Replace;
use rhist::map::Room;
use rhist::map::Shape;
use rhist::map::VarCell;
use rhist::map::VarMask;
use rhist::map::WideCell;
use rhist::sync::smp_rmb;
use rhist::sync::smp_wmb;

/// Explores all executions of `f`. `preemptions`: most involuntary switches in one execution,
/// unless `LOOM_MAX_PREEMPTIONS` is set.
fn model(preemptions: usize, f: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(preemptions);
    // A cut takes some hundred steps.
    builder.max_branches = 10_000;
    builder.check(f);
}

/// Like `model`, with one switch less, unless `RHIST_TEST_LONG` is set: all executions take half a
/// minute or more.
fn long_model(preemptions: usize, f: impl Fn() + Sync + Send + 'static) {
    let short = std::env::var_os("RHIST_TEST_LONG").is_none();
    model(preemptions - usize::from(short), f);
}

fn shape(bits: u32, key_size: usize) -> Shape<'static> {
    Shape {
        bits,
        key_size,
        columns: &[Column::Hits],
        vars: 0,
        wide: &[],
        side: 0,
        clock: None,
        cpus: Cpus::uniform(3),
        seed: 1,
        room: Room::fixed(0),
        request: None,
    }
}

fn map(bits: u32, key_size: usize) -> Arc<Map> {
    Arc::new(Map::new(shape(bits, key_size)).unwrap())
}

/// Notes which outcomes some execution of a model had, to show that both can happen.
#[derive(Clone)]
struct Outcomes(std::sync::Arc<[AtomicBool; 2]>);

impl Outcomes {
    fn new() -> Self {
        Self(Default::default())
    }

    fn note(&self, outcome: bool) {
        self.0[usize::from(outcome)].store(true, Ordering::Relaxed);
    }

    fn any(&self, outcome: bool) -> bool {
        self.0[usize::from(outcome)].load(Ordering::Relaxed)
    }

    fn assert_both(&self) {
        assert!(self.any(false) && self.any(true));
    }
}

/// Counts one event for `elt`.
fn count(elt: Elt<'_>, cpu: &Cpu) {
    elt.update(cpu.preempt(), &[], |&value: &u64| (value, ColumnSet::ONE));
}

/// One event: `key` on `cpu`.
fn hit(map: &Map, cpu: usize, key: u64) {
    let cpu = Cpu::enter(cpu);
    if let Some(elt) = map
        .read(cpu.preempt())
        .insert(cpu.preempt(), &key.to_ne_bytes())
    {
        count(elt, &cpu);
    }
}

/// Fires one event, `key` on `cpu`, and asserts that it finds a place.
fn hit_key(map: &Map, cpu: usize, key: &[u8]) {
    let cpu = Cpu::enter(cpu);
    count(
        map.read(cpu.preempt()).insert(cpu.preempt(), key).unwrap(),
        &cpu,
    );
}

/// Each of `cpus` runs its events.
fn run(map: &Arc<Map>, cpus: &'static [&'static [u64]]) {
    let threads: Vec<_> = (0..)
        .zip(cpus)
        .map(|(cpu, keys)| {
            let map = map.clone();
            thread::spawn(move || keys.iter().for_each(|&key| hit(&map, cpu, key)))
        })
        .collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
}

/// Asserts the state after all have finished: `fired` events with `distinct` keys.
fn assert_complete(map: &Map, fired: u64, distinct: usize) {
    let entries = distinct.min(map.contents().capacity());
    assert_eq!(map.contents().elts().count(), entries);
    assert_eq!(map.contents().len(), entries);
    assert_eq!(counts::hits(map) + map.drops(), fired);
    if distinct <= map.contents().capacity() {
        assert_eq!(map.drops(), 0);
    } else {
        assert!(map.drops() > 0);
    }
}

/// Room for one key, which all CPUs insert.
#[test]
fn insert_insert_of_the_same_key() {
    model(3, || {
        let map = map(0, 8);
        run(&map, &[&[7], &[7]]);
        assert_complete(&map, 2, 1);
        assert_eq!(counts::columns(&map, &7u64.to_ne_bytes()), [2]);
    });
}

/// A reader that finds an entry sees the time of its insertion.
#[test]
fn insert_and_read_the_birth() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model(3, move || {
        let shape = Shape {
            clock: Some(|| 5),
            ..shape(0, 8)
        };
        let map = Arc::new(Map::new(shape).unwrap());
        let cpu = {
            let map = map.clone();
            thread::spawn(move || hit(&map, 0, 7))
        };
        let births: Vec<_> = map.contents().elts().map(Elt::birth).collect();
        assert!(births.iter().all(|&birth| birth == Some(5)));
        seen.note(births.is_empty());
        cpu.join().unwrap();
    });
    outcomes.assert_both();
}

#[test]
fn insert_insert_of_the_same_key_three_times() {
    model(1, || {
        let map = map(0, 8);
        run(&map, &[&[7], &[7], &[7]]);
        assert_complete(&map, 3, 1);
    });
}

/// Room for both keys, of two words each.
#[test]
fn insert_insert_of_different_keys() {
    model(3, || {
        let map = map(1, 16);
        let keys = [[1u8; 16], [2u8; 16]];
        let threads: Vec<_> = (0..)
            .zip(keys)
            .map(|(cpu, key)| {
                let map = map.clone();
                thread::spawn(move || hit_key(&map, cpu, &key))
            })
            .collect();
        threads.into_iter().for_each(|t| t.join().unwrap());
        assert_complete(&map, 2, 2);
        for key in keys {
            assert_eq!(counts::columns(&map, &key), [1]);
        }
    });
}

/// A CPU that finds the key finds all of it, and its element stays.
#[test]
fn insert_lookup() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model(3, move || {
        let map = map(0, 16);
        let key = [3u8; 16];
        let inserter = {
            let map = map.clone();
            thread::spawn(move || hit_key(&map, 0, &key))
        };
        // Memory of elements starts as zeros: a key of zeros must not be found in it.
        assert!(map.contents().lookup(&[0; 16]).is_none());
        let found = map.contents().lookup(&key).is_some();
        seen.note(found);
        if found {
            hit_key(&map, 1, &key);
        }
        let fired = 1 + u64::from(found);
        inserter.join().unwrap();
        assert_complete(&map, fired, 1);
    });
    outcomes.assert_both();
}

/// A list made during inserts fits into the map, and its keys can be read.
#[test]
fn insert_list() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model(2, move || {
        let map = map(0, 8);
        let inserters: Vec<_> = [7, 8]
            .into_iter()
            .enumerate()
            .map(|(cpu, key)| {
                let map = map.clone();
                thread::spawn(move || hit(&map, cpu, key))
            })
            .collect();
        let mut entries = 0;
        for elt in map.contents().elts() {
            assert!(elt.is(&7u64.to_ne_bytes()) || elt.is(&8u64.to_ne_bytes()));
            entries += 1;
        }
        assert!(entries <= map.contents().capacity());
        seen.note(entries > 0);
        inserters.into_iter().for_each(|t| t.join().unwrap());
        assert_complete(&map, 2, 2);
    });
    outcomes.assert_both();
}

/// Two CPUs for the one place left.
#[test]
fn insert_on_a_full_table() {
    model(3, || {
        let map = map(0, 8);
        run(&map, &[&[7], &[8]]);
        assert_complete(&map, 2, 2);
        assert_eq!(counts::hits(&map), 1);
    });
}

/// A third CPU inserts a key as well: the one that gets the last place, or the one that does not.
#[test]
fn insert_on_a_full_table_with_company() {
    model(1, || {
        let map = map(0, 8);
        run(&map, &[&[7], &[8], &[8]]);
        assert_complete(&map, 3, 2);
    });
}

/// Repeated inserts: places are taken once, and the spare element of a loser is used again.
#[test]
fn insert_again_on_a_full_table() {
    long_model(2, || {
        let map = map(1, 8);
        run(&map, &[&[7, 8], &[9, 7]]);
        assert_complete(&map, 4, 3);
    });
}

/// CPU 0 inserts `first` and is interrupted at each of its atomic operations in turn by an insert
/// of `second`, while CPU 1 inserts `other`.
fn interrupted(bits: u32, first: u64, second: u64, other: u64) {
    let mut keys = vec![first, second, other];
    keys.sort_unstable();
    keys.dedup();
    let distinct = keys.len();
    let mut points = 0;
    loop {
        let outcomes = Outcomes::new();
        let seen = outcomes.clone();
        model(1, move || {
            let map = map(bits, 8);
            let handler = {
                let map = map.clone();
                move || hit(&map, 0, second)
            };
            let cpu1 = {
                let map = map.clone();
                thread::spawn(move || hit(&map, 1, other))
            };
            let (_, came) = interrupt::at(points, handler, || hit(&map, 0, first));
            cpu1.join().unwrap();
            seen.note(came);
            if came {
                assert_complete(&map, 3, distinct);
            }
        });
        if !outcomes.any(true) {
            break;
        }
        points += 1;
    }
    // Accesses: load of the slot, check for a place, level in, spare, taking (2), key, swap, place,
    // slot, level out, sum.
    assert!(points >= 11, "{points} points of interruption");
}

#[test]
fn interrupted_by_the_same_key() {
    interrupted(0, 7, 7, 7);
}

#[test]
fn interrupted_by_another_key() {
    interrupted(1, 7, 8, 7);
    interrupted(1, 7, 8, 8);
}

#[test]
fn interrupted_on_a_full_table() {
    interrupted(0, 7, 8, 7);
    interrupted(0, 7, 7, 8);
}

/// The columns of a value whose extremes, sum and count are kept.
const SPREAD: [Column; 4] = [
    Column::Hits,
    Column::Extreme(Extreme::min(true)),
    Column::Extreme(Extreme::max(true)),
    Column::Sum,
];

/// A map for a key, with these columns, on `cpus`, which may share columns.
fn min_max_sum_map(cpus: Cpus) -> Arc<Map> {
    let shape = Shape {
        bits: 0,
        key_size: 8,
        columns: &SPREAD,
        vars: 0,
        wide: &[],
        side: 0,
        clock: None,
        cpus,
        seed: 1,
        room: Room::fixed(0),
        request: None,
    };
    Arc::new(Map::new(shape).unwrap())
}

/// Counts a hit with `value`.
fn min_max_sum(map: &Map, cpu: usize, value: i64) {
    let cpu = Cpu::enter(cpu);
    let elt = map
        .read(cpu.preempt())
        .insert_word(cpu.preempt(), 7)
        .unwrap();
    elt.update(cpu.preempt(), &[value as u64], |&value| {
        (value, ColumnSet::of(&SPREAD[1..]))
    });
}

/// Count, smallest, largest and sum, or `None` without a hit.
fn min_max_sum_of(map: &Map) -> Option<[i64; 4]> {
    let columns = counts::columns(map, &7u64.to_ne_bytes());
    (columns[0] > 0).then_some(columns.map(|column| column as i64))
}

/// A hit is interrupted at each of its atomic operations in turn by another one on its CPU, with a
/// larger and with a smaller value. No extreme is lost.
#[test]
fn extremes_interrupted() {
    for (value, other) in [(1, 5), (5, 1), (-5, 3), (3, -5), (2, 2)] {
        let mut points = 0;
        loop {
            let outcomes = Outcomes::new();
            let seen = outcomes.clone();
            model(1, move || {
                let map = min_max_sum_map(Cpus::uniform(1));
                let handler = {
                    let map = map.clone();
                    move || min_max_sum(&map, 0, other)
                };
                let came = interrupt::at(points, handler, || min_max_sum(&map, 0, value)).1;
                let all = match came {
                    true => [2, value.min(other), value.max(other), value + other],
                    false => [1, value, value, value],
                };
                assert_eq!(
                    min_max_sum_of(&map),
                    Some(all),
                    "{value} and {other} at {points}"
                );
                seen.note(came);
            });
            if !outcomes.any(true) {
                break;
            }
            points += 1;
        }
        assert!(points >= 8, "{points} points of interruption");
    }
}

/// Two CPUs that share columns count a value each. No extreme is lost.
#[test]
fn extremes_shared() {
    for values in [[1, 5], [-5, 3], [2, 2]] {
        long_model(2, move || {
            let map = min_max_sum_map(Cpus {
                own: 1,
                ..Cpus::uniform(3)
            });
            min_max_sum(&map, 1, 2);
            let hits = [1, 2].map(|cpu| {
                let map = map.clone();
                thread::spawn(move || min_max_sum(&map, cpu, values[cpu - 1]))
            });
            hits.into_iter().for_each(|hit| hit.join().unwrap());
            let [a, b] = values;
            let all = [3, a.min(b).min(2), a.max(b).max(2), a + b + 2];
            assert_eq!(min_max_sum_of(&map), Some(all));
        });
    }
}

/// Each of `cpus` runs its events, while a task replaces the slots.
fn replaced(preemptions: usize, bits: u32, before: &'static [u64], cpus: &'static [u64]) {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model(preemptions, move || {
        let map = map(bits, 8);
        before.iter().for_each(|&key| hit(&map, 2, key));
        let task = {
            let map = map.clone();
            thread::spawn(move || counts::renew(&map))
        };
        let hits: Vec<_> = (1..)
            .zip(&cpus[1..])
            .map(|(cpu, &key)| {
                let map = map.clone();
                thread::spawn(move || hit(&map, cpu, key))
            })
            .collect();
        hit(&map, 0, cpus[0]);
        seen.note(map.contents().is_being_replaced());
        hits.into_iter().for_each(|t| t.join().unwrap());
        task.join().unwrap();
        let mut keys = Vec::from_iter(Iterator::chain(before.iter(), cpus));
        keys.sort_unstable();
        let fired = keys.len() as u64;
        keys.dedup();
        assert_complete(&map, fired, keys.len());
        for key in keys {
            assert!(map.contents().lookup_word(*key).is_some() || map.drops() > 0);
        }
    });
    outcomes.assert_both();
}

/// A new key is in one table or in the other, and in the end in the next one.
#[test]
fn replace_insert() {
    replaced(2, 0, &[], &[7]);
}

/// Two inserts of the same key get the same element, whichever tables they see.
#[test]
fn replace_insert_insert_of_the_same_key() {
    replaced(1, 0, &[], &[7, 7]);
}

/// One key is in the table, and another one is not.
#[test]
fn replace_hit_insert() {
    replaced(1, 1, &[7], &[7, 8]);
}

/// Two keys, and one place.
#[test]
fn replace_insert_insert_on_a_full_table() {
    replaced(1, 0, &[], &[7, 8]);
}

/// A hit is interrupted at each of its atomic operations in turn by another one on its CPU, while a
/// task replaces the slots. No hit is lost, and no key gets two elements.
fn replaced_interrupted(bits: u32, first: u64, second: u64) {
    let tables = Outcomes::new();
    let mut points = 0;
    loop {
        let outcomes = Outcomes::new();
        let (seen, seen_tables) = (outcomes.clone(), tables.clone());
        long_model(2, move || {
            let map = map(bits, 8);
            let handler = {
                let (map, tables) = (map.clone(), seen_tables.clone());
                move || {
                    hit(&map, 0, second);
                    tables.note(map.contents().is_being_replaced());
                }
            };
            let task = {
                let map = map.clone();
                thread::spawn(move || counts::renew(&map))
            };
            let (_, came) = interrupt::at(points, handler, || hit(&map, 0, first));
            task.join().unwrap();
            seen.note(came);
            if came {
                assert_complete(&map, 2, 1 + usize::from(first != second));
            }
        });
        if !outcomes.any(true) {
            break;
        }
        points += 1;
    }
    // An insertion in the next table has passed the sealed slot of the first one.
    assert!(points >= 12, "{points} points of interruption");
    tables.assert_both();
}

#[test]
fn replace_insert_interrupted_by_the_same_key() {
    replaced_interrupted(0, 7, 7);
}

#[test]
fn replace_insert_interrupted_by_another_key() {
    replaced_interrupted(1, 7, 8);
}

/// Two keys, and one place.
#[test]
fn replace_insert_interrupted_on_a_full_table() {
    replaced_interrupted(0, 7, 8);
}

/// A variable, and a second word that its setter writes before.
struct Variable {
    cell: VarCell,
    mask: VarMask,
    before: Atomic<u64>,
}

impl Variable {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            cell: VarCell::new(),
            mask: VarMask::new(0x5bd1_e995_9d1b_54a5),
            before: Atomic::new(0),
        })
    }

    fn set(&self, value: u64) {
        assert!(self.cell.set(self.mask, value));
    }

    fn get(&self) -> Option<u64> {
        self.cell.get(self.mask)
    }

    fn take(&self) -> Option<u64> {
        self.cell.take(self.mask)
    }

    /// Sets it to `value`, and before that, once, the word that a reader must see with it.
    fn set_both(&self, value: u64) {
        self.before.store(value, Relaxed);
        self.set(value);
    }

    /// Asserts that a read value is the one of [`Variable::set_both`], and that the word written
    /// before it is seen.
    fn assert_both(&self, read: Option<u64>, value: u64) {
        if let Some(read) = read {
            assert_eq!(read, value);
            assert_eq!(self.before.load(Relaxed), value);
        }
    }
}

/// Value and flag belong together; and a set variable stays set.
#[test]
fn variable_set_get() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model(3, move || {
        let variable = Variable::new();
        let setter = {
            let variable = variable.clone();
            thread::spawn(move || variable.set_both(7))
        };
        let first = variable.get();
        variable.assert_both(first, 7);
        let second = variable.get();
        variable.assert_both(second, 7);
        assert!(second.is_some() || first.is_none());
        seen.note(first.is_some());
        setter.join().unwrap();
        assert_eq!(variable.get(), Some(7));
    });
    outcomes.assert_both();
}

/// Readers see one value or the other, and no mix.
#[test]
fn variable_set_again_get() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model(3, move || {
        let variable = Variable::new();
        variable.set(0);
        let setter = {
            let variable = variable.clone();
            thread::spawn(move || variable.set(u64::MAX))
        };
        let read = variable.get();
        assert!(read == Some(0) || read == Some(u64::MAX), "{read:?}");
        seen.note(read == Some(0));
        setter.join().unwrap();
        assert_eq!(variable.get(), Some(u64::MAX));
    });
    outcomes.assert_both();
}

/// A reader beside a taker sees the value or none.
#[test]
fn variable_take_get() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model(3, move || {
        let variable = Variable::new();
        variable.set_both(7);
        let taker = {
            let variable = variable.clone();
            thread::spawn(move || assert_eq!(variable.take(), Some(7)))
        };
        let read = variable.get();
        variable.assert_both(read, 7);
        seen.note(read.is_some());
        taker.join().unwrap();
        assert_eq!(variable.get(), None);
    });
    outcomes.assert_both();
}

/// Of two takers, one gets the value.
#[test]
fn variable_take_take() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model(3, move || {
        let variable = Variable::new();
        variable.set(7);
        let taker = {
            let variable = variable.clone();
            thread::spawn(move || variable.take())
        };
        let mine = variable.take();
        let theirs = taker.join().unwrap();
        seen.note(mine.is_some());
        assert_eq!(mine.or(theirs), Some(7));
        assert!(mine.is_none() || theirs.is_none(), "taken twice");
        assert_eq!(variable.get(), None);
    });
    outcomes.assert_both();
}

/// One setter and two takers: one of them gets the value, or it is still set.
#[test]
fn variable_set_take_take() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model(2, move || {
        let variable = Variable::new();
        let take = |variable: &Variable| {
            let taken = variable.take();
            variable.assert_both(taken, 7);
            taken
        };
        let setter = {
            let variable = variable.clone();
            thread::spawn(move || variable.set_both(7))
        };
        let taker = {
            let variable = variable.clone();
            thread::spawn(move || take(&variable))
        };
        let mine = take(&variable);
        let theirs = taker.join().unwrap();
        setter.join().unwrap();
        let left = variable.get();
        let all = [mine, theirs, left];
        assert_eq!(
            all.into_iter().flatten().collect::<Vec<_>>(),
            [7],
            "{all:?}"
        );
        seen.note(left.is_some());
    });
    outcomes.assert_both();
}

/// Two sets and a take: one after the other, in some order, and each order happens.
#[test]
fn variable_set_set_take() {
    // The taken value, and the one that is set afterwards.
    const ORDERS: [(Option<u64>, Option<u64>); 6] = [
        (None, Some(1)),
        (None, Some(2)),
        (Some(1), None),
        (Some(2), None),
        (Some(1), Some(2)),
        (Some(2), Some(1)),
    ];
    let seen = std::sync::Arc::new(ORDERS.map(|_| AtomicBool::new(false)));
    let orders = seen.clone();
    model(3, move || {
        let variable = Variable::new();
        let setters = [1, 2].map(|value| {
            let variable = variable.clone();
            thread::spawn(move || variable.set(value))
        });
        let taken = variable.take();
        setters.into_iter().for_each(|t| t.join().unwrap());
        let outcome = (taken, variable.get());
        match ORDERS.iter().position(|&order| order == outcome) {
            Some(order) => orders[order].store(true, Ordering::Relaxed),
            None => panic!("{outcome:?}"),
        }
        assert_eq!(variable.take(), outcome.1);
        assert_eq!(variable.get(), None);
    });
    assert!(seen.iter().all(|order| order.load(Ordering::Relaxed)));
}

/// Two CPUs that set and then take: no value is taken twice, and the last one set is taken.
#[test]
fn variable_set_set_take_take() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model(2, move || {
        let variable = Variable::new();
        let [first, second] = [1, 2].map(|value| {
            let variable = variable.clone();
            thread::spawn(move || {
                variable.set(value);
                variable.take()
            })
        });
        let taken = [first.join().unwrap(), second.join().unwrap()];
        let left = variable.get();
        assert_eq!(left, None);
        let mut values: Vec<_> = taken.into_iter().flatten().collect();
        values.sort_unstable();
        assert!(matches!(values[..], [1] | [2] | [1, 2]), "{taken:?}");
        seen.note(values.len() == 2);
    });
    outcomes.assert_both();
}

/// A wide cell of two words.
struct Wide(Vec<Atomic<u64>>);

impl Wide {
    fn new() -> Arc<Self> {
        let size = WideCell::size(2).unwrap();
        Arc::new(Self((0..size).map(|_| Atomic::new(0)).collect()))
    }

    fn cell(&self) -> WideCell<'_> {
        WideCell::new(&self.0).unwrap()
    }

    #[must_use]
    fn write(&self, value: u64) -> bool {
        self.cell().write([value, !value])
    }

    /// Stores `value` if it is greater.
    fn max(&self, value: u64) -> Replace {
        let greater = |old: Option<u64>| old.is_none_or(|old| old < value);
        self.cell().replace_if(greater, [value, !value])
    }

    fn read(&self) -> Option<u64> {
        Self::whole(|value| self.cell().read(value))
    }

    fn take(&self) -> Option<u64> {
        Self::whole(|value| self.cell().take(value))
    }

    /// The first word of the value that `read` reads. Asserts that the other one belongs to it, and
    /// that the cell is not busy: fewer than four writes happen meanwhile.
    fn whole(read: impl Fn(&mut [u64]) -> Read) -> Option<u64> {
        let mut value = [0; 2];
        match read(&mut value) {
            Read::Unset => None,
            Read::Done => {
                assert_eq!(value[1], !value[0], "words of two values");
                Some(value[0])
            }
            Read::Busy => panic!("busy"),
        }
    }
}

/// A reader sees whole values, in their order, while the writer reuses its buffer.
#[test]
fn wide_write_again_read() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model(2, move || {
        let wide = Wide::new();
        assert!(wide.write(1));
        let writer = {
            let wide = wide.clone();
            thread::spawn(move || (2..5).for_each(|value| assert!(wide.write(value))))
        };
        let first = wide.read().unwrap();
        let second = wide.read().unwrap();
        assert!((1..5).contains(&first) && first <= second);
        seen.note(first == second);
        writer.join().unwrap();
        assert_eq!(wide.read(), Some(4));
    });
    outcomes.assert_both();
}

/// Two writers: both write, and a reader sees whole values. The last written value is left, whoever
/// wrote it.
#[test]
fn wide_write_write_read() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model(2, move || {
        let wide = Wide::new();
        let writers = [1, 2].map(|value| {
            let wide = wide.clone();
            thread::spawn(move || assert!(wide.write(value)))
        });
        let first = wide.read();
        let second = wide.read();
        assert!(first.is_none() || second.is_some());
        writers.into_iter().for_each(|t| t.join().unwrap());
        let last = wide.read().unwrap();
        assert!(last == 1 || last == 2);
        seen.note(last == 1);
    });
    outcomes.assert_both();
}

/// Two writers that reuse buffers: no value is lost, and no buffer is written while it is current.
#[test]
fn wide_write_again_write_again() {
    long_model(2, || {
        let wide = Wide::new();
        let writer = {
            let wide = wide.clone();
            thread::spawn(move || {
                for value in [1, 2] {
                    assert!(wide.write(value));
                    assert!(wide.read().is_some());
                }
            })
        };
        for value in [3, 4] {
            assert!(wide.write(value));
            assert!(wide.read().is_some());
        }
        writer.join().unwrap();
        assert!(matches!(wide.read(), Some(2 | 4)));
    });
}

/// A writer is interrupted at each of its atomic operations in turn by another one, which reads a
/// whole value before, and its own afterwards. Another CPU reads whole values, too.
#[test]
fn wide_write_interrupted() {
    let mut points = 0;
    loop {
        let outcomes = Outcomes::new();
        let seen = outcomes.clone();
        model(1, move || {
            let wide = Wide::new();
            assert!(wide.write(1));
            let handler = {
                let wide = wide.clone();
                move || {
                    assert!(matches!(wide.read(), Some(1 | 2)));
                    assert!(wide.write(3));
                    assert_eq!(wide.read(), Some(3));
                }
            };
            let reader = {
                let wide = wide.clone();
                thread::spawn(move || wide.read())
            };
            let (written, came) = interrupt::at(points, handler, || wide.write(2));
            assert!(written);
            assert!(matches!(reader.join().unwrap(), Some(1..=3)));
            assert!(matches!(wide.read(), Some(2 | 3)));
            seen.note(came);
        });
        if !outcomes.any(true) {
            break;
        }
        points += 1;
    }
    // Accesses: version and state of the current buffer; the same and the swap for the next; words
    // (2), state, version.
    assert!(points >= 9, "{points} points of interruption");
}

/// A written value is taken by one of two takers, or overwritten, or left.
#[test]
fn wide_write_again_take_take() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model(2, move || {
        let wide = Wide::new();
        assert!(wide.write(1));
        let writer = {
            let wide = wide.clone();
            thread::spawn(move || (2..4).for_each(|value| assert!(wide.write(value))))
        };
        let taker = {
            let wide = wide.clone();
            thread::spawn(move || wide.take())
        };
        let mine = wide.take();
        let theirs = taker.join().unwrap();
        writer.join().unwrap();
        let mut values: Vec<_> = [mine, theirs, wide.take()].into_iter().flatten().collect();
        assert_eq!(wide.read(), None);
        values.sort_unstable();
        let all = values.len();
        values.dedup();
        assert_eq!(values.len(), all, "taken twice");
        assert_eq!(values.last(), Some(&3));
        seen.note(all == 3);
    });
    outcomes.assert_both();
}

/// The maximum of two is left, with its saved words, and it never falls.
#[test]
fn wide_max_max_read() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model(2, move || {
        let wide = Wide::new();
        let [one, two] = [1, 2].map(|value| {
            let wide = wide.clone();
            thread::spawn(move || wide.max(value))
        });
        let first = wide.read();
        let second = wide.read();
        assert!(first <= second);
        let one = one.join().unwrap();
        assert!(one != Replace::Lost);
        assert_eq!(two.join().unwrap(), Replace::Done);
        assert_eq!(wide.read(), Some(2));
        seen.note(one == Replace::Done);
    });
    outcomes.assert_both();
}

/// Several maxima of two writers: a value that was stored stays until a greater one comes.
#[test]
fn wide_max_again_max_again() {
    long_model(2, || {
        let wide = Wide::new();
        let hits = |wide: &Wide, values: [u64; 2]| {
            for value in values {
                assert!(wide.max(value) != Replace::Lost);
                assert!(wide.read() >= Some(value));
            }
        };
        let other = {
            let wide = wide.clone();
            thread::spawn(move || hits(&wide, [1, 4]))
        };
        hits(&wide, [2, 3]);
        other.join().unwrap();
        assert_eq!(wide.read(), Some(4));
    });
}

/// A maximum beside a taker: the taker gets it, or it is left.
#[test]
fn wide_max_max_take() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model(2, move || {
        let wide = Wide::new();
        assert!(wide.write(1));
        let hit = {
            let wide = wide.clone();
            thread::spawn(move || [2, 3].map(|value| assert_eq!(wide.max(value), Replace::Done)))
        };
        let taken = wide.take().unwrap();
        hit.join().unwrap();
        let left = wide.read();
        assert!(taken == 3 && left.is_none() || taken < 3 && left == Some(3));
        seen.note(left.is_some());
    });
    outcomes.assert_both();
}

/// Hits that find no text store it, and readers see all of it or none.
#[test]
fn text_store_store_load() {
    const TEXT: &[u8; 16] = b"a task's comm\0!\0";
    const STORED: &[u8; 16] = b"a task's comm\0\0\0";
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model(3, move || {
        let side = Arc::new([Atomic::new(0), Atomic::new(0)]);
        let hits = [(); 2].map(|()| {
            let side = side.clone();
            thread::spawn(move || {
                let text = OnceText::of(&side[..]).unwrap();
                if !text.is_stored() {
                    text.store(TEXT);
                }
                assert_eq!(text.load(), *STORED);
            })
        });
        let text = OnceText::of(&side[..]).unwrap();
        let stored = text.is_stored();
        let read = text.load();
        assert!(read == *STORED || read == [0; 16] && !stored);
        seen.note(stored);
        hits.into_iter().for_each(|hit| hit.join().unwrap());
        assert_eq!(text.load(), *STORED);
    });
    outcomes.assert_both();
}

/// As in histograms with distributions, a value is counted in its bucket before its hit. So a
/// reader that counts hits first never misses their values in the buckets, which it reads later.
#[test]
fn a_hit_that_is_seen_is_in_its_bucket() {
    hits_and_buckets(smp_wmb, smp_rmb);
}

/// With reordered stores or loads, it may be missing.
#[test]
#[should_panic(expected = "1 < 2")]
fn a_hit_may_be_seen_before_its_bucket() {
    hits_and_buckets(|| (), || ());
}

fn hits_and_buckets(wmb: fn(), rmb: fn()) {
    let outcomes = Outcomes::new();
    let noted = outcomes.clone();
    model(3, move || {
        let (hits, buckets) = (map(0, 8), map(0, 8));
        // Both are entries already.
        hit(&buckets, 0, 7);
        hit(&hits, 0, 7);
        let (their_hits, their_buckets) = (hits.clone(), buckets.clone());
        let hitting = thread::spawn(move || {
            hit(&their_buckets, 1, 7);
            wmb();
            hit(&their_hits, 1, 7);
        });
        let counted = counts::hits(&hits);
        rmb();
        let in_buckets = counts::hits(&buckets);
        assert!(in_buckets >= counted, "{in_buckets} < {counted}");
        noted.note(counted == 2);
        hitting.join().unwrap();
    });
    outcomes.assert_both();
}
