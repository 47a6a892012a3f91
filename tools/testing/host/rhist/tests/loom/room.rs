// SPDX-License-Identifier: GPL-2.0

//! A model of the protocol of Documentation/map.rst, which shows that each step is needed: a test
//! leaves it out, and finds an execution that goes wrong. It has the words, steps and orders of
//! that page, on a map of a few slots. The code of the map itself is tested with all steps: `hits`,
//! `beats`, `cuts`.
//!
//! Smaller than a map: the paths of all keys begin at the first slot, the columns of all CPUs are
//! one, and the element of a hit that loses all races is not used again.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use kernel::alloc::flags::GFP_KERNEL;
use kernel::sync;
use kernel::sync::atomic::Acquire;
use kernel::sync::atomic::Atomic;
use kernel::sync::atomic::Relaxed;
use kernel::sync::atomic::Release;
use kernel::sync::rcu::synchronize_rcu;
use kernel::sync::Mutex;
use loom::sync::Arc;
use loom::thread;
use rhist::cpu::Cpu;
use rhist::sync::Published;
use rhist::sync::Retired;

use super::*;

const EMPTY: u64 = 0;
const SEALED: u64 = 1;

const GOING: u64 = 0;
const EXCESS: u64 = 1;
const NEW: u64 = 2;
const ENTRY: u64 = 3;

/// Masks of the state, and of the state with the length.
const STATE: u64 = 3;
const LENGTH_AND_STATE: u64 = 0xff;

/// The word of a slot. The hash of a key is the key, and its length is 1.
fn word(key: u64, number: usize, state: u64) -> u64 {
    key << 32 | (number as u64) << 8 | 1 << 2 | state
}

fn number(word: u64) -> usize {
    (word as u32 >> 8) as usize
}

/// The same slot in another state.
fn with_state(word: u64, state: u64) -> u64 {
    word & !STATE | state
}

/// The same slot in state Dead: its length is 0.
fn dead(word: u64) -> u64 {
    word & !LENGTH_AND_STATE | 1
}

fn is_dead(word: u64) -> bool {
    word & LENGTH_AND_STATE == 1 && word != SEALED
}

/// Elements, of which the first is `other`, and then the drops.
const ELEMENTS: usize = 6;
const OTHER: usize = 0;
const DROPS: usize = ELEMENTS;

/// A count of hits for each element, and of drops.
type Counts = [u64; ELEMENTS + 1];

fn move_count(counts: &mut Counts, from: usize, to: usize) {
    counts[to] += std::mem::take(&mut counts[from]);
}

struct Table {
    slots: Vec<Atomic<u64>>,
    /// Places taken up to which it takes keys.
    limit: u32,
    /// Of a next table: hits may seal slots of the first one.
    ready: Atomic<bool>,
}

fn table(slots: usize, limit: u32) -> std::sync::Arc<Table> {
    std::sync::Arc::new(Table {
        slots: (0..slots).map(|_| Atomic::new(EMPTY)).collect(),
        limit,
        ready: Atomic::new(false),
    })
}

/// The tables and the bank, which a hit finds by one load.
#[derive(Clone)]
struct Generation {
    first: std::sync::Arc<Table>,
    next: Option<std::sync::Arc<Table>>,
    bank: usize,
}

impl Generation {
    fn tables(&self) -> impl Iterator<Item = &Table> {
        [Some(&self.first), self.next.as_ref()]
            .into_iter()
            .flatten()
            .map(|table| &**table)
    }

    /// The words of all slots.
    fn words(&self) -> impl Iterator<Item = u64> + '_ {
        let slots = self.tables().flat_map(|table| &table.slots);
        slots.map(|slot| slot.load(Acquire))
    }
}

/// The totals T and S, the sums of a reader.
#[derive(Default)]
struct Sums {
    totals: Counts,
    /// S of the reader.
    since: Counts,
    /// Elements whose counts were moved since the reader took its interval, and to where.
    moves: Vec<(usize, usize)>,
    /// A bank is folded, but elements with hits in T may be in state New.
    folded: bool,
}

/// A step of the protocol that a test leaves out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The grace period between the publication of the next table and *ready*.
    GraceBeforeReady,
    /// The release of S1 and W1.
    ReleaseOfSeal,
    /// A hit that finds no slot in the first table inserts in the next one only if it is ready.
    ReadyForInsertion,
    /// The grace period between the count that E1 looks at and E1.
    GraceBeforeGoing,
    /// A hit that finds Going counts there without E2.
    Rescue,
    /// The fold between E1 and E3.
    SecondFold,
    /// A fold adds the closed bank, too.
    ClosedBank,
    /// The grace periods between E3 and the reuse of the number.
    GraceBeforeReuse,
    /// S is moved to `other` with T.
    MoveOfSince,
    /// The interval that a reader holds follows these moves.
    Settle,
}

