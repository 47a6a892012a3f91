// SPDX-License-Identifier: GPL-2.0

//! Cuts of a map's intervals beside hits, readers and a replacement of the table.

use kernel::interrupt;
use kernel::sync::rcu;
use loom::sync::Arc;
use loom::thread;
use rhist::counts;
use rhist::cpu::Cpu;
use rhist::map::Column;
use rhist::map::ColumnSet;
use rhist::map::Cpus;
use rhist::map::Generation;
use rhist::map::Interval;
use rhist::map::Map;
use rhist::map::PerMap;
use rhist::map::Shape;
use rhist::map::Totals;

use super::*;

const KEY: [u8; 8] = 7u64.to_ne_bytes();

/// A map for an entry, with a reader of intervals from the begin.
fn map_and_reader(cpus: usize) -> (Arc<Map>, u64) {
    let shape = Shape {
        cpus: Cpus::uniform(cpus),
        ..shape(0, 8)
    };
    let map = Arc::new(Map::new(shape).unwrap());
    let reader = counts::add_reader_from_begin(&map);
    (map, reader)
}

/// Makes a cut, and takes the interval that ends there.
fn next(map: &Map, reader: u64) -> Interval {
    counts::cut(map, 1);
    counts::take(map, reader, None).unwrap()
}

/// Takes the rest, after the last hit.
fn rest(map: &Map, reader: u64) -> Interval {
    counts::take(map, reader, Some(counts::moment(9))).unwrap()
}

/// Hits of entries in `totals`, and drops.
fn hits_and_drops(contents: &Generation, totals: &Totals) -> [u64; 2] {
    let hits = contents.elts().map(|elt| totals.column(elt.number(), 0));
    [hits.sum(), totals.drops(contents)]
}

/// The same of the first map in an interval.
fn counted(map: &Map, interval: &Interval) -> [u64; 2] {
    hits_and_drops(&map.contents(), &interval.totals.first)
}

/// A hit beside three cuts, of which the second publishes the first bank again: it is in exactly
/// one interval.
#[test]
fn cut_hit() {
    hits_beside_cuts(2, 1);
}

/// Two hits: each is in exactly one interval, with its count, and the key has one element.
#[test]
fn cut_hit_hit() {
    hits_beside_cuts(1, 2);
}

fn hits_beside_cuts(preemptions: usize, cpus: usize) {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model(preemptions, move || {
        let (map, reader) = map_and_reader(cpus);
        let hits = Vec::from_iter((0..cpus).map(|cpu| {
            let map = map.clone();
            thread::spawn(move || hit(&map, cpu, 7))
        }));
        let intervals = [(); 3].map(|()| next(&map, reader));
        let before = intervals
            .each_ref()
            .map(|interval| counted(&map, interval)[0]);
        hits.into_iter().for_each(|t| t.join().unwrap());
        let after = intervals.each_ref().map(|interval| counted(&map, interval));
        assert_eq!(
            after,
            before.map(|hits| [hits, 0]),
            "a hit after the interval"
        );
        let rest = counted(&map, &rest(&map, reader));
        let all = before.iter().sum::<u64>() + rest[0];
        assert_eq!([all, rest[1]], [cpus as u64, 0]);
        seen.note(before[2] > 0);
        assert_complete(&map, cpus as u64, 1);
    });
    outcomes.assert_both();
}

/// A map for a key, with a sum.
fn summing_map() -> Arc<Map> {
    let shape = Shape {
        columns: &[Column::Hits, Column::Sum],
        cpus: Cpus::uniform(1),
        ..shape(0, 8)
    };
    Arc::new(Map::new(shape).unwrap())
}

