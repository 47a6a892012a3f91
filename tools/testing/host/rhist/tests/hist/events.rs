// SPDX-License-Identifier: GPL-2.0

//! Events and records for tests, and the steps from a trigger's text to a histogram.

#![allow(dead_code, reason = "each test uses some of it")]

use std::cell::Cell;
use std::cell::RefCell;

use kernel::error::code::EINTR;
use kernel::error::code::ENODEV;
use kernel::error::Result as KernelResult;
use kernel::prelude::KBox;
use kernel::prelude::KVec;
use kernel::sync::Arc;
use rhist::cpu::Cpu;
use rhist::event::Clock;
use rhist::event::Clocks;
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
use rhist::hist::show;
use rhist::hist::show::Names;
use rhist::hist::show::Now;
use rhist::hist::show::Origin;
use rhist::hist::show::View;
use rhist::hist::spec::target::SnapshotTarget;
use rhist::hist::spec::target::SynthTarget;
use rhist::hist::AttachedHist;
use rhist::hist::Compiled;
use rhist::hist::Draft;
use rhist::hist::Histogram;
use rhist::hist::Scope;
use rhist::hist::Setup;
use rhist::hist::Targets;
use rhist::map::Cpus;
use rhist::map::Wake;
use rhist::sync::PreemptOff;
use rhist::text::Text;
use rhist::trigger::Error;
use rhist::trigger::Trigger;

/// Number of CPUs of the histograms that are built here.
pub(crate) const CPUS: usize = 4;

/// The event `system:name` with fields of (type, name, offset, size, signed, kind), and the common
/// ones.
pub(crate) fn event(
    system: &str,
    name: &str,
    fields: &[(&str, &str, u32, u32, bool, FilterType)],
) -> EventDesc {
    let mut event = EventDesc::new(system.as_bytes(), name.as_bytes()).unwrap();
    let mut add = |field: &(&str, &str, u32, u32, bool, FilterType), common| {
        let &(type_, name, offset, size, signed, filter) = field;
        let (name, type_) = (name.as_bytes(), type_.as_bytes());
        let field = EventField::new(name, type_, offset, size, signed, filter, common);
        event.add(field.unwrap()).unwrap();
    };
    use FilterType::Other;
    add(&("unsigned short", "common_type", 0, 2, false, Other), true);
    add(&("unsigned char", "common_flags", 2, 1, false, Other), true);
    add(
        &("unsigned char", "common_preempt_count", 3, 1, false, Other),
        true,
    );
    add(&("int", "common_pid", 4, 4, true, Other), true);
    for field in fields {
        add(field, false);
    }
    event
}

/// `sched:sched_waking` as the kernel has it.
pub(crate) fn sched_waking() -> EventDesc {
    use FilterType::*;
    event(
        "sched",
        "sched_waking",
        &[
            ("char[16]", "comm", 8, 16, true, StaticString),
            ("pid_t", "pid", 24, 4, true, Other),
            ("int", "prio", 28, 4, true, Other),
            ("int", "target_cpu", 32, 4, true, Other),
        ],
    )
}

/// An event with a field of every kind.
pub(crate) fn zoo() -> EventDesc {
    use FilterType::*;
    event(
        "test",
        "zoo",
        &[
            ("s8", "s8", 8, 1, true, Other),
            ("u8", "u8", 9, 1, false, Other),
            ("s16", "s16", 10, 2, true, Other),
            ("u16", "u16", 12, 2, false, Other),
            ("s32", "s32", 14, 4, true, Other),
            ("u32", "u32", 18, 4, false, Other),
            ("s64", "s64", 22, 8, true, Other),
            ("u64", "u64", 30, 8, false, Other),
            ("char[13]", "odd", 38, 13, false, StaticString),
            ("char[16]", "even", 51, 16, false, StaticString),
            ("__data_loc char[]", "dyn", 67, 4, false, DynString),
            ("__rel_loc char[]", "rel", 71, 4, false, RelDynString),
            ("const char *", "ptr", 75, 8, false, PtrString),
            ("__data_loc cpumask_t", "mask", 83, 4, false, CpuMask),
            ("unsigned long[]", "stack", 87, 4, false, Stacktrace),
            ("unsigned long", "ip", 91, 8, false, TraceFn),
            ("unsigned long[6]", "args", 99, 48, false, Other),
            ("u32", "twice", 8, 4, false, Other),
            ("u32", "twice", 18, 4, false, Other),
            ("char[504]", "fits", 0, 504, false, StaticString),
            ("char[505]", "long", 0, 505, false, StaticString),
        ],
    )
}

