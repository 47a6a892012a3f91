// SPDX-License-Identifier: GPL-2.0

//! Intervals of readers, compared with a plain list of hits, at each step of cuts.

use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::VecDeque;
use std::rc::Rc;

use kernel::error::code::EAGAIN;
use kernel::error::code::EBUSY;
use kernel::fault;
use kernel::interrupt;
use kernel::prelude::GFP_KERNEL;
use kernel::sync::rcu;
use proptest::prelude::*;
use rhist::counts;
use rhist::counts::moment;
use rhist::cpu::Cpu;
use rhist::map::Beat;
use rhist::map::Column;
use rhist::map::ColumnSet;
use rhist::map::Cpus;
use rhist::map::Elt;
use rhist::map::Extreme;
use rhist::map::Generation;
use rhist::map::Interval;
use rhist::map::Loss;
use rhist::map::Map;
use rhist::map::PerMap;
use rhist::map::Shape;
use rhist::map::Tending;
use rhist::map::Totals;
use rhist::map::ELEMENT_SHIFT;
use rhist::sync::Retired;

/// Columns of all kinds.
const COLUMNS: [Column; 6] = [
    Column::Hits,
    Column::Extreme(Extreme::min(true)),
    Column::Extreme(Extreme::max(true)),
    Column::Sum,
    Column::Extreme(Extreme::max(false)),
    Column::Sum,
];

/// The columns of no hit.
const NONE: [u64; 6] = [0, i64::MAX as u64, i64::MIN as u64, 0, 0, 0];

/// A hit, and its outcome in each map: `None` for a drop.
#[derive(Clone, Debug)]
struct Hit {
    cpu: usize,
    key: u64,
    value: u64,
    /// The number of edges before it loaded its bank.
    epoch: usize,
    found: [bool; 2],
    /// Whether it has counted in the second map, or was a drop there.
    in_second: bool,
}

impl Hit {
    /// The key of its bucket, which belongs to no element: buckets stay.
    fn bucket(&self) -> u64 {
        (self.key + 0xff_0000) << ELEMENT_SHIFT | self.value % 3
    }

    fn add_to(&self, columns: &mut [u64; 6]) {
        let (min, max) = (columns[1] as i64, columns[2] as i64);
        let value = self.value as i64;
        *columns = [
            columns[0] + 1,
            min.min(value) as u64,
            max.max(value) as u64,
            columns[3].wrapping_add(self.value),
            columns[4].max(!self.value),
            columns[5].wrapping_add(!self.value),
        ];
    }
}

#[derive(Clone, Debug)]
enum Op {
    Hit(Hit),
    /// The first hit is interrupted at this operation by the others.
    Interrupted(Hit, Vec<Hit>, usize),
    /// The hit is interrupted at this operation by the edge of a cut.
    Edge(Hit, usize),
    /// Folds, with so many operations after each batch.
    Fold(usize),
    End,
    Lose(usize, bool),
    Open(bool),
    /// Takes the next interval of a reader, or the last one.
    Take(usize, bool),
    PutBack(usize),
    Close(usize),
    /// Has the table of this map replaced.
    Renew(bool),
    /// The next step of the worker on the tables.
    Beat,
}

/// A reader of intervals.
struct Reader {
    id: u64,
    /// The epoch at which its next interval begins; `None`: at the next edge.
    begin: Option<usize>,
    /// The last interval that it has taken, and the epoch at which that begins.
    taken: Option<(Interval, usize)>,
    /// Whether that was the last one; if it was put back, the last one is taken again.
    ended: bool,
}

/// The steps of a cut.
enum Step {
    Rest,
    /// Hits may be at work in the closed bank until this is dropped.
    Edge(#[expect(dead_code, reason = "dropping it waits")] Retired<Generation>),
    Fold,
    Folded,
}

struct World {
    map: Map,
    tending: RefCell<Tending>,
    hits: RefCell<Vec<Hit>>,
    /// The epochs of losses of each kind.
    losses: RefCell<[Vec<usize>; 2]>,
    /// Number of edges.
    edges: RefCell<usize>,
    /// The epoch that the totals are up to.
    folded: RefCell<usize>,
    step: RefCell<Step>,
    readers: RefCell<Vec<Reader>>,
    ops: RefCell<VecDeque<Op>>,
}

const LOSSES: [Loss; 2] = [Loss::Unresolved, Loss::Missed];

impl World {
    /// Counts a hit in both maps, first in the second one.
    fn hit(&self, hit: &Hit) {
        let cpu = Cpu::enter(hit.cpu);
        let generation = self.map.read(cpu.preempt());
        // No edge comes between the load and this.
        let mut hit = Hit {
            epoch: *self.edges.borrow(),
            ..hit.clone()
        };
        let elt = generation.insert_word(cpu.preempt(), hit.key);
        if let Some(elt) = elt {
            let second = generation.second().unwrap();
            let bucket = second.insert_word(cpu.preempt(), hit.bucket());
            bucket.inspect(|bucket| bucket.count(cpu.preempt()));
            elt.update(cpu.preempt(), &[false, true], |&not| match not {
                false => (hit.value, ColumnSet::of(&COLUMNS[1..4])),
                true => (!hit.value, ColumnSet::of(&COLUMNS[4..])),
            });
            hit.found = [true, bucket.is_some()];
            hit.in_second = true;
        }
        self.hits.borrow_mut().push(hit);
    }

