// SPDX-License-Identifier: GPL-2.0

//! A small tracing directory: events whose triggers refer to each other, synthetic events that record what they are
//! given, and a conditional snapshot. Commands are carried out as `src/engine` does it.

#![allow(dead_code, reason = "each test uses some of it")]

use std::cell::Cell;
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
use rhist::limits::STACK_DEPTH;
use rhist::event::Clock;
use rhist::event::Context;
use rhist::event::EventDesc;
use rhist::event::FilterType;
use rhist::event::Hit;
use rhist::event::Record;
use rhist::filter::Filter;
use rhist::filter::Memory;
use rhist::filter::Symbols;
use rhist::hist::show;
use rhist::hist::show::Names;
use rhist::hist::show::View;
use rhist::hist::spec::target::SnapshotTarget;
use rhist::hist::spec::target::SynthField;
use rhist::hist::spec::target::SynthTarget;
use rhist::hist::spec::target::Wide;
use rhist::limits::WIDE_WORDS;
use rhist::hist::spec::variable::ValueKind;
use rhist::hist::AttachedHist;
use rhist::hist::Compiled;
use rhist::hist::Draft;
use rhist::hist::Histogram;
use rhist::hist::Scope;
use rhist::hist::Spec;
use rhist::map::Cpus;
use rhist::text::Text;
use rhist::trigger::Command;
use rhist::trigger::Error;
use rhist::trigger::ErrorText;
use rhist::trigger::Trigger;
use rhist::limits::MAP_BITS_MIN;

use super::events;
use super::events::Bytes;
use super::events::STACK;

/// Events that may happen within each other, as in the module.
const DEPTH_MAX: usize = 6;

/// The tracing directory.
pub(crate) struct World {
    events: Vec<Event>,
    synths: Vec<StdArc<Synth>>,
    pub(crate) snapshot: StdArc<Snapshot>,
    /// What the command at work has logged.
    log: Mutex<Vec<Error>>,
    /// Whether maps are as small as can be, so that they are made fast.
    small: bool,
}

/// An event in it.
struct Event {
    desc: EventDesc,
    /// Whether it can be enabled.
    enables: bool,
    triggers: RwLock<Vec<StdArc<HistTrigger>>>,
}

/// A histogram and its name.
struct HistData {
    histogram: RwLock<Arc<Histogram>>,
    name: Option<Vec<u8>>,
}

struct HistTrigger {
    data: StdArc<HistData>,
    code: Compiled,
    filter: Option<Condition>,
    helper: bool,
    paused: AtomicBool,
}

struct Condition {
    filter: Filter,
    text: Vec<u8>,
}

impl HistTrigger {
    fn histogram(&self) -> Arc<Histogram> {
        self.data.histogram.read().unwrap().clone()
    }

    fn filter(&self) -> Option<&[u8]> {
        self.filter.as_ref().map(|condition| &condition.text[..])
    }

    fn matches(
        &self,
        spec: &Spec,
        filter: Option<&[u8]>,
        named: Option<&StdArc<HistData>>,
    ) -> bool {
        let name_matches = match named {
            Some(named) => StdArc::ptr_eq(&self.data, named),
            None => self.data.name.is_none(),
        };
        name_matches && self.filter() == filter && self.code.spec.matches(spec)
    }
}

/// A synthetic event.
pub(crate) struct Synth {
    name: String,
    fields: Vec<SynthField>,
    /// Whether anybody listens.
    pub(crate) listened: AtomicBool,
    /// Actions that use it.
    pub(crate) users: AtomicUsize,
    given: Mutex<Vec<Vec<Given>>>,
    /// Its directory, and which event it is there.
    world: Weak<World>,
    event: usize,
}

/// What a synthetic event is given for a field.
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

/// When and where a hit happens.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) cpu: usize,
    pub(crate) time: u64,
    pub(crate) comm: [u8; 16],
    pub(crate) stack: &'static [u64],
}

/// A moment like any other.
pub(crate) const NOW: Moment = Moment {
    cpu: 1,
    time: 1_000_000,
    comm: *b"task\0***********",
    stack: &STACK,
};

