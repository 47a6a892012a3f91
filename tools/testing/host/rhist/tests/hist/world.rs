// SPDX-License-Identifier: GPL-2.0

//! A small tracing directory for the engine: events whose triggers refer to each other, synthetic
//! events that record their values, and a conditional snapshot. Commands are executed by
//! `src/engine`, and hits counted by the triggers of `src/hook`.

#![allow(dead_code, reason = "each test uses some of it")]

use std::cell::Cell;
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::Arc as StdArc;
use std::sync::Mutex;
use std::sync::RwLock;
use std::sync::Weak;

use kernel::alloc::flags::GFP_KERNEL;
use kernel::error::code::*;
use kernel::error::Result as KernelResult;
use kernel::prelude::KBox;
use kernel::prelude::KVec;
use kernel::sync::Arc;
use rhist::cpu::Cpu;
use rhist::engine::failure::Failure;
use rhist::engine::hist_command;
use rhist::engine::hist_command::EventScope;
use rhist::engine::host::Host;
use rhist::engine::host::NewTrigger;
use rhist::engine::triggers::Listed;
use rhist::engine::triggers::Triggers;
use rhist::event::Clock;
use rhist::event::Clocks;
use rhist::event::Context;
use rhist::event::EventDesc;
use rhist::event::FilterType;
use rhist::event::Group;
use rhist::event::GroupNodes;
use rhist::event::GroupPlace;
use rhist::event::GroupTask;
use rhist::event::Hit;
use rhist::event::LongBuffer;
use rhist::event::LongBuffers;
use rhist::event::Record;
use rhist::event::Stack;
use rhist::event::Tail;
use rhist::filter::Memory;
use rhist::filter::Symbols;
use rhist::hist::show;
use rhist::hist::show::Names;
use rhist::hist::show::View;
use rhist::hist::spec::target::SnapshotTarget;
use rhist::hist::spec::target::SynthField;
use rhist::hist::spec::target::SynthLeaf;
use rhist::hist::spec::target::SynthTarget;
use rhist::hist::spec::target::Wide;
use rhist::hist::spec::variable::ValueKind;
use rhist::hist::Draft;
use rhist::hist::Histogram;
use rhist::hist::Tag;
use rhist::hist::Tenancy;
use rhist::hook::trigger;
use rhist::hook::trigger::Entry;
use rhist::hook::trigger::Site;
use rhist::limits::MAP_BITS_MIN;
use rhist::limits::WIDE_WORDS;
use rhist::map::Cpus;
use rhist::map::Wake;
use rhist::sync::PreemptOff;
use rhist::text::Text;
use rhist::trigger::Command;
use rhist::trigger::Error;
use rhist::trigger::Hint;
use rhist::trigger::Trigger;

use super::events;
use super::events::Bytes;
use super::events::STACK;
use super::group_tree;

/// Largest nesting of events, as in the module.
const DEPTH_MAX: usize = 4;

/// The tracing directory.
pub(crate) struct World {
    events: Vec<Event>,
    synths: Vec<StdArc<Synth>>,
    pub(crate) snapshot: StdArc<Snapshot>,
    /// Held during the execution of a command.
    commands: Mutex<()>,
    /// The errors that the last command has logged.
    log: Mutex<Vec<Error>>,
    /// Whether maps have the least size, which is made fastest.
    small: bool,
    /// Whether hits of triggers with variables take the fast path, if possible.
    pub(crate) fast: AtomicBool,
    /// Hits that took it.
    pub(crate) fast_hits: AtomicUsize,
}

/// An event in it.
struct Event {
    desc: Arc<EventDesc>,
    /// Whether it can be enabled.
    enables: bool,
    triggers: RwLock<Vec<Arc<HistTrigger>>>,
}

type HistTrigger = trigger::HistTrigger<Place>;

/// The place of all triggers: the only directory, without ignored tasks.
pub(crate) struct Place;

impl Site for Place {
    type Memory = Nowhere;

    const MEMORY: Nowhere = Nowhere;

    fn lists_tasks(&self) -> bool {
        false
    }

    fn ignores(&self, _: PreemptOff<'_>) -> bool {
        false
    }

    fn is_beside(&self, _: &Self) -> bool {
        true
    }

