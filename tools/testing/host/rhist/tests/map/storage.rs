// SPDX-License-Identifier: GPL-2.0

//! Storage that is extended, numbers that are used again, and counters of large machines.

use kernel::sync::Arc;
use rhist::counts::request;
use rhist::cpu;
use rhist::map::storage::Bank;
use rhist::map::storage::Numbers;
use rhist::map::Extreme;
use rhist::map::Other;
use rhist::map::Request;
use rhist::map::Room;

use super::*;

/// Room for 2^`bits_max` entries.
fn growing(bits_max: u32) -> Room {
    Room::fixed(bits_max)
}

/// The same, with entries that are taken out.
fn forgetting(bits_max: u32) -> Room {
    Room {
        others: true,
        forgets: true,
        ..Room::fixed(bits_max)
    }
}

/// A column of each kind.
const ALL: &[Column] = &[
    Column::Hits,
    Column::Sum,
    Column::Extreme(Extreme::min(false)),
    Column::Extreme(Extreme::max(true)),
];

/// A shape with all parts.
fn whole_shape(request: &Arc<Request>) -> Shape<'_> {
    Shape {
        columns: ALL,
        vars: 2,
        wide: &[1, 3],
        side: 2,
        clock: Some(|| 5),
        request: Some(request),
        ..shape()
    }
}

#[test]
fn rooms() {
    let room = growing(10);
    assert!(room.grows(7) && room.grows(9) && !room.grows(10) && !room.grows(11));
    let request = request();
    let with = |room, request| Shape {
        room,
        request,
        ..shape()
    };
    let refused = |shape| Map::new(shape).err() == Some(EINVAL);
    // Nobody would make it grow, or take entries out.
    assert!(refused(with(growing(8), None)));
    assert!(refused(with(forgetting(7), None)));
    let folds = Room {
        folds: true,
        others: true,
        ..Room::fixed(7)
    };
    assert!(Map::new(with(folds, None)).is_ok());
    // It lacks the elements to fold into.
    let without = Room {
        others: false,
        ..folds
    };
    assert!(refused(with(without, Some(&request))));
    assert!(refused(with(growing(24), Some(&request))));
}

/// A map begins with the places of its first table and of the next one: four times as many.
#[test]
fn places_ahead() {
    let request = request();
    for (bits_max, places) in [(7, 128), (8, 256), (9, 512), (10, 512), (20, 512)] {
        for (room, places) in [
            (growing(bits_max), places),
            (forgetting(bits_max), places + places / 4),
        ] {
            let shape = Shape {
                room,
                request: Some(&request),
                ..shape()
            };
            let map = Map::new(shape).unwrap();
            assert_eq!(map.contents().capacity(), places, "{room:?}");
            for n in 0..places as u64 {
                assert!(hit(&map, 0, &key(n)), "{room:?}: {n}");
            }
            assert!(!hit(&map, 1, &key(u64::MAX)));
            assert_complete(&map, places as u64 + 1, places + 1);
            // All numbers of `other` are reserved.
            let contents = map.contents();
            let first = contents.elts().map(|elt| elt.number()).min().unwrap();
            assert_eq!(first, if room.others { 3 } else { 0 });
        }
    }
}

/// The largest size that can be numbered: wide elements take short chunks.
#[test]
fn sizes_that_can_be_numbered() {
    let largest = |key_size, room, cpus| {
        let shape = Shape {
            key_size,
            room,
            cpus: Cpus::uniform(cpus),
            ..shape()
        };
        shape.bits_max_of()
    };
    assert_eq!(largest(8, growing(20), 4), 23);
    assert_eq!(largest(8, forgetting(20), 4), 23);
    assert_eq!(largest(128, growing(20), 4), 20);
    // A chunk of 128 elements: 2^20 and the elements for insertions are too many.
    assert_eq!(largest(136, growing(20), 4), 19);
    assert_eq!(largest(504, growing(20), 4), 18);
    assert_eq!(largest(504, growing(20), 512), 18);
    let wide = Shape {
        wide: &[200],
        room: growing(20),
        ..shape()
    };
    assert_eq!(wide.bits_max_of(), 17);
    let huge = Shape {
        wide: &[usize::MAX],
        ..shape()
    };
    assert_eq!(huge.bits_max_of(), 0);
    let request = request();
    for (bits_max, made) in [(18, true), (19, false)] {
        let shape = Shape {
            key_size: 504,
            room: growing(bits_max),
            request: Some(&request),
            ..shape()
        };
        assert_eq!(Map::new(shape).is_ok(), made);
    }
}

