// SPDX-License-Identifier: GPL-2.0

//! Maps that grow and lose entries, step by step, beside hits, cuts and readers, compared with a
//! plain list of hits.

use std::cell::Cell;
use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::HashSet;
use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;

use kernel::error::code::EAGAIN;
use kernel::fault;
use kernel::interrupt;
use kernel::prelude::GFP_KERNEL;
use kernel::sync::atomic::Atomic;
use kernel::sync::atomic::Relaxed;
use kernel::sync::rcu;
use kernel::sync::Arc;
use proptest::prelude::*;
use rhist::counts;
use rhist::counts::moment;
use rhist::counts::request;
use rhist::cpu::Cpu;
use rhist::map::Beat;
use rhist::map::Column;
use rhist::map::ColumnSet;
use rhist::map::Cpus;
use rhist::map::Elt;
use rhist::map::Extreme;
use rhist::map::Hash;
use rhist::map::HitCounts;
use rhist::map::Interval;
use rhist::map::Loss;
use rhist::map::Map;
use rhist::map::Other;
use rhist::map::PerMap;
use rhist::map::Policy;
use rhist::map::Room;
use rhist::map::Shape;
use rhist::map::Tending;
use rhist::map::Totals;
use rhist::map::ELEMENT_SHIFT;

use super::room::Waking;

const COLUMNS: [Column; 4] = [
    Column::Hits,
    Column::Sum,
    Column::Extreme(Extreme::min(false)),
    Column::Extreme(Extreme::max(false)),
];

/// CPUs of the test; the last one shares its columns.
const CPUS: usize = 3;

const SECOND: u64 = 1_000_000_000;

/// The clauses of a map: how large it may get, and which entries and hits it takes out or folds.
#[derive(Clone, Debug)]
struct Clauses {
    bits: u32,
    bits_max: u32,
    folds: bool,
    idle: bool,
    taken: bool,
    recycle: bool,
    buckets: bool,
}

impl Clauses {
    fn forgets(&self) -> bool {
        self.idle || self.taken || self.recycle
    }

    fn room(&self, more_bits: u32) -> Room {
        Room {
            bits_max: self.bits_max + more_bits,
            others: self.folds || self.forgets(),
            folds: self.folds,
            forgets: self.forgets(),
            sparse: self.bits_max > self.bits,
            numbered: false,
        }
    }
}

/// A key has its values in one of so many buckets.
const BUCKETS: u64 = 4;

/// A map, its worker, and the hits so far.
struct World {
    map: Map,
    tending: RefCell<Tending>,
    clauses: Clauses,
    now: RefCell<u64>,
    /// Hits in each epoch, of which an edge ends one: of the keys of each bucket.
    hits: RefCell<Vec<[u64; BUCKETS as usize]>>,
    /// Number of epochs before the last edge up to which counts were folded.
    folded: RefCell<usize>,
    cut: RefCell<CutStep>,
    readers: RefCell<Vec<Reader>>,
    ops: RefCell<VecDeque<Op>>,
    /// Whether a fold is at work.
    folding: RefCell<bool>,
    /// The time of the last hit of each key that had an entry after it.
    last: RefCell<HashMap<u64, u64>>,
}

#[derive(Clone, Copy, PartialEq)]
enum CutStep {
    Rest,
    Closed,
    Folded,
}

struct Reader {
    id: u64,
    begin: Option<usize>,
    /// An interval that is not shown yet, and its epochs.
    taken: Option<(Interval, usize, usize)>,
}

#[derive(Clone, Debug)]
enum Op {
    Hit(usize, u64),
    /// The hit is interrupted at this access by hits of these keys.
    Interrupted(usize, u64, Vec<u64>, usize),
    /// A beat comes at this access of a hit.
    HitBeside(usize, u64, usize),
    /// A hit comes at this access of a beat.
    BeatBeside(usize, u64, usize),
    Beat,
    /// A beat whose allocations fail after so many.
    Poor(usize),
    /// Beats until the worker is at rest.
    Beats,
    Tick(u64),
    /// References take the variables of so many keys.
    TakeVars(u64, u64),
    Edge,
    Fold(usize),
    End,
    Open(bool),
    Take(usize),
    Show(usize),
    /// The reader drops its interval.
    Done(usize),
    PutBack(usize),
    Close(usize),
}

impl World {
    fn new(clauses: Clauses, ops: Vec<Op>) -> Rc<Self> {
        let request = request();
        let cpus = Cpus {
            own: CPUS - 1,
            ..Cpus::uniform(CPUS)
        };
        let first = Shape {
            bits: clauses.bits,
            columns: &COLUMNS,
            vars: 1,
            wide: &[2],
            // So wide that a chunk has 32 elements: the storage grows often.
            side: 129,
            cpus,
            room: clauses.room(0),
            request: Some(&request),
            ..super::shape()
        };
        let second = Shape {
            bits: clauses.bits + 3,
            side: 129,
            cpus,
            room: Room {
                folds: false,
                ..clauses.room(3)
            },
            request: Some(&request),
            ..super::shape()
        };
        let map = Map::with_second(first, clauses.buckets.then_some(second)).unwrap();
        let policy = Policy {
            idle_ns: clauses.idle.then_some(4 * SECOND),
            taken: clauses.taken.into(),
            wide_vars: 1,
            recycle: clauses.recycle,
            max_bytes: || usize::MAX,
            active: Arc::new(Atomic::new(1), GFP_KERNEL).unwrap(),
        };
        Rc::new(Self {
            tending: RefCell::new(Tending::new(&map, policy).unwrap()),
            map,
            clauses,
            now: RefCell::new(1),
            hits: RefCell::new(vec![Default::default()]),
            folded: RefCell::new(0),
            cut: RefCell::new(CutStep::Rest),
            readers: RefCell::default(),
            ops: RefCell::new(ops.into()),
            folding: RefCell::new(false),
            last: RefCell::default(),
        })
    }

    /// A hit, which sets the variable of its key. Returns whether it counts in an entry.
    fn hit(&self, cpu: usize, key: u64) -> bool {
        let cpu = Cpu::enter(cpu);
        let generation = self.map.read(cpu.preempt());
        self.hits.borrow_mut().last_mut().unwrap()[(key % BUCKETS) as usize] += 1;
        let Some(elt) = generation.insert_word(cpu.preempt(), key) else {
            return false;
        };
        if let Some(second) = generation.second() {
            let bucket = u64::from(elt.number()) << ELEMENT_SHIFT | key % BUCKETS;
            let bucket = second.insert_word(cpu.preempt(), bucket);
            bucket.inspect(|bucket| bucket.count(cpu.preempt()));
        }
        elt.update(cpu.preempt(), &[1, 3], |&columns| match columns {
            1 => (key + 1, ColumnSet::ONE),
            _ => (key + 1, ColumnSet::of(&COLUMNS[2..])),
        });
        let is_other = self.is_other(elt);
        if !is_other {
            assert!(elt.set_var(0, key));
            assert!(elt.wide(0).unwrap().write([key, !key].into_iter()));
        }
        !is_other
    }