struct Room {
    generation: Published<Generation>,
    keys: [Atomic<u64>; ELEMENTS],
    /// A variable of each element; 0: unset.
    vars: [Atomic<u64>; ELEMENTS],
    banks: [[Atomic<u64>; ELEMENTS + 1]; 2],
    places: Atomic<u32>,
    capacity: Atomic<u32>,
    /// The first element that was never used.
    fresh: Atomic<u32>,
    /// The number of an element that may be used again; 0: none.
    stock: Atomic<u32>,
    sums: Mutex<Sums>,
    without: Option<Step>,
}

impl Room {
    /// A map with this first table.
    fn new(first: std::sync::Arc<Table>, without: Option<Step>) -> Arc<Self> {
        let atomics = || std::array::from_fn(|_| Atomic::new(0));
        let capacity = Atomic::new(first.limit);
        let generation = Generation {
            first,
            next: None,
            bank: 0,
        };
        Arc::new(Self {
            generation: Published::new(sync::Arc::new(generation, GFP_KERNEL).unwrap()),
            keys: atomics(),
            vars: atomics(),
            banks: std::array::from_fn(|_| std::array::from_fn(|_| Atomic::new(0))),
            places: Atomic::new(0),
            capacity,
            fresh: Atomic::new(1),
            stock: Atomic::new(0),
            sums: Mutex::new(Sums::default()),
            without,
        })
    }

    fn has(&self, step: Step) -> bool {
        self.without != Some(step)
    }

    // Hits.

    /// A hit, which sets the variable, unless `value` is 0.
    fn hit(&self, cpu: usize, key: u64, value: u64) {
        let cpu = Cpu::enter(cpu);
        let generation = self.generation.read(cpu.preempt());
        let element = self.find(generation, key, true);
        self.banks[generation.bank][element.unwrap_or(DROPS)].add(1, Relaxed);
        if let (Some(element), 1..) = (element, value) {
            self.vars[element].xchg(value, Release);
        }
    }

    /// Takes the variable of `key`, as a reference to it does. 0: unset.
    fn take_value(&self, cpu: usize, key: u64) -> u64 {
        let cpu = Cpu::enter(cpu);
        let generation = self.generation.read(cpu.preempt());
        self.find(generation, key, false)
            .map_or(0, |element| self.vars[element].xchg(0, Acquire))
    }

