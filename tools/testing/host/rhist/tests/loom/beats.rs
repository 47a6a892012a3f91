// SPDX-License-Identifier: GPL-2.0

//! All steps of the worker on a map that grows, loses an entry, or does both, beside hits, a cut
//! and a reader of intervals.

use kernel::alloc::flags::GFP_KERNEL;
use kernel::sync;
use kernel::sync::atomic::Atomic;
use rhist::counts;
use rhist::cpu::Cpu;
use rhist::map::Beat;
use rhist::map::Generation;
use rhist::map::Other;
use rhist::map::Policy;
use rhist::map::Room;
use rhist::map::Tending;
use rhist::map::Totals;
use rhist::sync::Retired;

use super::*;

/// A map for hits of one CPU, and its worker. Entries are taken out if their variable is not set.
fn map_and_worker(bits: u32, room: Room) -> (Arc<Map>, Tending) {
    let request = counts::request();
    let map = Map::new(Shape {
        vars: 1,
        cpus: Cpus::uniform(1),
        room,
        request: Some(&request),
        ..shape(bits, 8)
    });
    let map = Arc::new(map.unwrap());
    let policy = Policy {
        idle_ns: None,
        taken: room.forgets.into(),
        wide_vars: 0,
        recycle: false,
        max_bytes: || usize::MAX,
        active: sync::Arc::new(Atomic::new(1), GFP_KERNEL).unwrap(),
    };
    let tending = Tending::new(&map, policy).unwrap();
    (map, tending)
}

/// A hit that sets the variable.
fn set(map: &Map, key: u64) {
    let cpu = Cpu::enter(0);
    let elt = map.read(cpu.preempt()).insert_word(cpu.preempt(), key);
    let elt = elt.expect("a place");
    count(elt, &cpu);
    assert!(elt.set_var(0, key));
}

/// Hits of entries, of `other`, and drops in `totals`.
fn sum(map: &Map, totals: &Totals) -> u64 {
    let contents = map.contents();
    let rows = contents.elts().chain(contents.others());
    let hits: u64 = rows.map(|elt| totals.column(elt.number(), 0)).sum();
    hits + totals.drops(&contents)
}

/// An entry without a value is taken out beside a hit, which sets the value: that is there after
/// the hit, in the same entry or in another one.
#[test]
fn a_hit_beside_the_end_of_its_entry() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model(2, move || {
        let room = Room {
            others: true,
            forgets: true,
            ..Room::fixed(2)
        };
        let (map, mut tending) = map_and_worker(2, room);
        hit(&map, 0, 7);
        let hitting = {
            let map = map.clone();
            thread::spawn(move || set(&map, 7))
        };
        counts::beats(&map, &mut tending, 1);
        hitting.join().unwrap();
        let ended = counts::hits_in(&map, Other::Expired);
        seen.note(ended > 0);
        let contents = map.contents();
        let elt = contents.lookup_word(7).expect("the entry is lost");
        assert_eq!(elt.var(0), Some(7), "the value is lost");
        assert_eq!(sum(&map, &counts::totals(&map).first), 2);
        assert_eq!((contents.elts().count(), map.drops()), (1, 0));
    });
    outcomes.assert_both();
}

/// The same, with a cut beside it, and a reader that takes the interval, shows it, or gives it
/// back.
#[test]
fn a_cut_beside_the_end_of_an_entry() {
    for shows in [true, false] {
        let outcomes = Outcomes::new();
        let seen = outcomes.clone();
        long_model(1, move || {
            let room = Room {
                others: true,
                forgets: true,
                ..Room::fixed(2)
            };
            let (map, mut tending) = map_and_worker(2, room);
            let reader = counts::add_reader_from_begin(&map);
            hit(&map, 0, 7);
            let cutting = {
                let map = map.clone();
                thread::spawn(move || {
                    counts::cut(&map, 1);
                    let mut interval = counts::take(&map, reader, None).ok()?;
                    if !shows {
                        map.put_back(reader, &interval);
                        return None;
                    }
                    let held = map.hold();
                    map.settle(reader, &mut interval, GFP_KERNEL).unwrap();
                    let hits = sum(&map, &interval.totals.first);
                    // Otherwise it is shown later.
                    Some((held.is_whole().then_some(hits), interval))
                })
            };
            counts::beats(&map, &mut tending, 1);
            let taken = cutting.join().unwrap();
            counts::beats(&map, &mut tending, 2_000_000_000);
            let hits = taken.map_or(0, |(hits, mut interval)| {
                hits.unwrap_or_else(|| {
                    map.settle(reader, &mut interval, GFP_KERNEL).unwrap();
                    sum(&map, &interval.totals.first)
                })
            });
            hit(&map, 0, 8);
            let end = Some(counts::moment(10));
            let rest = counts::take(&map, reader, end).unwrap();
            assert_eq!(hits + sum(&map, &rest.totals.first), 2);
            assert_eq!(counts::hits_in(&map, Other::Expired), 1);
            seen.note(hits > 0);
        });
        assert_eq!(outcomes.any(true), shows);
    }
}