    fn is_other(&self, elt: Elt<'_>) -> bool {
        elt.generation()
            .others()
            .any(|other| other.number() == elt.number())
    }

    /// After a hit that counted in an entry: its variable is there, unless its hits are drops.
    fn assert_set(&self, key: u64) {
        self.last.borrow_mut().insert(key, *self.now.borrow());
        let contents = self.map.contents();
        let is_excess = contents.in_excess().any(|elt| number(elt) == key);
        match contents.lookup_word(key) {
            Some(elt) => {
                assert_eq!(elt.var(0), Some(key));
                let mut value = [0; 2];
                assert_eq!(
                    elt.wide(0).unwrap().read(&mut value),
                    rhist::map::Read::Done
                );
                assert_eq!(value, [key, !key]);
            }
            None => assert!(is_excess, "a hit is lost with its variable"),
        }
    }

    fn beat(&self) {
        let now = *self.now.borrow();
        let beat = self.map.beat(&mut self.tending.borrow_mut(), now, || ());
        match beat {
            Beat::GracePeriod(None) => rcu::synchronize_rcu(),
            // Dropping it waits.
            _ => drop(beat),
        }
    }

    /// A beat in the middle of a hit, after which no grace period ends.
    fn beat_beside(&self) -> Option<Beat> {
        let now = *self.now.borrow();
        Some(self.map.beat(&mut self.tending.borrow_mut(), now, || ()))
    }

    fn run_all(self: &Rc<Self>) {
        while !self.ops.borrow().is_empty() {
            self.run(1);
        }
    }

    fn run(self: &Rc<Self>, n: usize) {
        for _ in 0..n {
            let Some(op) = self.ops.borrow_mut().pop_front() else {
                return;
            };
            self.op(op);
            self.check();
        }
    }

    fn op(self: &Rc<Self>, op: Op) {
        match op {
            Op::Hit(cpu, key) => {
                if self.hit(cpu, key) {
                    self.assert_set(key);
                }
            }
            Op::Interrupted(cpu, key, others, point) => {
                let world = self.clone();
                let handler = move || {
                    for &other in &others {
                        world.hit(cpu, other);
                    }
                };
                if interrupt::at(point, handler, || self.hit(cpu, key)).0 {
                    self.assert_set(key);
                }
            }
            Op::HitBeside(cpu, key, point) => {
                let world = self.clone();
                let beat = Rc::new(RefCell::new(None));
                let kept = beat.clone();
                let handler = move || drop(kept.replace(world.beat_beside()));
                let (found, _) = interrupt::at(point, handler, || self.hit(cpu, key));
                if matches!(beat.take(), Some(Beat::GracePeriod(None))) {
                    rcu::synchronize_rcu();
                }
                if found {
                    self.assert_set(key);
                }
            }
            Op::BeatBeside(cpu, key, point) => {
                let world = self.clone();
                let handler = move || {
                    world.hit(cpu, key);
                };
                interrupt::at(point, handler, || self.beat());
            }
            Op::Beat => self.beat(),
            Op::Poor(allocations) => fault::after(allocations, || self.beat()),
            Op::Beats => {
                let now = *self.now.borrow();
                counts::beats(&self.map, &mut self.tending.borrow_mut(), now);
            }
            Op::Tick(ns) => *self.now.borrow_mut() += ns,
            Op::TakeVars(first, n) => {
                let contents = self.map.contents();
                for key in first..first + n {
                    contents.lookup_word(key).and_then(|elt| elt.take_var(0));
                }
            }
            Op::Edge => {
                if *self.cut.borrow() == CutStep::Rest && self.map.readers_and_cuts().is_some() {
                    let mut hits = self.hits.borrow_mut();
                    drop(self.map.cut(moment(hits.len() as u64)).unwrap());
                    hits.push(Default::default());
                    *self.cut.borrow_mut() = CutStep::Closed;
                    for reader in &mut *self.readers.borrow_mut() {
                        reader.begin.get_or_insert(hits.len() - 1);
                    }
                }
            }
            Op::Fold(ops) => {
                if *self.cut.borrow() == CutStep::Closed {
                    *self.cut.borrow_mut() = CutStep::Folded;
                    self.folding.replace(true);
                    self.map.fold(|| self.run(ops));
                    self.folding.replace(false);
                }
            }
            Op::End => {
                if *self.cut.borrow() == CutStep::Folded && !*self.folding.borrow() {
                    rcu::synchronize_rcu();
                    self.map.end_cut();
                    *self.folded.borrow_mut() = self.hits.borrow().len() - 1;
                    *self.cut.borrow_mut() = CutStep::Rest;
                }
            }
            Op::Open(from_begin) => {
                self.map.begin_intervals(moment(0)).unwrap();
                // Only before the first cut all hits are in the intervals of such a reader.
                let created = (from_begin && self.hits.borrow().len() == 1).then(|| moment(0));
                self.readers.borrow_mut().push(Reader {
                    id: self.map.add_reader(created, GFP_KERNEL).unwrap(),
                    begin: created.map(|_| 0),
                    taken: None,
                });
            }
            Op::Take(nth) => self.with_reader(nth, |reader| self.take(reader)),
            Op::Show(nth) => self.with_reader(nth, |reader| {
                if let Some((interval, begin, end)) = &mut reader.taken {
                    self.map.settle(reader.id, interval, GFP_KERNEL).unwrap();
                    self.compare(&interval.totals, *begin, *end);
                }
            }),
            Op::Done(nth) => self.with_reader(nth, |reader| reader.taken = None),
            Op::PutBack(nth) => self.with_reader(nth, |reader| self.put_back(reader)),
            Op::Close(nth) => {
                let mut readers = self.readers.borrow_mut();
                if let Some(nth) = nth.checked_rem(readers.len()) {
                    self.map.remove_reader(readers.remove(nth).id);
                }
            }
        }
    }

    fn with_reader(&self, nth: usize, f: impl FnOnce(&mut Reader)) {
        let mut readers = self.readers.borrow_mut();
        if let Some(nth) = nth.checked_rem(readers.len()) {
            f(&mut readers[nth]);
        }
    }

    fn put_back(&self, reader: &mut Reader) {
        if let Some((interval, begin, _)) = reader.taken.take() {
            self.map.put_back(reader.id, &interval);
            reader.begin = Some(begin);
        }
    }

    /// Takes an interval up to the last edge, and shows it later.
    fn take(&self, reader: &mut Reader) {
        if reader.taken.is_some() {
            return;
        }
        let end = *self.folded.borrow();
        match counts::take(&self.map, reader.id, None) {
            Ok(interval) => {
                let begin = reader.begin.replace(end).unwrap();
                reader.taken = Some((interval, begin, end));
            }
            Err(error) => assert_eq!(error, EAGAIN),
        }
    }