/// A hit is interrupted at each of its atomic operations in turn by another one on its CPU, beside
/// a cut. Each hit is in exactly one interval, with all its columns.
#[test]
fn cut_hit_interrupted() {
    let hit_with = |map: &Map, value: u64| {
        let cpu = Cpu::enter(0);
        let elt = map
            .read(cpu.preempt())
            .insert_word(cpu.preempt(), 7)
            .unwrap();
        elt.update(cpu.preempt(), &[value], |&value| (value, ColumnSet::ONE));
    };
    let columns = |map: &Map, interval: &Interval| -> [u64; 2] {
        counts::columns_in(&map.contents(), &interval.totals.first, &KEY)
    };
    let between = Outcomes::new();
    let mut points = 0;
    loop {
        let outcomes = Outcomes::new();
        let (seen, seen_between) = (outcomes.clone(), between.clone());
        model(1, move || {
            let map = summing_map();
            let reader = counts::add_reader_from_begin(&map);
            let handler = {
                let map = map.clone();
                move || hit_with(&map, 100)
            };
            let cpu = {
                let map = map.clone();
                thread::spawn(move || interrupt::at(points, handler, || hit_with(&map, 10)).1)
            };
            let first = next(&map, reader);
            let counted = columns(&map, &first);
            let came = cpu.join().unwrap();
            assert_eq!(columns(&map, &first), counted, "a hit after the interval");
            let rest = columns(&map, &rest(&map, reader));
            let all = if came { [2, 110] } else { [1, 10] };
            assert_eq!([0, 1].map(|column| counted[column] + rest[column]), all);
            // The interrupting hit loads the pointer later, except at the first operation of the
            // other one.
            assert!(points == 0 || counted != [1, 100]);
            seen_between.note(came && counted == [1, 10]);
            seen.note(came);
        });
        if !outcomes.any(true) {
            break;
        }
        points += 1;
    }
    assert!(points >= 13, "{points} points of interruption");
    between.assert_both();
}

/// Two keys and one place, beside a cut: each hit or drop is in exactly one interval.
#[test]
fn cut_hit_hit_on_a_full_table() {
    model(1, || {
        let (map, reader) = map_and_reader(2);
        let hits = [7, 8].map(|key| {
            let map = map.clone();
            thread::spawn(move || hit(&map, (key - 7) as usize, key))
        });
        let first = next(&map, reader);
        let before = counted(&map, &first);
        hits.into_iter().for_each(|t| t.join().unwrap());
        assert_eq!(counted(&map, &first), before);
        let rest = counted(&map, &rest(&map, reader));
        assert_eq!([before[0] + rest[0], before[1] + rest[1]], [1, 1]);
        assert_complete(&map, 2, 2);
    });
}

/// A hit of the interval before finds a key that one of the next interval is inserting. When a
/// reader takes the first interval, it is known whether the key is an entry.
#[test]
fn cut_insert_hit() {
    insert_hit(rcu::synchronize_rcu);
}

/// Without the second grace period, it may not be.
#[test]
#[should_panic(expected = "decided later")]
fn a_cut_may_be_too_early_for_a_new_key() {
    insert_hit(|| ());
}

fn insert_hit(second_grace_period: fn()) {
    let outcomes = Outcomes::new();
    let noted = outcomes.clone();
    model(1, move || {
        let (map, reader) = map_and_reader(2);
        // The first counter of sections is the one of this thread: the cut looks at it first.
        drop(Cpu::enter(0));
        let hitting = {
            let map = map.clone();
            thread::spawn(move || {
                let cpu = Cpu::enter(1);
                let before = map.read(cpu.preempt());
                let cutting = {
                    let map = map.clone();
                    thread::spawn(move || {
                        drop(map.cut(counts::moment(1)).unwrap());
                        map.fold(|| ());
                        second_grace_period();
                        map.end_cut();
                        let interval = counts::take(&map, reader, None).unwrap();
                        let counted = counted(&map, &interval);
                        (interval, counted)
                    })
                };
                thread::yield_now();
                count(before.insert_word(cpu.preempt(), 7).unwrap(), &cpu);
                drop(cpu);
                cutting.join().unwrap()
            })
        };
        thread::yield_now();
        hit(&map, 0, 7);
        let (interval, before) = hitting.join().unwrap();
        assert_eq!(counted(&map, &interval), before, "decided later");
        noted.note(before == [1, 0]);
        assert_complete(&map, 2, 1);
    });
    outcomes.assert_both();
}

/// The worker makes a cut, replaces the slots, and makes another cut, beside hits: each is in
/// exactly one interval, and the key has one element.
#[test]
fn cut_and_replacement() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model(1, move || {
        let (map, reader) = map_and_reader(2);
        let hitting = {
            let map = map.clone();
            thread::spawn(move || [(); 2].map(|()| hit(&map, 0, 7)))
        };
        let first = next(&map, reader);
        counts::renew(&map);
        let second = next(&map, reader);
        let [first, second] = [first, second].map(|interval| counted(&map, &interval)[0]);
        seen.note(first == 1 && second == 1);
        hitting.join().unwrap();
        let [rest, drops] = counted(&map, &rest(&map, reader));
        assert_eq!([first + second + rest, drops], [2, 0]);
        assert_complete(&map, 2, 1);
        assert!(!map.contents().is_being_replaced());
    });
    outcomes.assert_both();
}

