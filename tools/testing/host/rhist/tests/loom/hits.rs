// SPDX-License-Identifier: GPL-2.0

//! Hits beside the steps of growth and expiry.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use kernel::interrupt;
use kernel::prelude::KBox;
use kernel::sync::rcu::synchronize_rcu;
use loom::sync::Arc;
use loom::thread;
use rhist::counts;
use rhist::cpu::Cpu;
use rhist::map::steps::Slots;
use rhist::map::Hash;
use rhist::map::Map;
use rhist::map::Request;
use rhist::map::Shape;
use rhist::map::Wake;

use super::*;

/// Two tables of two slots. All keys of these tests begin at the same one.
const FIRST: Slots = Slots {
    bits: 1,
    path_max: 2,
    limit: 1,
};
const NEXT: Slots = Slots {
    bits: 2,
    path_max: 4,
    limit: 4,
};

/// Two keys whose paths begin at the same slot in both tables.
fn keys() -> [u64; 2] {
    let home = |key: &u64| Hash::new(1).of(std::iter::once(*key)) >> 62;
    let first = 7;
    let second = (8..).find(|key| home(key) == home(&first)).unwrap();
    [first, second]
}

/// A map with a variable, for four entries. Its first table is `first`.
fn room(first: Slots) -> Arc<Map> {
    let shape = Shape {
        vars: 1,
        ..shape(2, 8)
    };
    let map = Arc::new(Map::new(shape).unwrap());
    map.set_table(first);
    map
}

/// The same, with the next table open.
fn open_room() -> Arc<Map> {
    let map = room(FIRST);
    drop(map.publish_next(NEXT));
    map.open_next();
    map
}

/// Numbers of the elements of `key`.
fn elements(map: &Map, key: u64) -> Vec<u32> {
    let contents = map.contents();
    let elts = contents.elts().filter(|elt| elt.is(&key.to_ne_bytes()));
    elts.map(|elt| elt.number()).collect()
}

/// Asserts that these keys have so many hits, and one element each if any, and that no hit was
/// dropped.
fn assert_hits(map: &Map, expected: [u64; 2]) {
    for (key, hits) in keys().into_iter().zip(expected) {
        let elements = elements(map, key);
        assert_eq!(elements.len(), usize::from(hits > 0));
        let counted = elements.iter().map(|&number| map.hits_of(number));
        assert_eq!(counted.sum::<u64>(), hits);
    }
    assert_eq!(map.drops(), 0);
    assert_eq!(map.contents().in_excess().count(), 0);
}

/// Two hits of a key and one of another key, for which the first table has one place: whoever finds
/// no place seals a slot, and all agree in which table the key is.
#[test]
#[ignore = "it takes a minute: see s1_seal_insert"]
fn s1_same_key() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model(1, move || {
        let [key, other] = keys();
        seen.note(beside_seals(&[vec![key], vec![key], vec![other]], [2, 1]));
    });
    outcomes.assert_both();
}

/// The same, by two CPUs.
#[test]
fn s1_seal_insert() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    long_model(2, move || {
        let [key, other] = keys();
        seen.note(beside_seals(&[vec![key], vec![other, key]], [2, 1]));
    });
    outcomes.assert_both();
}

/// Runs these hits. Returns whether the first key is in the first slot.
fn beside_seals(cpus: &[Vec<u64>], expected: [u64; 2]) -> bool {
    let map = open_room();
    let hitting = Vec::from_iter((0..).zip(cpus).map(|(cpu, keys)| {
        let (map, keys) = (map.clone(), keys.clone());
        thread::spawn(move || keys.iter().for_each(|&key| hit(&map, cpu, key)))
    }));
    hitting.into_iter().for_each(|t| t.join().unwrap());
    assert_hits(&map, expected);
    let contents = map.contents();
    let first = contents.elts().next().unwrap();
    first.is(&keys()[0].to_ne_bytes())
}