    /// Compares `totals` with the hits of these epochs: each is once in an entry, in `other`, or a
    /// drop; and each entry has the values of its key.
    fn compare(&self, totals: &PerMap<Totals>, begin: usize, end: usize) {
        let contents = self.map.contents();
        let hits = self.hits.borrow();
        let hits = &hits[begin..end.min(hits.len())];
        let events: u64 = hits.iter().flatten().sum();
        let dropped = totals.first.drops(&contents);
        let mut counted = dropped;
        let mut rows = HashMap::new();
        for elt in contents.elts() {
            let [hits, sum, min, max] = row(&totals.first, elt);
            if hits > 0 {
                let value = number(elt) + 1;
                assert_eq!(
                    [sum, min, max],
                    [hits * value, value, value],
                    "key {}",
                    value - 1
                );
            }
            counted += hits;
            assert!(
                rows.insert(elt.number(), hits).is_none(),
                "a number is there twice"
            );
        }
        for other in contents.others() {
            let [hits, ..] = row::<1>(&totals.first, other);
            counted += hits;
            rows.insert(other.number(), hits);
        }
        assert_eq!(counted, events, "{begin}..{end}");
        if let (Some(second), Some(totals)) = (contents.second(), &totals.second) {
            if totals.drops(second) > 0 || self.map.second_drops() > 0 {
                return;
            }
            let mut buckets = HashMap::new();
            let mut of_keys = [0; BUCKETS as usize];
            for elt in second.elts() {
                let element = (number(elt) >> ELEMENT_SHIFT) as u32;
                let hits = totals.column(elt.number(), 0);
                *buckets.entry(element).or_insert(0) += hits;
                of_keys[(number(elt) % BUCKETS) as usize] += hits;
            }
            for (nth, counted) in of_keys.into_iter().enumerate() {
                let hits: u64 = hits.iter().map(|hits| hits[nth]).sum();
                // Dropped hits lack a bucket, or have one of an element in excess.
                let dropped = dropped.min(hits.saturating_sub(counted));
                assert_eq!(counted + dropped, hits, "bucket {nth} of {begin}..{end}");
            }
            buckets.retain(|element, &mut hits| hits > 0 && rows.contains_key(element));
            rows.retain(|_, &mut hits| hits > 0);
            assert_eq!(buckets, rows, "buckets {begin}..{end}");
        }
    }

    /// Entries are taken out for the reasons of the clauses only: idle ones, or ones without a
    /// value.
    fn check_reasons(&self) {
        let contents = self.map.contents();
        let excess: HashSet<_> = contents.in_excess().map(number).collect();
        let now = *self.now.borrow();
        let is_gone = |key| !excess.contains(&key) && contents.lookup_word(key).is_none();
        self.last.borrow_mut().retain(|&key, &mut last| {
            let Clauses {
                idle,
                taken,
                recycle,
                ..
            } = self.clauses;
            let is_there = !is_gone(key) && !excess.contains(&key);
            if is_gone(key) && !taken && !recycle {
                // Both the limit and the age are rounded to units of 2^24 ns.
                assert!(
                    idle && now - last >= 3 * SECOND - (2 << 24),
                    "{} ns ago",
                    now - last
                );
            }
            is_there
        });
        if !self.clauses.idle {
            assert_eq!(self.map.room().unwrap().expired_set, 0);
        }
    }

    /// The identity: of all counts so far, and of what each reader has not read.
    fn check(&self) {
        self.check_reasons();
        let totals = counts::totals(&self.map);
        self.compare(&totals, 0, usize::MAX);
        let contents = self.map.contents();
        let keys: Vec<u64> = contents.elts().map(number).collect();
        // In a cycle, a dead entry is shown beside another one of its key.
        if self.tending.borrow().is_at_rest() {
            let distinct: HashSet<_> = keys.iter().collect();
            assert_eq!(distinct.len(), keys.len(), "a key is there twice");
            assert_eq!(keys.len(), contents.len());
        }
        let rows = contents.elts().chain(contents.others());
        let hits = |elt: Elt<'_>| totals.first.column(elt.number(), 0);
        assert_eq!(counts::hits(&self.map), rows.map(hits).sum());
        let dropped = totals.first.drops(&contents);
        assert_eq!(self.map.drops(), dropped);
        let expected = HitCounts {
            entries: contents.elts().map(hits).sum(),
            others: Other::ALL.map(|other| contents.other(other).map_or(0, hits)),
            dropped,
            unresolved: 0,
        };
        assert_eq!(self.map.hit_counts(&|| Ok(())), Ok(expected));
        for reader in &mut *self.readers.borrow_mut() {
            if reader.taken.is_some() {
                continue;
            }
            let Some(begin) = reader.begin.filter(|&begin| begin <= *self.folded.borrow()) else {
                continue;
            };
            let last = counts::take(&self.map, reader.id, Some(moment(1 << 40)));
            let last = match last {
                Ok(last) => last,
                Err(error) => {
                    assert_eq!(error, EAGAIN);
                    continue;
                }
            };
            self.compare(&last.totals, begin, usize::MAX);
            self.map.put_back(reader.id, &last);
        }
    }
}

fn number(elt: Elt<'_>) -> u64 {
    elt.key_words().next().unwrap()
}

fn row<const N: usize>(totals: &Totals, elt: Elt<'_>) -> [u64; N] {
    std::array::from_fn(|column| totals.column(elt.number(), column))
}

fn clauses() -> impl Strategy<Value = Clauses> {
    let grows = prop_oneof![Just(0u32), 1..5u32];
    (0..3u32, grows, any::<[bool; 5]>()).prop_map(|(bits, more, [a, b, c, d, e])| Clauses {
        bits,
        bits_max: bits + more,
        folds: a,
        idle: b,
        taken: c,
        recycle: d,
        buckets: e,
    })
}