/// One task makes a cut, and another one replaces the slots, step by step beside each other. Each
/// hit is in exactly one interval, and the key has one element.
#[test]
fn cut_beside_replacement() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model(1, move || {
        let (map, reader) = map_and_reader(1);
        let replacing = {
            let map = map.clone();
            thread::spawn(move || counts::renew(&map))
        };
        hit(&map, 0, 7);
        seen.note(map.contents().is_being_replaced());
        drop(map.cut(counts::moment(1)).unwrap());
        hit(&map, 0, 7);
        map.fold(|| ());
        rcu::synchronize_rcu();
        map.end_cut();
        replacing.join().unwrap();
        let taken = counts::take(&map, reader, None).unwrap();
        assert_eq!(counted(&map, &taken), [1, 0]);
        assert_eq!(counted(&map, &rest(&map, reader)), [1, 0]);
        assert_complete(&map, 2, 1);
        assert!(!map.contents().is_being_replaced());
    });
    outcomes.assert_both();
}

/// A map for an entry in it and two in the second map.
fn both_maps() -> Arc<Map> {
    let shape = |bits| Shape {
        cpus: Cpus::uniform(1),
        ..shape(bits, 8)
    };
    Arc::new(Map::with_second(shape(0), Some(shape(1))).unwrap())
}

/// Counts a hit in both maps, in the second one first, as a value in its bucket.
fn hit_both(map: &Map, bucket: u64) {
    let cpu = Cpu::enter(0);
    let generation = map.read(cpu.preempt());
    let elt = generation.insert_word(cpu.preempt(), 7).unwrap();
    let second = generation.second().unwrap();
    count(second.insert_word(cpu.preempt(), bucket).unwrap(), &cpu);
    smp_wmb();
    count(elt, &cpu);
}

/// Hits of both maps in `totals`.
fn hits_of_both(map: &Map, totals: &PerMap<Totals>) -> [u64; 2] {
    let contents = map.contents();
    let second = (contents.second().unwrap(), totals.second.as_ref().unwrap());
    let maps = [(&*contents, &totals.first), second];
    maps.map(|(contents, totals)| hits_and_drops(contents, totals)[0])
}

/// A hit counts in its element and in one of the second map, beside a cut. Both are in the same
/// interval.
#[test]
fn cut_hit_in_both_maps() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model(2, move || {
        let map = both_maps();
        let reader = counts::add_reader_from_begin(&map);
        let hitting = {
            let map = map.clone();
            thread::spawn(move || hit_both(&map, 9))
        };
        let first = next(&map, reader).totals;
        let counted = hits_of_both(&map, &first);
        assert_eq!(counted[0], counted[1]);
        seen.note(counted[0] == 1);
        hitting.join().unwrap();
        assert_eq!(
            hits_of_both(&map, &first),
            counted,
            "a hit after the interval"
        );
        let rest = rest(&map, reader).totals;
        assert_eq!(hits_of_both(&map, &rest), [1 - counted[0]; 2]);
    });
    outcomes.assert_both();
}

/// A task reads all counts so far, beside a cut and a hit: it sees each hit once, wherever the cut
/// has moved it, and a hit's value in the second map, also in a new bucket.
#[test]
fn cut_view() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    long_model(2, move || {
        let map = both_maps();
        counts::add_reader(&map);
        hit_both(&map, 8);
        let hitting = {
            let map = map.clone();
            thread::spawn(move || hit_both(&map, 9))
        };
        let cutting = {
            let map = map.clone();
            thread::spawn(move || counts::cut(&map, 1))
        };
        let [hits, values] = hits_of_both(&map, &counts::totals(&map));
        assert!(
            1 <= hits && hits <= values && values <= 2,
            "{hits}, {values}"
        );
        seen.note(hits == 2);
        hitting.join().unwrap();
        cutting.join().unwrap();
        assert_eq!(hits_of_both(&map, &counts::totals(&map)), [2, 2]);
    });
    outcomes.assert_both();
}