/// A hit is interrupted at each of its atomic operations by one of the same or of another key,
/// beside a hit of another CPU.
#[test]
fn s1_interrupted() {
    let [key, other] = keys();
    for (second, third) in [(key, other), (other, key), (other, other)] {
        let mut points = 0;
        loop {
            let outcomes = Outcomes::new();
            let seen = outcomes.clone();
            model(1, move || {
                let map = open_room();
                let handler = {
                    let map = map.clone();
                    move || hit(&map, 0, second)
                };
                let cpu1 = {
                    let map = map.clone();
                    thread::spawn(move || hit(&map, 1, third))
                };
                let came = interrupt::at(points, handler, || hit(&map, 0, key)).1;
                cpu1.join().unwrap();
                seen.note(came);
                if came {
                    let others = [second, third].iter().filter(|&&key| key == other).count() as u64;
                    assert_hits(&map, [3 - others, others]);
                }
            });
            if !outcomes.any(true) {
                break;
            }
            points += 1;
        }
        assert!(points >= 12, "{points} points of interruption");
    }
}

/// A hit that sets the variable of its entry.
fn set(map: &Map, cpu: usize, key: u64, value: u64) {
    let cpu = Cpu::enter(cpu);
    let found = map.read(cpu.preempt()).insert_word(cpu.preempt(), key);
    let elt = found.expect("a place");
    count(elt, &cpu);
    assert!(elt.set_var(0, value));
}

/// Takes the variable of `key`, as a reference to it does.
fn take(map: &Map, cpu: usize, key: u64) -> Option<u64> {
    let cpu = Cpu::enter(cpu);
    map.read(cpu.preempt()).lookup_word(key)?.take_var(0)
}

/// One or two hits of a new key, beside a whole step of growth: the next table is published,
/// opened, and replaces the first one, which has a place and a slot left, only a slot, or neither.
#[test]
fn s1_grow() {
    for (path_max, limit) in [(2, 2), (2, 1), (1, 1)] {
        grow(2, path_max, limit, 1);
        grow(1, path_max, limit, 2);
    }
}

fn grow(preemptions: usize, path_max: u32, limit: u32, hits: usize) {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model(preemptions, move || {
        let [key, other] = keys();
        let map = room(Slots {
            path_max,
            limit,
            ..FIRST
        });
        hit(&map, 0, other);
        let hitting = Vec::from_iter((0..hits).map(|cpu| {
            let map = map.clone();
            thread::spawn(move || hit(&map, cpu, key))
        }));
        drop(map.publish_next(NEXT));
        map.open_next();
        map.seal();
        synchronize_rcu();
        assert!(map.copy().is_empty());
        drop(map.publish_next_alone());
        hitting.into_iter().for_each(|t| t.join().unwrap());
        let drops = map.drops();
        // A table with a place left loses no hit; a full one does until the next one is open.
        assert!(limit == 1 || drops == 0);
        let elements = elements(&map, key);
        assert_eq!(elements.len(), usize::from(drops < hits as u64));
        let counted = elements.iter().map(|&number| map.hits_of(number));
        assert_eq!(counted.sum::<u64>() + drops, hits as u64);
        assert_eq!(map.contents().in_excess().count(), 0);
        seen.note(drops > 0);
    });
    assert!(outcomes.any(true) == (limit == 1));
}

/// A map in which the first key is an entry, with its number and hits.
fn with_entry() -> (Arc<Map>, u32, u64) {
    let map = room(FIRST);
    hit(&map, 0, keys()[0]);
    let [number] = elements(&map, keys()[0])[..] else {
        panic!("not an entry");
    };
    (map, number, 1)
}

/// Replaces the first table, without its dead entries.
fn replace(map: &Map) -> usize {
    map.seal();
    synchronize_rcu();
    let left = map.copy();
    drop(map.publish_next_alone());
    left.len()
}

/// A hit finds a going entry, beside the worker that judges it: it is rescued or dead, and counts
/// there or in another element of the key.
#[test]
fn rescue_judge() {
    rescued(3, 1);
}

/// Two hits find it.
#[test]
fn rescue_rescue() {
    rescued(1, 2);
}