impl Context for Moment {
    fn time(&self, _: Clock) -> u64 {
        self.time
    }

    fn stack(&self, to: &mut [u64; STACK_DEPTH]) -> usize {
        let len = self.stack.len().min(STACK_DEPTH);
        to[..len].copy_from_slice(&self.stack[..len]);
        len
    }

    fn comm(&self) -> [u8; 16] {
        self.comm
    }

    fn read(&self, _to: &mut [u8], _address: usize) -> bool {
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
    /// A directory with these events; those of `disabled` cannot be enabled; `synths` are synthetic events.
    pub(crate) fn new(
        events: Vec<EventDesc>,
        disabled: Vec<EventDesc>,
        synths: &[(&str, &[Typed<'_>])],
        small: bool,
    ) -> StdArc<Self> {
        let event = |desc, enables| Event {
            desc,
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
                log: Mutex::default(),
                small,
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

    /// Takes away what the synthetic event `name` was given so far.
    pub(crate) fn given(&self, name: &str) -> Vec<Vec<Given>> {
        std::mem::take(&mut self.synth(name).given.lock().unwrap())
    }

    /// Writes `command` to the trigger file of `event`.
    pub(crate) fn write(&self, event: &str, command: &[u8]) -> Result<(), Error> {
        let command = Command::parse(command);
        self.log.lock().unwrap().clear();
        let done = command
            .hist()
            .and_then(|params| self.run(self.event(event), params, command.remove));
        if let Err(error) = done {
            self.remove_unused_helpers();
            if error.text.is_some() {
                self.log.lock().unwrap().push(error);
            }
        } else {
            self.log.lock().unwrap().clear();
        }
        done
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

    fn run(&self, event: usize, params: &[u8], remove: bool) -> Result<(), Error> {
        let mut trigger = Trigger::parse(params)?;
        if self.small {
            trigger.size.get_or_insert_default().bits = MAP_BITS_MIN;
        }
        let trigger = &trigger;
        let scope = EventScope { world: self, event };
        let draft = Draft::new(&scope, trigger, remove)?;
        let filter = self.condition(event, trigger)?;
        let name = trigger.name.map(|span| trigger.bytes(span));
        let named = name.and_then(|name| self.named(name));
        let triggers = self.triggers(event);
        let text = filter.as_ref().map(|condition| &condition.text[..]);
        let same = triggers
            .iter()
            .find(|other| other.matches(draft.spec(), text, named.as_ref()));
        if remove {
            return match same {
                Some(same) if self.is_referenced(same) => Err(EBUSY.into()),
                Some(same) => {
                    self.retain(|other| !StdArc::ptr_eq(other, same));
                    self.remove_unused_helpers();
                    Ok(())
                }
                None => Ok(()),
            };
        }
        let histogram = |data: &HistData| data.histogram.read().unwrap().clone();
        let differs = |named: &StdArc<HistData>| !histogram(named).spec().matches(draft.spec());
        let mismatch = named.as_ref().is_some_and(differs);
        let same = same.filter(|_| (name.is_none() || named.is_some()) && !mismatch);
        if let Some(same) = same {
            if trigger.pause.is_some() || trigger.cont.is_some() {
                same.paused.store(trigger.pause.is_some(), SeqCst);
                return Ok(());
            }
            if trigger.clear.is_some() {
                let cpus = Cpus::uniform(events::CPUS);
                let empty = same.histogram().new_empty(events::SEED, cpus, usize::MAX)?;
                *same.data.histogram.write().unwrap() = empty;
                return Ok(());
            }
        }
        let code = Compiled::new(draft)?;
        if let (Some(span), true) = (trigger.name, mismatch) {
            return Err(trigger.error(ErrorText::NamedMismatch, span));
        }
        if same.is_some() {
            return Err(Error::new(ErrorText::TriggerEexist, 0));
        }
        if trigger.cont.is_some() || trigger.clear.is_some() {
            return Err(Error::new(ErrorText::TriggerEnoentClear, 0));
        }
        code.spec.check_clock(trigger)?;
        self.attach(
            event,
            code,
            filter,
            name,
            named,
            trigger.pause.is_some(),
            false,
        )
    }

    #[allow(clippy::too_many_arguments)]
    fn attach(
        &self,
        event: usize,
        code: Compiled,
        filter: Option<Condition>,
        name: Option<&[u8]>,
        named: Option<StdArc<HistData>>,
        paused: bool,
        helper: bool,
    ) -> Result<(), Error> {
        let data = match named {
            Some(named) => named,
            None => StdArc::new(HistData {
                histogram: RwLock::new(events::empty(&code)?),
                name: name.map(<[u8]>::to_vec),
            }),
        };
        let trigger = HistTrigger {
            data,
            code,
            filter,
            helper,
            paused: paused.into(),
        };
        self.events[event]
            .triggers
            .write()
            .unwrap()
            .push(StdArc::new(trigger));
        Ok(())
    }

    fn condition(&self, event: usize, trigger: &Trigger) -> Result<Option<Condition>, Error> {
        let Some(filter) = trigger.filter else {
            return Ok(None);
        };
        let text = trigger.bytes(filter.text).to_vec();
        match Filter::parse(&text, &self.events[event].desc, events::CPUS, &Nowhere) {
            Ok(filter) => Ok(Some(Condition { filter, text })),
            Err(error) => Err(Error::silent(error.errno)),
        }
    }

    fn triggers(&self, event: usize) -> Vec<StdArc<HistTrigger>> {
        self.events[event].triggers.read().unwrap().clone()
    }

    fn all_triggers(&self) -> impl Iterator<Item = (usize, StdArc<HistTrigger>)> + '_ {
        let events = 0..self.events.len();
        events.flat_map(|event| {
            self.triggers(event)
                .into_iter()
                .map(move |trigger| (event, trigger))
        })
    }

    fn named(&self, name: &[u8]) -> Option<StdArc<HistData>> {
        let mut triggers = self.all_triggers();
        let (_, named) =
            triggers.find(|(_, trigger)| trigger.data.name.as_deref() == Some(name))?;
        Some(named.data.clone())
    }

    fn is_referenced(&self, trigger: &HistTrigger) -> bool {
        let histogram = trigger.histogram();
        self.all_triggers().any(|(_, other)| {
            !StdArc::ptr_eq(&other.data, &trigger.data) && other.code.spec.refers_to(&histogram)
        })
    }

    fn retain(&self, keep: impl Fn(&StdArc<HistTrigger>) -> bool) {
        // Dropped without the lock.
        let mut removed = Vec::new();
        for event in &self.events {
            let mut triggers = event.triggers.write().unwrap();
            let all = std::mem::take(&mut *triggers);
            let (kept, gone): (Vec<_>, Vec<_>) = all.into_iter().partition(&keep);
            *triggers = kept;
            removed.extend(gone);
        }
    }

    fn remove_unused_helpers(&self) {
        let triggers = self.all_triggers().map(|(_, trigger)| trigger);
        let unused: Vec<_> = triggers
            .filter(|trigger| trigger.helper && !self.is_referenced(trigger))
            .collect();
        self.retain(|trigger| !unused.iter().any(|unused| StdArc::ptr_eq(unused, trigger)));
    }

    /// Lets `event` happen.
    pub(crate) fn hit(&self, event: &str, record: &Bytes, moment: Moment) {
        let cpu = Cpu::enter(moment.cpu);
        let hit = Hit::new(Record::new(&record.0), cpu.preempt(), &moment);
        self.happen(self.event(event), &hit);
    }

    fn happen(&self, event: usize, hit: &Hit<'_>) {
        for trigger in self.triggers(event) {
            let filter = trigger.filter.as_ref();
            if !trigger.paused.load(SeqCst)
                && filter.is_none_or(|condition| condition.filter.matches(hit, &Nowhere))
            {
                trigger
                    .histogram()
                    .hit(&trigger.code.program, &trigger.code.targets, hit);
            }
        }
    }

    /// The histogram of the `n`th trigger of `event`.
    pub(crate) fn histogram(&self, event: &str, n: usize) -> Arc<Histogram> {
        self.triggers(self.event(event))[n].histogram()
    }

    fn show(&self, event: &str, show: impl Fn(&mut Text, &[View<'_>]) -> KernelResult) -> String {
        let triggers = self.triggers(self.event(event));
        let hists: Vec<_> = triggers.iter().map(|trigger| trigger.histogram()).collect();
        let views: Vec<_> = triggers
            .iter()
            .zip(&hists)
            .map(|(trigger, hist)| View {
                hist,
                names: self,
                name: trigger.data.name.as_deref(),
                filter: trigger.filter(),
                paused: trigger.paused.load(SeqCst),
            })
            .collect();
        events::text(|out| show(out, &views))
    }

    /// The trigger file.
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

    /// The hist file.
    pub(crate) fn hist_file(&self, event: &str) -> String {
        self.show(event, |out, views| {
            events::show_pieces(out, views.iter().copied(), self)
        })
    }

    /// What is between the title and the totals of each histogram.
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

    /// How many actions use synthetic events, and the snapshot.
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

    /// Whether `line`, as it is shown, is a command for the last trigger of `event` that was not made for others. Fails if
    /// it is none.
    pub(crate) fn is_last(&self, event: &str, line: &str) -> Result<bool, Error> {
        let event = self.event(event);
        let triggers = self.triggers(event);
        let last = triggers.iter().rfind(|trigger| !trigger.helper).unwrap();
        let command = Command::parse(line.as_bytes());
        let trigger = Trigger::parse(command.hist()?)?;
        let scope = EventScope { world: self, event };
        let draft = Draft::new(&scope, &trigger, true)?;
        Ok(last.code.spec.matches(draft.spec()))
    }

    /// The line of the last trigger of `event` that was not made for others, without the state at its end.
    pub(crate) fn last_line(&self, event: &str) -> Option<String> {
        let triggers = self.triggers(self.event(event));
        let last = triggers.iter().rposition(|trigger| !trigger.helper)?;
        Some(self.lines(event).swap_remove(last))
    }

    /// Removes all triggers, those first that none refers to.
    pub(crate) fn remove_all(&self) {
        while self.count() > 0 {
            let mut triggers = self.all_triggers().map(|(_, trigger)| trigger);
            let free = triggers.find(|trigger| !self.is_referenced(trigger));
            let free = free.expect("references are no circle");
            self.retain(|trigger| !StdArc::ptr_eq(trigger, &free));
        }
    }

    /// The number of triggers of all events.
    pub(crate) fn count(&self) -> usize {
        self.all_triggers().count()
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
                if std::ptr::eq(&*trigger.histogram(), histogram) {
                    out.bytes(event.desc.name())?;
                    return out.format(format_args!("[{n}]"));
                }
            }
        }
        out.bytes(b"(gone)")
    }

    fn go_on(&self) -> KernelResult {
        Ok(())
    }
}

/// A kernel without functions, and whose memory cannot be read.
struct Nowhere;

impl Symbols for Nowhere {
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

/// Where the names in a trigger of an event are looked up.
pub(crate) struct EventScope<'a> {
    world: &'a World,
    event: usize,
}

impl World {
    /// The scope of triggers of `event`.
    pub(crate) fn scope(&self, event: &str) -> EventScope<'_> {
        EventScope {
            world: self,
            event: self.event(event),
        }
    }
}

fn attached(triggers: &[StdArc<HistTrigger>]) -> KernelResult<KVec<AttachedHist>> {
    let mut all = KVec::new();
    for trigger in triggers {
        let attached = AttachedHist {
            histogram: trigger.histogram(),
            filter: trigger.filter().map(rhist::text::copy).transpose()?,
        };
        all.push(attached, GFP_KERNEL)?;
    }
    Ok(all)
}

impl Scope for EventScope<'_> {
    fn event(&self) -> &EventDesc {
        &self.world.events[self.event].desc
    }

    fn has_event(&self, system: &[u8], name: &[u8]) -> KernelResult<bool> {
        Ok(self.world.position(system, name).is_some())
    }

    fn own_histograms(&self) -> KernelResult<KVec<AttachedHist>> {
        attached(&self.world.triggers(self.event))
    }

    fn histograms(&self, system: &[u8], name: &[u8]) -> KernelResult<Option<KVec<AttachedHist>>> {
        let event = self.world.position(system, name);
        let event = event.filter(|&event| self.world.events[event].enables);
        event
            .map(|event| attached(&self.world.triggers(event)))
            .transpose()
    }

    fn all_histograms(&self) -> KernelResult<KVec<(usize, Arc<Histogram>)>> {
        let mut all: KVec<(usize, Arc<Histogram>)> = KVec::new();
        for (event, trigger) in self.world.all_triggers() {
            let histogram = trigger.histogram();
            if !all.iter().any(|(_, known)| Arc::ptr_eq(known, &histogram)) {
                all.push((event, histogram), GFP_KERNEL)?;
            }
        }
        Ok(all)
    }

    fn synth_event(&self, name: &[u8]) -> KernelResult<Option<KBox<dyn SynthTarget>>> {
        let mut synths = self.world.synths.iter();
        let found = synths.find(|synth| synth.name.as_bytes() == name);
        let user = |synth| Box::new(SynthUser::new(synth)) as Box<dyn SynthTarget>;
        Ok(found.map(|synth| KBox::of(user(synth))).transpose()?)
    }

    fn cond_snapshot(&self) -> KernelResult<KBox<dyn SnapshotTarget>> {
        let snapshot = &self.world.snapshot;
        if snapshot.used.swap(true, SeqCst) {
            return Err(EBUSY);
        }
        let user: Box<dyn SnapshotTarget> = Box::new(SnapshotUser(snapshot.clone()));
        Ok(KBox::of(user)?)
    }

    fn add_helper(
        &self,
        system: &[u8],
        name: &[u8],
        params: &[u8],
        command: &[u8],
    ) -> Result<(), Error> {
        let world = self.world;
        let event = world.position(system, name).ok_or(ENODEV)?;
        let mut trigger = Trigger::parse_for(params, command)?;
        if world.small {
            trigger.size.get_or_insert_default().bits = MAP_BITS_MIN;
        }
        let scope = EventScope { world, event };
        let draft = Draft::new(&scope, &trigger, false)?;
        let filter = world.condition(event, &trigger)?;
        let code = Compiled::new(draft)?;
        world.attach(event, code, filter, None, None, false, true)
    }

    fn log(&self, error: Error) {
        if error.text.is_some() {
            self.world.log.lock().unwrap().push(error);
        }
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

/// The synthetic event as an event: each field in a word, or after the words.
fn synth_event(name: &str, fields: &[Typed<'_>]) -> EventDesc {
    let mut described = Vec::new();
    for (n, &(type_, name)) in fields.iter().enumerate() {
        let field = synth_field(type_);
        let (filter, size) = match field.kind {
            ValueKind::Number => (FilterType::Other, field.size),
            ValueKind::Text => (FilterType::DynString, 4),
            ValueKind::Stack => (FilterType::Stacktrace, 4),
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
}

impl SynthTarget for SynthUser {
    fn fields(&self) -> &[SynthField] {
        &self.0.fields
    }

    fn emit(
        &self,
        hit: &Hit<'_>,
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
        DEPTH.set(DEPTH.get() + 1);
        let done = self.0.emit(hit, vals, idx, write);
        DEPTH.set(DEPTH.get() - 1);
        done
    }
}

impl Synth {
    fn emit(
        &self,
        hit: &Hit<'_>,
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
        let hit = Hit::new(Record::new(&record.0), hit.preempt(), hit.context());
        world.happen(self.event, &hit);
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
        // As in the kernel, none is taken by who interrupts another one that is.
        let Ok(_lock) = self.0.lock.try_lock() else {
            return;
        };
        if decide() {
            self.0.taken.fetch_add(1, SeqCst);
        }
    }
}