    /// Finds the element of `key`. A hit inserts it if it is missing, and rescues it.
    fn find(&self, generation: &Generation, key: u64, hit: bool) -> Option<usize> {
        let mut spare = 0;
        let mut sealed = false;
        'tables: for (nth, table) in generation.tables().enumerate() {
            // A full path leads to the next table, too. Keys of hits that saw it ready are there.
            let may_insert = nth == 0
                || sealed
                || !self.has(Step::ReadyForInsertion)
                || table.ready.load(Acquire);
            for slot in &table.slots {
                let word = match slot.load(Acquire) {
                    EMPTY if hit && may_insert => self.fill(generation, nth, slot, key, &mut spare),
                    word => word,
                };
                match word {
                    EMPTY => return None,
                    SEALED => {
                        assert!(nth == 0 && generation.next.is_some(), "no next table");
                        sealed = true;
                        continue 'tables;
                    }
                    word if is_dead(word) || word >> 32 != key => continue,
                    _ => (),
                }
                // SAFETY: The key was stored before the slot. Loom reports it if not.
                assert_eq!(unsafe { self.keys[number(word)].unsync_load() }, key);
                let entry = with_state(word, ENTRY);
                match word & STATE {
                    EXCESS => return None,
                    GOING if hit && self.has(Step::Rescue) => {
                        match slot.cmpxchg(word, entry, Release) {
                            Err(now) if now != entry => continue,
                            _ => (),
                        }
                    }
                    _ => (),
                }
                return Some(number(word));
            }
        }
        None
    }

    /// H1, H2 and H3, or S1. Returns the word that the slot has now. `spare`: the element of a try
    /// of this hit that has failed, or 0.
    fn fill(
        &self,
        generation: &Generation,
        nth: usize,
        slot: &Atomic<u64>,
        key: u64,
        spare: &mut usize,
    ) -> u64 {
        let table = generation.tables().nth(nth).unwrap();
        if self.places.load(Acquire) >= table.limit {
            let next = generation.next.as_ref().filter(|_| nth == 0);
            if next.is_some_and(|next| next.ready.load(Acquire)) && self.seal(slot) {
                return SEALED;
            }
            return slot.load(Acquire);
        }
        if *spare == 0 {
            *spare = match self.stock.xchg(0, Acquire) {
                0 => self.fresh.fetch_add(1, Relaxed) as usize,
                number => number as usize,
            };
        }
        let number = *spare;
        self.keys[number].store(key, Relaxed);
        if slot
            .cmpxchg(EMPTY, word(key, number, NEW), Release)
            .is_err()
        {
            return slot.load(Acquire);
        }
        *spare = 0;
        let place = self.places.fetch_add(1, Release) < self.capacity.load(Relaxed);
        let state = if place { ENTRY } else { EXCESS };
        slot.store(word(key, number, state), Release);
        word(key, number, state)
    }

    /// S1 or W1.
    fn seal(&self, slot: &Atomic<u64>) -> bool {
        match self.has(Step::ReleaseOfSeal) {
            true => slot.cmpxchg(EMPTY, SEALED, Release).is_ok(),
            false => slot.cmpxchg(EMPTY, SEALED, Relaxed).is_ok(),
        }
    }

    // Steps of the worker.

    /// Publishes what `change` makes of the generation. A grace period passes when the result is
    /// dropped.
    fn publish(&self, change: impl FnOnce(&mut Generation)) -> Retired<Generation> {
        let mut generation = (*self.generation.get()).clone();
        change(&mut generation);
        self.generation
            .swap(sync::Arc::new(generation, GFP_KERNEL).unwrap())
    }

    /// Makes the next table ready. Returns the generation before, if no grace period passed.
    fn prepare(&self, next: std::sync::Arc<Table>) -> Option<Retired<Generation>> {
        let retired = self.publish(|generation| generation.next = Some(next.clone()));
        let early = self.unless(Step::GraceBeforeReady, retired);
        self.capacity.store(next.limit, Relaxed);
        next.ready.store(true, Release);
        early
    }

    /// Waits for the grace period after `retired` was replaced, unless this step is left out.
    fn unless(&self, step: Step, retired: Retired<Generation>) -> Option<Retired<Generation>> {
        (!self.has(step)).then_some(retired)
    }

    /// W1, W2, and the end of the first table. Numbers of elements that are not copied return to
    /// the pool. Returns the generation before, if no grace period passed.
    fn replace(&self) -> Option<Retired<Generation>> {
        let generation = self.generation.get();
        let next = generation.next.as_ref().unwrap();
        for slot in &generation.first.slots {
            self.seal(slot);
        }
        if self.has(Step::GraceBeforeReuse) {
            synchronize_rcu();
        }
        let mut left = Vec::new();
        for word in generation.first.slots.iter().map(|slot| slot.load(Acquire)) {
            match word {
                SEALED => (),
                word if is_dead(word) => left.push((number(word), OTHER)),
                word if word & STATE == EXCESS => left.push((number(word), DROPS)),
                word => {
                    assert_eq!(word & STATE, ENTRY);
                    let mut slots = next.slots.iter();
                    let copied = slots.any(|slot| slot.cmpxchg(EMPTY, word, Release).is_ok());
                    assert!(copied, "no slot in the next table");
                }
            }
        }
        let retired = {
            let sums = &mut *self.sums.lock();
            for &(from, to) in &left {
                for bank in &self.banks {
                    let hits = bank[from].xchg(0, Relaxed);
                    bank[to].add(hits, Relaxed);
                }
                move_count(&mut sums.totals, from, to);
                if self.has(Step::MoveOfSince) {
                    move_count(&mut sums.since, from, to);
                }
                sums.moves.push((from, to));
            }
            self.publish(|generation| generation.first = generation.next.take().unwrap())
        };
        let early = self.unless(Step::GraceBeforeReuse, retired);
        for (number, _) in left {
            self.vars[number].xchg(0, Relaxed);
            self.places.fetch_sub(1, Release);
            self.stock.xchg(number as u32, Release);
        }
        early
    }

    /// Hits of an element so far.
    fn folded(&self, element: usize) -> u64 {
        let bank = self.generation.get().bank;
        let closed = match self.has(Step::ClosedBank) {
            true => self.banks[1 - bank][element].load(Relaxed),
            false => 0,
        };
        let totals = self.sums.lock().totals[element];
        totals + closed + self.banks[bank][element].load(Relaxed)
    }

    /// The slot of the first table with this element.
    fn with_slot<T>(&self, element: usize, f: impl FnOnce(&Atomic<u64>, u64) -> T) -> T {
        let generation = self.generation.get();
        let words = generation
            .first
            .slots
            .iter()
            .map(|slot| (slot, slot.load(Acquire)));
        let (slot, word) = { words }
            .find(|&(_, word)| number(word) == element)
            .unwrap();
        f(slot, word)
    }

    /// E1, unless the element was hit within a grace period. Returns its hits.
    fn mark(&self, element: usize) -> Option<u64> {
        let hits = self.folded(element);
        if self.has(Step::GraceBeforeGoing) {
            synchronize_rcu();
            if self.folded(element) != hits {
                return None;
            }
        }
        self.with_slot(element, |slot, word| {
            let marked = slot.cmpxchg(word, with_state(word, GOING), Release);
            assert!(marked.is_ok(), "only the worker changes an entry");
        });
        Some(hits)
    }

    /// E3 or E4, a grace period after E1. Returns whether the entry is dead.
    fn judge(&self, element: usize, hits: u64) -> bool {
        let moved = self.has(Step::SecondFold) && self.folded(element) != hits;
        self.with_slot(element, |slot, word| {
            let going = with_state(word, GOING);
            match moved {
                true => {
                    let _ = slot.cmpxchg(going, with_state(word, ENTRY), Release);
                    false
                }
                false => slot.cmpxchg(going, dead(word), Relaxed).is_ok(),
            }
        })
    }

    /// The edge of a cut. A grace period passes when the result is dropped.
    fn edge(&self) -> Retired<Generation> {
        self.publish(|generation| generation.bank = 1 - generation.bank)
    }

    /// Folds the closed bank, a grace period after the edge.
    fn fold(&self) {
        let closed = 1 - self.generation.get().bank;
        let sums = &mut *self.sums.lock();
        for (total, hits) in sums.totals.iter_mut().zip(&self.banks[closed]) {
            *total += hits.xchg(0, Relaxed);
        }
        sums.folded = true;
    }

    /// Ends a cut, a grace period after the fold.
    fn end_cut(&self) {
        self.sums.lock().folded = false;
    }

    fn cut(&self) {
        drop(self.edge());
        self.fold();
        synchronize_rcu();
        self.end_cut();
    }

    // A reader.

    /// The interval up to the last edge; `None` while it is folded.
    fn take(&self) -> Option<Counts> {
        let sums = &mut *self.sums.lock();
        sums.moves.clear();
        (!sums.folded).then(|| Self::until(sums.totals, sums))
    }

    /// The interval after the last edge, when all hits have ended.
    fn rest(&self) -> Counts {
        let sums = &mut *self.sums.lock();
        sums.moves.clear();
        let live = |nth: usize| {
            self.banks
                .iter()
                .map(|bank| bank[nth].load(Relaxed))
                .sum::<u64>()
        };
        Self::until(
            std::array::from_fn(|nth| sums.totals[nth] + live(nth)),
            sums,
        )
    }

    fn until(now: Counts, sums: &mut Sums) -> Counts {
        let since = std::mem::replace(&mut sums.since, now);
        std::array::from_fn(|nth| now[nth].wrapping_sub(since[nth]))
    }

    /// Moves counts in `interval` as the worker has moved them in S.
    fn settle(&self, sums: &mut Sums, interval: &mut Counts) {
        for (from, to) in sums.moves.drain(..) {
            if self.has(Step::Settle) {
                move_count(interval, from, to);
            }
        }
    }

    /// Puts an interval that was not shown back into S.
    fn put_back(&self, mut interval: Counts) {
        let sums = &mut *self.sums.lock();
        self.settle(sums, &mut interval);
        for (since, hits) in sums.since.iter_mut().zip(interval) {
            *since = since.wrapping_sub(hits);
        }
    }

    /// Shows an interval.
    fn show(&self, mut interval: Counts) -> Rows {
        let sums = &mut *self.sums.lock();
        self.settle(sums, &mut interval);
        let generation = self.generation.get();
        let mut rows = [0, 0, 0, interval[OTHER], interval[DROPS]];
        for element in 1..ELEMENTS {
            if interval[element] == 0 {
                continue;
            }
            let mut words = generation.words();
            let word = words
                .find(|&word| number(word) == element)
                .expect("in a slot");
            assert_ne!(word & STATE, NEW, "decided later");
            let row = match word & STATE == EXCESS && !is_dead(word) {
                true => 4,
                false => self.keys[element].load(Relaxed) as usize - 7,
            };
            rows[row] = rows[row].wrapping_add(interval[element]);
        }
        rows
    }

    /// Elements of `key` that are not dead, each once.
    fn elements(&self, key: u64) -> Vec<usize> {
        let generation = self.generation.get();
        let words = generation.words();
        let mut elements: Vec<_> = words
            .filter(|&word| word >> 32 == key && !is_dead(word))
            .map(number)
            .collect();
        elements.dedup();
        elements
    }
}