/// A map that grows takes the memory that its shape says, and so does each step.
#[test]
fn memory() {
    let request = request();
    let whole = whole_shape(&request);
    let plain = Shape {
        request: Some(&request),
        ..shape()
    };
    let many = Cpus::uniform(100);
    for (bits, room, shape) in [
        (7, growing(9), plain),
        (7, growing(20), plain),
        (11, growing(14), whole),
        (12, forgetting(12), whole),
        (7, forgetting(13), whole),
        (
            7,
            growing(12),
            Shape {
                cpus: many,
                ..plain
            },
        ),
        (
            10,
            forgetting(16),
            Shape {
                cpus: many,
                ..whole
            },
        ),
    ] {
        let shape = Shape {
            bits,
            room,
            ..shape
        };
        let said = shape.size_bytes().unwrap();
        let (made, map) = taken(|| Map::new(shape).unwrap());
        let small = 4096 + 96 * 31;
        assert!(
            (said..=said + small).contains(&made),
            "{room:?}: said {said}, taken {made}"
        );
        let contents = map.contents();
        let has = contents.storage_bytes().unwrap();
        assert!(
            (has..=has + small).contains(&made),
            "{room:?}: has {has}, taken {made}"
        );
        let mut last = contents.storage_bytes().unwrap();
        let ahead = room.bits_max.min(bits + 2);
        let mut extended: Option<rhist::map::storage::Extended> = None;
        for bits in ahead + 1..=room.bits_max {
            let said = match &extended {
                None => contents.step_bytes(bits).unwrap(),
                Some(extended) => extended.step_bytes(bits).unwrap(),
            };
            let (made, next) = taken(|| match &extended {
                None => contents.extended(bits).unwrap(),
                Some(extended) => extended.extended(bits).unwrap(),
            });
            assert!(
                (said..=said + small).contains(&made),
                "{room:?}, 2^{bits}: said {said}, taken {made}"
            );
            let has = extended
                .as_ref()
                .map_or(contents.elements(), |former| former.elements());
            assert!(next.elements() >= has);
            // The former starts go with the former generation.
            let now = next.storage_bytes().unwrap();
            assert!(now >= last && now - last <= said, "{room:?}, 2^{bits}");
            last = now;
            extended = Some(next);
        }
    }
}

/// Extending moves no item, and shares all that is there.
#[test]
fn extensions_share_their_elements() {
    let request = request();
    let map = Map::new(Shape {
        room: forgetting(16),
        ..whole_shape(&request)
    })
    .unwrap();
    let mut numbers = Vec::new();
    for n in 0..600 {
        assert!(hit_with(&map, 0, &key(n), &[n, n, n]));
        numbers.push(map.contents().lookup(&key(n)).unwrap().number());
    }
    let contents = map.contents();
    let addresses: Vec<_> = {
        let cpu = Cpu::enter(1);
        let addresses = |&number: &u32| contents.addresses(cpu.preempt(), number);
        numbers.iter().map(addresses).collect()
    };
    let mut last = contents.extended(10).unwrap();
    for bits in 11..=16 {
        let next = last.extended(bits).unwrap();
        assert!(next.elements() > last.elements());
        drop(last);
        last = next;
    }
    let cpu = Cpu::enter(1);
    for (&number, addresses) in numbers.iter().zip(&addresses) {
        assert_eq!(last.addresses(cpu.preempt(), number), *addresses);
    }
    // New elements are all 0, and lie elsewhere.
    let mut all: HashSet<_> = addresses.iter().map(|parts| parts[0]).collect();
    for nth in contents.elements() as u32..last.elements() as u32 {
        let parts = last.addresses(cpu.preempt(), last.number(nth));
        assert!(all.insert(parts[0]));
    }
    // Hits of both generations count in the same numbers, and lose in the same ones.
    assert!(hit_with(&map, 1, &key(3), &[1, 1, 1]));
    contents.lose(cpu.preempt(), Loss::Missed);
    last.lose(cpu.preempt(), Loss::Missed);
    last.lose(cpu.preempt(), Loss::NoMemory);
    let (old, new) = (counts::totals(&map).first, last.totals());
    for &number in &numbers {
        for column in 0..4 {
            assert_eq!(old.column(number, column), new.column(number, column));
        }
    }
    for totals in [&old, &new] {
        assert_eq!(totals.column(numbers[3], 1), 3 + 1);
        let losses = [Loss::Dropped, Loss::Missed, Loss::NoMemory];
        assert_eq!(losses.map(|loss| totals.loss(loss)), [0, 2, 1]);
    }
    for nth in contents.elements() as u32..last.elements() as u32 {
        assert_eq!(new.column(last.number(nth), 0), 0);
    }
}

