// SPDX-License-Identifier: GPL-2.0

//! The caches of walks: words are the same as without, whatever has changed in between.

use std::cell::Cell;
use std::collections::HashMap;
use std::ops::Range;

use proptest::prelude::*;
use rhist::cpu::Cpu;
use rhist::map::Cpus;
use rhist::sync::PreemptOff;
use rhist::user_stack::{
    End, Era, FileIdentity, FileVersion, Held, Here, Identity, Key, Kind, Machine, Mapping, Near,
    Objects, Place, Plain, Program, Registers, Rule, Rulebook, Rules, Walk,
};

use super::objects::Files;
use super::table::Table;

/// Contents of a mapping.
#[derive(Clone, Copy, Debug)]
enum Contents {
    File { nth: usize, offset: u64 },
    Memory,
    Vdso,
}

/// A program's address space.
#[derive(Clone, Debug)]
struct Space {
    number: u64,
    /// Counts changes of mappings. Odd while one is being changed.
    sequence: u64,
    mappings: Vec<(Range<u64>, Contents)>,
}

impl Space {
    /// A range is replaced, as by `MAP_FIXED`.
    fn map(&mut self, range: Range<u64>, contents: Option<Contents>) {
        self.sequence += 2;
        self.mappings
            .retain(|(other, _)| other.end <= range.start || range.end <= other.start);
        self.mappings
            .extend(contents.map(|contents| (range, contents)));
    }
}

struct World {
    files: &'static Files,
    objects: Objects,
    identities: Vec<FileIdentity>,
    spaces: Vec<Space>,
    next_space: u64,
    /// By number of the object: a copy of its rules.
    rules: HashMap<u32, Rules>,
    /// The file that each hit finds may be held.
    held: bool,
}

const PAGE: u64 = 4096;
const CODE: u64 = 0x5500_0000_0000;
const STACK: u64 = 0x7ff0_0000_0000;
const WORDS: u64 = 64;
/// Pages at [`CODE`] that may be mapped.
const PAGES: u64 = 64;

impl World {
    fn new() -> Self {
        let files = Files::new();
        let identities = (0..3).map(|nth| FileIdentity {
            device: 1,
            inode: 100 + nth,
            generation: 0,
            size: 1 << 20,
            changed_ns: 5,
        });
        let space = |number| Space {
            number,
            sequence: 0,
            mappings: vec![
                (CODE..CODE + 8 * PAGE, Contents::File { nth: 0, offset: 0 }),
                (
                    CODE + 8 * PAGE..CODE + 12 * PAGE,
                    Contents::File {
                        nth: 1,
                        offset: PAGE,
                    },
                ),
                (CODE + 12 * PAGE..CODE + 13 * PAGE, Contents::Vdso),
                (CODE + 16 * PAGE..CODE + 20 * PAGE, Contents::Memory),
            ],
        };
        Self {
            files,
            objects: Objects::new(Cpus::uniform(2), 1, files, None).unwrap(),
            identities: identities.collect(),
            spaces: vec![space(1 << 50), space(2 << 50)],
            next_space: 3 << 50,
            rules: HashMap::new(),
            held: true,
        }
    }

    fn identity(&self, space: &Space, begin: u64, contents: Contents) -> Option<Identity> {
        match contents {
            Contents::File { nth, .. } => Some(Identity::File(self.identities[nth])),
            Contents::Memory => Some(Identity::Memory {
                process: 1,
                space: space.number,
                begin,
            }),
            Contents::Vdso => None,
        }
    }

    /// A mapping as a hit finds it in the program's tree, with the place that it gives it.
    fn look(
        &self,
        preempt: PreemptOff<'_>,
        space: &Space,
        address: u64,
    ) -> Result<(Mapping, Option<FileVersion>), End> {
        if space.sequence % 2 == 1 {
            return Err(End::Changing);
        }
        let (range, contents) = space
            .mappings
            .iter()
            .find(|(range, _)| range.contains(&address))
            .ok_or(End::Astray)?;
        let hold = || match (contents, self.held) {
            (Contents::File { nth, .. }, true) => self.files.hold(0x1000 * (nth + 1), true),
            (Contents::File { .. }, false) => Held::NONE,
            _ => Held::NEVER,
        };
        let identity = self.identity(space, range.start, *contents);
        let number = identity.and_then(|identity| self.objects.number(preempt, &identity, hold));
        let place = match (contents, number) {
            (Contents::Vdso, _) => Place::Vdso { offset: 0 },
            (_, None) => Place::Unlisted,
            (&Contents::File { offset, .. }, Some(object)) => Place::File { object, offset },
            (Contents::Memory, Some(mapping)) => Place::Memory { mapping, offset: 0 },
        };
        let version = match *contents {
            Contents::File { nth, .. } => Some(FileVersion {
                inode: nth as u64 + 1,
                size: self.identities[nth].size,
                changed_ns: self.identities[nth].changed_ns,
            }),
            _ => None,
        };
        let (begin, end) = (range.start, range.end);
        Ok((Mapping { begin, end, place }, version))
    }