/// Hits of keys 7, 8 and 9, of `other`, and drops.
type Rows = [u64; 5];

fn add(a: Rows, b: Rows) -> Rows {
    std::array::from_fn(|nth| a[nth].wrapping_add(b[nth]))
}

/// Without the grace period before *ready*, a hit may find a sealed slot, and know no next table.
#[test]
#[should_panic(expected = "no next table")]
fn a_table_may_be_ready_too_early() {
    grow(2, Step::GraceBeforeReady);
}

/// If seals do not release, a hit that finds one may not see the places of the next table.
#[test]
#[should_panic(expected = "in excess, and places are free")]
fn a_seal_may_hide_the_new_places() {
    grow(2, Step::ReleaseOfSeal);
}

/// Nor if its path was full, and it does not look whether the next table is ready.
#[test]
#[should_panic(expected = "in excess, and places are free")]
fn a_full_path_may_hide_the_new_places() {
    grow(1, Step::ReadyForInsertion);
}

/// A hit of a new key, beside a whole step of growth: the next table is published, made ready, and
/// replaces the first one, whose places are taken.
fn grow(slots: usize, without: Step) {
    model(2, move || {
        let room = Room::new(table(slots, 1), Some(without));
        room.hit(0, 8, 0);
        let hitting = {
            let room = room.clone();
            thread::spawn(move || room.hit(0, 7, 0))
        };
        let early = room.prepare(table(3, 3));
        room.replace();
        drop(early);
        hitting.join().unwrap();
        let words = Vec::from_iter(room.generation.get().words());
        let excess = words
            .iter()
            .any(|word| word & STATE == EXCESS && *word != SEALED);
        assert!(!excess, "in excess, and places are free");
        let [of_7, of_8, _, other, drops] = room.show(room.rest());
        assert_eq!([of_7 + drops, of_8, other], [1, 1, 0]);
        assert_eq!(room.elements(7).len(), usize::from(of_7 > 0));
    });
}