/// Each allocation of a map with room, and of a step, may fail. That changes nothing, and nothing
/// is left behind.
#[test]
fn allocations_that_fail() {
    let request = request();
    for room in [growing(13), forgetting(13)] {
        let shape = Shape {
            room,
            ..whole_shape(&request)
        };
        let (map, allocations) = fault::each(
            || Map::new(shape),
            |map| assert_eq!(map.err(), Some(ENOMEM)),
        );
        assert!(allocations > 40);
        let map = map.unwrap();
        for n in 0..600 {
            hit_with(&map, 0, &key(n), &[n, n, n]);
        }
        let before = counts::hits(&map);
        let contents = map.contents();
        let (extended, allocations) = fault::each(
            || contents.extended(13),
            |extended| {
                assert_eq!(extended.err(), Some(ENOMEM));
                assert_eq!(counts::hits(&map), before);
            },
        );
        assert!(allocations > 40);
        drop((extended, contents, map));
    }
    drop(request);
    assert_eq!(fault::live(), 0);
}

/// On 512 CPUs, counters of a default histogram with four columns take less than 4 MiB. Each CPU
/// can still insert in four contexts at once.
#[test]
fn counters_of_large_machines() {
    const COLUMNS: &[Column] = &[Column::Hits, Column::Sum, Column::Sum, Column::Sum];
    let shape = |count, own| Shape {
        bits: 11,
        columns: COLUMNS,
        cpus: Cpus {
            own,
            current: cpu::current,
            ..Cpus::uniform(count)
        },
        ..shape()
    };
    let bytes = |count, own| {
        let (made, bank) = taken(|| Bank::new(&shape(count, own)).unwrap());
        let said = bank.bytes().unwrap();
        assert!(
            (said..=said + 4096).contains(&made),
            "said {said}, taken {made}"
        );
        made
    };
    for (count, own) in [(512, 512), (512, 32), (512, 4), (254, 254)] {
        assert!(
            bytes(count, own) <= 4 << 20,
            "{count}, {own}: {}",
            bytes(count, own)
        );
    }
    // The elements that more CPUs need have columns, too.
    assert!(bytes(1024, 1024) <= 6 << 20);
    // Few CPUs have sets of their own.
    let of = |own| bytes(64, own) / bytes(64, 1);
    assert_eq!(
        [2, 30, 31, 64].map(of),
        [3, 31, 31, 31].map(|sets| sets / 2)
    );

    let map = Map::new(shape(512, 500)).unwrap();
    for round in 0..3 {
        for cpu in 0..512 {
            assert!(hit_with(
                &map,
                cpu,
                &key(cpu as u64 / 2),
                &[1, cpu as u64, round]
            ));
        }
    }
    assert!(!hit(&map, 511, &[0; 16]));
    for n in 0..256 {
        let sums = counts::columns::<4>(&map, &key(n));
        assert_eq!(sums, [6, 6, 3 * (4 * n + 1), 6]);
    }
    assert_eq!(map.drops(), 1);
    assert_eq!(map.contents().elements(), 2048 + 4 * 512);
}