    fn show_dir(&self, _: &mut Text) -> KernelResult {
        Ok(())
    }
}

/// A synthetic event.
pub(crate) struct Synth {
    name: String,
    fields: Vec<SynthField>,
    /// Whether anybody listens.
    pub(crate) listened: AtomicBool,
    /// Whether another listener comes after a hit has found a histogram to be the only one.
    pub(crate) gets_listener: AtomicBool,
    /// Actions that use it.
    pub(crate) users: AtomicUsize,
    given: Mutex<Vec<Vec<Given>>>,
    /// Its directory, and its number there.
    world: Weak<World>,
    event: usize,
}

/// Value of a field of a synthetic event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Given {
    Number(u64),
    Text(String),
    Stack(Vec<u64>),
}

impl From<u64> for Given {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for Given {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

/// The conditional snapshot.
#[derive(Default)]
pub(crate) struct Snapshot {
    used: AtomicBool,
    /// Snapshots that were taken.
    pub(crate) taken: AtomicUsize,
    /// Held while a hit decides.
    lock: Mutex<()>,
}

/// Time, place and stack of a hit.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) cpu: usize,
    pub(crate) time: u64,
    pub(crate) comm: [u8; 16],
    pub(crate) stack: &'static [u64],
    /// The words of the program's stack.
    pub(crate) user_stack: &'static [u64],
    /// The id of the current task's control group.
    pub(crate) group: u64,
}

/// A moment for hits that need no other.
pub(crate) const NOW: Moment = Moment {
    cpu: 1,
    time: 1_000_000,
    comm: *b"task\0***********",
    stack: &STACK,
    user_stack: &[],
    group: 1,
};

thread_local! {
    /// The buffers of long stacks: each test has CPUs of its own.
    static BUFFERS: &'static LongBuffers = Box::leak(Box::new(LongBuffers::new(16).unwrap()));
}

impl Context for Moment {
    fn time(&self, _: Clock) -> u64 {
        self.time
    }

    fn stack(&self, _: PreemptOff<'_>, to: &mut Stack) {
        to.extend(self.stack.iter().copied());
    }

    fn user_stack(&self, _: PreemptOff<'_>, most: usize, to: &mut Tail<'_>) {
        let words = self.user_stack.iter().take(most);
        words.for_each(|&word| to.push(word));
    }

    fn long_buffer<'a>(&'a self, preempt: PreemptOff<'a>) -> Option<LongBuffer<'a>> {
        BUFFERS.with(|buffers| buffers.take(preempt))
    }

    fn comm(&self) -> [u8; 16] {
        self.comm
    }

    fn comm_of(&self, pid: u32) -> Option<[u8; 16]> {
        group_tree::comm_of(pid)
    }

    fn tgid(&self) -> u32 {
        70
    }

    fn ppid(&self) -> u32 {
        60
    }

    fn cgroup(&self) -> u64 {
        self.group
    }

    fn cgroup_of(&self, pid: u32) -> u64 {
        group_tree::of(pid)
    }

    fn cgroup_node<'a>(&self, preempt: PreemptOff<'a>, task: GroupTask) -> Option<Group<'a>> {
        group_tree::node(preempt, task.map_or(self.group, group_tree::of))
    }

    fn is_in_cgroup(&self, group: GroupPlace) -> bool {
        group_tree::is_in(self.group, group)
    }

    fn read(&self, _to: &mut [u8], _address: usize) -> bool {
        false
    }

    fn read_kernel(&self, _to: &mut [u8], _address: usize) -> bool {
        false
    }
}

/// `sched:sched_switch` as the kernel has it.
pub(crate) fn sched_switch() -> EventDesc {
    use FilterType::*;
    events::event(
        "sched",
        "sched_switch",
        &[
            ("char[16]", "prev_comm", 8, 16, false, StaticString),
            ("pid_t", "prev_pid", 24, 4, true, Other),
            ("int", "prev_prio", 28, 4, true, Other),
            ("long", "prev_state", 32, 8, true, Other),
            ("char[16]", "next_comm", 40, 16, false, StaticString),
            ("pid_t", "next_pid", 56, 4, true, Other),
            ("int", "next_prio", 60, 4, true, Other),
        ],
    )
}