/// Offset behind the fields of [`zoo`].
pub(crate) const ZOO_END: usize = 147;

/// Builds the histogram of `params`, the text after `hist:`.
pub(crate) fn build(event: &EventDesc, params: &str) -> Result<Arc<Histogram>, Error> {
    attach(event, &Trigger::parse(params.as_bytes())?)
}

/// Builds the histogram of a trigger.
pub(crate) fn attach(event: &EventDesc, trigger: &Trigger) -> Result<Arc<Histogram>, Error> {
    empty(&compiled(&Only::new(event), trigger)?)
}

/// Compiles a trigger.
pub(crate) fn compiled(scope: &dyn Scope, trigger: &Trigger) -> Result<Compiled, Error> {
    Compiled::new(Draft::new(scope, trigger, false)?)
}

/// Seed of the hash of keys.
pub(crate) const SEED: u64 = 0x0123_4567_89ab_cdef;

std::thread_local! {
    /// The time since boot, for this thread.
    pub(crate) static BOOT_NS: Cell<u64> = const { Cell::new(1_000_000_007) };
}

/// Clocks that only move when a test moves them.
pub(crate) const CLOCKS: Clocks = Clocks {
    boot: || BOOT_NS.get(),
    real: || BOOT_NS.get() + 1_600_000_000_000_000_000,
};

/// An empty histogram of a trigger.
pub(crate) fn empty(trigger: &Compiled) -> Result<Arc<Histogram>, Error> {
    let (spec, code) = (trigger.spec.clone(), trigger.code.clone());
    let setup = Setup {
        seed: SEED,
        cpus: Cpus::uniform(CPUS),
        clocks: CLOCKS,
        max_bytes: || usize::MAX,
        group_nodes: &super::group_tree::Nodes,
        waker: &no_waker,
    };
    Ok(Histogram::new(spec, code, &setup)?)
}

/// Wakes no worker.
struct NoWaker;

impl Wake for NoWaker {
    fn wake(&self) {}
}

/// Makes something that wakes no worker.
pub(crate) fn no_waker() -> KernelResult<KBox<dyn Wake>> {
    let waker: Box<dyn Wake> = Box::new(NoWaker);
    Ok(KBox::of(waker)?)
}

/// A tracing directory with this event and `sched:sched_switch`, without triggers, synthetic events
/// and snapshots.
pub(crate) struct Only<'a> {
    event: &'a EventDesc,
    /// The logged errors.
    pub(crate) log: RefCell<Vec<Error>>,
}

impl<'a> Only<'a> {
    pub(crate) fn new(event: &'a EventDesc) -> Self {
        Self {
            event,
            log: RefCell::new(Vec::new()),
        }
    }
}

impl Scope for Only<'_> {
    fn event(&self) -> &EventDesc {
        self.event
    }

    fn has_event(&self, system: &[u8], name: &[u8]) -> KernelResult<bool> {
        Ok((system, name) == (b"sched", b"sched_switch"))
    }

    fn own_histograms(&self) -> KernelResult<KVec<AttachedHist>> {
        Ok(KVec::new())
    }

    fn histograms(&self, system: &[u8], name: &[u8]) -> KernelResult<Option<KVec<AttachedHist>>> {
        Ok(self.has_event(system, name)?.then(KVec::new))
    }

    fn all_histograms(&self) -> KernelResult<KVec<(usize, Arc<Histogram>)>> {
        Ok(KVec::new())
    }

    fn synth_event(&self, _: &[u8]) -> KernelResult<Option<KBox<dyn SynthTarget>>> {
        Ok(None)
    }

    fn cond_snapshot(&self) -> KernelResult<KBox<dyn SnapshotTarget>> {
        Err(ENODEV)
    }

    fn add_helper(&self, _: &[u8], _: &[u8], _: &[u8], _: &[u8]) -> Result<(), Error> {
        unreachable!("there is no histogram that has the keys for one")
    }

    fn log(&self, error: Error) {
        self.log.borrow_mut().push(error);
    }
}

/// Builds a histogram that must be accepted.
pub(crate) fn hist(event: &EventDesc, params: &str) -> Arc<Histogram> {
    match build(event, params) {
        Ok(hist) => hist,
        Err(error) => panic!("{params}: {error:?}"),
    }
}

