// SPDX-License-Identifier: GPL-2.0

//! An event with a field of every kind, hits of it, and the machine they happen on.

#![allow(dead_code, reason = "each test uses some of it")]

use rhist::cpu::Cpu;
use rhist::event::Clock;
use rhist::event::Context;
use rhist::event::EventDesc;
use rhist::event::EventField;
use rhist::event::FilterType;
use rhist::event::Group;
use rhist::event::GroupPlace;
use rhist::event::GroupTask;
use rhist::event::Hit;
use rhist::event::LongBuffer;
use rhist::event::Record;
use rhist::event::Stack;
use rhist::event::Tail;
use rhist::filter::Filter;
use rhist::filter::FilterError;
use rhist::filter::Memory;
use rhist::filter::Symbols;
use rhist::sync::PreemptOff;
use FilterType::*;

/// More than the bits of a word, and not a multiple of them.
pub(crate) const CPUS: usize = 70;

type Field = (&'static str, &'static str, u32, u32, bool, FilterType);

pub(crate) const COMMON: &[Field] = &[
    ("unsigned short", "common_type", 0, 2, false, Other),
    ("unsigned char", "common_flags", 2, 1, false, Other),
    ("unsigned char", "common_preempt_count", 3, 1, false, Other),
    ("int", "common_pid", 4, 4, true, Other),
];

pub(crate) const FIELDS: &[Field] = &[
    ("s8", "s8", 8, 1, true, Other),
    ("u8", "u8", 9, 1, false, Other),
    ("s16", "s16", 10, 2, true, Other),
    ("u16", "u16", 12, 2, false, Other),
    ("s32", "s32", 16, 4, true, Other),
    ("u32", "u32", 20, 4, false, Other),
    ("s64", "s64", 24, 8, true, Other),
    ("u64", "u64", 32, 8, false, Other),
    ("char[8]", "text", 40, 8, false, StaticString),
    ("__data_loc char[]", "dyn", 48, 4, false, DynString),
    ("__rel_loc char[]", "rel", 52, 4, false, RelDynString),
    ("const char *", "ptr", 56, 8, false, PtrString),
    ("char *", "uptr", 64, 8, false, PtrString),
    ("__data_loc cpumask_t", "mask", 72, 4, false, CpuMask),
    ("unsigned long", "ip", 80, 8, false, Other),
    ("unsigned long[2]", "args", 88, 16, false, Other),
    ("unsigned long[]", "stack", 104, 4, false, Stacktrace),
    ("void *", "fn", 112, 8, false, TraceFn),
];

/// Where the fields end.
pub(crate) const END: usize = 120;

/// Fields of every event, which C looks up after [`FIELDS`] and before [`COMMON`].
pub(crate) const GENERIC: &[Field] = &[
    ("int", "CPU", 0, 0, true, Cpu),
    ("int", "cpu", 0, 0, true, Cpu),
    ("int", "common_cpu", 0, 0, true, Cpu),
    ("char *", "COMM", 0, 0, false, Comm),
    ("char *", "comm", 0, 0, false, Comm),
    ("char *", "stacktrace", 0, 0, false, Stacktrace),
    ("char *", "STACKTRACE", 0, 0, false, Stacktrace),
];

pub(crate) fn event() -> EventDesc {
    let mut event = EventDesc::new(b"test", b"scene").unwrap();
    for (fields, common) in [(COMMON, true), (FIELDS, false)] {
        for &(type_, name, offset, size, signed, filter) in fields {
            let (name, type_) = (name.as_bytes(), type_.as_bytes());
            let field = EventField::new(name, type_, offset, size, signed, filter, common);
            event.add(field.unwrap()).unwrap();
        }
    }
    event
}

/// The functions: name, start, size.
pub(crate) const FUNCTIONS: &[(&str, usize, usize)] = &[
    ("schedule", 0x1000, 0x40),
    ("odd)", 0x2000, 0x100),
    ("empty", 0x3000, 0),
    ("last", usize::MAX - 15, 16),
];

/// The control groups.
pub(crate) const GROUPS: &[(&str, GroupPlace)] = &[
    ("/", GroupPlace { id: 1, level: 0 }),
    ("/a", GroupPlace { id: 20, level: 1 }),
    ("/a/b", GroupPlace { id: 21, level: 2 }),
];

pub(crate) struct Kernel;

impl Symbols for Kernel {
    fn group(&self, path: &[u8]) -> Option<GroupPlace> {
        let group = GROUPS.iter().find(|group| group.0.as_bytes() == path);
        group.map(|group| group.1)
    }

    fn address(&self, name: &[u8]) -> Option<usize> {
        let mut functions = FUNCTIONS.iter();
        Some(functions.find(|f| f.0.as_bytes() == name)?.1)
    }