    /// The edge of a cut, if the worker is at rest.
    fn edge(&self) {
        let edge = moment(1 + *self.edges.borrow() as u64);
        match self.map.cut(edge) {
            Ok(retired) => {
                assert!(matches!(self.step.replace(Step::Edge(retired)), Step::Rest));
                *self.edges.borrow_mut() += 1;
                for reader in &mut *self.readers.borrow_mut() {
                    reader.begin.get_or_insert(*self.edges.borrow());
                }
            }
            Err(error) => {
                assert_eq!(error, EBUSY);
                assert!(!matches!(*self.step.borrow(), Step::Rest));
            }
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
            Op::Hit(hit) => self.hit(&hit),
            Op::Interrupted(hit, others, point) => {
                let world = self.clone();
                let cpu = hit.cpu;
                let handler = move || {
                    others
                        .into_iter()
                        .for_each(|other| world.hit(&Hit { cpu, ..other }));
                };
                interrupt::at(point, handler, || self.hit(&hit));
            }
            Op::Edge(hit, point) => {
                let world = self.clone();
                let hit = || self.hit(&hit);
                if !interrupt::at(point, move || world.edge(), hit).1 {
                    self.edge();
                }
            }
            Op::Fold(ops) => {
                if !matches!(*self.step.borrow(), Step::Edge(_)) {
                    return;
                }
                // A grace period.
                drop(self.step.replace(Step::Fold));
                self.map.fold(|| self.run(ops));
                self.step.replace(Step::Folded);
            }
            Op::End => {
                if matches!(*self.step.borrow(), Step::Folded) {
                    rcu::synchronize_rcu();
                    self.map.end_cut();
                    *self.folded.borrow_mut() = *self.edges.borrow();
                    self.step.replace(Step::Rest);
                }
            }
            Op::Lose(cpu, kind) => {
                let cpu = Cpu::enter(cpu);
                let generation = self.map.read(cpu.preempt());
                generation.lose(cpu.preempt(), LOSSES[usize::from(kind)]);
                self.losses.borrow_mut()[usize::from(kind)].push(*self.edges.borrow());
            }
            Op::Open(created) => {
                let created = created.then(|| moment(0));
                self.readers.borrow_mut().push(Reader {
                    id: self.map.add_reader(created, GFP_KERNEL).unwrap(),
                    begin: created.map(|_| 0),
                    taken: None,
                    ended: false,
                });
            }
            Op::Take(reader, is_last) => {
                self.with_reader(reader, |reader| match (reader.ended, &reader.taken) {
                    (true, Some(_)) => (),
                    (ended, _) => self.take(reader, is_last || ended),
                });
            }
            Op::PutBack(reader) => self.with_reader(reader, |reader| self.put_back(reader)),
            Op::Close(reader) => {
                let mut readers = self.readers.borrow_mut();
                if let Some(nth) = Self::other(&readers, reader) {
                    self.map.remove_reader(readers.remove(nth).id);
                }
            }
            Op::Renew(second) => self.tending.borrow_mut().renew(second),
            Op::Beat => {
                self.forget_excess();
                let beat = self.map.beat(&mut self.tending.borrow_mut(), 0, || ());
                match beat {
                    Beat::GracePeriod(None) => rcu::synchronize_rcu(),
                    // Dropping it waits.
                    _ => drop(beat),
                }
            }
        }
    }

    /// Notes which hits are drops for good: their elements are in excess. Later hits of the same
    /// keys may find a place.
    fn forget_excess(&self) {
        let contents = self.map.contents();
        let second = contents.second().unwrap();
        for hit in &mut *self.hits.borrow_mut() {
            hit.found[0] &= contents.lookup_word(hit.key).is_some();
            hit.found[1] &= second.lookup_word(hit.bucket()).is_some();
        }
    }

    /// One of the readers but the first, which never reads.
    fn other(readers: &[Reader], nth: usize) -> Option<usize> {
        Some(1 + nth.checked_rem(readers.len() - 1)?)
    }