/// CPUs share a set of columns with their neighbours, on the node of the first.
#[test]
fn neighbours_share_columns() {
    static ASKED: [AtomicU32; 62] = [const { AtomicU32::new(0) }; 62];
    let node = |cpu: usize| {
        ASKED[cpu].fetch_add(1, Ordering::Relaxed);
        NumaNode::NO_NODE
    };
    let cpus = Cpus {
        count: 100,
        own: 62,
        node,
        current: cpu::current,
    };
    let _bank = Bank::new(&Shape { cpus, ..shape() }).unwrap();
    let asked: Vec<_> = ASKED
        .iter()
        .map(|asked| asked.load(Ordering::Relaxed))
        .collect();
    assert_eq!(asked, [1, 0].repeat(31));
}

/// Hits of elements that were taken out move to `other`, in counters of all kinds of CPUs, and in
/// totals.
#[test]
fn counts_move() {
    let request = request();
    for own in [1, 2, 40] {
        let map = Map::new(Shape {
            cpus: Cpus {
                own,
                ..Cpus::uniform(own + 1)
            },
            room: forgetting(7),
            ..whole_shape(&request)
        })
        .unwrap();
        let (contents, expired) = (map.contents(), Other::Expired.number());
        for n in [3, 5] {
            for cpu in 0..=own {
                assert!(hit_with(&map, cpu, &key(n), &[n, cpu as u64, cpu as u64]));
            }
            let before = counts::columns::<4>(&map, &key(n));
            let elt = contents.lookup(&key(n)).unwrap();
            contents.move_counts(elt.nth().unwrap() as u32, expired);
            let totals = counts::totals(&map).first;
            assert_eq!(before[0], own as u64 + 1);
            let unset = [0, 0, u64::MAX, 1 << 63];
            assert_eq!(counts::columns::<4>(&map, &key(n)), unset);
            let other = [0, 1, 2, 3].map(|column| totals.column(expired, column));
            let both = match n {
                3 => before,
                _ => [2 * before[0], 8 * before[0], 0, before[3]],
            };
            assert_eq!(other, both);
        }
    }
}

/// Totals of more elements have the same counts; counts move to another element or to the losses.
#[test]
fn totals_move() {
    let request = request();
    let map = Map::new(Shape {
        room: forgetting(9),
        ..whole_shape(&request)
    })
    .unwrap();
    for n in [3, 5, 7] {
        assert!(hit_with(&map, 0, &key(n), &[u64::MAX - n, n, n]));
    }
    assert!(!hit(&map, 0, &[0; 16]));
    let contents = map.contents();
    let [three, five, seven] = [3, 5, 7].map(|n| contents.lookup(&key(n)).unwrap().number());
    let totals = counts::totals(&map).first;
    let row = |totals: &Totals, number| [0, 1, 2, 3].map(|column| totals.column(number, column));
    let before = [three, five, seven].map(|number| row(&totals, number));
    let totals = totals.grown(&contents, 400).unwrap();
    assert_eq!(
        [three, five, seven].map(|number| row(&totals, number)),
        before
    );
    assert_eq!(totals.loss(Loss::Dropped), 1);
    let unset = [0, 0, u64::MAX, 1 << 63];
    assert_eq!(row(&totals, 399), unset);

    let totals = totals.moved(three, Other::Recycled.number());
    let totals = totals.moved(five, Other::Recycled.number());
    assert_eq!(
        row(&totals, Other::Recycled.number()),
        [2, (u64::MAX - 3).wrapping_add(u64::MAX - 5), 3, 5]
    );
    assert_eq!([three, five].map(|number| row(&totals, number)), [unset; 2]);
    let totals = totals.lost(seven, Loss::Dropped);
    assert_eq!(row(&totals, seven), unset);
    assert_eq!(totals.loss(Loss::Dropped), 2);
    // From elements that totals lack, nothing moves.
    let totals = totals.moved(1000, 0).lost(1000, Loss::Dropped);
    assert_eq!((row(&totals, 0), totals.loss(Loss::Dropped)), (unset, 2));
}