/// Operations on so many keys, of which a few are hit most.
fn ops(keys: u64, takes: u64) -> impl Strategy<Value = Op> {
    let cpu = || 0..CPUS;
    let key = move || prop_oneof![3 => 0..keys / 10, 1 => 0..keys];
    let point = || 0..60usize;
    prop_oneof![
        12 => (cpu(), key()).prop_map(|(cpu, key)| Op::Hit(cpu, key)),
        4 => (cpu(), key(), prop::collection::vec(key(), 1..3), point())
            .prop_map(|(cpu, key, others, point)| Op::Interrupted(cpu, key, others, point)),
        6 => (cpu(), key(), point()).prop_map(|(cpu, key, point)| Op::HitBeside(cpu, key, point)),
        6 => (cpu(), key(), 0..200usize)
            .prop_map(|(cpu, key, point)| Op::BeatBeside(cpu, key, point)),
        12 => Just(Op::Beat),
        3 => (0..12usize).prop_map(Op::Poor),
        1 => Just(Op::Beats),
        6 => (0..2 * SECOND).prop_map(Op::Tick),
        3 => (key(), 1..=takes).prop_map(|(key, n)| Op::TakeVars(key, n)),
        3 => Just(Op::Edge),
        3 => (0..3usize).prop_map(Op::Fold),
        3 => Just(Op::End),
        2 => any::<bool>().prop_map(Op::Open),
        3 => (0..8usize).prop_map(Op::Take),
        3 => (0..8usize).prop_map(Op::Show),
        2 => (0..8usize).prop_map(Op::Done),
        2 => (0..8usize).prop_map(Op::PutBack),
        1 => (0..8usize).prop_map(Op::Close),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Hits, also interrupted and beside the worker's steps, references, cuts, readers that hold or
    /// put back intervals, and lack of memory, in any order: after each, each hit is once in an
    /// entry, in `other`, or a drop, with its values, in the counts so far and in the intervals of
    /// each reader; no variable is lost that was set in a living entry.
    #[test]
    fn identity(clauses in clauses(), ops in prop::collection::vec(ops(60, 1), 1..150)) {
        World::new(clauses, ops).run_all();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, failure_persistence: None, ..ProptestConfig::default() })]

    /// The same with so many entries that a fold takes several batches.
    #[test]
    fn identity_of_many(
        clauses in clauses(),
        ops in prop::collection::vec(ops(700, 300), 1..100),
    ) {
        let clauses = Clauses { bits: 8, bits_max: 8 + clauses.bits_max - clauses.bits, ..clauses };
        let world = World::new(clauses, ops);
        world.op(Op::Open(true));
        (0..700).for_each(|key| world.op(Op::Hit(0, key)));
        world.run_all();
    }
}

/// A map that grows from 2^`bits` to 2^`bits_max` entries, and its worker.
fn growing(bits: u32, bits_max: u32) -> (Map, Tending) {
    let request = request();
    let shape = Shape {
        bits,
        columns: &COLUMNS[..2],
        side: if bits_max > 12 { 0 } else { 129 },
        room: Room {
            bits_max,
            ..Room::fixed(bits)
        },
        request: Some(&request),
        ..super::shape()
    };
    let map = Map::new(shape).unwrap();
    let tending = counts::tending(&map);
    (map, tending)
}

fn insert(map: &Map, keys: std::ops::Range<u64>) {
    for key in keys {
        super::hit_with(map, (key % 2) as usize, &super::key(key), &[1]);
    }
}

/// Without the worker, three times as many keys as the map has find places, from rest.
#[test]
fn a_burst_from_rest() {
    for bits in [0, 1, 6, 7, 12] {
        let (map, mut tending) = growing(bits, bits + 6);
        for step in 0..3 {
            let size = 1u64 << (bits + 2 * step);
            insert(&map, 0..4 * size);
            assert_eq!((map.drops(), map.contents().len() as u64), (0, 4 * size));
            assert_eq!(map.room().unwrap().ahead, 0);
            counts::beats(&map, &mut tending, 1);
            let ahead = u64::from(map.room().unwrap().ahead);
            assert_eq!(ahead, if step == 2 { 0 } else { 12 * size });
            assert_eq!(map.contents().is_being_replaced(), step < 2);
        }
        let all = 1u64 << (bits + 6);
        insert(&map, 0..all + 1);
        assert_eq!((map.drops(), map.contents().len() as u64), (1, all));
        super::assert_consistent(&map, (4 * 21 << bits) + all + 1);
    }
}

/// At each step, keys find all places ahead.
#[test]
fn a_burst_at_each_step() {
    for taken in [64, 65, 100, 255, 256] {
        for step in 0.. {
            let (map, mut tending) = growing(6, 12);
            insert(&map, 0..taken);
            let mut beats = 0;
            while beats < step {
                beats += 1;
                match map.beat(&mut tending, 1, || ()) {
                    Beat::At(_) => break,
                    beat => drop(beat),
                }
                rcu::synchronize_rcu();
            }
            let is_done = beats < step;
            let ahead = u64::from(map.room().unwrap().ahead);
            assert!(ahead >= 256 - taken);
            insert(&map, 1000..1000 + ahead);
            assert_eq!(map.drops(), 0, "{taken} taken, step {step}");
            counts::beats(&map, &mut tending, 1);
            super::assert_consistent(&map, taken + ahead);
            if is_done {
                assert!(step > 3 || taken == 64);
                break;
            }
        }
    }
}

/// The time of the last step is from its begin to its end, with the grace periods between.
#[test]
fn the_time_of_a_step() {
    let (map, mut tending) = growing(2, 6);
    insert(&map, 0..5);
    assert_eq!(map.room().unwrap().step_ns, 0);
    let mut now = SECOND;
    loop {
        match map.beat(&mut tending, now, || ()) {
            Beat::At(_) => break,
            Beat::Again => (),
            Beat::GracePeriod(retired) => {
                drop(retired);
                rcu::synchronize_rcu();
                now += SECOND / 100;
            }
        }
    }
    let room = map.room().unwrap();
    assert_eq!((room.capacity, room.step_ns), (64, SECOND / 50));
    assert!(room.to_string().contains(", last step 20 ms, "), "{room}");
}

/// Without memory the map stays as large as it is, drops what finds no place, and grows later.
#[test]
fn growth_without_memory() {
    let (map, mut tending) = growing(2, 8);
    let reader = counts::add_reader_from_begin(&map);
    let mut fired = 0;
    let mut now = 1;
    for failing in (0..400).step_by(3) {
        insert(&map, 0..300);
        fired += 300;
        fault::after(failing, || counts::beats(&map, &mut tending, now));
        super::assert_consistent(&map, fired);
        counts::cut(&map, now);
        now += 70 * SECOND;
    }
    counts::beats(&map, &mut tending, now);
    assert_eq!(map.room().unwrap().capacity, 256);
    let before = map.drops();
    assert!(before > 0 && map.losses(Loss::NoMemory) > 0);
    insert(&map, 0..256);
    assert_eq!(map.drops(), before);
    let last = counts::take(&map, reader, Some(moment(now))).unwrap();
    let contents = map.contents();
    let rows: u64 = contents
        .elts()
        .map(|elt| last.totals.first.column(elt.number(), 0))
        .sum();
    assert_eq!(rows + last.totals.first.drops(&contents), fired + 256);
}

std::thread_local! {
    /// Bytes that a step of growth may take.
    static LIMIT: Cell<usize> = const { Cell::new(0) };
}