    fn function(&self, address: usize) -> Option<(usize, usize)> {
        let mut functions = FUNCTIONS.iter();
        let around = |f: &&(&str, usize, usize)| {
            let offset = address.wrapping_sub(f.1);
            offset == 0 || offset < f.2
        };
        functions.find(around).map(|f| (f.1, f.2))
    }
}

pub(crate) const KERNEL_BASE: usize = 0x10000;
pub(crate) const USER_BASE: usize = 0x20000;

/// Contents of kernel memory from [`KERNEL_BASE`] on, with nothing before and after it: strings at
/// 0, 5 and 100, a long one at 200, and one that does not end at 2040.
pub(crate) fn kernel_bytes() -> Vec<u8> {
    bytes(&[
        (0, b"init\0"),
        (5, b"bash\0"),
        (100, b"a string of the kernel\0"),
        (200, &[b'x'; 1500]),
        (2040, b"abcdefgh"),
    ])
}

/// Contents of user memory from [`USER_BASE`] on: strings at 0 and 5.
pub(crate) fn user_bytes() -> Vec<u8> {
    bytes(&[(0, b"user\0"), (5, b"/bin/bash\0"), (2047, b"z")])
}

fn bytes(strings: &[(usize, &[u8])]) -> Vec<u8> {
    let mut bytes = vec![0; 2048];
    for (at, string) in strings {
        bytes[*at..][..string.len()].copy_from_slice(string);
    }
    bytes
}

impl Memory for Kernel {
    fn read_kernel(&self, to: &mut [u8], address: usize) -> bool {
        read(to, address, KERNEL_BASE, &kernel_bytes())
    }

    fn read_user(&self, to: &mut [u8], address: usize) -> bool {
        read(to, address, USER_BASE, &user_bytes())
    }
}

fn read(to: &mut [u8], address: usize, base: usize, bytes: &[u8]) -> bool {
    assert!(!to.is_empty());
    let last = address.checked_add(to.len() - 1).unwrap();
    assert_eq!(
        address / rhist::event::pointed::BLOCK,
        last / rhist::event::pointed::BLOCK,
        "across blocks"
    );
    let from = address.wrapping_sub(base);
    let Some(from) = bytes.get(from..).and_then(|bytes| bytes.get(..to.len())) else {
        return false;
    };
    to.copy_from_slice(from);
    true
}

/// A hit, to be filled in.
#[derive(Clone)]
pub(crate) struct Scene {
    pub(crate) record: Vec<u8>,
    pub(crate) cpu: usize,
    pub(crate) comm: [u8; 16],
    /// The index of its task's control group in [`GROUPS`].
    pub(crate) group: usize,
}

impl Scene {
    /// A record of zeros, in a task of that name.
    pub(crate) fn new(cpu: usize, comm: &str) -> Self {
        let mut bytes = *b"\0**************\0";
        bytes[..comm.len()].copy_from_slice(comm.as_bytes());
        if let Some(nul) = bytes.get_mut(comm.len()) {
            *nul = 0;
        }
        let scene = Self {
            record: vec![0; END],
            cpu,
            group: 0,
            comm: bytes,
        };
        scene.dynamic("dyn", b"\0").dynamic("rel", b"\0").cpus(&[])
    }

    fn field(name: &str) -> &'static Field {
        let mut fields = FIELDS.iter().chain(COMMON);
        fields.find(|f| f.1 == name).unwrap()
    }

    /// Sets the field `name`, of any size up to 8, to a number.
    pub(crate) fn number(mut self, name: &str, number: u64) -> Self {
        let &(_, _, at, size, ..) = Self::field(name);
        // In a big-endian number, these bytes would be the last ones.
        const { assert!(cfg!(target_endian = "little")) };
        let bytes = number.to_le_bytes();
        self.record[at as usize..][..size as usize].copy_from_slice(&bytes[..size as usize]);
        self
    }

    pub(crate) fn text(mut self, text: &[u8]) -> Self {
        self.record[40..][..text.len()].copy_from_slice(text);
        self
    }

    /// Appends `bytes` for the field `name`.
    pub(crate) fn dynamic(mut self, name: &str, bytes: &[u8]) -> Self {
        let &(_, _, at, .., filter) = Self::field(name);
        self.record.resize(self.record.len().next_multiple_of(8), 0);
        let base = match filter {
            RelDynString => at as usize + 4,
            _ => 0,
        };
        let word = (self.record.len() - base) | bytes.len() << 16;
        self.record.extend_from_slice(bytes);
        self.number(name, word as u64)
    }

    /// Sets the mask. Bits beyond the last CPU are set, too.
    pub(crate) fn cpus(self, cpus: &[usize]) -> Self {
        let mut words = vec![0u64; CPUS.div_ceil(64)];
        for cpu in cpus.iter().copied().chain(CPUS..words.len() * 64) {
            words[cpu / 64] |= 1 << (cpu % 64);
        }
        let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_ne_bytes).collect();
        self.dynamic("mask", &bytes)
    }

    /// Returns whether `filter` matches this hit.
    pub(crate) fn matches(&self, filter: &Filter) -> bool {
        let cpu = Cpu::enter(self.cpu);
        let hit = Hit::new(Record::new(&self.record), cpu.preempt(), self);
        filter.matches(&hit, &Kernel)
    }
}