/// Without a grace period before E1, a hit may have counted before, and set the variable later.
#[test]
#[should_panic(expected = "lost")]
fn a_hit_that_counted_may_set_a_variable_after_going() {
    expire(false, Step::GraceBeforeGoing);
}

/// Without a rescue, a hit may find Going after the second fold.
#[test]
#[should_panic(expected = "lost")]
fn a_hit_that_does_not_rescue_may_be_too_late() {
    expire(false, Step::Rescue);
}

/// Without a second fold, a hit may have found the entry before it was Going.
#[test]
#[should_panic(expected = "lost")]
fn a_hit_may_have_found_the_entry_before() {
    expire(false, Step::SecondFold);
}

/// Without the closed bank, the second fold may find as many hits as the first one, after a cut.
#[test]
#[should_panic(expected = "lost")]
fn a_cut_may_hide_a_hit() {
    expire(true, Step::ClosedBank);
}

/// Key 7 expires beside a hit that sets its variable. The variable is lost only if it was set
/// before Going. `cut`: between E1 and E3.
fn expire(cut: bool, without: Step) {
    model(2, move || {
        let room = Room::new(table(2, 2), Some(without));
        room.hit(0, 7, 0);
        room.cut();
        room.prepare(table(2, 2));
        let set = std::sync::Arc::new(AtomicBool::new(false));
        let hitting = {
            let (room, set) = (room.clone(), set.clone());
            thread::spawn(move || {
                room.hit(0, 7, 5);
                set.store(true, Ordering::Relaxed);
            })
        };
        let hits = room.mark(1);
        let set_before = set.load(Ordering::Relaxed);
        if cut {
            drop(room.edge());
        } else {
            synchronize_rcu();
        }
        let _ = hits.is_some_and(|hits| room.judge(1, hits));
        hitting.join().unwrap();
        let elements = room.elements(7);
        let mut values = elements
            .iter()
            .map(|&element| room.vars[element].load(Relaxed));
        assert!(values.any(|value| value == 5) || set_before, "lost");
    });
}

