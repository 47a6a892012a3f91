// SPDX-License-Identifier: GPL-2.0

//! The table of objects: numbers, files that are held for a while, and rules.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Mutex;

use kernel::error::code::{EEXIST, ENOENT, ENOSPC};
use rhist::cpu::Cpu;
use rhist::map::Cpus;
use rhist::user_stack::{
    End, ExecFiles, FileIdentity, Held, Identity, Kind, Machine, Object, ObjectState, Objects,
    Rule, Rules,
};

use super::table::Table;

/// Number of references to each file that a test has taken and not put.
pub(super) struct Files(Mutex<HashMap<usize, isize>>);

impl Files {
    pub(super) fn new() -> &'static Self {
        Box::leak(Box::new(Self(Mutex::new(HashMap::new()))))
    }

    fn references(&self, file: usize) -> isize {
        self.0.lock().unwrap().get(&file).copied().unwrap_or(0)
    }

    fn add(&self, file: usize, n: isize) {
        *self.0.lock().unwrap().entry(file).or_default() += n;
        assert!(self.references(file) >= 0);
    }

    /// A reference to `file`, as a hit takes it.
    pub(super) fn hold(&self, file: usize, fits: bool) -> Held {
        self.add(file, 1);
        // SAFETY: The reference is the one from above.
        unsafe { Held::new(file, fits) }
    }
}

impl ExecFiles for Files {
    unsafe fn get(&self, file: usize) {
        self.add(file, 1);
    }

    unsafe fn settle(&self, file: usize) -> Option<usize> {
        assert!(self.references(file) > 0);
        let settled = (file == FILE).then_some(PATH);
        if let Some(path) = settled {
            self.add(path, 1);
        }
        settled
    }

    unsafe fn put(&self, file: usize) {
        self.add(file, -1);
    }
}

/// A file that a program has open, and one that only keeps its path.
const FILE: usize = 0x1000;
const PATH: usize = 0x2000;

fn table(files: &'static Files) -> Objects {
    Objects::new(Cpus::uniform(2), 1, files, None).unwrap()
}

fn identity(inode: u64) -> Identity {
    Identity::File(FileIdentity {
        device: 0x0080_0001,
        inode,
        generation: 7,
        size: 4096,
        changed_ns: 5,
    })
}

/// The number that a hit gets, which holds [`FILE`] if that is wanted.
fn number(objects: &Objects, files: &'static Files, identity: &Identity) -> Option<u32> {
    let cpu = Cpu::enter(1);
    objects.number(cpu.preempt(), identity, || files.hold(FILE, true))
}

fn listed(objects: &Objects) -> Vec<Object> {
    let mut list = vec![];
    let add = |object| {
        list.push(object);
        Ok(())
    };
    objects.for_each(add).unwrap();
    list
}

fn rules(rows: u16) -> Rules {
    let rule = |kind| Rule {
        kind,
        fp: 0,
        ra: 0,
        cfa: 0,
    };
    let table = Table {
        machine: Machine::X86,
        rules: vec![rule(Kind::Gap), rule(Kind::Outermost)],
        first: 0,
        pages: vec![(0..rows).map(|n| (n, n % 2)).collect()],
    };
    table.upload().unwrap()
}

#[test]
fn an_identity_has_a_number() {
    let files = Files::new();
    let objects = table(files);
    let Identity::File(file) = identity(1) else {
        unreachable!()
    };
    let identities = [
        Identity::File(file),
        Identity::File(FileIdentity { inode: 2, ..file }),
        Identity::File(FileIdentity {
            device: 0x0080_0002,
            ..file
        }),
        Identity::File(FileIdentity {
            generation: 8,
            ..file
        }),
        Identity::File(FileIdentity { size: 8192, ..file }),
        Identity::File(FileIdentity {
            changed_ns: 6,
            ..file
        }),
        Identity::Memory {
            process: 0x0080_0001,
            space: 1,
            begin: 7,
        },
    ];
    let version = objects.version();
    let numbers = identities.map(|identity| number(&objects, files, &identity).unwrap());
    assert_ne!(objects.version(), version);
    assert_eq!(
        identities.map(|identity| number(&objects, files, &identity).unwrap()),
        numbers
    );
    let list = listed(&objects);
    assert_eq!(list.len(), objects.len());
    assert_eq!((list[0].number, list[0].identity), (Objects::VDSO, None));
    for (identity, number) in identities.into_iter().zip(numbers) {
        let found = list.iter().find(|object| object.number == number).unwrap();
        assert_eq!(found.identity, Some(identity));
        assert!(objects.has(number));
    }
    assert!(!objects.has(1 + list.iter().map(|object| object.number).max().unwrap()));
    objects.beat(|| ());
    assert_eq!(files.references(PATH), 7);
    drop(objects);
    assert_eq!([FILE, PATH].map(|file| files.references(file)), [0, 0]);
}