/// A map for 4 entries, and for 16 ahead, with so many readers of intervals, gets keys for 5
/// minutes, while a step of its growth may take so many bytes.
fn grown_within(limit: usize, readers: usize) -> Map {
    LIMIT.set(limit);
    let (map, _) = growing(2, 8);
    (0..readers).for_each(|_| _ = counts::add_reader(&map));
    let policy = Policy {
        idle_ns: None,
        taken: 0,
        wide_vars: 0,
        recycle: false,
        max_bytes: || LIMIT.get(),
        active: Arc::new(Atomic::new(1), GFP_KERNEL).unwrap(),
    };
    let mut tending = Tending::new(&map, policy).unwrap();
    insert(&map, 0..30);
    for now in 0..300 {
        counts::beats(&map, &mut tending, now * SECOND);
        insert(&map, 0..30);
    }
    map
}

/// With the elements, the memory of growth is limited: also of T, and of S of each reader of
/// intervals.
#[test]
fn growth_within_a_limit() {
    let capacity = |map: &Map| map.contents().capacity();
    let least = |readers| {
        let (mut too_little, mut enough) = (0, 1 << 20);
        while enough - too_little > 1 {
            let limit = (too_little + enough) / 2;
            match capacity(&grown_within(limit, readers)) {
                16 => too_little = limit,
                _ => enough = limit,
            }
        }
        let map = grown_within(too_little, readers);
        assert_eq!(capacity(&map), 16);
        assert!(map.losses(Loss::NoMemory) > 0);
        enough
    };
    let [without, one, two] = [0, 1, 2].map(least);
    let since = grown_within(one, 1).reader_bytes().unwrap();
    assert_eq!(two - one, since);
    // Of T, too, and of the second bank.
    assert!(one - without > 2 * since);
}

/// A map that loses entries, and its worker, with the time that it lives in.
struct Timed {
    map: Rc<Map>,
    tending: Tending,
    now: u64,
    /// When the worker comes next.
    at: u64,
    active: Arc<Atomic<u32>>,
}

impl Timed {
    fn new(bits: u32, idle_ns: Option<u64>, taken: bool, recycle: bool) -> Self {
        let request = request();
        let shape = Shape {
            bits,
            columns: &COLUMNS[..2],
            vars: 2,
            wide: &[2],
            side: 2,
            clock: Some(|| super::NOW.get()),
            room: Room {
                others: true,
                forgets: true,
                ..Room::fixed(bits)
            },
            request: Some(&request),
            ..super::shape()
        };
        let map = Map::new(shape).unwrap();
        let active = Arc::new(Atomic::new(1), GFP_KERNEL).unwrap();
        let policy = Policy {
            idle_ns,
            taken: taken.into(),
            wide_vars: 1,
            recycle,
            max_bytes: || usize::MAX,
            active: active.clone(),
        };
        Self {
            tending: Tending::new(&map, policy).unwrap(),
            map: Rc::new(map),
            now: 1,
            at: 1,
            active,
        }
    }

    /// Lets `ns` pass. The worker comes when it wants to.
    fn pass(&mut self, ns: u64) {
        let end = self.now + ns;
        while self.at <= end {
            self.now = self.now.max(self.at);
            self.wake();
        }
        self.now = end;
    }

    /// One beat, and a grace period.
    fn beat(&mut self) {
        drop(self.map.beat(&mut self.tending, self.now, || ()));
        rcu::synchronize_rcu();
    }

    /// The worker comes now.
    fn wake(&mut self) {
        loop {
            match self.map.beat(&mut self.tending, self.now, || ()) {
                Beat::At(at) => {
                    assert!(at > self.now);
                    self.at = at;
                    return;
                }
                Beat::GracePeriod(None) => rcu::synchronize_rcu(),
                beat => drop(beat),
            }
        }
    }

    fn hit(&self, key: u64) {
        super::NOW.set(self.now);
        assert!(
            super::hit(&self.map, 0, &super::key(key)),
            "no place for {key}"
        );
    }

    fn has(&self, key: u64) -> bool {
        self.map.contents().lookup_word(key).is_some()
    }

    fn hits_in(&self, other: Other) -> u64 {
        counts::hits_in(&self.map, other)
    }
}

/// An entry is taken out after so long without hits, give or take a quarter of that; and never
/// while it has hits.
#[test]
fn idle_entries_expire() {
    let mut times = HashSet::new();
    for offset in 0..40 {
        let mut timed = Timed::new(3, Some(4 * SECOND), false, false);
        timed.pass(offset * SECOND / 10);
        timed.hit(7);
        timed.hit(7);
        let mut idle = 0;
        while timed.has(7) {
            timed.hit(8);
            timed.pass(SECOND / 20);
            idle += 1;
        }
        assert!((3 * 20..=5 * 20).contains(&idle), "{idle} / 20 s");
        times.insert(idle);
        assert!(timed.has(8));
        assert_eq!(
            [2, 0],
            [Other::Expired, Other::Recycled].map(|other| timed.hits_in(other))
        );
        let room = timed.map.room().unwrap();
        assert_eq!((room.expired, room.expired_set, room.recycled), (1, 0, 0));
        assert_eq!(room.places, 1);
    }
    assert!(times.len() > 3);
}

/// While no trigger is active, entries do not become idle.
#[test]
fn time_stands_still_without_a_trigger() {
    let mut timed = Timed::new(3, Some(4 * SECOND), false, false);
    timed.hit(7);
    timed.pass(2 * SECOND);
    timed.active.store(0, Relaxed);
    timed.pass(100 * SECOND);
    assert!(timed.has(7));
    timed.active.store(1, Relaxed);
    timed.pass(SECOND / 2);
    assert!(timed.has(7));
    timed.pass(4 * SECOND);
    assert!(!timed.has(7));
}

/// An entry is taken out soon after one of its variables was taken; not while all are set. It does
/// not count as one that expired while a variable was set, although the other one is lost.
#[test]
fn entries_expire_when_a_variable_is_taken() {
    for (limit, kept) in [(None, true), (Some(8 * SECOND), false)] {
        let mut timed = Timed::new(3, limit, true, false);
        for key in 0..5 {
            timed.hit(key);
            let contents = timed.map.contents();
            let elt = contents.lookup_word(key).unwrap();
            assert!(elt.set_var(0, key) && elt.set_var(1, key));
        }
        timed.pass(2 * SECOND);
        assert!((0..5).all(|key| timed.has(key)));
        for key in 0..4 {
            let contents = timed.map.contents();
            assert_eq!(contents.lookup_word(key).unwrap().take_var(0), Some(key));
        }
        timed.pass(2 * SECOND);
        assert!((0..4).all(|key| !timed.has(key)));
        assert_eq!(timed.hits_in(Other::Expired), 4);
        let room = timed.map.room().unwrap();
        assert_eq!((room.expired_set, room.set_vars), (0, 4));
        timed.pass(100 * SECOND);
        assert_eq!(timed.has(4), kept);
        let room = timed.map.room().unwrap();
        let set = match kept {
            true => (0, 4),
            false => (1, 6),
        };
        assert_eq!((room.expired_set, room.set_vars), set);
    }
}