/// Key 7 expires beside hits of it and of key 8, which finds a place only when the number of 7 is
/// used again. Each hit counts once.
#[test]
fn reuse_beside_hits() {
    reuse_beside(1, None);
}

/// Without grace periods after E3, a hit may still read the key of the dead entry.
#[test]
#[should_panic(expected = "Causality violation")]
fn a_number_may_be_used_again_too_early() {
    reuse_beside(2, Some(Step::GraceBeforeReuse));
}

fn reuse_beside(preemptions: usize, without: Option<Step>) {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model(preemptions, move || {
        let room = Room::new(table(2, 1), without);
        room.hit(0, 7, 0);
        room.prepare(table(2, 1));
        let hits = [(0, 7), (1, 8)].map(|(cpu, key)| {
            let room = room.clone();
            thread::spawn(move || room.hit(cpu, key, 0))
        });
        let hits_before = room.mark(1);
        synchronize_rcu();
        let _ = hits_before.is_some_and(|hits| room.judge(1, hits));
        room.replace();
        hits.into_iter().for_each(|t| t.join().unwrap());
        let reused = room.elements(8) == [1];
        let rows = room.show(room.rest());
        assert_eq!(rows.iter().sum::<u64>(), 3, "{rows:?}");
        assert!(1 <= rows[0] + rows[3] && rows[1] <= 1, "{rows:?}");
        assert!([7, 8].iter().all(|&key| room.elements(key).len() <= 1));
        seen.note(reused);
    });
    outcomes.assert_both();
}

/// A reference takes the variable of key 7, which expires, while key 8 gets its number, and sets
/// the variable. It takes the value of 7, or none.
#[test]
fn reuse_beside_a_reference() {
    refer(2, None);
}

/// Without grace periods after E3, a reference may still read the key of the dead entry.
#[test]
#[should_panic(expected = "Causality violation")]
fn a_reference_may_find_another_key() {
    refer(2, Some(Step::GraceBeforeReuse));
}

fn refer(preemptions: usize, without: Option<Step>) {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model(preemptions, move || {
        let room = Room::new(table(2, 1), without);
        room.hit(0, 7, 5);
        room.prepare(table(2, 1));
        let taking = {
            let room = room.clone();
            thread::spawn(move || room.take_value(1, 7))
        };
        let hits = room.mark(1).unwrap();
        synchronize_rcu();
        assert!(room.judge(1, hits));
        let early = room.replace();
        room.hit(0, 8, 6);
        drop(early);
        assert_eq!(room.elements(8), [1], "the number of 7");
        let value = taking.join().unwrap();
        assert_ne!(value, 6, "value of another key");
        seen.note(value == 5);
    });
    outcomes.assert_both();
}

/// If S is not moved, the next interval of the new key lacks the hits of the old one.
#[test]
#[should_panic(expected = "all intervals")]
fn a_reader_may_subtract_the_hits_of_another_key() {
    reader(true, Step::MoveOfSince);
}

/// If the interval that the reader puts back does not follow, the new key gets the hits of the old
/// one.
#[test]
#[should_panic(expected = "all intervals")]
fn a_reader_may_put_back_hits_of_another_key() {
    reader(false, Step::Settle);
}

/// A reader has taken an interval. Key 7 expires, and key 8 gets its number, while the reader shows
/// the interval or puts it back. Each interval has each hit with its key, or in `other`.
fn reader(shows: bool, without: Step) {
    model(1, move || {
        let room = Room::new(table(2, 1), Some(without));
        room.hit(0, 7, 0);
        room.cut();
        let interval = room.take().unwrap();
        room.prepare(table(2, 1));
        let reading = {
            let room = room.clone();
            thread::spawn(move || match shows {
                true => room.show(interval),
                false => {
                    room.put_back(interval);
                    Rows::default()
                }
            })
        };
        let hits = room.mark(1).unwrap();
        synchronize_rcu();
        assert!(room.judge(1, hits));
        room.replace();
        room.hit(0, 8, 0);
        assert_eq!(room.elements(8), [1], "the number of 7");
        let rows = reading.join().unwrap();
        room.cut();
        let rows = add(rows, room.show(room.take().unwrap()));
        assert_eq!(
            [rows[0].wrapping_add(rows[3]), rows[1]],
            [1, 1],
            "all intervals"
        );
    });
}