/// Numbers that are given are taken again, each once, before fresh ones.
#[test]
fn numbers_are_used_again() {
    for room in [forgetting(7), forgetting(9), growing(11)] {
        let numbers = Numbers::new(room, 7, 1, 2).unwrap();
        let (_, size, used) = numbers.counts();
        let first = if room.others { 3 } else { 0 };
        assert_eq!(used, first);
        let mut out: Vec<u32> = (first..size).map(|_| numbers.take().unwrap()).collect();
        assert_eq!(out, (first..size).collect::<Vec<_>>());
        assert_eq!((numbers.take(), numbers.take()), (None, None));
        assert_eq!(numbers.counts().2, size);
        let most = if room.forgets { out.len() } else { 8 + 2048 };
        assert!(numbers.stock_len() >= most);
        // More often than the stock has places.
        for round in 0..20 {
            let given: Vec<u32> = out
                .drain(..(round * 37 + 1) % out.len().min(most))
                .collect();
            given.iter().for_each(|&number| numbers.give(number));
            let taken: Vec<u32> = given.iter().map(|_| numbers.take().unwrap()).collect();
            assert_eq!(taken, given);
            assert_eq!(numbers.take(), None);
            out.extend(taken);
        }
        // All of them, and hits that found none before.
        let given: Vec<u32> = out.drain(..most.min(out.len())).collect();
        for _ in 0..5 {
            assert_eq!(numbers.take(), None);
        }
        given.iter().for_each(|&number| numbers.give(number));
        assert!(given.iter().all(|&number| numbers.take() == Some(number)));
    }
}

/// Fresh numbers follow each other as more are opened; hits that found none before lose none.
#[test]
fn fresh_numbers_are_opened() {
    // Chunks of 64 elements, and of 2048.
    for (widest, len) in [(64, 64), (1, 2048)] {
        fresh_numbers_of(widest, len);
    }
}

fn fresh_numbers_of(widest: usize, len: u32) {
    let room = growing(13);
    let numbers = Numbers::new(room, 7, widest, 2).unwrap();
    let mut taken = HashSet::new();
    let mut capacity = 0;
    for bits in [9, 10, 11, 13] {
        numbers.open(bits);
        let (places, size, used) = numbers.counts();
        assert_eq!((places, used as usize), (1 << bits, taken.len()));
        // Up to the last step, elements fill chunks.
        assert!(bits == 13 || size % len == 0);
        assert!(size >= places + 8);
        while let Some(number) = numbers.take() {
            assert!(taken.insert(number));
        }
        assert_eq!(numbers.take(), None);
        assert_eq!(taken.len(), size as usize);
        for _ in capacity..places {
            assert!(numbers.place());
        }
        assert!(!numbers.place());
        assert_eq!((numbers.places(), numbers.excess()), (places + 1, 1));
        numbers.give_back(0, 1);
        assert_eq!((numbers.places(), numbers.excess()), (places, 0));
        capacity = places;
    }
    numbers.give_back(10, 0);
    assert_eq!(numbers.places(), capacity - 10);
}

/// A context that is nested too deep gets no number; one that does not publish keeps it as a spare,
/// although the stock has others.
#[test]
fn spares_come_before_the_stock() {
    let numbers = Numbers::new(forgetting(7), 7, 1, 1).unwrap();
    let cpu = Cpu::enter(0);
    let mut kept = None;
    let published = numbers.offer(cpu.preempt(), |number| {
        kept = Some(number);
        false
    });
    assert_eq!(published, Some(false));
    numbers.give(100);
    let same = |number| {
        assert_eq!(Some(number), kept);
        true
    };
    assert_eq!(numbers.offer(cpu.preempt(), same), Some(true));
    let stocked = |number| {
        assert_eq!(number, 100);
        true
    };
    assert_eq!(numbers.offer(cpu.preempt(), stocked), Some(true));
}