/// An entry whose variable is taken just before it would expire loses none.
#[test]
fn a_variable_taken_at_the_last_moment_is_not_lost() {
    for quarter in 8..20 {
        let mut timed = Timed::new(3, Some(4 * SECOND), true, false);
        timed.hit(7);
        {
            let contents = timed.map.contents();
            let elt = contents.lookup_word(7).unwrap();
            assert!(elt.set_var(0, 1) && elt.set_var(1, 1));
        }
        timed.pass(quarter * SECOND / 4);
        let contents = timed.map.contents();
        let taken = contents.lookup_word(7).and_then(|elt| elt.take_var(0));
        drop(contents);
        timed.pass(100 * SECOND);
        assert!(!timed.has(7));
        let room = timed.map.room().unwrap();
        let set = match taken {
            Some(_) => (0, 1),
            None => (1, 2),
        };
        assert_eq!((room.expired_set, room.set_vars), set);
    }
}

/// A map that forgets the entries that were idle for longest has a place for each new key, if they
/// come no faster than it sweeps.
#[test]
fn the_oldest_entries_give_way() {
    let mut timed = Timed::new(6, None, false, true);
    for key in 0..400 {
        timed.hit(key);
        let contents = timed.map.contents();
        assert!(contents.lookup_word(key).unwrap().set_var(1, key));
        drop(contents);
        // One that always has hits.
        timed.hit(1000);
        timed.pass(SECOND / 10);
    }
    assert!(timed.has(1000));
    let contents = timed.map.contents();
    let mut keys: Vec<u64> = contents
        .elts()
        .map(number)
        .filter(|&key| key != 1000)
        .collect();
    keys.sort_unstable();
    // The newest ones are there, and as many as eight tenths of the places.
    assert!(keys.len() >= 64, "{}", keys.len());
    let oldest = keys[0];
    assert!(
        400 - oldest < 80 && keys.len() as u64 >= (400 - oldest) - 8,
        "{keys:?}"
    );
    assert_eq!(timed.map.drops(), 0);
    assert_eq!(timed.hits_in(Other::Recycled), 400 - keys.len() as u64);
    assert_eq!(counts::hits(&timed.map), 800);
    let room = timed.map.room().unwrap();
    assert!(room.recycled > 300);
    assert_eq!((room.expired_set, room.set_vars), (0, room.recycled));
}

/// The data of an entry end with it: the next one with its number begins anew.
#[test]
fn a_used_number_begins_anew() {
    let mut timed = Timed::new(0, Some(SECOND), false, false);
    timed.hit(7);
    let number = {
        let contents = timed.map.contents();
        let elt = contents.lookup_word(7).unwrap();
        assert!(elt.set_var(0, 1) && elt.wide(0).unwrap().write([1, 2]));
        for word in elt.side() {
            word.store(5, Relaxed);
        }
        assert_eq!(elt.birth(), Some(1));
        elt.number()
    };
    let before = timed.map.contents();
    let state = before.lookup_word(7).unwrap().wide(0).unwrap().state();
    timed.pass(3 * SECOND);
    assert!(!timed.has(7));
    let room = timed.map.room().unwrap();
    assert_eq!((room.expired_set, room.set_vars), (1, 2), "one is wide");
    timed.hit(8);
    let contents = timed.map.contents();
    let elt = contents.lookup_word(8).unwrap();
    assert_eq!(elt.number(), number);
    assert_eq!((elt.var(0), elt.birth()), (None, Some(timed.now)));
    assert_eq!(
        elt.wide(0).unwrap().read(&mut [0; 2]),
        rhist::map::Read::Unset
    );
    assert!(elt.side().iter().all(|word| word.load(Relaxed) == 0));
    assert!(elt.wide(0).unwrap().write([1, 2]));
    assert_ne!(elt.wide(0).unwrap().state(), state);
    assert_eq!(counts::columns(&timed.map, &super::key(8)), [1, 0]);
    // More keys than numbers.
    for key in 100..1000 {
        timed.pass(2 * SECOND);
        timed.hit(key);
    }
    assert_eq!(counts::hits(&timed.map), 902);
}

/// A key in excess finds a place when the map has grown, and its former hits stay drops.
#[test]
fn a_key_in_excess_finds_a_place_later() {
    let mut excesses = 0;
    for point in 0..30 {
        let (map, mut tending) = growing(1, 3);
        let map = Rc::new(map);
        insert(&map, 0..7);
        let handler = {
            let map = map.clone();
            move || insert(&map, 8..9)
        };
        interrupt::at(point, handler, || insert(&map, 7..8));
        let drops = map.drops();
        let excess = map.contents().in_excess().count() as u64;
        assert!(excess <= 1 && drops <= 1);
        excesses += excess;
        if excess == 0 {
            continue;
        }
        counts::beats(&map, &mut tending, 1);
        assert_eq!(map.drops(), drops);
        super::assert_consistent(&map, 9);
    }
    assert!(excesses > 0);
}

/// Counts do not move while a reader adds them up, however long that takes. One that comes when the
/// worker is about to move some starts again, once: the next move waits for it.
#[test]
fn counts_stay_while_they_are_read() {
    let mut timed = Timed::new(3, Some(4 * SECOND), false, false);
    let map = timed.map.clone();
    let expired = |map: &Map| counts::hits_in(map, Other::Expired);
    timed.hit(7);
    let held = map.hold();
    timed.pass(100 * SECOND);
    // Its count is to be moved next.
    assert!(!timed.has(7) && held.is_whole());
    let mut held = Some(held);
    let mut passes = 0;
    let hits = map.whole(|late| {
        passes += 1;
        timed.pass(100 * SECOND);
        if let Some(held) = held.take() {
            assert!(held.is_whole());
            drop(held);
            timed.pass(SECOND);
            assert!(!late.is_whole());
            timed.hit(8);
        }
        let columns = late.totals(GFP_KERNEL, &|| Ok(()))?.first;
        let contents = map.contents();
        let others = contents.others().map(|other| other.number());
        Ok(others.map(|other| columns.column(other, 0)).sum::<u64>())
    });
    assert_eq!((hits, passes), (Ok(1), 2));
    assert!(!timed.has(8));
    timed.pass(SECOND);
    assert_eq!(expired(&map), 2);
}

/// Readers that follow each other, one at any time, do not keep counts from being
/// moved.
#[test]
fn readers_without_end() {
    let mut timed = Timed::new(3, Some(4 * SECOND), false, false);
    let map = timed.map.clone();
    let mut held = map.hold();
    let mut failed = 0;
    for key in 0..20 {
        timed.hit(key);
        let end = timed.now + 6 * SECOND;
        while timed.now < end {
            timed.pass(SECOND / 10);
            failed += u32::from(!held.is_whole());
            let next = map.hold();
            held = next;
        }
        assert_eq!(map.room().unwrap().expired, key + 1);
    }
    assert!(failed > 0);
}