    fn with_reader(&self, nth: usize, f: impl FnOnce(&mut Reader)) {
        let mut readers = self.readers.borrow_mut();
        if let Some(nth) = Self::other(&readers, nth) {
            f(&mut readers[nth]);
        }
    }

    fn put_back(&self, reader: &mut Reader) {
        if let Some((interval, begin)) = reader.taken.take() {
            self.map.put_back(reader.id, &interval);
            reader.begin = Some(begin);
        }
    }

    /// Takes an interval, and compares it with the hits in it.
    fn take(&self, reader: &mut Reader, is_last: bool) {
        let (edges, folded) = (*self.edges.borrow(), *self.folded.borrow());
        let begun = reader.begin.filter(|&begin| begin <= folded);
        let is_at_edge = matches!(*self.step.borrow(), Step::Rest | Step::Edge(_));
        let until = is_last.then(|| moment(1000));
        let taken = counts::take(&self.map, reader.id, until);
        let Some(begin) = begun.filter(|_| is_last || is_at_edge) else {
            assert_eq!(taken.err(), Some(EAGAIN));
            return;
        };
        let taken = taken.unwrap();
        assert_eq!(taken.begin, moment(begin as u64));
        assert_eq!(taken.end, until.unwrap_or(moment(folded as u64)));
        let end = if is_last { edges + 1 } else { folded };
        self.compare(&taken.totals, begin, end);
        reader.taken = Some((taken, begin));
        reader.begin = Some(folded);
        reader.ended = is_last;
    }

    /// Compares `totals` with the hits of these epochs.
    fn compare(&self, totals: &PerMap<Totals>, begin: usize, end: usize) {
        let contents = self.map.contents();
        let hits = self.hits.borrow();
        let hits = Vec::from_iter(hits.iter().filter(|hit| (begin..end).contains(&hit.epoch)));
        // If the key's element has become no entry, its hits are drops.
        let is_entry = |map: &Generation, key| map.lookup_word(key).is_some();
        let mut drops = 0;
        let mut expected = HashMap::new();
        for hit in &hits {
            match hit.found[0] && is_entry(&contents, hit.key) {
                true => hit.add_to(expected.entry(hit.key).or_insert(NONE)),
                false => drops += 1,
            }
        }
        assert_eq!(totals.first.drops(&contents), drops);
        for elt in contents.elts() {
            let columns: [u64; 6] = std::array::from_fn(|n| totals.first.column(elt.number(), n));
            let expected = expected.remove(&number(elt)).unwrap_or(NONE);
            assert_eq!(columns, expected, "{begin}..{end}");
        }
        assert!(expected.is_empty());

        let (second, totals2) = (contents.second().unwrap(), totals.second.as_ref().unwrap());
        let mut drops = 0;
        let mut expected = HashMap::new();
        for hit in hits.iter().filter(|hit| hit.in_second) {
            match hit.found[1] && is_entry(second, hit.bucket()) {
                true => *expected.entry(hit.bucket()).or_insert(0) += 1,
                false => drops += 1,
            }
        }
        assert_eq!(totals2.drops(second), drops);
        for elt in second.elts() {
            let expected = expected.remove(&number(elt)).unwrap_or(0);
            assert_eq!(totals2.column(elt.number(), 0), expected);
        }
        assert!(expected.is_empty());

        for (loss, epochs) in LOSSES.into_iter().zip(&*self.losses.borrow()) {
            let lost = epochs.iter().filter(|epoch| (begin..end).contains(epoch));
            assert_eq!(totals.first.loss(loss), lost.count() as u64);
        }
    }