    fn program<'a>(
        &'a self,
        cpu: &'a Cpu,
        space: usize,
        level: usize,
        caches: bool,
    ) -> Running<'a> {
        let space = &self.spaces[space];
        let preempt = cpu.preempt();
        Running {
            world: self,
            space,
            preempt,
            memory: &[],
            era: self.objects.era(space.number, space.sequence),
            here: Here::new(preempt, level),
            book: self.objects.rulebook().unwrap(),
            caches,
            found: Cell::new(0),
        }
    }

    /// The number of the object at an address, by a hit in a task on the first CPU.
    fn number_at(&self, space: usize, address: u64, caches: bool) -> Option<u32> {
        let cpu = Cpu::enter(0);
        let mut program = self.program(&cpu, space, 0, caches);
        let registers = Registers {
            ip: address,
            sp: STACK,
            fp: 0,
            lr: None,
        };
        let word = Walk::new(&mut program, registers).next_word().ok()?;
        match rhist::user_stack::Word::place(word.to_u64())? {
            (Place::File { object, .. }, _) => Some(object),
            (Place::Memory { mapping, .. }, _) => Some(mapping),
            _ => None,
        }
    }

    fn set_rules(&mut self, number: u32, table: &Table) {
        let set = self
            .objects
            .set_rules(number, table.upload().unwrap(), usize::MAX);
        if set.is_ok() {
            self.rules.insert(number, table.upload().unwrap());
        }
    }

    fn replace_table(&mut self) {
        self.objects = Objects::new(Cpus::uniform(2), 1, self.files, Some(&self.objects)).unwrap();
        self.rules.clear();
    }
}

/// A program that is walked, with caches or without.
struct Running<'a> {
    world: &'a World,
    space: &'a Space,
    preempt: PreemptOff<'a>,
    memory: &'a [u64],
    era: Era,
    here: Here,
    book: Rulebook<'a>,
    caches: bool,
    /// How many mappings were looked for.
    found: Cell<usize>,
}

impl Program for Running<'_> {
    const MACHINE: Machine = Machine::X86;

    fn code(&self) -> u64 {
        u64::MAX
    }

    fn near(&mut self, address: u64) -> Result<Near, End> {
        let world = self.world;
        let is_same = |version: &FileVersion| {
            let file = world.identities[version.inode as usize - 1];
            (file.size, file.changed_ns) == (version.size, version.changed_ns)
        };
        if self.caches {
            if let Some(near) = world.objects.known(self.here, &self.era, address, is_same) {
                return Ok(near);
            }
        }
        self.found.set(self.found.get() + 1);
        let (mapping, version) = world.look(self.preempt, self.space, address)?;
        Ok(match self.caches {
            true => world
                .objects
                .keep(self.here, &self.era, address, &mapping, version),
            false => Near::new(&mapping, None),
        })
    }

    fn read(&mut self, address: u64) -> Option<u64> {
        let offset = address.checked_sub(STACK)?;
        self.memory.get(usize::try_from(offset / 8).ok()?).copied()
    }

    fn rule(&mut self, place: Place) -> Option<Rule> {
        let (number, offset) = match place {
            Place::File { object, offset } => (object, offset),
            Place::Vdso { offset } => (Objects::VDSO, offset),
            _ => return None,
        };
        match self.caches {
            true => self.world.objects.rule(self.preempt, number, offset),
            false => Some(self.world.rules.get(&number)?.find(offset)),
        }
    }

    fn plain(&mut self, key: Key) -> Option<Plain> {
        assert!(self.caches);
        self.world.objects.plain(self.book, key)
    }
}