/// A hit takes one reference, which is put after ten beats, and another one when somebody wants the
/// file.
#[test]
fn a_file_is_held_for_a_while() {
    let files = Files::new();
    let objects = table(files);
    let first = number(&objects, files, &identity(1)).unwrap();
    number(&objects, files, &identity(1)).unwrap();
    assert_eq!(files.references(FILE), 1);
    assert_eq!(objects.with_file(first, |file| file), Some(FILE));
    // Readers of the list learn that the file can be read, and nothing more meanwhile.
    let version = objects.version();
    assert!(objects.beat(|| ()));
    assert_ne!(objects.version(), version);
    let version = objects.version();
    // The program's open file is held for a beat only.
    let references = || [FILE, PATH].map(|file| files.references(file));
    assert_eq!(references(), [0, 1]);
    assert_eq!(objects.with_file(first, |file| file), Some(PATH));
    for _ in 1..Objects::BEATS_HELD {
        assert!(objects.beat(|| ()));
    }
    assert_eq!((references(), objects.version()), ([0, 1], version));
    assert!(!objects.beat(|| ()));
    assert_eq!(references(), [0, 0]);
    assert_ne!(objects.version(), version);
    assert_eq!(listed(&objects)[1].state, ObjectState::Released);

    // Hits do not hold it again, until it is wanted.
    number(&objects, files, &identity(1)).unwrap();
    assert_eq!(files.references(FILE), 0);
    assert_eq!(objects.with_file(first, |file| file), None);
    number(&objects, files, &identity(1)).unwrap();
    assert_eq!(files.references(FILE), 1);
    assert_eq!(listed(&objects)[1].state, ObjectState::Readable);
    assert_eq!(objects.with_file(first + 1, |file| file), None);
}

/// While a hit takes a reference, a hit that interrupts it takes none.
#[test]
fn one_hit_holds_a_file() {
    let files = Files::new();
    let objects = table(files);
    let calls = Cell::new(0);
    let cpu = Cpu::enter(0);
    let hold = || {
        calls.set(calls.get() + 1);
        let inner = || unreachable!("a second reference");
        objects.number(cpu.preempt(), &identity(1), inner).unwrap();
        Held::NONE
    };
    objects.number(cpu.preempt(), &identity(1), hold).unwrap();
    // It is tried again if the file could not be held.
    let hold = || files.hold(FILE, true);
    objects.number(cpu.preempt(), &identity(1), hold).unwrap();
    assert_eq!((calls.get(), files.references(FILE)), (1, 1));
}

/// A reference to another file is put at the next beat, and nobody reads that file.
#[test]
fn a_mapping_may_change_while_its_file_is_held() {
    let files = Files::new();
    let objects = table(files);
    let hit = |fits| {
        let cpu = Cpu::enter(0);
        let hold = || files.hold(FILE, fits);
        objects.number(cpu.preempt(), &identity(1), hold).unwrap()
    };
    let number = hit(false);
    assert_eq!(files.references(FILE), 1);
    assert_eq!(objects.with_file(number, |file| file), None);
    objects.beat(|| ());
    assert_eq!(files.references(FILE), 0);
    hit(true);
    assert_eq!(objects.with_file(number, |file| file), Some(FILE));
}

/// An object that cannot be held is not tried again.
#[test]
fn some_files_cannot_be_held() {
    let files = Files::new();
    let objects = table(files);
    let calls = Cell::new(0);
    let hit = || {
        let cpu = Cpu::enter(0);
        let hold = || {
            calls.set(calls.get() + 1);
            Held::NEVER
        };
        objects.number(cpu.preempt(), &identity(1), hold).unwrap()
    };
    let number = hit();
    assert_eq!(objects.with_file(number, |file| file), None);
    assert_eq!((hit(), calls.get()), (number, 1));
    assert!(!objects.beat(|| ()));
}