/// A record, to be filled in.
#[derive(Clone)]
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl Bytes {
    /// `len` bytes that are not zero, so that reading beyond a field shows.
    pub(crate) fn new(len: usize) -> Self {
        Self(vec![0xee; len])
    }

    /// Writes `bytes` at `offset`.
    pub(crate) fn put(mut self, offset: usize, bytes: &[u8]) -> Self {
        self.0[offset..][..bytes.len()].copy_from_slice(bytes);
        self
    }

    /// Appends `bytes` and writes a `__data_loc` word for them at `offset`.
    pub(crate) fn data_loc(mut self, offset: usize, bytes: &[u8]) -> Self {
        let word = self.0.len() as u32 | (bytes.len() as u32) << 16;
        self.0.extend_from_slice(bytes);
        self.put(offset, &word.to_ne_bytes())
    }

    /// Appends `bytes` and writes a `__rel_loc` word for them at `offset`.
    pub(crate) fn rel_loc(mut self, offset: usize, bytes: &[u8]) -> Self {
        let word = (self.0.len() - offset - 4) as u32 | (bytes.len() as u32) << 16;
        self.0.extend_from_slice(bytes);
        self.put(offset, &word.to_ne_bytes())
    }

    /// Lets `hist` count the record, on CPU `cpu` and in a task called `comm`.
    pub(crate) fn hit_in(&self, hist: &Histogram, cpu: usize, comm: &[u8; 16]) {
        let (cpu, context) = (Cpu::enter(cpu), Then(comm));
        let hit = Hit::new(Record::new(&self.0), cpu.preempt(), &context);
        // No action has a target here.
        hist.hit(hist.code(), &Targets::default(), &hit);
    }

    /// Lets `hist` count the record.
    pub(crate) fn hit(&self, hist: &Histogram) {
        self.hit_in(hist, 1, b"task\0***********");
    }
}

/// The time of all hits, in the clock's unit.
pub(crate) const TIME: u64 = 123_456_789;

/// The stack of all hits.
pub(crate) const STACK: [u64; 3] = [0x1010, 0x2020, 0x3030];

/// Context of all hits: time, stack, and the name of the task.
struct Then<'a>(&'a [u8; 16]);

impl Context for Then<'_> {
    fn time(&self, clock: Clock) -> u64 {
        match clock {
            Clock::Counter => 5,
            _ => TIME,
        }
    }

    fn stack(&self, _: PreemptOff<'_>, to: &mut Stack) {
        to.extend(STACK);
    }

    fn user_stack(&self, _: PreemptOff<'_>, _: usize, _: &mut Tail<'_>) {
        unreachable!()
    }

    fn long_buffer<'a>(&'a self, _: PreemptOff<'a>) -> Option<LongBuffer<'a>> {
        unreachable!()
    }

    fn comm(&self) -> [u8; 16] {
        *self.0
    }

    fn comm_of(&self, _: u32) -> Option<[u8; 16]> {
        None
    }

    fn tgid(&self) -> u32 {
        1
    }

    fn ppid(&self) -> u32 {
        1
    }

    fn cgroup(&self) -> u64 {
        1
    }

    fn cgroup_of(&self, _: u32) -> u64 {
        1
    }

    fn cgroup_node<'a>(&self, _: PreemptOff<'a>, _: GroupTask) -> Option<Group<'a>> {
        None
    }

    fn is_in_cgroup(&self, _: GroupPlace) -> bool {
        false
    }

    fn read(&self, _to: &mut [u8], _address: usize) -> bool {
        false
    }

    fn read_kernel(&self, _to: &mut [u8], _address: usize) -> bool {
        false
    }
}

/// A record of [`sched_waking`].
pub(crate) fn waking(comm: &[u8], pid: i32) -> Bytes {
    Bytes(vec![0; 36])
        .put(8, comm)
        .put(24, &pid.to_ne_bytes())
        .put(28, &120i32.to_ne_bytes())
        .put(32, &3i32.to_ne_bytes())
}

/// A kernel with a function each 4096 bytes.
pub(crate) struct Functions;

impl Names for Functions {
    fn symbol(&self, out: &mut Text, address: u64, offset: bool) -> KernelResult {
        out.format(format_args!("function_{}", address >> 12))?;
        if offset {
            out.format(format_args!("+{:#x}/0x1000", address & 0xfff))?;
        }
        Ok(())
    }

    fn syscall(&self, number: u64) -> Option<&[u8]> {
        [&b"sys_read"[..], b"sys_write"]
            .get(number as usize)
            .copied()
    }

    fn address(&self, out: &mut Text, _: &Histogram) -> KernelResult {
        out.bytes(b"(ptr)")
    }

    fn check_signal(&self) -> KernelResult {
        Ok(())
    }
}

/// The hits of a histogram.
pub(crate) trait Hits {
    /// Number of hits so far.
    fn hits(&self) -> u64;
}