/// Keys whose paths begin at the same slot fill a path: the rest go on in the next table. The
/// worker moves all of them there, some behind the 32nd slot, and hits find them.
#[test]
fn full_paths() {
    let hash = |key: u64| Hash::new(1).of(std::iter::once(key));
    let mut keys = (0u64..).filter(|&key| hash(key) >> 53 == hash(0) >> 53);
    let keys: Vec<u64> = keys.by_ref().take(80).collect();
    let (map, mut tending) = growing(6, 12);
    let fire = |keys: &[u64]| {
        keys.iter()
            .filter(|&&key| super::hit_with(&map, 0, &super::key(key), &[1]))
            .count()
    };
    assert_eq!(fire(&keys), 64);
    let full = |map: &Map| map.room().unwrap().path;
    assert_eq!((full(&map), map.drops()), (32 + 16, 16));
    counts::beats(&map, &mut tending, 1);
    assert_eq!(map.room().unwrap().capacity, 1024);
    assert_eq!(fire(&keys), 80);
    let counted = full(&map);
    counts::beats(&map, &mut tending, 1);
    // Known keys ask for nothing.
    assert_eq!(fire(&keys), 80);
    assert_eq!((full(&map), map.drops()), (counted, 16));
    super::assert_consistent(&map, 240);
}

/// A hit, which sets both variables, is interrupted at each of its accesses by each step of the end
/// of its entry, which was idle, or whose variables were taken: it counts, and both are there,
/// until the entry is idle again.
#[test]
fn a_hit_beside_each_step_of_expiry() {
    let outcomes = [false, true].map(|taken| {
        let (mut ended, mut kept) = (0, 0);
        for step in 0..8 {
            for point in 0.. {
                let mut timed = Timed::new(3, (!taken).then_some(4 * SECOND), taken, false);
                timed.hit(7);
                // Up to the sweep that lets the entry go.
                let steps = if taken { 0 } else { 3 };
                (0..steps).for_each(|_| timed.pass(timed.at - timed.now));
                timed.now = timed.now.max(timed.at);
                for _ in 0..step {
                    timed.beat();
                }
                super::NOW.set(timed.now);
                let timed = Rc::new(RefCell::new(timed));
                let beside = timed.clone();
                let kept_beat = Rc::new(RefCell::new(None));
                let beat = kept_beat.clone();
                let handler = move || {
                    let Timed {
                        map, tending, now, ..
                    } = &mut *beside.borrow_mut();
                    beat.replace(Some(map.beat(tending, *now, || ())));
                };
                let map = timed.borrow().map.clone();
                let hit = || {
                    let cpu = Cpu::enter(0);
                    let elt = map.read(cpu.preempt()).insert_word(cpu.preempt(), 7);
                    let elt = elt.expect("a place");
                    elt.update(cpu.preempt(), &[1], |&value| (value, ColumnSet::ONE));
                    assert!(elt.set_var(0, 5) && elt.set_var(1, 5));
                };
                let ((), came) = interrupt::at(point, handler, hit);
                if matches!(kept_beat.take(), Some(Beat::GracePeriod(None))) {
                    rcu::synchronize_rcu();
                }
                let timed = &mut *timed.borrow_mut();
                timed.wake();
                let contents = timed.map.contents();
                let elt = contents.lookup_word(7).expect("the entry of a hit");
                assert_eq!([0, 1].map(|var| elt.var(var)), [Some(5); 2]);
                let [hits] = counts::columns(&timed.map, &super::key(7));
                assert_eq!(hits + timed.hits_in(Other::Expired), 2);
                ended += 2 - hits;
                kept += hits - 1;
                if !came {
                    assert!(point > 2, "{point}");
                    break;
                }
            }
        }
        ended > 0 && kept > 0
    });
    assert_eq!(outcomes, [true; 2]);
}

/// Hits of a full map do not keep the worker awake: not if it cannot help, and not more often than
/// it sweeps.
#[test]
fn the_worker_sleeps_while_it_cannot_help() {
    for (clauses, most) in [
        // Entries are idle after 4 s: a sweep does not help.
        ((2, true, false), 1),
        // A sweep each 100 ms at most.
        ((2, true, true), 2 * 100 + 2),
        // No memory, and a full table.
        ((6, false, false), 2),
    ] {
        let (bits_max, forgets, taken) = clauses;
        let woken = std::sync::Arc::new(AtomicU32::new(0));
        let request = counts::request_to(Waking(woken.clone()));
        let shape = Shape {
            bits: 2,
            vars: 1,
            room: Room {
                bits_max,
                others: forgets,
                folds: false,
                forgets,
                sparse: false,
                numbered: false,
            },
            request: Some(&request),
            ..super::shape()
        };
        let map = Map::new(shape).unwrap();
        let policy = Policy {
            idle_ns: forgets.then_some(40 * SECOND),
            taken: taken.into(),
            wide_vars: 0,
            recycle: false,
            max_bytes: || 0,
            active: Arc::new(Atomic::new(1), GFP_KERNEL).unwrap(),
        };
        let mut tending = Tending::new(&map, policy).unwrap();
        let mut last = 0;
        let mut beats = 0;
        for n in 0..10_000u64 {
            let key = n % 40;
            let cpu = Cpu::enter(0);
            if let Some(elt) = map.read(cpu.preempt()).insert_word(cpu.preempt(), key) {
                elt.count(cpu.preempt());
                assert!(elt.set_var(0, 1));
            }
            drop(cpu);
            let now = woken.load(Ordering::Relaxed);
            if now != last || n % 1000 == 0 {
                last = now;
                beats += 1;
                counts::beats(&map, &mut tending, n * SECOND / 1000);
            }
        }
        assert!(map.drops() > 0);
        assert!(last <= most, "{clauses:?}: woken {last} times");
        assert!(beats <= most + 11);
    }
}

/// A map of 16 entries with values in buckets, whose entries are taken out after a second.
struct Distributed {
    map: Map,
    tending: Tending,
    now: u64,
    /// The bucket of each hit.
    hits: Vec<u64>,
}

impl Distributed {
    /// Number of different buckets.
    const BUCKETS: u64 = 64;