fn rule() -> impl Strategy<Value = Rule> {
    let sp = (1..6i32, -5..=0i16).prop_map(|(words, fp)| (Kind::Sp, 8 * words, -1, fp));
    let fp = (1..4i32, -3..=0i16).prop_map(|(words, fp)| (Kind::Fp, 8 * words, -1, fp));
    prop_oneof![
        8 => sp,
        3 => fp,
        1 => Just((Kind::Sp, 12, -1, 0)),
        1 => Just((Kind::Sp, -8, -1, 0)),
        1 => Just((Kind::Sp, 8 * 4096, -1, -300)),
        1 => Just((Kind::Outermost, 0, 0, 0)),
        1 => Just((Kind::Plt, 11, -1, 0)),
        1 => Just((Kind::Deref, 8, -1, 0)),
        1 => Just((Kind::Frame, 0, 0, 0)),
    ]
    .prop_map(|(kind, cfa, ra, fp)| Rule { kind, fp, ra, cfa })
}

fn table() -> impl Strategy<Value = Table> {
    let rows = proptest::collection::btree_map(1..20_000u16, 0..12u16, 1..60);
    (proptest::collection::vec(rule(), 11), rows).prop_map(|(others, rows)| {
        let gap = Rule {
            kind: Kind::Gap,
            fp: 0,
            ra: 0,
            cfa: 0,
        };
        Table {
            machine: Machine::X86,
            rules: [vec![gap], others].concat(),
            first: 0,
            pages: vec![std::iter::once((0, 1)).chain(rows).collect()],
        }
    })
}

#[derive(Clone, Debug)]
enum Event {
    Map {
        space: usize,
        page: u64,
        pages: u64,
        contents: Option<Contents>,
    },
    /// The mappings are being changed, or no longer.
    Lock(usize),
    /// The program is executed anew, at the same addresses and with as many changes.
    Execute(usize),
    Rewrite {
        nth: usize,
        size: bool,
    },
    SetRules {
        nth: usize,
        table: Table,
    },
    SetRulesOfVdso(Table),
    Want(usize),
    Hold(bool),
    Beat,
    NewTable,
    Walk {
        space: usize,
        cpu: usize,
        level: usize,
        registers: [u64; 3],
        memory: Vec<u64>,
    },
}

fn contents() -> impl Strategy<Value = Option<Contents>> {
    prop_oneof![
        1 => Just(None),
        6 => (0..3usize, 0..8u64).prop_map(|(nth, page)| Some(Contents::File { nth, offset: page * PAGE })),
        1 => Just(Some(Contents::Memory)),
    ]
}

/// A word of a stack: an address in code, one on the stack, or anything.
fn word() -> impl Strategy<Value = u64> {
    prop_oneof![
        // Some are the same again and again.
        8 => (0..13 * PAGE / 256).prop_map(|at| CODE + 256 * at),
        4 => (0..20 * PAGE).prop_map(|at| CODE + at),
        4 => (0..WORDS).prop_map(|at| STACK + 8 * at),
        1 => any::<u64>(),
        1 => Just(0),
    ]
}

fn walk() -> impl Strategy<Value = Event> {
    let memory = proptest::collection::vec(word(), WORDS as usize);
    (
        0..2usize,
        0..2usize,
        0..4usize,
        (word(), 0..8u64, word()),
        memory,
    )
        .prop_map(|(space, cpu, level, (ip, sp, fp), memory)| Event::Walk {
            space,
            cpu,
            level,
            registers: [ip, STACK + 8 * sp, fp],
            memory,
        })
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        12 => walk(),
        3 => (0..2usize, 0..PAGES / 4, 1..6u64, contents())
            .prop_map(|(space, page, pages, contents)| Event::Map { space, page, pages, contents }),
        1 => (0..2usize).prop_map(Event::Lock),
        1 => (0..2usize).prop_map(Event::Execute),
        2 => (0..3usize, any::<bool>()).prop_map(|(nth, size)| Event::Rewrite { nth, size }),
        3 => (0..3usize, table()).prop_map(|(nth, table)| Event::SetRules { nth, table }),
        1 => table().prop_map(Event::SetRulesOfVdso),
        1 => (0..3usize).prop_map(Event::Want),
        1 => any::<bool>().prop_map(Event::Hold),
        1 => Just(Event::Beat),
        1 => Just(Event::NewTable),
    ]
}

