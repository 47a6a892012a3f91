// SPDX-License-Identifier: GPL-2.0

//! All steps of the worker on a histogram that forgets entries, and then their stacks, beside hits
//! with these stacks.

use kernel::sync::rcu::synchronize_rcu;
use rhist::counts;
use rhist::cpu::Cpu;
use rhist::hist::Histogram;
use rhist::hist::Tending;
use rhist::map::Beat;

use super::*;

/// A hit with this stack, whose key has the same word, that sets its variable. Returns false if it
/// is a drop.
fn set(hist: &Histogram, stack: u64) -> bool {
    let cpu = Cpu::enter(0);
    let elt = hist.hit(cpu.preempt(), stack, stack);
    elt.is_some_and(|elt| elt.set_var(0, 1))
}

/// The worker of a histogram.
struct Worker {
    hist: Arc<Histogram>,
    tending: Tending,
    now_ns: u64,
}

impl Worker {
    fn new(hist: &Arc<Histogram>) -> Self {
        let tending = hist.tending(|| usize::MAX).unwrap();
        Self {
            hist: hist.clone(),
            tending: tending.expect("it forgets"),
            now_ns: 1,
        }
    }

    /// Takes a step, and waits for the grace period after it. Returns false if nothing is to be
    /// done now.
    fn step(&mut self) -> bool {
        match self.hist.beat(&mut self.tending, self.now_ns, || ()) {
            Beat::At(_) => return false,
            Beat::Again => (),
            // Dropping it waits, too.
            Beat::GracePeriod(Some(retired)) => drop(retired),
            Beat::GracePeriod(None) => synchronize_rcu(),
        }
        true
    }

    /// Takes so many steps, unless nothing is left to be done.
    fn steps(&mut self, steps: usize) {
        (0..steps).for_each(|_| _ = self.step());
    }

    /// Works until nothing is to be done now.
    fn work(&mut self) {
        while self.step() {}
    }

    /// Works until no stack is left: readers end meanwhile.
    fn work_until_forgotten(&mut self) {
        loop {
            self.work();
            if self.hist.stacks() == 0 {
                return;
            }
            self.now_ns += 10_000_000;
            thread::yield_now();
        }
    }
}

/// The steps of the worker before the first one that a test is about. The entry goes in the third
/// one, and is left out of a table in the fifth, which unsets the variable of its stack. In the
/// sixth it is known that no key has the stack, which goes, and dies in the seventh. The eighth
/// leaves it out of a table, and the ninth has its number used again.
const UNSETS: usize = 4;
const JUDGES: usize = 6;

/// A histogram with an entry of stack 7 without a value, and the worker, which has taken so many
/// steps. Returns also the number of the stack.
fn forgetting(steps: usize) -> (Arc<Histogram>, Worker, u64) {
    let hist = Arc::new(Histogram::new(1, 1).unwrap());
    let cpu = Cpu::enter(0);
    assert!(hist.hit(cpu.preempt(), 7, 7).is_some());
    drop(cpu);
    let [(number, 7)] = keys(&hist)[..] else {
        panic!("not an entry");
    };
    let mut worker = Worker::new(&hist);
    worker.steps(steps);
    (hist, worker, number)
}

/// The numbers of the stacks in all keys, and the words behind them. Asserts that these belong
/// together.
fn keys(hist: &Histogram) -> Vec<(u64, u64)> {
    let contents = hist.map().contents();
    let keys = contents.elts().map(|elt| {
        let key = Vec::from_iter(elt.key_words());
        assert_eq!(hist.stack(key[0]), key[1], "the stack of another key");
        (key[0], key[1])
    });
    keys.collect()
}

/// A stack without a key is forgotten beside a hit with it, which comes in one of these steps.
fn hit_beside(before: usize, steps: usize) {
    let outcomes = Outcomes::new();
    // A single switch comes within the worker's steps, or within the hit.
    for hit_begins in [false, true] {
        let seen = outcomes.clone();
        long_model(2, move || {
            let (hist, mut worker, number) = forgetting(before);
            let hitting = {
                let hist = hist.clone();
                thread::spawn(move || assert!(set(&hist, 7)))
            };
            if hit_begins {
                thread::yield_now();
            }
            worker.steps(steps);
            hitting.join().unwrap();
            worker.work();
            let [(now, 7)] = keys(&hist)[..] else {
                panic!("the entry is lost");
            };
            assert_eq!(hist.stacks(), 1, "the stack is lost");
            seen.note(now == number);
            // Another stack gets a number that is free; a hit with this one finds its own, and the
            // entry.
            assert!(set(&hist, 8) && set(&hist, 7));
            assert_eq!((keys(&hist).len(), hist.stacks()), (2, 2));
            assert_eq!((counts::hits(hist.map()), hist.map().drops()), (4, 0));
        });
    }
    outcomes.assert_both();
}

/// The hit comes while it is found out that no key has the stack.
#[test]
fn a_hit_beside_the_last_entry() {
    hit_beside(UNSETS, 3);
}

/// The hit comes while the stack, which no key has, dies.
#[test]
fn a_hit_beside_the_end_of_its_stack() {
    hit_beside(JUDGES, 3);
}

/// A reader finds a key, and then its stack, while both are forgotten, and another stack gets the
/// number.
#[test]
fn a_reader_beside_the_end_of_a_stack() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model(1, move || {
        let (hist, mut worker, _) = forgetting(UNSETS);
        let reading = {
            let hist = hist.clone();
            thread::spawn(move || {
                let _entries = hist.map().hold();
                let _stacks = hist.hold();
                keys(&hist).len()
            })
        };
        // The reader begins, so that a single switch can come between a key and its stack.
        thread::yield_now();
        worker.work_until_forgotten();
        assert!(set(&hist, 8));
        let read = reading.join().unwrap();
        seen.note(read > 0);
    });
    outcomes.assert_both();
}
