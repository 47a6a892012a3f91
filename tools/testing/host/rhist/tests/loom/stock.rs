// SPDX-License-Identifier: GPL-2.0

//! Numbers of elements that hits take while the worker gives others.

use std::sync::Mutex;

use kernel::interrupt;
use kernel::sync::atomic::Atomic;
use kernel::sync::atomic::Relaxed;
use loom::sync::Arc;
use loom::thread;
use rhist::map::storage::Numbers;

use super::*;

/// Numbers for a map whose entries are taken out, of which all were used.
fn used_numbers() -> Arc<Numbers> {
    let room = Room {
        others: true,
        forgets: true,
        ..Room::fixed(0)
    };
    let numbers = Numbers::new(room, 0, 1, 1).unwrap();
    while numbers.take().is_some() {}
    Arc::new(numbers)
}

/// Takes a number, whose element the worker has cleared before.
fn take(numbers: &Numbers, cleared: &[Atomic<u64>; 2]) -> Option<u32> {
    let number = numbers.take()?;
    assert_eq!(cleared[number as usize - 3].load(Relaxed), 1);
    Some(number)
}

/// Gives both numbers, whose elements are cleared before.
fn give_both(numbers: &Numbers, cleared: &[Atomic<u64>; 2]) {
    for (number, cleared) in (3..).zip(cleared) {
        cleared.store(1, Relaxed);
        numbers.give(number);
    }
}

/// Asserts that these numbers, and the ones that are left, are both, each once.
fn assert_both_once(mut taken: Vec<u32>, numbers: &Numbers, cleared: &[Atomic<u64>; 2]) {
    while let Some(number) = take(numbers, cleared) {
        taken.push(number);
    }
    taken.sort();
    assert_eq!(taken, [3, 4]);
}

/// Two hits take beside the worker, which gives two numbers. Each is taken once, by a hit that sees
/// the worker's stores, also if a hit came too early; none is lost. Tickets start anew meanwhile.
#[test]
fn stock_give_take() {
    let outcomes = std::sync::Arc::new(Mutex::new([false; 3]));
    let model_outcomes = outcomes.clone();
    model(3, move || {
        let numbers = used_numbers();
        let cleared = Arc::new([Atomic::new(0u64), Atomic::new(0)]);
        let takers = [0, 1].map(|_| {
            let (numbers, cleared) = (numbers.clone(), cleared.clone());
            thread::spawn(move || take(&numbers, &cleared))
        });
        for number in [3, 4] {
            cleared[number as usize - 3].store(1, Relaxed);
            numbers.give(number);
        }
        let mut taken: Vec<u32> = takers
            .into_iter()
            .filter_map(|t| t.join().unwrap())
            .collect();
        model_outcomes.lock().unwrap()[taken.len()] = true;
        while let Some(number) = take(&numbers, &cleared) {
            taken.push(number);
        }
        taken.sort();
        assert_eq!(taken, [3, 4]);
    });
    assert_eq!(*outcomes.lock().unwrap(), [true; 3]);
}

/// A hit that takes is interrupted, at each of its atomic operations in turn, by another one, while
/// the worker gives two numbers.
#[test]
fn stock_take_interrupted() {
    for point in 0.. {
        let came = std::sync::Arc::new(AtomicBool::new(false));
        let model_came = came.clone();
        model(3, move || {
            let numbers = used_numbers();
            let cleared = Arc::new([Atomic::new(0u64), Atomic::new(0)]);
            let taker = {
                let (numbers, cleared) = (numbers.clone(), cleared.clone());
                thread::spawn(move || {
                    let nested = std::rc::Rc::new(std::cell::Cell::new(None));
                    let handler = {
                        let (numbers, cleared) = (numbers.clone(), cleared.clone());
                        let nested = nested.clone();
                        move || nested.set(take(&numbers, &cleared))
                    };
                    let (taken, came) = interrupt::at(point, handler, || take(&numbers, &cleared));
                    ([taken, nested.get()], came)
                })
            };
            give_both(&numbers, &cleared);
            let (taken, came) = taker.join().unwrap();
            model_came.fetch_or(came, Ordering::Relaxed);
            assert_both_once(taken.into_iter().flatten().collect(), &numbers, &cleared);
        });
        if !came.load(Ordering::Relaxed) {
            assert!(point > 2);
            break;
        }
    }
}

/// Hits take fresh numbers while the worker opens more: also the ones of hits that came too early.
#[test]
fn fresh_open_take() {
    model(3, || {
        let room = Room::fixed(5);
        let numbers = Arc::new(Numbers::new(room, 0, usize::MAX, 1).unwrap());
        let (_, first, _) = numbers.counts();
        for _ in 0..first - 1 {
            assert!(numbers.take().is_some());
        }
        let takers = [0, 1].map(|_| {
            let numbers = numbers.clone();
            thread::spawn(move || numbers.take())
        });
        numbers.open(5);
        let mut taken: Vec<u32> = takers
            .into_iter()
            .filter_map(|t| t.join().unwrap())
            .collect();
        let (_, size, _) = numbers.counts();
        while let Some(number) = numbers.take() {
            taken.push(number);
        }
        taken.sort();
        taken.dedup();
        assert_eq!((first, taken.len()), (32, size as usize - 31));
    });
}

/// Places are given back beside hits that take them: as many as are free are taken.
#[test]
fn places_give_back_take() {
    let outcomes = Outcomes::new();
    let model_outcomes = outcomes.clone();
    model(3, move || {
        let numbers = used_numbers();
        assert!(numbers.place());
        let takers = [0, 1].map(|_| {
            let numbers = numbers.clone();
            thread::spawn(move || numbers.place())
        });
        numbers.give_back(1, 0);
        let placed = takers.into_iter().map(|t| t.join().unwrap());
        let placed = placed.filter(|&placed| placed).count() as u32;
        model_outcomes.note(placed == 1);
        assert!(placed <= 1);
        assert_eq!(numbers.excess(), 2 - placed);
        assert_eq!(numbers.places(), 2);
    });
    outcomes.assert_both();
}