/// A record of [`sched_switch`].
pub(crate) fn switch(prev: (&[u8], i32), next: (&[u8], i32)) -> Bytes {
    Bytes(vec![0; 64])
        .put(8, prev.0)
        .put(24, &prev.1.to_ne_bytes())
        .put(28, &100i32.to_ne_bytes())
        .put(32, &2i64.to_ne_bytes())
        .put(40, next.0)
        .put(56, &next.1.to_ne_bytes())
        .put(60, &110i32.to_ne_bytes())
}

/// A name with its type.
type Typed<'a> = (&'a str, &'a str);

impl World {
    /// A directory with `events`; those in `disabled` cannot be enabled, and `synths` are synthetic
    /// events.
    pub(crate) fn new(
        events: Vec<EventDesc>,
        disabled: Vec<EventDesc>,
        synths: &[(&str, &[Typed<'_>])],
        small: bool,
    ) -> StdArc<Self> {
        let event = |desc, enables| Event {
            desc: Arc::new(desc, GFP_KERNEL).unwrap(),
            enables,
            triggers: RwLock::default(),
        };
        StdArc::new_cyclic(|world| {
            let mut events: Vec<_> = events.into_iter().map(|desc| event(desc, true)).collect();
            events.extend(disabled.into_iter().map(|desc| event(desc, false)));
            let mut all = Vec::new();
            for &(name, fields) in synths {
                all.push(StdArc::new(Synth {
                    name: name.into(),
                    fields: fields
                        .iter()
                        .map(|&(type_, _)| synth_field(type_))
                        .collect(),
                    listened: AtomicBool::new(true),
                    gets_listener: AtomicBool::new(false),
                    users: AtomicUsize::new(0),
                    given: Mutex::default(),
                    world: world.clone(),
                    event: events.len(),
                }));
                events.push(event(synth_event(name, fields), true));
            }
            Self {
                events,
                synths: all,
                snapshot: StdArc::default(),
                commands: Mutex::default(),
                log: Mutex::default(),
                small,
                fast: AtomicBool::new(true),
                fast_hits: AtomicUsize::new(0),
            }
        })
    }

    /// A directory with scheduler events, [`events::zoo`], and a few synthetic events.
    pub(crate) fn usual() -> StdArc<Self> {
        let zoo = events::zoo();
        let waking = |name| {
            use FilterType::*;
            events::event(
                "sched",
                name,
                &[
                    ("char[16]", "comm", 8, 16, true, StaticString),
                    ("pid_t", "pid", 24, 4, true, Other),
                    ("int", "prio", 28, 4, true, Other),
                    ("int", "target_cpu", 32, 4, true, Other),
                ],
            )
        };
        let print = events::event("ftrace", "print", &[]);
        Self::new(
            vec![
                waking("sched_waking"),
                waking("sched_wakeup"),
                sched_switch(),
                zoo,
            ],
            vec![print],
            &[
                ("latency", &[("u64", "lat"), ("pid_t", "pid")]),
                ("number", &[("u64", "nn")]),
                ("signed", &[("s64", "nn")]),
                ("small", &[("int", "nn")]),
                ("task", &[("char[16]", "comm"), ("pid_t", "pid")]),
                ("text", &[("char[]", "text")]),
                ("stacked", &[("unsigned long[]", "stack"), ("u64", "nn")]),
                ("after", &[("u64", "sum")]),
            ],
            true,
        )
    }

    fn position(&self, system: &[u8], name: &[u8]) -> Option<usize> {
        let mut events = self.events.iter();
        events.position(|event| (event.desc.system(), event.desc.name()) == (system, name))
    }

    /// The event `system.name`, or `name` alone.
    fn event(&self, name: &str) -> usize {
        let is = |event: &Event| {
            let [system, own] =
                [event.desc.system(), event.desc.name()].map(String::from_utf8_lossy);
            name == own || name == format!("{system}.{own}")
        };
        self.events
            .iter()
            .position(is)
            .unwrap_or_else(|| panic!("{name}"))
    }

    pub(crate) fn synth(&self, name: &str) -> &Synth {
        self.synths.iter().find(|synth| synth.name == name).unwrap()
    }

    /// Takes the values that the synthetic event `name` has recorded so far.
    pub(crate) fn given(&self, name: &str) -> Vec<Vec<Given>> {
        std::mem::take(&mut self.synth(name).given.lock().unwrap())
    }

    /// Writes `command` to the trigger file of `event`.
    pub(crate) fn write(&self, event: &str, command: &[u8]) -> Result<(), Error> {
        self.execute(event, command)
            .map(|_| ())
            .map_err(Failure::error)
    }

    /// Executes a command like a write to the trigger file. Returns the engine's result.
    pub(crate) fn execute(&self, event: &str, command: &[u8]) -> Result<Option<Hint>, Failure> {
        let command = Command::parse(command);
        let guard = self.commands.lock().unwrap();
        self.log.lock().unwrap().clear();
        let done = self.execute_hist(self.event(event), &command);
        if let Err(failure) = &done {
            self.remove_unused_helpers();
            let mut log = self.log.lock().unwrap();
            if let Failure::Command(error, before) = failure {
                log.extend(
                    before
                        .iter()
                        .chain([error])
                        .filter(|error| error.text.is_some()),
                );
            }
        }
        drop(guard);
        done
    }

    fn execute_hist(&self, event: usize, command: &Command<'_>) -> Result<Option<Hint>, Failure> {
        let mut trigger = Trigger::parse(command.hist()?)?;
        if self.small {
            trigger.size.get_or_insert_default().bits = MAP_BITS_MIN;
        }
        hist_command::run(&self, event, &trigger, command.remove)
    }

    /// Writes a command that must be accepted.
    pub(crate) fn add(&self, event: &str, command: &str) {
        if let Err(error) = self.write(event, command.as_bytes()) {
            panic!("{event}: {command}: {error:?} {:?}", self.log());
        }
    }

    /// The error log of the last command.
    pub(crate) fn log(&self) -> Vec<Error> {
        self.log.lock().unwrap().clone()
    }

    fn triggers(&self, event: usize) -> Vec<Arc<HistTrigger>> {
        self.events[event].triggers.read().unwrap().clone()
    }

    fn all_triggers(&self) -> impl Iterator<Item = Arc<HistTrigger>> + '_ {
        (0..self.events.len()).flat_map(|event| self.triggers(event))
    }

    /// Removes the triggers for which `keep` is false.
    fn retain(&self, keep: impl Fn(&HistTrigger) -> bool) {
        // Dropped without the lock.
        let mut removed = Vec::new();
        for event in &self.events {
            let mut triggers = event.triggers.write().unwrap();
            let all = std::mem::take(&mut *triggers);
            let (kept, gone): (Vec<_>, Vec<_>) = all.into_iter().partition(|trigger| keep(trigger));
            *triggers = kept;
            removed.extend(gone);
        }
    }

    fn remove_unused_helpers(&self) {
        let helpers = self.all_triggers();
        let unused: Vec<_> = helpers
            .filter(|trigger| All(self).is_unused_helper(trigger))
            .collect();
        self.retain(|trigger| !unused.iter().any(|unused| std::ptr::eq(&**unused, trigger)));
    }

    /// Lets `event` happen.
    pub(crate) fn hit(&self, event: &str, record: &Bytes, moment: Moment) {
        let cpu = Cpu::enter(moment.cpu);
        MOMENT.set(moment);
        let hit = Hit::new(Record::new(&record.0), cpu.preempt(), &moment);
        self.happen(self.event(event), &hit);
    }

    fn happen(&self, event: usize, hit: &Hit<'_>) {
        let triggers = self.triggers(event);
        if let ([trigger], true) = (&triggers[..], self.fast.load(SeqCst)) {
            let read = Cell::new(false);
            let clock = || {
                assert!(!read.replace(true), "a hit has one time");
                hit.context().time(Clock::Global)
            };
            // Some tasks take a search.
            let group = |task| match task {
                None => Some(hit.context().cgroup()),
                Some(pid) if pid % 3 == 0 => None,
                Some(pid) => Some(hit.context().cgroup_of(pid)),
            };
            let (entry, preempt, record) = (trigger.entry(), hit.preempt(), hit.record());
            let counted = entry.is_open()
                && match entry.tag() {
                    tag @ (Tag::Set | Tag::Latency | Tag::Group) if trigger.is_leaf() => {
                        trigger.hit_leaf(tag, entry, preempt, record, clock, group)
                    }
                    Tag::Trace if trigger.is_emitter() => {
                        trigger.hit_emitter(preempt, record, clock, hit.context())
                    }
                    _ => false,
                };
            if counted {
                self.fast_hits.fetch_add(1, SeqCst);
                return;
            }
        }
        for trigger in triggers {
            trigger.hit(hit);
        }
    }

    /// How hits of `event` enter its only trigger, as a leaf or as an emitter; `None` if it has
    /// several.
    pub(crate) fn path(&self, event: &str) -> Option<Entry> {
        match &self.triggers(self.event(event))[..] {
            [trigger] => Some(trigger.entry()),
            _ => None,
        }
    }

    /// The histogram of the `n`th trigger of `event`.
    pub(crate) fn histogram(&self, event: &str, n: usize) -> Arc<Histogram> {
        self.triggers(self.event(event))[n].data.histogram()
    }

    fn show(&self, event: &str, show: impl Fn(&mut Text, &[View<'_>]) -> KernelResult) -> String {
        let triggers = self.triggers(self.event(event));
        let hists: Vec<_> = triggers
            .iter()
            .map(|trigger| trigger.data.histogram())
            .collect();
        let views: Vec<_> = triggers
            .iter()
            .zip(&hists)
            .map(|(trigger, hist)| View {
                hist,
                names: self,
                name: trigger.data.name(),
                filter: trigger.filter(),
                paused: trigger.paused(),
            })
            .collect();
        events::text(|out| show(out, &views))
    }

    pub(crate) fn trigger_file(&self, event: &str) -> String {
        self.show(event, |out, views| {
            show::triggers(out, b"", [].into_iter(), views.iter().copied())
        })
    }

    /// The lines of the trigger file, without the state at their ends.
    pub(crate) fn lines(&self, event: &str) -> Vec<String> {
        let file = self.trigger_file(event);
        let mut lines = file
            .split_inclusive(" [active]\n")
            .flat_map(|part| part.split_inclusive(" [paused]\n"));
        let mut all = Vec::new();
        for line in lines.by_ref() {
            all.push(line.rsplit_once(" [").unwrap().0.to_string());
        }
        all
    }

    pub(crate) fn hist_file(&self, event: &str) -> String {
        self.show(event, |out, views| {
            events::show_pieces(out, views.iter().copied(), self)
        })
    }

    /// The hist_jsonl file.
    pub(crate) fn hist_jsonl(&self, event: &str) -> String {
        self.show(event, |out, views| {
            events::show_jsonl(out, views.iter().copied(), self)
        })
    }

    /// The text between the title and the totals of each histogram.
    pub(crate) fn entries(&self, event: &str) -> Vec<String> {
        let file = self.hist_file(event);
        let hists = file.split("# event histogram\n").skip(1);
        hists
            .map(|hist| {
                let (_, rest) = hist.split_once("#\n\n").unwrap();
                rest.rsplit_once("\nTotals:\n").unwrap().0.to_string()
            })
            .collect()
    }

    /// The hist_debug file.
    pub(crate) fn hist_debug(&self, event: &str) -> String {
        self.show(event, |out, views| {
            show::hist_debug_file(out, views.iter().copied())
        })
    }

    /// Number of actions that use synthetic events, and the snapshot.
    pub(crate) fn users(&self) -> usize {
        let users = self.synths.iter().map(|synth| synth.users.load(SeqCst));
        users.sum::<usize>() + usize::from(self.snapshot.used.load(SeqCst))
    }

    /// The events that triggers can be written for, by their numbers.
    pub(crate) fn names(&self) -> Vec<String> {
        let name = |event: &Event| {
            let [system, name] =
                [event.desc.system(), event.desc.name()].map(String::from_utf8_lossy);
            format!("{system}.{name}")
        };
        self.events.iter().map(name).collect()
    }

    /// Returns whether `line`, as it is shown, is a command for the last trigger of `event`,
    /// helpers excluded. Fails if it is not a valid command.
    pub(crate) fn is_last(&self, event: &str, line: &str) -> Result<bool, Error> {
        let (event, log) = (self.event(event), RefCell::default());
        let scope = EventScope::new(&self, &event, &log)?;
        let triggers = self.triggers(event);
        let last = triggers.iter().rfind(|trigger| !trigger.helper).unwrap();
        let command = Command::parse(line.as_bytes());
        let trigger = Trigger::parse(command.hist()?)?;
        let draft = Draft::new(&scope, &trigger, true)?;
        Ok(last.spec().matches(draft.spec()))
    }

    /// The line of the last trigger of `event`, helpers excluded, without the state at its end.
    pub(crate) fn last_line(&self, event: &str) -> Option<String> {
        let triggers = self.triggers(self.event(event));
        let last = triggers.iter().rposition(|trigger| !trigger.helper)?;
        Some(self.lines(event).swap_remove(last))
    }

    /// Removes all triggers, first the ones without references to them.
    pub(crate) fn remove_all(&self) {
        while self.count() > 0 {
            let mut triggers = self.all_triggers();
            let free = triggers.find(|trigger| !All(self).is_referenced(trigger));
            let free = free.expect("references are no circle");
            self.retain(|trigger| !std::ptr::eq(trigger, &*free));
        }
    }

    /// The number of triggers of all events.
    pub(crate) fn count(&self) -> usize {
        self.all_triggers().count()
    }
}

/// All triggers, which stay since only one command at a time is executed.
pub(crate) struct All<'a>(&'a World);

impl Triggers for All<'_> {
    type Site = Place;

    fn each(&self, f: &mut dyn FnMut(Listed<'_, Place>) -> ControlFlow<()>) {
        for (number, event) in self.0.events.iter().enumerate() {
            for trigger in &self.0.triggers(number) {
                let listed = Listed {
                    event: number,
                    names: [event.desc.system(), event.desc.name()],
                    trigger,
                };
                if f(listed).is_break() {
                    return;
                }
            }
        }
    }
}

impl Host for &World {
    type Site = Place;
    type Event = usize;
    type Locked<'a>
        = All<'a>
    where
        Self: 'a;

    fn lock(&self) -> All<'_> {
        All(self)
    }

    fn find(&self, system: &[u8], name: &[u8]) -> KernelResult<Option<usize>> {
        let event = self.position(system, name);
        Ok(event.filter(|&event| self.events[event].enables))
    }

    fn has_event(&self, system: &[u8], name: &[u8]) -> KernelResult<bool> {
        Ok(self.position(system, name).is_some())
    }

    fn describe(&self, &event: &usize) -> KernelResult<Arc<EventDesc>> {
        Ok(self.events[event].desc.clone())
    }

    fn triggers(&self, &event: &usize) -> KernelResult<KVec<Arc<HistTrigger>>> {
        let mut all = KVec::new();
        for trigger in World::triggers(self, event) {
            all.push(trigger, GFP_KERNEL)?;
        }
        Ok(all)
    }

    fn is_here(&self, _: &Place) -> bool {
        true
    }

    fn add(&self, event: usize, new: NewTrigger) -> KernelResult {
        let trigger = HistTrigger::new(Place, new.data, new.compiled, new.filter, new.flags);
        let trigger = Arc::new(trigger, GFP_KERNEL)?;
        self.events[event].triggers.write().unwrap().push(trigger);
        Ok(())
    }

    fn remove(&self, _: &usize, trigger: &HistTrigger) -> KernelResult {
        self.retain(|other| !std::ptr::eq(other, trigger));
        self.remove_unused_helpers();
        Ok(())
    }

    fn synth_event(&self, name: &[u8]) -> KernelResult<Option<KBox<dyn SynthTarget>>> {
        let mut synths = self.synths.iter();
        let found = synths.find(|synth| synth.name.as_bytes() == name);
        let user = |synth| Box::new(SynthUser::new(synth)) as Box<dyn SynthTarget>;
        Ok(found.map(|synth| KBox::of(user(synth))).transpose()?)
    }

    fn cond_snapshot(&self) -> KernelResult<KBox<dyn SnapshotTarget>> {
        let snapshot = &self.snapshot;
        if snapshot.used.swap(true, SeqCst) {
            return Err(EBUSY);
        }
        let user: Box<dyn SnapshotTarget> = Box::new(SnapshotUser(snapshot.clone()));
        Ok(KBox::of(user)?)
    }

    fn symbols(&self) -> &dyn Symbols {
        &Nowhere
    }

    fn cpus(&self) -> Cpus {
        Cpus::uniform(events::CPUS)
    }

    fn clocks(&self) -> Clocks {
        events::CLOCKS
    }

    fn random(&self) -> u64 {
        events::SEED
    }

    fn max_map_bytes() -> usize {
        usize::MAX
    }

    fn group_nodes(&self) -> &'static dyn GroupNodes {
        &group_tree::Nodes
    }

    fn waker(&self) -> KernelResult<KBox<dyn Wake>> {
        events::no_waker()
    }

    fn tend(&self, _: &Arc<Histogram>) -> KernelResult<Option<Tenancy>> {
        Ok(None)
    }
}

impl Names for World {
    fn symbol(&self, out: &mut Text, address: u64, offset: bool) -> KernelResult {
        events::Functions.symbol(out, address, offset)
    }