fn rescued(preemptions: usize, hits: usize) {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model(preemptions, move || {
        let [key, _] = keys();
        let (map, number, before) = with_entry();
        drop(map.publish_next(Slots { limit: 4, ..NEXT }));
        map.open_next();
        assert!(map.let_go(number));
        // All hits find it going.
        let hitting = Vec::from_iter((0..hits).map(|cpu| {
            let map = map.clone();
            thread::spawn(move || hit(&map, cpu, key))
        }));
        let dead = map.judge(number, before);
        hitting.into_iter().for_each(|t| t.join().unwrap());
        let again = map.hits_of(number) - before;
        match dead {
            // They have another element.
            true => assert_eq!((again, elements(&map, key).len()), (0, 2)),
            false => assert_eq!((again, elements(&map, key).len()), (hits as u64, 1)),
        }
        assert_eq!(counts::hits(&map), before + hits as u64);
        assert_eq!(replace(&map), usize::from(dead));
        assert_eq!((elements(&map, key).len(), map.drops()), (1, 0));
        seen.note(dead);
    });
    outcomes.assert_both();
}

/// An entry without hits expires beside a hit that sets its variable. The hit counts once, and the
/// variable is lost only if it was set before Going.
#[test]
fn set_after_going() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model(3, move || {
        let hit = |map: &Arc<Map>| {
            set(map, 0, keys()[0], 5);
            1
        };
        seen.note(expire_beside(hit, false));
    });
    outcomes.assert_both();
}

/// The same, with a cut between E1 and E3.
#[test]
fn set_after_going_and_cut() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    long_model(3, move || {
        let hit = |map: &Arc<Map>| {
            set(map, 0, keys()[0], 5);
            1
        };
        seen.note(expire_beside(hit, true));
    });
    outcomes.assert_both();
}

/// The hit is interrupted at each of its atomic operations by another one, which sets the variable,
/// too.
#[test]
fn set_after_going_interrupted() {
    let mut points = 0;
    loop {
        let came_ever = Outcomes::new();
        let seen = came_ever.clone();
        model(1, move || {
            let seen = seen.clone();
            let hits = move |map: &Arc<Map>| {
                let handler = {
                    let map = map.clone();
                    move || set(&map, 0, keys()[0], 5)
                };
                let came = interrupt::at(points, handler, || set(map, 0, keys()[0], 5)).1;
                seen.note(came);
                1 + u64::from(came)
            };
            expire_beside(hits, false);
        });
        if !came_ever.any(true) {
            break;
        }
        points += 1;
    }
    assert!(points >= 5, "{points} points of interruption");
}

/// Lets the first key expire beside `hitting`, which returns a number of hits that set its variable
/// to 5. Returns whether its entry died.
fn expire_beside(hitting: impl FnOnce(&Arc<Map>) -> u64 + Send + 'static, cut: bool) -> bool {
    let [key, _] = keys();
    let (map, number, before) = with_entry();
    if cut {
        counts::add_reader(&map);
        counts::cut(&map, 1);
    }
    drop(map.publish_next(NEXT));
    map.open_next();
    let set = std::sync::Arc::new(AtomicBool::new(false));
    let hitting = {
        let (map, set) = (map.clone(), set.clone());
        thread::spawn(move || {
            let hits = hitting(&map);
            set.store(true, Ordering::Relaxed);
            hits
        })
    };
    // The first fold is a grace period before E1.
    let mut dead = false;
    let hits = map.hits_of(number);
    synchronize_rcu();
    let mut set_before = false;
    let goes = map.hits_of(number) == hits && map.let_go(number);
    if goes {
        set_before = set.load(Ordering::Relaxed);
    }
    if cut {
        drop(map.cut(counts::moment(2)).unwrap());
    } else {
        synchronize_rcu();
    }
    if goes {
        dead = map.judge(number, hits);
    }
    if cut {
        map.fold(|| ());
        synchronize_rcu();
        map.end_cut();
    }
    let hits = hitting.join().unwrap();
    let contents = map.contents();
    let live = contents.lookup_word(key);
    let value = live.and_then(|elt| elt.var(0));
    assert!(value == Some(5) || dead && set_before, "lost");
    assert_eq!(live.is_some(), !dead || !set_before);
    assert_eq!(counts::hits(&map), before + hits);
    assert_eq!(replace(&map), usize::from(dead));
    assert_eq!(map.drops(), 0);
    dead
}