    /// Compares all counts so far with all hits; and the totals, which are the interval of a reader
    /// that has read nothing, with the hits before their edge.
    fn check(&self) {
        let totals = counts::totals(&self.map);
        self.compare(&totals, 0, usize::MAX);
        let contents = self.map.contents();
        let entries = contents.elts();
        let hits = entries
            .map(|elt| totals.first.column(elt.number(), 0))
            .sum::<u64>();
        assert_eq!(counts::hits(&self.map), hits);
        assert_eq!(self.map.drops(), totals.first.drops(&contents));
        let second = contents.second().unwrap();
        assert_eq!(
            self.map.second_drops(),
            totals.second.unwrap().drops(second)
        );
        for loss in LOSSES {
            assert_eq!(self.map.losses(loss), totals.first.loss(loss));
        }
        let mut readers = self.readers.borrow_mut();
        let first = &mut readers[0];
        self.take(first, false);
        self.put_back(first);
    }
}

fn number(elt: Elt<'_>) -> u64 {
    elt.key_words().next().unwrap()
}

/// CPUs of the test; the last one shares its columns.
const CPUS: usize = 3;

fn hits(keys: u64) -> impl Strategy<Value = Hit> {
    let value = prop_oneof![
        any::<u64>(),
        0..4u64,
        (-4i64..0).prop_map(|value| value as u64)
    ];
    (0..CPUS, 0..keys, value).prop_map(|(cpu, key, value)| Hit {
        cpu,
        key,
        value,
        epoch: 0,
        found: [false; 2],
        in_second: false,
    })
}

fn ops(keys: u64) -> impl Strategy<Value = Op> {
    let points = || 0..40usize;
    prop_oneof![
        8 => hits(keys).prop_map(Op::Hit),
        4 => (hits(keys), prop::collection::vec(hits(keys), 1..3), points())
            .prop_map(|(hit, others, point)| Op::Interrupted(hit, others, point)),
        3 => (hits(keys), points()).prop_map(|(hit, point)| Op::Edge(hit, point)),
        3 => (0..4usize).prop_map(Op::Fold),
        3 => Just(Op::End),
        1 => (0..CPUS, any::<bool>()).prop_map(|(cpu, kind)| Op::Lose(cpu, kind)),
        1 => any::<bool>().prop_map(Op::Open),
        4 => (0..8usize, prop::bool::weighted(0.2)).prop_map(|(reader, last)| Op::Take(reader, last)),
        2 => (0..8usize).prop_map(Op::PutBack),
        1 => (0..8usize).prop_map(Op::Close),
        1 => any::<bool>().prop_map(Op::Renew),
        4 => Just(Op::Beat),
    ]
}

/// Runs these operations on a map for 2^`bits` keys, of which `before` are there already.
fn run(bits: u32, before: u64, ops: Vec<Op>) {
    let cpus = Cpus {
        own: CPUS - 1,
        ..Cpus::uniform(CPUS)
    };
    // It has a worker, so readers follow it.
    let request = counts::request();
    let shape = |bits| Shape {
        bits,
        cpus,
        request: Some(&request),
        ..super::shape()
    };
    let columns = &COLUMNS;
    let first = Shape {
        columns,
        ..shape(bits)
    };
    let map = Map::with_second(first, Some(shape(bits + 1))).unwrap();
    map.begin_intervals(moment(0)).unwrap();
    let world = Rc::new(World {
        tending: RefCell::new(counts::tending(&map)),
        map,
        hits: RefCell::default(),
        losses: RefCell::default(),
        edges: RefCell::new(0),
        folded: RefCell::new(0),
        step: RefCell::new(Step::Rest),
        readers: RefCell::default(),
        ops: RefCell::new(ops.into()),
    });
    world.op(Op::Open(true));
    for key in 0..before {
        world.hit(&Hit {
            cpu: 0,
            key,
            value: key,
            epoch: 0,
            found: [false; 2],
            in_second: false,
        });
    }
    while !world.ops.borrow().is_empty() {
        world.run(1);
    }
    // The rest of all readers.
    for reader in &mut *world.readers.borrow_mut() {
        if !reader.ended || reader.taken.is_none() {
            world.take(reader, true);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Hits, cuts in their steps, and readers, in any order: at each step, each hit is once in the
    /// counts so far, and in exactly one interval of each reader, with all its columns; the totals
    /// change by folds only.
    #[test]
    fn cuts(bits in 0u32..3, ops in prop::collection::vec(ops(6), 1..80)) {
        run(bits, 0, ops);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, failure_persistence: None, ..ProptestConfig::default() })]

    /// The same with so many elements that a fold takes several batches.
    #[test]
    fn cuts_of_many_elements(ops in prop::collection::vec(ops(600), 1..80)) {
        run(10, 600, ops);
    }
}

/// A cut allocates nothing, so it takes place without memory, too.
#[test]
fn a_cut_needs_no_memory() {
    let columns = &COLUMNS;
    let first = Shape {
        columns,
        ..super::shape()
    };
    let map = Map::with_second(first, Some(super::shape())).unwrap();
    let reader = counts::add_reader_from_begin(&map);
    for edge in 1..4 {
        let cpu = Cpu::enter(0);
        let generation = map.read(cpu.preempt());
        for key in 0..4 {
            let elt = generation.insert_word(cpu.preempt(), key).unwrap();
            elt.count(cpu.preempt());
        }
        drop(cpu);
        let ((), allocations) = fault::each(|| counts::cut(&map, edge), |()| ());
        assert_eq!(allocations, 0);
        let taken = counts::take(&map, reader, None).unwrap();
        let contents = map.contents();
        let hits = contents
            .elts()
            .map(|elt| taken.totals.first.column(elt.number(), 0));
        assert_eq!((taken.end, hits.sum()), (moment(edge), 4));
    }
}