    fn syscall(&self, number: u64) -> Option<&[u8]> {
        events::Functions.syscall(number)
    }

    fn address(&self, out: &mut Text, histogram: &Histogram) -> KernelResult {
        for event in &self.events {
            for (n, trigger) in event.triggers.read().unwrap().iter().enumerate() {
                if std::ptr::eq(&*trigger.data.histogram(), histogram) {
                    out.bytes(event.desc.name())?;
                    return out.format(format_args!("[{n}]"));
                }
            }
        }
        out.bytes(b"(gone)")
    }

    fn check_signal(&self) -> KernelResult {
        Ok(())
    }
}

/// A kernel without functions, and with unreadable memory.
pub(crate) struct Nowhere;

impl Symbols for Nowhere {
    fn group(&self, path: &[u8]) -> Option<GroupPlace> {
        group_tree::find(path)
    }

    fn address(&self, _: &[u8]) -> Option<usize> {
        None
    }

    fn function(&self, _: usize) -> Option<(usize, usize)> {
        None
    }
}

impl Memory for Nowhere {
    fn read_kernel(&self, _: &mut [u8], _: usize) -> bool {
        false
    }

    fn read_user(&self, _: &mut [u8], _: usize) -> bool {
        false
    }
}

/// A field of a synthetic event of this type.
fn synth_field(type_: &str) -> SynthField {
    let (size, kind, dynamic) = match type_ {
        "char[]" => (8, ValueKind::Text, true),
        "char[16]" => (16, ValueKind::Text, false),
        "unsigned long[]" => (8, ValueKind::Stack, true),
        "u64" | "s64" => (8, ValueKind::Number, false),
        "pid_t" | "int" => (4, ValueKind::Number, false),
        _ => panic!("{type_}"),
    };
    SynthField {
        type_: rhist::text::copy(type_.as_bytes()).unwrap(),
        size,
        signed: !type_.starts_with('u') && kind == ValueKind::Number,
        kind,
        dynamic,
    }
}

/// The synthetic event's description: each field in a word, or after the words.
fn synth_event(name: &str, fields: &[Typed<'_>]) -> EventDesc {
    let mut described = Vec::new();
    for (n, &(type_, name)) in fields.iter().enumerate() {
        let field = synth_field(type_);
        let (filter, size) = match field.kind {
            ValueKind::Number | ValueKind::Address => (FilterType::Other, field.size),
            ValueKind::Text => (FilterType::DynString, 4),
            ValueKind::Stack => (FilterType::Stacktrace, 4),
            ValueKind::UserStack => unreachable!("no field is one"),
        };
        described.push((type_, name, 8 + 8 * n as u32, size, field.signed, filter));
    }
    events::event("synthetic", name, &described)
}

/// An action's use of a synthetic event.
struct SynthUser(StdArc<Synth>);

impl SynthUser {
    fn new(synth: &StdArc<Synth>) -> Self {
        synth.users.fetch_add(1, SeqCst);
        Self(synth.clone())
    }
}

impl Drop for SynthUser {
    fn drop(&mut self) {
        self.0.users.fetch_sub(1, SeqCst);
    }
}

std::thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// Moment of the hit in progress; between hits, of the last one.
    static MOMENT: Cell<Moment> = const { Cell::new(NOW) };
}

impl SynthTarget for SynthUser {
    fn fields(&self) -> &[SynthField] {
        &self.0.fields
    }