    /// With a table of buckets for 2^`bits` of them.
    fn new(bits: u32) -> Self {
        let request = request();
        let shape = |bits| Shape {
            bits,
            room: Room {
                others: true,
                forgets: true,
                ..Room::fixed(bits)
            },
            request: Some(&request),
            ..super::shape()
        };
        let map = Map::with_second(shape(4), Some(shape(bits))).unwrap();
        let policy = Policy {
            idle_ns: Some(SECOND),
            taken: 0,
            wide_vars: 0,
            recycle: false,
            max_bytes: || usize::MAX,
            active: Arc::new(Atomic::new(1), GFP_KERNEL).unwrap(),
        };
        let tending = Tending::new(&map, policy).unwrap();
        Self {
            map,
            tending,
            now: 1,
            hits: vec![],
        }
    }

    fn hit(&mut self, key: u64, bucket: u64) {
        let cpu = Cpu::enter(0);
        let generation = self.map.read(cpu.preempt());
        let elt = generation.insert_word(cpu.preempt(), key).unwrap();
        let bucket_key = u64::from(elt.number()) << ELEMENT_SHIFT | bucket;
        let second = generation.second().unwrap();
        let of_hit = second.insert_word(cpu.preempt(), bucket_key);
        of_hit.expect("a place").count(cpu.preempt());
        elt.count(cpu.preempt());
        self.hits.push(bucket);
    }

    /// Lets the worker work for so long.
    fn pass(&mut self, ns: u64) {
        for _ in 0..ns / (SECOND / 4) + 1 {
            self.now += ns.min(SECOND / 4);
            counts::beats(&self.map, &mut self.tending, self.now);
        }
    }

    /// `totals` have these hits: in the bucket of each, of an entry or of `other`.
    fn compare(&self, totals: &PerMap<Totals>, hits: Range<usize>) {
        let (contents, second) = (self.map.contents(), totals.second.as_ref().unwrap());
        let mut counted = [0; Self::BUCKETS as usize];
        for elt in contents.second().unwrap().elts() {
            let bucket = number(elt) & ((1 << ELEMENT_SHIFT) - 1);
            counted[bucket as usize] += second.column(elt.number(), 0);
        }
        let mut expected = [0; Self::BUCKETS as usize];
        for &bucket in &self.hits[hits] {
            expected[bucket as usize] += 1;
        }
        assert_eq!((self.map.drops(), self.map.second_drops()), (0, 0));
        assert_eq!(counted, expected);
    }
}

/// Buckets of entries that are taken out leave their slots dead. The table of buckets is replaced
/// before these are too many.
#[test]
fn dead_buckets_are_swept_away() {
    let mut of = Distributed::new(5);
    let reader = counts::add_reader_from_begin(&of.map);
    for key in 0..500 {
        of.hit(key, key % 2);
        of.pass(SECOND / 2);
        if key % 50 == 0 {
            counts::cut(&of.map, key + 1);
        }
    }
    assert!(counts::hits_in(&of.map, Other::Expired) > 490);
    let last = counts::take(&of.map, reader, Some(moment(1 << 40))).unwrap();
    for totals in [last.totals, counts::totals(&of.map)] {
        of.compare(&totals, 0..500);
    }
}

/// When all places of buckets are taken, the values of entries that are taken out still find
/// buckets of `other`: the worker frees more places than it takes.
#[test]
fn other_has_buckets_while_all_places_are_taken() {
    let mut of = Distributed::new(6);
    let reader = counts::add_reader_from_begin(&of.map);
    for hits in [80, 75, 75] {
        for n in 0..hits {
            of.hit(n / 5, n % 5);
        }
        counts::cut(&of.map, of.now + 1);
        let mut interval = counts::take(&of.map, reader, None).unwrap();
        of.pass(3 * SECOND);
        of.map.settle(reader, &mut interval, GFP_KERNEL).unwrap();
        let end = of.hits.len();
        of.compare(&interval.totals, end - hits as usize..end);
        of.compare(&counts::totals(&of.map), 0..end);
    }
}

/// A step of a reader of intervals.
#[derive(Clone, Copy, Debug)]
enum Reads {
    Nothing,
    Take,
    Show,
    PutBack,
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// The number of a bucket that is taken out is used again, also by a bucket of `other`. An
    /// interval that was taken before has the hits of both in their own buckets, when it is shown,
    /// and shown again, and when it was put back.
    #[test]
    fn an_interval_follows_numbers_that_are_used_again(
        steps in prop::collection::vec(
            (0..16u64, 0..Distributed::BUCKETS, 0..SECOND, any::<bool>(), prop_oneof![
                3 => Just(Reads::Nothing),
                1 => Just(Reads::Take),
                3 => Just(Reads::Show),
                1 => Just(Reads::PutBack),
            ]),
            1..200,
        ),
    ) {
        let mut of = Distributed::new(8);
        let reader = counts::add_reader_from_begin(&of.map);
        let (mut begin, mut edge) = (0, 0);
        let mut taken = None;
        for (key, bucket, ns, cuts, reads) in steps {
            of.hit(key, bucket);
            of.pass(ns);
            if cuts {
                counts::cut(&of.map, of.now);
                edge = of.hits.len();
            }
            match (reads, taken.take()) {
                (Reads::Take, _) => {
                    let interval = counts::take(&of.map, reader, None).unwrap();
                    taken = Some((interval, begin));
                    begin = edge;
                }
                (Reads::Show, Some((mut interval, from))) => {
                    of.map.settle(reader, &mut interval, GFP_KERNEL).unwrap();
                    of.compare(&interval.totals, from..begin);
                    taken = Some((interval, from));
                }
                (Reads::PutBack, Some((interval, from))) => {
                    of.map.put_back(reader, &interval);
                    begin = from;
                }
                (_, interval) => taken = interval,
            }
        }
        let last = counts::take(&of.map, reader, Some(moment(1 << 40))).unwrap();
        of.compare(&last.totals, begin..of.hits.len());
        of.compare(&counts::totals(&of.map), 0..of.hits.len());
    }
}

/// Steps on all slots, or on all elements that are taken out, let other tasks run in between: a
/// table of 16384 slots loses 4096 entries.
#[test]
fn steps_on_many_slots_yield() {
    let mut timed = Timed::new(12, Some(SECOND), false, false);
    (0..4096).for_each(|key| timed.hit(key));
    let mut yields = vec![];
    while timed.has(7) || !timed.tending.is_at_rest() {
        let calls = Cell::new(0);
        let between = || calls.set(calls.get() + 1);
        match timed.map.beat(&mut timed.tending, timed.now, between) {
            Beat::At(at) => timed.now = at,
            Beat::GracePeriod(None) => rcu::synchronize_rcu(),
            beat => drop(beat),
        }
        yields.push(calls.get());
    }
    assert_eq!(timed.hits_in(Other::Expired), 4096);
    let [.., judge, copy, end] = yields[..] else {
        panic!("no cycle");
    };
    // Once for 1024 slots that are judged, sealed, copied and looked through, and once for 64
    // elements whose counts are moved.
    assert!(judge >= 16 + 16 && copy >= 16 + 16 + 64, "{yields:?}");
    assert!(end >= 4, "{yields:?}");
}
