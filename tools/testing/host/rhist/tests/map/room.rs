// SPDX-License-Identifier: GPL-2.0

//! Hits of a map that grows, whose entries expire, or that folds hits without a place. Interrupted
//! at every access.

use kernel::interrupt;
use kernel::sync::rcu::synchronize_rcu;
use kernel::sync::Arc;
use rhist::map::steps::Slots;
use rhist::map::Generation;
use rhist::map::Other;
use rhist::map::Replace;
use rhist::map::Request;
use rhist::map::Room;
use rhist::map::Wake;

use super::*;

/// First tables with a place; a path has two slots, or one.
const FIRST: Slots = Slots {
    bits: 2,
    path_max: 2,
    limit: 1,
};
const SHORT: Slots = Slots {
    path_max: 1,
    limit: 4,
    ..FIRST
};
const NEXT: Slots = Slots {
    bits: 4,
    path_max: 16,
    limit: 4,
};

/// Counts wakeups.
pub(super) struct Waking(pub(super) std::sync::Arc<AtomicU32>);

impl Wake for Waking {
    fn wake(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A map, its requests, and the number of wakeups.
struct World {
    map: Map,
    request: Arc<Request>,
    woken: std::sync::Arc<AtomicU32>,
}

impl World {
    /// A map for four entries, with a variable. Its first table is `first`.
    fn new(first: Slots, room: Room) -> Rc<Self> {
        let woken = std::sync::Arc::new(AtomicU32::new(0));
        let request = counts::request_to(Waking(woken.clone()));
        let shape = Shape {
            bits: 2,
            vars: 1,
            wide: &[2],
            room,
            request: Some(&request),
            ..shape()
        };
        let map = Map::new(shape).unwrap();
        map.set_table(first);
        Rc::new(Self {
            map,
            request,
            woken,
        })
    }

    /// The same, with a next table.
    fn with_next(first: Slots) -> Rc<Self> {
        let world = Self::new(first, FIXED);
        drop(world.map.publish_next(NEXT));
        world
    }

    /// A hit of this key, which sets the variable to it. Returns the number of the element.
    fn hit(&self, number: u64) -> Option<u32> {
        let cpu = Cpu::enter(0);
        let generation = self.map.read(cpu.preempt());
        let elt = generation.insert(cpu.preempt(), &key(number))?;
        elt.count(cpu.preempt());
        assert!(elt.set_var(0, number));
        Some(elt.number())
    }

    /// Hits of the entries of this key.
    fn hits(&self, number: u64) -> u64 {
        let contents = self.map.contents();
        let elts = contents.elts().filter(|elt| elt.is(&key(number)));
        elts.map(|elt| self.map.hits_of(elt.number())).sum()
    }

    /// Replaces the first table. Returns the number of elements that were left.
    fn replace(&self) -> usize {
        self.map.seal();
        synchronize_rcu();
        let left = self.map.copy();
        drop(self.map.publish_next_alone());
        left.len()
    }
}

const FIXED: Room = Room::fixed(2);

/// Keys whose paths begin at the same slot of a table of 2^2 slots, and of 2^4.
fn colliding() -> impl Iterator<Item = u64> {
    let home = |key: &u64| Hash::new(1).of(std::iter::once(*key)) >> 60;
    (1..).filter(move |key| home(key) == home(&1))
}

/// Without a place in the first table, a key goes to the next one if that is open, and is found
/// there. The worker is woken once until it takes the request.
#[test]
fn a_hit_without_a_place_seals_its_path() {
    let world = World::with_next(FIRST);
    let [a, b, c] = first_chunk(colliding());
    assert!(world.hit(a).is_some());
    assert_eq!([world.hit(b), world.hit(b)], [None; 2]);
    assert_eq!(world.map.drops(), 2);
    assert_eq!(world.request.take(u32::MAX), Request::RECYCLE);
    world.map.open_next();
    assert_eq!(world.request.take(u32::MAX), 0);
    let number = world.hit(b);
    assert!(number.is_some() && number == world.hit(b));
    assert!(world.hit(c).is_some());
    assert_eq!(world.request.take(u32::MAX), Request::GROW);
    assert_eq!(world.woken.load(Ordering::Relaxed), 2);
    assert_eq!([a, b, c].map(|key| world.hits(key)), [1, 2, 1]);
    assert_eq!((world.replace(), world.map.drops()), (0, 2));
    assert_eq!([a, b, c].map(|key| world.hits(key)), [1, 2, 1]);
    assert_eq!(world.hit(b), number);
}

fn first_chunk<const N: usize>(mut keys: impl Iterator<Item = u64>) -> [u64; N] {
    std::array::from_fn(|_| keys.next().unwrap())
}

/// A full path goes on in the next table, without a seal: keys are found there, and inserted when
/// it is open. A new key asks for growth and is counted, a known one is not.
#[test]
fn a_full_path_goes_on_in_the_next_table() {
    let world = World::with_next(SHORT);
    let [a, b] = first_chunk(colliding());
    let elsewhere = (1..).find(|&key| Hash::new(1).of([key].into_iter()) >> 62 != home_of(a));
    assert!(world.hit(a).is_some());
    assert_eq!(world.hit(b), None);
    assert_eq!(
        world.map.contents().lookup(&key(b)).map(|elt| elt.number()),
        None
    );
    let asked = || (world.request.take(u32::MAX), world.request.full_paths());
    assert_eq!(asked(), (Request::PATH, 1));
    world.map.open_next();
    let number = world.hit(b).unwrap();
    assert_eq!(asked(), (Request::PATH, 2));
    assert_eq!(world.hit(b), Some(number));
    let contents = world.map.contents();
    assert_eq!(contents.lookup(&key(b)).unwrap().number(), number);
    // The first table still takes keys whose path has an empty slot.
    assert!(world.hit(elsewhere.unwrap()).is_some());
    assert_eq!((0..4).filter_map(|slot| contents.slot(slot)?).count(), 2);
    assert_eq!(world.replace(), 0);
    assert_eq!(world.hit(b), Some(number));
    assert_eq!(asked(), (0, 2));
    assert_eq!((world.hits(a), world.hits(b)), (1, 3));
    assert_eq!(world.map.drops(), 1);
}

fn home_of(key: u64) -> u64 {
    Hash::new(1).of([key].into_iter()) >> 62
}

/// If the path is full in the last table, hits are drops or folded, and both losses are counted.
#[test]
fn a_full_path_without_a_next_table() {
    for folds in [false, true] {
        let room = Room {
            others: folds,
            folds,
            ..FIXED
        };
        let world = World::new(SHORT, room);
        let [a, b] = first_chunk(colliding());
        assert!(world.hit(a).is_some());
        assert_eq!(world.hit(b).is_some(), folds);
        world.request.set_no_memory(true);
        assert_eq!(world.hit(b).is_some(), folds);
        assert_eq!(world.request.full_paths(), 2);
        assert_eq!(world.map.losses(Loss::NoMemory), 1);
        assert_eq!(world.map.drops(), if folds { 0 } else { 2 });
        assert_eq!(hits(&world.map) + world.map.drops(), 3);
        // A lookup asks for nothing.
        world.request.take(u32::MAX);
        assert!(world.map.contents().lookup(&key(b)).is_none());
        assert_eq!(world.request.take(u32::MAX), 0);
        assert_eq!(world.request.full_paths(), 2);
    }
}

/// A hit finds a going entry and makes it an entry again; a lookup finds it, too, and does not.
#[test]
fn a_hit_rescues_a_going_entry() {
    let world = World::with_next(FIRST);
    let number = world.hit(7).unwrap();
    assert!(world.map.let_go(number));
    let contents = world.map.contents();
    assert_eq!(contents.lookup(&key(7)).unwrap().var(0), Some(7));
    assert!(contents.lookup_word_first_slot(7).is_none());
    assert!(matches!(contents.lookup_first_slot(7), FirstSlot::Other));
    assert_eq!((contents.elts().count(), world.hits(7)), (1, 1));
    assert_eq!(world.hit(7), Some(number));
    assert!(contents.lookup_word_first_slot(7).is_some());
    assert_eq!(world.replace(), 0);
    assert_eq!(world.hits(7), 2);
}

/// A dead entry is passed over, also by keys behind it. It has its counts until its table is
/// replaced, and is not copied.
#[test]
fn a_dead_entry_is_passed_over() {
    let world = World::with_next(Slots { limit: 2, ..FIRST });
    let [a, b, c] = first_chunk(colliding());
    let [dead, behind] = [a, b].map(|key| world.hit(key).unwrap());
    assert!(world.map.let_go(dead));
    assert!(world.map.judge(dead, 1));
    let contents = world.map.contents();
    assert!(contents.lookup(&key(a)).is_none());
    assert_eq!(world.hit(b), Some(behind));
    assert_eq!(contents.lookup(&key(b)).unwrap().number(), behind);
    assert_eq!((world.hits(a), world.hits(b)), (1, 2));
    world.map.open_next();
    let again = world.hit(a).unwrap();
    assert!(![dead, behind].contains(&again));
    assert!(world.hit(c).is_some());
    assert_eq!(world.hits(a), 2);
    world.map.seal();
    synchronize_rcu();
    assert_eq!(world.map.copy()[..], [dead]);
    // Elements in both tables are shown once.
    assert_eq!(contents.elts().count(), 4);
    drop(world.map.publish_next_alone());
    assert_eq!([a, b, c].map(|key| world.hits(key)), [1, 2, 1]);
}

/// An element in excess stays so until its table is replaced. It is not copied, so its key gets a
/// place then.
#[test]
fn an_element_in_excess_is_left_behind() {
    let mut found = 0;
    for point in 0..20 {
        let world = World::with_next(FIRST);
        let handler = {
            let world = world.clone();
            move || {
                world.hit(8);
            }
        };
        // The other key takes the place between the look for one and the insertion.
        interrupt::at(point, handler, || world.hit(7));
        if world.map.contents().in_excess().count() == 0 {
            continue;
        }
        found += 1;
        assert_eq!((world.hits(8), world.map.drops()), (1, 1));
        world.map.open_next();
        // Its hits are drops, also when places are free.
        assert_eq!(world.hit(7), None);
        assert_eq!(
            (world.map.contents().in_excess().count(), world.map.drops()),
            (1, 2)
        );
        assert_eq!(world.replace(), 1);
        assert!(world.hit(7).is_some());
        assert_eq!((world.hits(7), world.hits(8)), (1, 1));
    }
    assert!(found > 0);
}

/// In a map whose elements are numbered, the same two keys get a place each, and further keys none.
/// A number that a hit has found is never another key's.
#[test]
fn numbered_elements_are_not_in_excess() {
    let room = Room {
        numbered: true,
        ..FIXED
    };
    let mut found = 0;
    for point in 0..20 {
        let world = World::new(FIRST, room);
        drop(world.map.publish_next(NEXT));
        let handler = {
            let world = world.clone();
            move || {
                world.hit(8);
            }
        };
        interrupt::at(point, handler, || world.hit(7));
        assert_eq!(world.map.contents().in_excess().count(), 0);
        let numbers = [7, 8].map(|key| world.hit(key));
        found += u32::from(numbers.iter().all(Option::is_some));
        assert_eq!(world.hit(9), None);
        world.map.open_next();
        assert_eq!(world.replace(), 0);
        for (key, number) in [7, 8].into_iter().zip(numbers) {
            assert!(number.is_none() || number == world.hit(key));
        }
    }
    assert!(found > 0);
}

/// A hit, interrupted at each access by hits of the same and of another key, in each state that a
/// first table can leave them in.
#[test]
fn interrupted_beside_growth_and_expiry() {
    let [a, b] = first_chunk(colliding());
    // The state of the key that is an entry before.
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        Entry,
        Going,
        Dead,
    }
    for first in [FIRST, SHORT, Slots { limit: 2, ..FIRST }] {
        for state in [State::Entry, State::Going, State::Dead] {
            for keys in [[a, a], [a, b], [b, a], [b, b]] {
                let mut points = 0;
                loop {
                    let world = World::with_next(first);
                    world.map.open_next();
                    let number = world.hit(a).unwrap();
                    if state != State::Entry {
                        assert!(world.map.let_go(number));
                    }
                    if state == State::Dead {
                        assert!(world.map.judge(number, 1));
                    }
                    let handler = {
                        let world = world.clone();
                        move || assert!(world.hit(keys[1]).is_some())
                    };
                    let hit = || world.hit(keys[0]);
                    let (found, came) = interrupt::at(points, handler, hit);
                    assert!(found.is_some());
                    let hits = |key| {
                        let keys = &keys[..1 + usize::from(came)];
                        keys.iter().filter(|&&hit| hit == key).count() as u64
                    };
                    assert_eq!(world.hits(a), 1 + hits(a));
                    assert_eq!(world.hits(b), hits(b));
                    // The worker finds that it was hit meanwhile.
                    assert!(state == State::Dead || !world.map.judge(number, u64::MAX));
                    let dead = usize::from(state == State::Dead);
                    assert_eq!(world.replace(), dead);
                    let contents = world.map.contents();
                    let rows = [a, b]
                        .map(|number| contents.elts().filter(|elt| elt.is(&key(number))).count());
                    let expected = [hits(a) > 0 || dead == 0, hits(b) > 0];
                    assert_eq!(rows, expected.map(usize::from));
                    assert_eq!(world.map.drops(), 0);
                    if !came {
                        break;
                    }
                    points += 1;
                }
                // An addition without a locked instruction is none.
                let least = if cfg!(feature = "unlocked") { 3 } else { 4 };
                assert!(points >= least, "{points} points of interruption");
            }
        }
    }
}

/// The worker takes a step at each access of a hit.
#[test]
fn steps_between_the_accesses_of_a_hit() {
    type Step = fn(&Map, u32);
    let steps: [Step; 4] = [
        |map, _| map.open_next(),
        |map, _| {
            map.open_next();
            map.seal();
        },
        |map, number| assert!(map.let_go(number)),
        |map, number| assert!(map.let_go(number) && !map.judge(number, u64::MAX)),
    ];
    let [a, b] = first_chunk(colliding());
    for first in [FIRST, SHORT, Slots { limit: 2, ..FIRST }] {
        for step in steps {
            for hit in [a, b] {
                let mut points = 0;
                loop {
                    let world = World::with_next(first);
                    let number = world.hit(a).unwrap();
                    let handler = {
                        let world = world.clone();
                        move || step(&world.map, number)
                    };
                    let (found, came) = interrupt::at(points, handler, || world.hit(hit));
                    assert!(hit == b || found == Some(number));
                    let drops = world.map.drops();
                    assert_eq!(drops, u64::from(found.is_none()));
                    assert_eq!(world.hits(a) + world.hits(b) + drops, 2);
                    world.map.open_next();
                    // An entry that is going when the table is sealed would be lost.
                    assert!([a, b].iter().all(|&key| world.hit(key).is_some()));
                    assert_eq!(
                        (world.replace(), world.map.contents().elts().count()),
                        (0, 2)
                    );
                    assert_eq!(world.hits(a) + world.hits(b) + drops, 4);
                    if !came {
                        break;
                    }
                    points += 1;
                }
            }
        }
    }
}

/// Hits without a place count in `other`, which no key finds: after the last place was taken, with
/// a key of a wrong size, and if too many are nested. Their variables are missed.
#[test]
fn hits_without_a_place_are_folded() {
    let room = Room {
        others: true,
        folds: true,
        ..FIXED
    };
    let world = World::new(NEXT, room);
    let folded = Some(Other::Folded.number());
    for key in 1..=4 {
        assert!(world.hit(key).unwrap() >= Other::ALL.len() as u32);
    }
    assert_eq!([5, 6, 5].map(|key| world.hit(key)), [folded; 3]);
    let cpu = Cpu::enter(0);
    let generation = world.map.read(cpu.preempt());
    let elt = generation.insert(cpu.preempt(), &[0; 12]).unwrap();
    assert_eq!(Some(elt.number()), folded);
    elt.count(cpu.preempt());
    // A wide cell takes no value.
    let cell = elt.wide(0).unwrap();
    assert!(!cell.write([1, 2]));
    assert_eq!(cell.replace_if(|_| true, [1, 2]), Replace::Lost);
    assert_eq!(cell.read(&mut [0; 2]), Read::Unset);
    assert_eq!(cell.state(), 0);
    drop(cpu);
    assert_eq!(world.map.hits_of(Other::Folded.number()), 4);
    assert_eq!(hits(&world.map), 8);
    assert_eq!((world.map.drops(), world.map.losses(Loss::Missed)), (0, 4));
    assert!((1..=4).all(|key| world.hits(key) == 1));
    assert!([5, 6]
        .iter()
        .all(|&n| world.map.contents().lookup(&key(n)).is_none()));
    assert_eq!(world.map.contents().elts().count(), 4);
    // The first element of an entry is not one of `other`.
    let numbers = Other::ALL.map(Other::number);
    assert!(world
        .map
        .contents()
        .elts()
        .all(|elt| !numbers.contains(&elt.number())));
}

/// A map that forgets asks for a sweep when more than 7/8 of its places are taken, and for places
/// when all are.
#[test]
fn a_map_that_forgets_asks_before_it_is_full() {
    let room = Room {
        others: true,
        forgets: true,
        ..Room::fixed(6)
    };
    let request = World::new(FIRST, FIXED).request.clone();
    let shape = Shape {
        bits: 6,
        room,
        request: Some(&request),
        ..shape()
    };
    let map = Map::new(shape).unwrap();
    // A quarter more places than entries: 80.
    for number in 0..70 {
        assert!(hit(&map, 0, &key(number)));
    }
    assert_eq!(request.take(u32::MAX), 0);
    assert!(hit(&map, 0, &key(70)));
    assert_eq!(request.take(u32::MAX), Request::SWEEP);
    assert!(hit(&map, 0, &key(70)));
    assert_eq!(request.take(u32::MAX), 0);
    for number in 71..80 {
        assert!(hit(&map, 0, &key(number)));
    }
    assert_eq!(request.take(u32::MAX), Request::SWEEP);
    assert!(!hit(&map, 0, &key(80)));
    assert_eq!(request.take(u32::MAX), Request::RECYCLE);
}

/// A hit that is interrupted while the map takes up its next elements inserts one of these in a
/// table that the generation before has, too. A reader of that one passes over it.
#[test]
fn an_old_generation_passes_over_new_elements() {
    let long = |number: u64| {
        let mut key = [0; 504];
        key[..8].copy_from_slice(&number.to_ne_bytes());
        key
    };
    let mut seen = 0;
    for (new, point) in (9..29).flat_map(|new| (5..15).map(move |point| (new, point))) {
        let request = World::new(FIRST, FIXED).request.clone();
        let shape = Shape {
            bits: 3,
            // 64 elements in a chunk.
            key_size: 504,
            wide: &[1],
            room: Room {
                bits_max: 9,
                ..FIXED
            },
            request: Some(&request),
            ..shape()
        };
        let map = Rc::new(Map::new(shape).unwrap());
        let mut tending = counts::tending(&map);
        counts::beats(&map, &mut tending, 0);
        let old = map.contents();
        // The next table takes the ninth key, and becomes the first one.
        for number in 0..9 {
            assert!(hit(&map, 0, &long(number)));
        }
        counts::beats(&map, &mut tending, 0);
        assert!(map.contents().elements() > old.elements());
        let handler = {
            let map = map.clone();
            move || (100..200).for_each(|number| assert!(hit(&map, 0, &long(number))))
        };
        interrupt::at(point, handler, || hit(&map, 0, &long(new)));
        let elt = map.contents().lookup(&long(new)).unwrap().number();
        let keys = |contents: &Generation| {
            let keys = contents.elts().map(|elt| elt.key_words().next().unwrap());
            keys.collect::<HashSet<_>>()
        };
        assert!(keys(&map.contents()).contains(&new));
        assert!((0..9).all(|number| keys(&old).contains(&number)));
        assert!(old.has(elt) || !keys(&old).contains(&new));
        assert_eq!(old.has(elt), old.wide_at(elt, 0).is_some());
        let contents = map.contents();
        let mut both = (0..).map_while(|slot| contents.slot(slot));
        let slot = both.position(|elt| elt.is_some_and(|elt| elt.is(&long(new))));
        // The first table, of 2^7 slots, is the old generation's next one.
        seen += usize::from(!old.has(elt) && slot.is_some_and(|slot| slot < 1 << 7));
    }
    assert!(seen > 0);
}