/// Filters use only the name of the task.
impl Context for Scene {
    fn time(&self, _: Clock) -> u64 {
        unreachable!()
    }

    fn stack(&self, _: PreemptOff<'_>, _: &mut Stack) {
        unreachable!()
    }

    fn user_stack(&self, _: PreemptOff<'_>, _: usize, _: &mut Tail<'_>) {
        unreachable!()
    }

    fn long_buffer<'a>(&'a self, _: PreemptOff<'a>) -> Option<LongBuffer<'a>> {
        unreachable!()
    }

    fn comm(&self) -> [u8; 16] {
        self.comm
    }

    fn comm_of(&self, _: u32) -> Option<[u8; 16]> {
        unreachable!()
    }

    fn tgid(&self) -> u32 {
        unreachable!()
    }

    fn ppid(&self) -> u32 {
        unreachable!()
    }

    fn cgroup(&self) -> u64 {
        GROUPS[self.group].1.id
    }

    fn cgroup_of(&self, _: u32) -> u64 {
        unreachable!()
    }

    fn cgroup_node<'a>(&self, _: PreemptOff<'a>, _: GroupTask) -> Option<Group<'a>> {
        unreachable!()
    }

    fn is_in_cgroup(&self, group: GroupPlace) -> bool {
        let (path, above) = (
            GROUPS[self.group].0,
            GROUPS.iter().find(|above| above.1 == group),
        );
        above.is_some_and(|above| path.starts_with(above.0))
    }

    fn read(&self, _to: &mut [u8], _address: usize) -> bool {
        false
    }

    fn read_kernel(&self, _to: &mut [u8], _address: usize) -> bool {
        false
    }
}

/// A few hits that differ in everything.
pub(crate) fn scenes() -> Vec<Scene> {
    let mut scenes = vec![
        Scene::new(0, ""),
        Scene::new(3, "bash")
            .text(b"bash\0\0\0\0")
            .dynamic("dyn", b"bash\0")
            .dynamic("rel", b"sched\0")
            .number("ptr", KERNEL_BASE as u64 + 5)
            .number("uptr", USER_BASE as u64 + 5)
            .number("ip", 0x1000)
            .cpus(&[3]),
        Scene::new(64, "kworker/u8:1")
            .text(b"kworkers")
            .dynamic("dyn", b"kworker/u8:1\0")
            .dynamic("rel", b"a\0b\0")
            .number("ptr", KERNEL_BASE as u64 + 200)
            .number("uptr", USER_BASE as u64)
            .number("ip", 0x103f)
            .cpus(&[1, 64]),
        Scene::new(69, "fifteen-letters")
            .text(b"sh\0bash\0")
            .dynamic("dyn", b"[a]\\?*\0")
            .dynamic("rel", b"xy")
            .number("ptr", KERNEL_BASE as u64 + 2040)
            .number("uptr", USER_BASE as u64 + 2047)
            .number("ip", 0x1040)
            .cpus(&[0, 1, 2, 3, 69]),
        Scene::new(1, "a")
            .text(b"aaaaaaab")
            .dynamic("dyn", b"")
            .dynamic("rel", b"")
            .number("ptr", 0)
            .number("uptr", u64::MAX - 3)
            .number("ip", u64::MAX)
            .cpus(&[5]),
    ];
    let numbers = [1, 3, 5, 42, 64, 69, 70, 127, 128, 255, 256, 32767, 32768];
    let large = [
        u64::from(u32::MAX),
        1 << 31,
        1 << 32,
        (1 << 32) + 3,
        i64::MAX as u64,
        1 << 63,
        u64::MAX,
        u64::MAX - 1,
        -42i64 as u64,
        -128i64 as u64,
        0x2000,
    ];
    for (cpu, number) in numbers.into_iter().chain(large).enumerate() {
        let mut scene = Scene::new(cpu, "number").cpus(&[cpu]);
        for (_, name, ..) in FIELDS.iter().chain(COMMON) {
            if !["text", "dyn", "rel", "mask", "args"].contains(name) {
                scene = scene.number(name, number);
            }
        }
        scenes.push(scene);
    }
    scenes
}

pub(crate) fn parse(text: &[u8]) -> Result<Filter, FilterError> {
    Filter::parse(text, &event(), CPUS, &Kernel)
}

/// Compiles a filter that must be accepted.
pub(crate) fn filter(text: &str) -> Filter {
    match parse(text.as_bytes()) {
        Ok(filter) => filter,
        Err(error) => panic!("{text}: {error:?}"),
    }
}