impl World {
    /// The number of a file's object, which it gets if it has none.
    fn number_of(&self, nth: usize) -> u32 {
        let cpu = Cpu::enter(0);
        let identity = Identity::File(self.identities[nth]);
        self.objects
            .number(cpu.preempt(), &identity, || Held::NONE)
            .unwrap()
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Map {
                space,
                page,
                pages,
                contents,
            } => {
                let begin = CODE + page * PAGE;
                self.spaces[space].map(begin..begin + pages * PAGE, contents);
            }
            Event::Lock(space) => self.spaces[space].sequence += 1,
            Event::Execute(space) => {
                self.spaces[space].number = self.next_space;
                self.next_space += 1 << 50;
                // Other contents, and the same number of changes.
                for (_, contents) in &mut self.spaces[space].mappings {
                    if let Contents::File { nth, .. } = contents {
                        *nth = (*nth + 1) % 3;
                    }
                }
            }
            Event::Rewrite { nth, size: true } => self.identities[nth].size += 1,
            Event::Rewrite { nth, size: false } => self.identities[nth].changed_ns += 1,
            Event::SetRules { nth, table } => self.set_rules(self.number_of(nth), &table),
            Event::SetRulesOfVdso(table) => self.set_rules(Objects::VDSO, &table),
            Event::Want(nth) => self.objects.want(self.number_of(nth)),
            Event::Hold(held) => self.held = held,
            Event::Beat => {
                for _ in 0..=Objects::BEATS_HELD {
                    self.objects.beat(|| ());
                }
            }
            Event::NewTable => self.replace_table(),
            Event::Walk {
                space,
                cpu,
                level,
                registers: [ip, sp, fp],
                memory,
            } => {
                let registers = || Registers {
                    ip,
                    sp,
                    fp,
                    lr: None,
                };
                let cpu = Cpu::enter(cpu);
                // Known mappings and rules are used by the second walk at the latest.
                for _ in 0..2 {
                    let mut with = self.program(&cpu, space, level, true);
                    with.memory = &memory;
                    let mut words = vec![];
                    let end = Walk::new(&mut with, registers()).take(31, |word| words.push(word));
                    let mut without = self.program(&cpu, space, level, false);
                    without.memory = &memory;
                    let mut walk = Walk::new(&mut without, registers());
                    let mut expected = vec![];
                    let expected_end = loop {
                        if expected.len() == 31 {
                            break End::Depth;
                        }
                        match walk.next_word() {
                            Ok(word) => expected.push(word),
                            Err(end) => break end,
                        }
                    };
                    assert_eq!((words, end), (expected, expected_end));
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn words_are_the_same_as_without_caches(events in proptest::collection::vec(event(), 1..60)) {
        let mut world = World::new();
        for event in events {
            world.happen(event);
        }
    }
}

/// How many mappings a hit at an address looks for: none if they are known.
fn looks(world: &World, space: usize, level: usize, address: u64) -> usize {
    let cpu = Cpu::enter(0);
    let mut program = world.program(&cpu, space, level, true);
    let _ = program.near(address);
    program.found.get()
}

#[test]
fn a_mapping_is_known_after_the_first_hit_until_something_changes() {
    let mut world = World::new();
    let look = |world: &World| looks(world, 0, 0, CODE);
    assert_eq!([look(&world), look(&world)], [1, 0]);
    // Of another program at the same address, in another context, and on another CPU: not known.
    assert_eq!(looks(&world, 1, 0, CODE), 1);
    assert_eq!([2, 2].map(|level| looks(&world, 0, level, CODE)), [1, 0]);
    let cpu = Cpu::enter(1);
    let mut program = world.program(&cpu, 0, 0, true);
    program.near(CODE).unwrap();
    assert_eq!(program.found.get(), 1);
    drop(cpu);
    look(&world);

    let changes: [fn(&mut World); 6] = [
        |world| world.identities[0].size += 1,
        |world| world.identities[0].changed_ns += 1,
        |world| world.spaces[0].sequence += 2,
        |world| world.spaces[0].number = 77 << 50,
        |world| world.set_rules(world.number_of(1), &plain_table()),
        World::replace_table,
    ];
    for (nth, change) in changes.into_iter().enumerate() {
        assert_eq!(look(&world), 0, "before change {nth}");
        change(&mut world);
        assert_eq!(look(&world), 1, "change {nth}");
    }
    // While mappings are being changed, nothing is known, and nothing is kept.
    world.spaces[0].sequence += 1;
    assert_eq!([look(&world), look(&world)], [1, 1]);
    // Nor by the task that changes them, which finds some.
    let cpu = Cpu::enter(0);
    let (mapping, version) = world.look(cpu.preempt(), &world.spaces[1], CODE).unwrap();
    let Running { here, era, .. } = world.program(&cpu, 0, 0, true);
    world.objects.keep(here, &era, CODE, &mapping, version);
    assert!(world.objects.known(here, &era, CODE, |_| true).is_none());
}

/// The vDSO and memory without a file are known, too.
#[test]
fn mappings_without_a_file_are_known() {
    let world = World::new();
    for page in [12, 16] {
        let address = CODE + page * PAGE;
        assert_eq!([0, 0].map(|level| looks(&world, 0, level, address)), [1, 0]);
    }
}

/// A file that somebody wants to read is held by the next hit, also in a mapping that is known; and
/// one that could not be held is tried again by each hit.
#[test]
fn a_file_that_is_wanted_is_held_by_a_hit_in_a_known_mapping() {
    let mut world = World::new();
    world.held = false;
    let number = world.number_at(0, CODE, true).unwrap();
    assert_eq!(looks(&world, 0, 0, CODE), 1);
    world.held = true;
    assert_eq!([0, 0].map(|level| looks(&world, 0, level, CODE)), [1, 0]);
    assert_eq!(world.objects.with_file(number, |file| file), Some(0x1000));
    for _ in 0..=Objects::BEATS_HELD {
        world.objects.beat(|| ());
    }
    assert_eq!(looks(&world, 0, 0, CODE), 0);
    assert_eq!(world.objects.with_file(number, |file| file), None);
    world.number_at(0, CODE, true).unwrap();
    assert_eq!(world.objects.with_file(number, |file| file), Some(0x1000));
}

/// A mapping of a file without a number counts as lost each time.
#[test]
fn a_mapping_without_a_number_is_not_kept() {
    let world = World::new();
    let cpu = Cpu::enter(0);
    for inode in 0..Objects::MAX as u64 {
        let identity = Identity::File(FileIdentity {
            device: 2,
            inode,
            generation: 0,
            size: 1,
            changed_ns: 1,
        });
        world
            .objects
            .number(cpu.preempt(), &identity, || Held::NEVER)
            .unwrap();
    }
    drop(cpu);
    assert_eq!([0, 0].map(|level| looks(&world, 0, level, CODE)), [1, 1]);
    assert_eq!(world.objects.lost(), 2);
}

/// Each 16 bytes have another rule.
fn plain_table() -> Table {
    let rule = |kind, cfa, ra| Rule {
        kind,
        fp: 0,
        ra,
        cfa,
    };
    Table {
        machine: Machine::X86,
        rules: std::iter::once(rule(Kind::Gap, 0, 0))
            .chain((1..4000).map(|nth| rule(Kind::Sp, 8 * nth, -1)))
            .collect(),
        first: 0,
        pages: vec![(0..4000).map(|nth| (16 * nth, nth)).collect()],
    }
}

/// Threads that learn rules in the same places never see another instruction's.
#[test]
fn rules_that_others_learn_are_those_of_their_instructions() {
    let mut world = World::new();
    let numbers = [0, 1].map(|nth| world.number_of(nth));
    for number in numbers {
        world.set_rules(number, &plain_table());
    }
    let objects = &world.objects;
    std::thread::scope(|scope| {
        for thread in 0..2 {
            scope.spawn(move || {
                let cpu = Cpu::enter(thread);
                for round in 0..200_000u64 {
                    let offset = round * 7919 % 64_000;
                    let place = Place::File {
                        object: numbers[(round / 3 % 2) as usize],
                        offset,
                    };
                    let mapping = Mapping {
                        begin: 0x1000,
                        end: 0x2000,
                        place,
                    };
                    let era = objects.era(thread as u64, 0);
                    let here = Here::new(cpu.preempt(), 0);
                    let near = objects.keep(here, &era, 0x1000, &mapping, None);
                    let book = objects.rulebook().unwrap();
                    let cfa = |plain: Plain| plain.cfa();
                    let plain = objects.plain(book, near.key().unwrap()).map(cfa);
                    assert_eq!(plain, (offset >= 16).then_some(offset / 16 * 8));
                }
            });
        }
    });
}