/// New keys beside two steps of growth: all find a place.
#[test]
fn keys_beside_growth() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model(1, move || {
        let room = Room {
            bits_max: 4,
            ..Room::fixed(0)
        };
        let (map, mut tending) = map_and_worker(0, room);
        set(&map, 1);
        set(&map, 2);
        let hitting = {
            let map = map.clone();
            thread::spawn(move || [3, 1, 4].map(|key| set(&map, key)))
        };
        counts::beats(&map, &mut tending, 1);
        seen.note(map.contents().lookup_word(4).is_some());
        hitting.join().unwrap();
        counts::beats(&map, &mut tending, 1);
        assert_eq!((map.drops(), map.contents().len()), (0, 4));
        assert_eq!(counts::hits(&map), 5);
        for key in 1..=4 {
            assert_eq!(map.contents().lookup_word(key).unwrap().var(0), Some(key));
        }
    });
    outcomes.assert_both();
}

/// The worker's rounds, of which each ends with a grace period: it takes a step of a cut, from this
/// round on, then one of the tables.
fn rounds(map: &Map, tending: &mut Tending, edge: usize) {
    for round in 0usize.. {
        let mut retired = vec![];
        match round.checked_sub(edge) {
            Some(0) => retired.push(map.cut(counts::moment(1)).unwrap()),
            Some(1) => map.fold(|| ()),
            Some(2) => map.end_cut(),
            _ => (),
        }
        loop {
            match map.beat(tending, 1, || ()) {
                Beat::Again => continue,
                Beat::GracePeriod(more) => retired.extend(more),
                Beat::At(_) if round > edge + 2 => return,
                Beat::At(_) => (),
            }
            break;
        }
        Retired::drop_after_wait(retired);
    }
}

/// A map grows, loses an entry, and is cut meanwhile, beside a hit of that entry: the hit counts
/// once, in one interval, and the value that it sets is there. The first table is sealed for
/// growth in round 0 and copied in round 1; the entry is going from round 2 on, judged in round 3,
/// and left out of the copy in round 4.
#[test]
fn a_hit_beside_growth_expiry_and_cut() {
    let is_long = std::env::var_os("RHIST_TEST_LONG").is_some();
    for edge in if is_long { 0..5 } else { 1..2 } {
        let [in_interval, in_entry] = [Outcomes::new(), Outcomes::new()];
        let seen = [in_interval.clone(), in_entry.clone()];
        model(1, move || {
            let room = Room {
                bits_max: 2,
                others: true,
                forgets: true,
                ..Room::fixed(0)
            };
            let (map, mut tending) = map_and_worker(0, room);
            let reader = counts::add_reader_from_begin(&map);
            hit(&map, 0, 7);
            // It finds its place in the next table.
            set(&map, 8);
            let contents = map.contents();
            let hitting = {
                let map = map.clone();
                thread::spawn(move || set(&map, 7))
            };
            rounds(&map, &mut tending, edge);
            let slots =
                |contents: &Generation| (0..).take_while(|&n| contents.slot(n).is_some()).count();
            assert!(
                slots(&map.contents()) > slots(&contents),
                "it has not grown"
            );
            let taken = counts::take(&map, reader, None).unwrap();
            hitting.join().unwrap();
            let rest = counts::take(&map, reader, Some(counts::moment(10))).unwrap();
            let [taken, rest] = [taken, rest].map(|interval| sum(&map, &interval.totals.first));
            assert_eq!(taken + rest, 3);
            seen[0].note(taken == 3);
            seen[1].note(counts::hits_in(&map, Other::Expired) == 0);
            let contents = map.contents();
            for key in [7, 8] {
                let elt = contents.lookup_word(key).expect("the entry is lost");
                assert_eq!(elt.var(0), Some(key), "the value is lost");
            }
            assert_eq!((contents.elts().count(), map.drops()), (2, 0));
        });
        in_interval.assert_both();
        in_entry.assert_both();
    }
}