    fn emit(
        &self,
        context: &dyn Context,
        preempt: PreemptOff<'_>,
        vals: &[u64],
        idx: &[u32],
        write: &mut dyn FnMut(usize, &mut Wide) -> bool,
    ) -> bool {
        if !self.0.listened.load(SeqCst) {
            return true;
        }
        if DEPTH.get() == DEPTH_MAX {
            return false;
        }
        // Without an interrupting hit, the stack is the one of the hit that fires this event.
        if self.0.gets_listener.load(SeqCst) {
            let mut stack = Stack::new();
            context.stack(preempt, &mut stack);
            assert_eq!(stack.entries(), MOMENT.get().stack);
        }
        DEPTH.set(DEPTH.get() + 1);
        let done = self.0.emit(preempt, vals, idx, write);
        DEPTH.set(DEPTH.get() - 1);
        done
    }

    fn leaf<'a>(&'a self, _: PreemptOff<'a>) -> Option<&'a dyn SynthLeaf> {
        self.0.leaf().then_some(&*self.0 as &dyn SynthLeaf)
    }
}

impl SynthLeaf for Synth {
    fn count(&self, preempt: PreemptOff<'_>, words: &[u64]) -> bool {
        let vals = &words[1..];
        let idx: Vec<u32> = (0..self.fields.len() as u32).collect();
        self.leaf()
            && !self.gets_listener.load(SeqCst)
            && self.emit(preempt, vals, &idx, &mut |_, _| {
                panic!("all fields are numbers")
            })
    }
}

impl Synth {
    /// Returns whether the only listener is a histogram whose hits emit nothing.
    fn leaf(&self) -> bool {
        let world = self
            .world
            .upgrade()
            .expect("it has the trigger of this action");
        match &world.triggers(self.event)[..] {
            [trigger] => trigger.is_leaf(),
            _ => false,
        }
    }