impl Hits for Histogram {
    fn hits(&self) -> u64 {
        self.count_hits(&|| Ok(())).unwrap()
    }
}

/// [`Functions`], with a signal to the reader on each second check.
#[derive(Default)]
struct Interrupted(Cell<bool>);

impl Names for Interrupted {
    fn symbol(&self, out: &mut Text, address: u64, offset: bool) -> KernelResult {
        Functions.symbol(out, address, offset)
    }

    fn syscall(&self, number: u64) -> Option<&[u8]> {
        Functions.syscall(number)
    }

    fn address(&self, out: &mut Text, histogram: &Histogram) -> KernelResult {
        Functions.address(out, histogram)
    }

    fn check_signal(&self) -> KernelResult {
        match self.0.replace(!self.0.get()) {
            true => Ok(()),
            false => Err(EINTR),
        }
    }
}

/// The pieces of a large file, some pages each. Each is made on demand, and once more after an
/// error; after the last one comes `None`.
pub(crate) fn pieces(file: &mut show::HistFile) -> Vec<String> {
    let names = Interrupted::default();
    let mut pieces = Vec::new();
    loop {
        assert_eq!(file.next_piece(&names).err(), Some(EINTR));
        let Some(piece) = file.next_piece(&names).unwrap() else {
            break;
        };
        pieces.push(String::from_utf8(piece.as_bytes().to_vec()).unwrap());
    }
    assert_eq!(file.next_piece(&Functions).unwrap().map(|_| ()), None);
    let (last, others) = pieces.split_last().unwrap();
    assert!(others.len() > 10);
    assert!(others
        .iter()
        .all(|piece| (16384..17000).contains(&piece.len())));
    assert!(last.len() < 17000);
    pieces
}

/// Shows `hist` as an active trigger without name and filter.
pub(crate) fn view(hist: &Arc<Histogram>) -> View<'_> {
    View {
        hist,
        names: &Functions,
        name: None,
        filter: None,
        paused: false,
    }
}

/// The output of `show` as text.
pub(crate) fn text(show: impl FnOnce(&mut Text) -> KernelResult) -> String {
    let mut out = Text::new();
    show(&mut out).unwrap();
    String::from_utf8_lossy(out.as_bytes()).into_owned()
}

/// Appends the whole `hist` file of an event with the histograms `views`.
pub(crate) fn show_file<'a>(out: &mut Text, views: impl Iterator<Item = View<'a>>) -> KernelResult {
    show_pieces(out, views, &Functions)
}

/// Like [`show_file`], with these names of functions.
pub(crate) fn show_pieces<'a>(
    out: &mut Text,
    views: impl Iterator<Item = View<'a>>,
    names: &dyn Names,
) -> KernelResult {
    show_whole(out, show::HistFile::new(views)?, names)
}

/// Appends the whole `hist_jsonl` file of an event with the histograms `views`.
pub(crate) fn show_jsonl<'a>(
    out: &mut Text,
    views: impl Iterator<Item = View<'a>>,
    names: &dyn Names,
) -> KernelResult {
    show_whole(out, show::HistFile::jsonl(views, &ORIGIN)?, names)
}

/// System, event and times of all readings.
pub(crate) const ORIGIN: Origin<'static> = Origin {
    system: b"test",
    event: b"zoo",
    boot_id: Some(b"01234567-89ab-cdef-0123-456789abcdef"),
    now: || Now {
        realtime_ns: 1_700_000_000_123_456_789,
        monotonic_ns: 987_654_321,
    },
};

/// Appends all pieces of a file.
pub(crate) fn show_whole(
    out: &mut Text,
    mut file: show::HistFile,
    names: &dyn Names,
) -> KernelResult {
    while let Some(piece) = file.next_piece(names)? {
        assert!(!piece.as_bytes().is_empty());
        out.bytes(piece.as_bytes())?;
    }
    Ok(())
}

/// The `hist` file of an event with one histogram.
pub(crate) fn hist_file(hist: &Arc<Histogram>) -> String {
    text(|out| show_file(out, [view(hist)].into_iter()))
}

/// The entries of the `hist` file: the lines between the title and the totals.
pub(crate) fn entries(hist: &Arc<Histogram>) -> Vec<String> {
    let file = hist_file(hist);
    let (_, rest) = file.split_once("#\n\n").unwrap();
    let (entries, _) = rest.rsplit_once("\nTotals:\n").unwrap();
    entries.lines().map(String::from).collect()
}

/// The trigger's line.
pub(crate) fn line(hist: &Arc<Histogram>) -> String {
    text(|out| show::trigger_line(out, &view(hist)))
}