/// Memory of programs takes a quarter of the numbers only.
#[test]
fn memory_leaves_numbers_to_files() {
    let files = Files::new();
    let objects = table(files);
    let memory = |begin| Identity::Memory {
        process: 1,
        space: 2,
        begin,
    };
    let hit = |identity| {
        let cpu = Cpu::enter(0);
        objects.number(cpu.preempt(), &identity, || Held::NEVER)
    };
    for begin in 0..u64::from(Objects::MEMORIES_MAX) {
        assert!(hit(memory(begin)).is_some());
    }
    assert_eq!((hit(memory(1 << 40)), objects.lost()), (None, 1));
    assert!(hit(memory(5)).is_some());
    assert!(hit(identity(5)).is_some());
    assert_eq!(objects.lost(), 1);
}

/// No number of a table is one of the table before, until the numbers of words are used up.
#[test]
fn the_next_table_has_other_numbers() {
    let files = Files::new();
    let mut objects = table(files);
    let mut last = 0;
    let mut restarts = 0;
    for _ in 0..600 {
        let first = number(&objects, files, &identity(1)).unwrap();
        let second = number(&objects, files, &identity(2)).unwrap();
        assert!(first > 0 && second < rhist::user_stack::Word::NUMBERS);
        assert!(objects.has(first) && listed(&objects)[1].number >= first.min(second));
        objects.set_rules(second, rules(2), usize::MAX).unwrap();
        let cpu = Cpu::enter(0);
        assert!(objects.rule(cpu.preempt(), second, 1).is_some());
        drop(cpu);
        restarts += usize::from(first < last);
        last = first.max(second);
        objects = Objects::new(Cpus::uniform(2), 1, files, Some(&objects)).unwrap();
    }
    assert!((1..4).contains(&restarts));
}

#[test]
fn rules_are_written_once_and_within_the_limit() {
    let files = Files::new();
    let objects = table(files);
    let [first, second] = [1, 2].map(|inode| number(&objects, files, &identity(inode)).unwrap());
    let rule = |number| {
        let cpu = Cpu::enter(0);
        objects.rule(cpu.preempt(), number, 1)
    };
    let size = rules(100).size();
    let most = 2 * size;
    assert_eq!(rule(first), None);
    let version = objects.version();
    objects.set_rules(first, rules(100), most).unwrap();
    assert_ne!(objects.version(), version);
    assert_eq!(rule(first).unwrap().kind, Kind::Outermost);
    assert_eq!(objects.set_rules(first, rules(100), most), Err(EEXIST));
    assert_eq!(objects.set_rules(second, rules(101), most), Err(ENOSPC));
    assert_eq!(objects.set_rules(9999, rules(1), most), Err(ENOENT));
    assert_eq!((rule(second), objects.bytes()), (None, size));
    objects.set_rules(Objects::VDSO, rules(100), most).unwrap();
    assert_eq!(rule(Objects::VDSO).unwrap().kind, Kind::Outermost);
    let ruled = ObjectState::Ruled {
        rows: 100,
        bytes: size,
        readable: false,
    };
    assert_eq!(listed(&objects)[0].state, ruled);
}

#[test]
fn ends_are_counted_on_each_cpu() {
    let objects = table(Files::new());
    for cpu in [0, 1, 1] {
        let cpu = Cpu::enter(cpu);
        objects.count(cpu.preempt(), End::Depth);
    }
    let stacks = End::ALL.map(|end| objects.stacks(end));
    assert_eq!(
        (stacks[End::Depth.number() as usize], stacks.iter().sum()),
        (3, 3)
    );
}

/// More objects than have numbers are counted.
#[test]
fn too_many_objects() {
    let files = Files::new();
    let objects = table(files);
    let mut numbers = std::collections::HashSet::new();
    for inode in 0..Objects::MAX as u64 {
        let number = number(&objects, files, &identity(inode)).unwrap();
        assert!(number > 0 && number < rhist::user_stack::Word::NUMBERS);
        assert!(numbers.insert(number));
    }
    assert_eq!(number(&objects, files, &identity(u64::MAX)), None);
    assert_eq!(objects.lost(), 1);
    assert_eq!(objects.len(), 1 + Objects::MAX);
    for _ in 0..=Objects::BEATS_HELD {
        objects.beat(|| ());
    }
    assert_eq!([FILE, PATH].map(|file| files.references(file)), [0, 0]);
}