    fn emit(
        &self,
        preempt: PreemptOff<'_>,
        vals: &[u64],
        idx: &[u32],
        write: &mut dyn FnMut(usize, &mut Wide) -> bool,
    ) -> bool {
        assert_eq!(idx.len(), self.fields.len());
        let mut record = Bytes(vec![0; 8 + 8 * idx.len()]);
        let mut given = Vec::new();
        for (n, (field, &val)) in self.fields.iter().zip(idx).enumerate() {
            let at = 8 + 8 * n;
            if field.kind == ValueKind::Number {
                // The kernel cuts it.
                let val = vals[val as usize];
                let size = field.size as usize;
                record = record.put(at, &val.to_ne_bytes()[..size]);
                given.push(Given::Number(val));
                continue;
            }
            let mut place = [!0; WIDE_WORDS];
            if !write(val as usize, &mut place) {
                return false;
            }
            let bytes: Vec<u8> = place.iter().flat_map(|word| word.to_ne_bytes()).collect();
            given.push(match field.kind {
                ValueKind::Text => {
                    let len = bytes.iter().position(|&byte| byte == 0).expect("a NUL");
                    record = record.data_loc(at, &bytes[..=len]);
                    Given::Text(String::from_utf8_lossy(&bytes[..len]).into())
                }
                _ => {
                    let len = place[0] as usize;
                    record = record.data_loc(at, &bytes[..8 * (1 + len)]);
                    Given::Stack(place[1..=len].to_vec())
                }
            });
        }
        self.given.lock().unwrap().push(given);
        let world = self
            .world
            .upgrade()
            .expect("it has the trigger of this action");
        let moment = MOMENT.get();
        world.happen(
            self.event,
            &Hit::new(Record::new(&record.0), preempt, &moment),
        );
        true
    }
}

/// An action's use of the snapshot.
struct SnapshotUser(StdArc<Snapshot>);

impl Drop for SnapshotUser {
    fn drop(&mut self) {
        self.0.used.store(false, SeqCst);
    }
}

impl SnapshotTarget for SnapshotUser {
    fn take(&self, _: &Hit<'_>, decide: &mut dyn FnMut() -> bool) {
        // As in the kernel, a hit that interrupts the taking of a snapshot takes none.
        let Ok(_lock) = self.0.lock.try_lock() else {
            return;
        };
        if decide() {
            self.0.taken.fetch_add(1, SeqCst);
        }
    }
}