/// A reference takes the variable of an entry that is going, and later dead. It takes the value, or
/// finds no entry.
#[test]
fn dead_lookup_take() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model(3, move || {
        let [key, _] = keys();
        let map = room(FIRST);
        set(&map, 0, key, 5);
        let [number] = elements(&map, key)[..] else {
            panic!("not an entry");
        };
        let taking = {
            let map = map.clone();
            thread::spawn(move || take(&map, 1, key))
        };
        assert!(map.let_go(number));
        synchronize_rcu();
        // A reference rescues nothing.
        assert!(map.judge(number, 1));
        synchronize_rcu();
        let contents = map.contents();
        assert!(contents.lookup_word(key).is_none());
        let value = taking.join().unwrap();
        assert!(value.is_none_or(|value| value == 5));
        seen.note(value.is_some());
    });
    outcomes.assert_both();
}

/// An entry goes since its variable was taken, beside a hit that sets it again. The worker judges
/// by the count and by the variable: the value is not lost.
#[test]
fn taken_judge() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model(3, move || {
        let [key, _] = keys();
        let (map, number, _) = with_entry();
        drop(map.publish_next(NEXT));
        map.open_next();
        let hitting = {
            let map = map.clone();
            thread::spawn(move || set(&map, 0, key, 5))
        };
        let contents = map.contents();
        // Looked up by the worker: a lookup rescues nothing.
        let is_unset = || {
            contents
                .lookup_word(key)
                .is_some_and(|elt| elt.var(0).is_none())
        };
        let hits = map.hits_of(number);
        let goes = is_unset() && map.let_go(number);
        synchronize_rcu();
        let hits = if is_unset() { hits } else { u64::MAX };
        let dead = goes && map.judge(number, hits);
        hitting.join().unwrap();
        let live = contents.lookup_word(key).unwrap();
        assert_eq!(live.var(0), Some(5), "lost");
        assert_eq!(live.number() == number, !dead);
        seen.note(dead);
    });
    outcomes.assert_both();
}

/// Lookups and hits of an entry find it while its table is copied, sealed and replaced.
#[test]
fn copy_beside_lookup() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model(2, move || {
        let [key, other] = keys();
        let (map, ..) = with_entry();
        let looking = {
            let map = map.clone();
            thread::spawn(move || {
                let cpu = Cpu::enter(1);
                let generation = map.read(cpu.preempt());
                assert!(generation.lookup_word(key).is_some());
                let elt = generation.insert_word(cpu.preempt(), key);
                count(elt.unwrap(), &cpu);
                if let Some(elt) = generation.insert_word(cpu.preempt(), other) {
                    count(elt, &cpu);
                }
                generation.is_being_replaced()
            })
        };
        drop(map.publish_next(NEXT));
        map.open_next();
        assert_eq!(replace(&map), 0);
        seen.note(looking.join().unwrap());
        assert_eq!(counts::hits(&map) + map.drops(), 3);
        assert_eq!(elements(&map, key).len(), 1);
    });
    outcomes.assert_both();
}

/// Hits ask while the worker takes their requests. It is woken after that if one is left, and sees
/// all that a hit did before it asked.
#[test]
fn ask_take() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model(3, move || {
        let woken = Arc::new(Atomic::new(0));
        let waking: Box<dyn Wake> = Box::new(Waking(woken.clone()));
        let request = Arc::new(Request::new(KBox::of(waking).unwrap()));
        let done = Arc::new(Atomic::new(0));
        let both = Request::GROW | Request::SWEEP;
        let asking = [Request::GROW, both].map(|what| {
            let (request, done) = (request.clone(), done.clone());
            thread::spawn(move || {
                if what == both {
                    done.store(1, Relaxed);
                }
                request.ask(what);
            })
        });
        let woken_before = woken.load(Relaxed);
        let first = request.take(u32::MAX);
        assert!(first & Request::SWEEP == 0 || done.load(Relaxed) == 1);
        asking.into_iter().for_each(|t| t.join().unwrap());
        let second = request.take(u32::MAX);
        assert_eq!(first | second, both);
        assert!(woken.load(Relaxed) > if second == 0 { 0 } else { woken_before });
        assert_eq!(request.take(u32::MAX), 0);
        seen.note(first != 0);
    });
    outcomes.assert_both();
}

/// Counts wakeups.
struct Waking(Arc<Atomic<u64>>);

impl Wake for Waking {
    fn wake(&self) {
        self.0.fetch_add(1, Relaxed);
    }
}
