// SPDX-License-Identifier: GPL-2.0

//! The callbacks for each hit of an event.
//!
//! A [`Hook`] is an event with its triggers. A [`Source`] passes each hit, with its record, to the
//! [`Dispatch`] of the hook, which is its [`Receiver`] and passes it to the triggers.
//!
//! # Contexts
//!
//! A hit may come in any context, NMI included, always with preemption off. It reads the list of
//! triggers through one pointer. Whoever replaces the list waits for a grace period before freeing
//! the old one, so a hit takes no lock and no reference.

pub(crate) mod poll;
pub(crate) mod published;
pub(crate) mod stack;
pub(crate) mod switch;
pub(crate) mod trigger;

use crate::event::hit::COMM_LEN;
use crate::event::hit::STACK_DEPTH;
use crate::event::Clock;
use crate::event::Context;
use crate::event::Hit;
use crate::event::Record;
use crate::ftrace::clock;
use crate::ftrace::cpu;
use crate::ftrace::cpu::PreemptOff;
use crate::ftrace::event::Event;
use crate::ftrace::event::EventId;
use crate::ftrace::instance::Instance;
use crate::ftrace::source;
use crate::ftrace::source::event_file::EventFile;
use crate::ftrace::source::marker::Marker;
use crate::ftrace::source::probe::find;
use crate::ftrace::source::probe::probe_entry_points;
use crate::ftrace::source::probe::Probe;
use crate::ftrace::source::probe::Records;
use crate::ftrace::source::Receiver;
use crate::ftrace::source::Source;
use crate::ftrace::stack::Frame;
use crate::ftrace::tracefs::KernelFile;
use crate::ftrace::tracefs::TracingDir;
use crate::map::load::Load;
use core::cell::Cell;
use core::ptr;
use kernel::prelude::*;
use kernel::sync::atomic::Atomic;
use kernel::sync::atomic::Relaxed;
use kernel::sync::atomic::Release;
use kernel::sync::Arc;
use poll::Pollers;
use published::Published;
use stack::Handlers;
use switch::Switch;
use switch::SwitchSettings;
use trigger::HistTrigger;

/// The triggers of an event, in the order in which they were added.
pub(crate) type Triggers = KVec<Arc<HistTrigger>>;

/// The switches of an event, the newest first.
pub(crate) type Switches = KVec<Arc<Switch>>;

/// Passes the hits of an event to its switches, then to its triggers.
pub(crate) struct Dispatch {
    /// The trigger of the event, if it is the only one, is a [leaf](HistTrigger::is_leaf), and there are no
    /// switches: then this pointer is all that the fast path reads. It is on the list of triggers, too;
    /// whoever takes it from there clears this before.
    leaf: Atomic<*mut HistTrigger>,
    switches: Published<Switches>,
    triggers: Arc<Published<Triggers>>,
    handlers: Arc<Handlers>,
    pollers: Arc<Pollers>,
    /// The queue of those who poll this event.
    poll_index: usize,
    /// Hits that the source could not make a record of.
    lost: Atomic<u64>,
}

/// The context of the current hit.
struct HitContext<'a> {
    /// The clock that was read last, and what it said: the same for all triggers.
    time: Cell<Option<(Clock, u64)>>,
    handlers: &'a Handlers,
    /// Frame of the probe, if that is one of ours.
    frame: Option<Frame<'a>>,
}

impl Context for HitContext<'_> {
    fn time(&self, clock: Clock) -> u64 {
        match self.time.get() {
            Some((asked, time)) if asked == clock => time,
            _ => {
                let time = read_clock(clock);
                self.time.set(Some((clock, time)));
                time
            }
        }
    }

    fn stack(&self, to: &mut [u64; STACK_DEPTH]) -> usize {
        self.handlers.stack(self.frame, to)
    }

    fn comm(&self) -> [u8; COMM_LEN] {
        cpu::current_comm()
    }
}

/// The time that `clock` shows, in its own unit. Any context.
fn read_clock(clock: Clock) -> u64 {
    match clock {
        Clock::Local => clock::local(),
        Clock::Global => clock::global(),
        Clock::Counter => clock::counter(),
        Clock::Uptime => clock::uptime(),
        Clock::Perf => clock::perf(),
        Clock::Mono => clock::mono(),
        Clock::MonoRaw => clock::mono_raw(),
        Clock::Boot => clock::boot(),
        Clock::Tai => clock::tai(),
        #[cfg(CONFIG_X86)]
        Clock::Tsc => clock::tsc(),
    }
}

impl Dispatch {
    /// Counts a hit for a leaf trigger that needs more than plain fields. Out of line and called last, so that
    /// the fast path saves no registers. Any context.
    #[inline(never)]
    fn hit_leaf_slow(&self, trigger: &HistTrigger, preempt: PreemptOff<'_>, record: Record<'_>) {
        let context = self.context(None);
        trigger.hit(preempt, &Hit::new(record, preempt.cpu(), &context));
    }

    fn context<'a>(&'a self, frame: Option<Frame<'a>>) -> HitContext<'a> {
        HitContext {
            time: Cell::new(None),
            handlers: &self.handlers,
            frame,
        }
    }

    /// Wakes those who poll a histogram of the event.
    #[cold]
    fn notify(&self, triggers: &Triggers) {
        // A histogram with a name is shown for other events too.
        let shared = triggers.iter().any(|trigger| trigger.data.name().is_some());
        self.pollers.notify((!shared).then_some(self.poll_index));
    }
}

impl Receiver for Dispatch {
    type Leaf = HistTrigger;

    /// The only trigger, unless somebody polls.
    #[inline(always)]
    fn leaf<'a>(&'a self, _preempt: PreemptOff<'a>) -> Option<&'a HistTrigger> {
        // SAFETY: The leaf is on the list of triggers: it is cleared before a list without it is published, and
        // the old list is kept for a grace period, which does not end before preemption is on again.
        let trigger = unsafe { self.leaf.acquire().as_ref() };
        trigger.filter(|_| !self.pollers.any())
    }

    #[inline(always)]
    fn hit_leaf(&self, trigger: &HistTrigger, preempt: PreemptOff<'_>, record: &[u8]) {
        let record = Record::new(record);
        if !trigger.hit_fast(preempt, record) {
            self.hit_leaf_slow(trigger, preempt, record);
        }
    }

    /// Passes a hit to all switches and triggers, and wakes those who poll.
    fn hit_all(&self, preempt: PreemptOff<'_>, record: &[u8], frame: Option<Frame<'_>>) {
        let triggers = self.triggers.read(preempt);
        let context = self.context(frame);
        let hit = Hit::new(Record::new(record), preempt.cpu(), &context);
        for switch in self.switches.read(preempt) {
            switch.hit(preempt, &hit);
        }
        let mut counted = false;
        for trigger in triggers {
            counted |= trigger.hit(preempt, &hit);
        }
        if counted && self.pollers.any() {
            self.notify(triggers);
        }
    }

    #[cold]
    fn lost(&self) {
        self.lost.add(1, Relaxed);
    }
}

probe_entry_points!(Dispatch);

/// What all hooks share.
pub(crate) struct Shared {
    pub(crate) instance: Arc<Instance>,
    /// For events without a tracepoint of their own.
    handlers: Arc<Handlers>,
    /// Those who wait for hits.
    pub(crate) pollers: Arc<Pollers>,
    /// The empty lists, which can be published without allocating memory.
    no_switches: Arc<Switches>,
    no_triggers: Arc<Triggers>,
    /// Memory for the records of our probes; `None` if the module was loaded without them.
    records: Option<Arc<Records>>,
}

impl Shared {
    /// Fails with `ENOMEM`, and with `EBUSY` if `probes` are there already.
    pub(crate) fn new(instance: Arc<Instance>, probes: bool) -> Result<Self> {
        let records = match probes {
            true => Some(Arc::new(Records::new()?, GFP_KERNEL)?),
            false => None,
        };
        Ok(Self {
            records,
            instance,
            handlers: Arc::new(Handlers::shared()?, GFP_KERNEL)?,
            pollers: Pollers::new()?,
            no_switches: Arc::new(Switches::new(), GFP_KERNEL)?,
            no_triggers: Arc::new(Triggers::new(), GFP_KERNEL)?,
        })
    }
}

/// An event with triggers or switches, or one that a switch targets.
///
/// There is one for all tracing directories, since the kernel can connect the event of a system call
/// only once for our instance; but one per directory for the marker. Changed by one task at a time.
pub(crate) struct Hook {
    /// `None` while there is neither trigger nor switch.
    source: Option<KBox<dyn Source>>,
    dispatch: Arc<Dispatch>,
    event: Event,
}

impl Hook {
    /// A hook without triggers.
    pub(crate) fn new(shared: &Shared, event: Event) -> Result<Self> {
        let triggers = Published::new(shared.no_triggers.clone());
        let dispatch = Dispatch {
            leaf: Atomic::new(ptr::null_mut()),
            switches: Published::new(shared.no_switches.clone()),
            triggers: Arc::new(triggers, GFP_KERNEL)?,
            handlers: match Handlers::of(&event)? {
                Some(handlers) => Arc::new(handlers, GFP_KERNEL)?,
                None => shared.handlers.clone(),
            },
            pollers: shared.pollers.clone(),
            poll_index: Pollers::index_of(&event),
            lost: Atomic::new(0),
        };
        Ok(Self {
            source: None,
            dispatch: Arc::new(dispatch, GFP_KERNEL)?,
            event,
        })
    }

    /// Connects a source, if there is none, which fills in the context of hits if `context`. `open_file` is any
    /// open file of tracefs.
    fn connect(&mut self, shared: &Shared, open_file: &KernelFile, context: bool) -> Result {
        if self.source.is_none() {
            let (instance, dispatch) = (shared.instance.clone(), self.dispatch.clone());
            let records = shared.records.clone();
            let probe = records.and_then(|records| Some((find(&self.event)?, records)));
            // SAFETY: A hook disconnects its source, and gives up its event afterwards. All probes have the
            // dispatch of a hook, as `probe_entry_points!` was told.
            self.source = Some(unsafe {
                match probe {
                    _ if self.event.is_marker() => {
                        Marker::attach(instance, self.event.dir(), dispatch)?
                    }
                    Some((probe, records)) => {
                        Probe::attach(&self.event, probe, records, dispatch, context)?
                    }
                    None => EventFile::attach(instance, &self.event, dispatch, open_file)?,
                }
            });
        }
        Ok(())
    }

    /// Disconnects `hooks`, with one grace period for all of them.
    pub(crate) fn disconnect(hooks: &mut [Self]) {
        let mut any = false;
        for source in hooks.iter_mut().filter_map(|hook| hook.source.as_mut()) {
            source.disconnect();
            any = true;
        }
        if any {
            source::synchronize();
        }
        for hook in hooks {
            hook.source = None;
        }
    }

    /// Whether it has neither triggers nor switches.
    pub(crate) fn is_idle(&self) -> bool {
        self.triggers().is_empty() && self.switches().is_empty()
    }

    /// System and name of the event, the name of its source, and the hits lost there; `None` without a
    /// source.
    pub(crate) fn source(&self) -> Option<([&CStr; 2], &'static str, u64)> {
        let source = self.source.as_ref()?;
        let lost = self.dispatch.lost.load(Relaxed);
        Some((self.event.names(), source.name(), lost))
    }

    /// Which event it is the hook of, in some tracing directory.
    pub(crate) fn id(&self) -> EventId {
        self.event.id()
    }

    /// Whether it is the hook of `event`, in any tracing directory; but each has a marker of its own.
    pub(crate) fn is_of(&self, event: &Event) -> bool {
        self.id() == event.id() && (!event.is_marker() || self.event.dir() == event.dir())
    }

    /// The triggers, in the order in which they were added.
    pub(crate) fn triggers(&self) -> Arc<Triggers> {
        self.dispatch.triggers.get()
    }

    /// The triggers as they are published: what a switch of another event targets.
    pub(crate) fn published(&self) -> &Arc<Published<Triggers>> {
        &self.dispatch.triggers
    }

    /// The switches, the newest first.
    pub(crate) fn switches(&self) -> Arc<Switches> {
        self.dispatch.switches.get()
    }

    /// Adds a switch for the histograms of `target`, which it may be itself.
    /// `open_file` is any open file of tracefs.
    pub(crate) fn add_switch(
        &mut self,
        shared: &Shared,
        settings: SwitchSettings,
        target: Arc<Published<Triggers>>,
        open_file: &KernelFile,
    ) -> Result {
        let switches = self.switches();
        let mut list = Switches::with_capacity(switches.len() + 1, GFP_KERNEL)?;
        list.push(
            Arc::new(Switch::new(settings, target), GFP_KERNEL)?,
            GFP_KERNEL,
        )?;
        for switch in switches.iter() {
            list.push(switch.clone(), GFP_KERNEL)?;
        }
        let context = list[0].reads_context();
        let list = Arc::new(list, GFP_KERNEL)?;
        self.publish(shared, open_file, context, |dispatch| {
            dispatch.switches.swap(list)
        })
    }

    /// Publishes triggers or switches with one more, then connects the source: in this order, since the
    /// connection may tell a program that its event is enabled, and what it writes from then on is to be
    /// counted. With `context`, the new one reads the context of hits. `swap` returns the old list: to
    /// drop it waits for a grace period, which is too long for a program that is told already.
    fn publish<T>(
        &mut self,
        shared: &Shared,
        open_file: &KernelFile,
        context: bool,
        swap: impl FnOnce(&Dispatch) -> T,
    ) -> Result {
        if let (true, Some(source)) = (context, &self.source) {
            source.want_context();
        }
        self.dispatch.leaf.store(ptr::null_mut(), Relaxed);
        let old = swap(&self.dispatch);
        self.choose_leaf();
        let connected = self.connect(shared, open_file, context);
        drop(old);
        if connected.is_err() {
            // There was no source, so there was nothing but this one.
            self.change(|dispatch| {
                dispatch.triggers.replace(shared.no_triggers.clone());
                dispatch.switches.replace(shared.no_switches.clone());
                Ok(())
            })?;
        }
        connected
    }

    /// Changes the triggers or the switches. Hits take the slow path meanwhile.
    fn change(&self, change: impl FnOnce(&Dispatch) -> Result) -> Result {
        self.dispatch.leaf.store(ptr::null_mut(), Relaxed);
        let done = change(&self.dispatch);
        self.choose_leaf();
        done
    }

    /// Puts the only trigger on the fast path, if it is a leaf.
    fn choose_leaf(&self) {
        if let [trigger] = &self.triggers()[..] {
            if self.switches().is_empty() && trigger.is_leaf() {
                let leaf = Arc::as_ptr(trigger).cast_mut();
                self.dispatch.leaf.store(leaf, Release);
            }
        }
    }

    /// Whether a trigger or switch of it is in a tracing directory that was removed.
    pub(crate) fn is_orphaned(&self) -> bool {
        self.triggers().iter().any(|trigger| trigger.dir.removed())
            || self.switches().iter().any(|switch| switch.dir().removed())
    }

    /// Removes the triggers that are not to be kept, and waits for the hits that may use them. Fails with
    /// `ENOMEM`, which it cannot if none is kept, and has then removed none.
    pub(crate) fn retain(&self, shared: &Shared, keep: impl Fn(&HistTrigger) -> bool) -> Result {
        match self.triggers().iter().all(|trigger| keep(trigger)) {
            true => Ok(()),
            false => self.change(|dispatch| retain(&dispatch.triggers, &shared.no_triggers, keep)),
        }
    }

    /// As [`Hook::retain`], for switches.
    pub(crate) fn retain_switches(
        &self,
        shared: &Shared,
        keep: impl Fn(&Switch) -> bool,
    ) -> Result {
        match self.switches().iter().all(|switch| keep(switch)) {
            true => Ok(()),
            false => self.change(|dispatch| retain(&dispatch.switches, &shared.no_switches, keep)),
        }
    }

    /// Adds a trigger. It misses no hit that begins after this returned. `open_file` is any open file of
    /// tracefs.
    pub(crate) fn add(
        &mut self,
        shared: &Shared,
        trigger: HistTrigger,
        open_file: &KernelFile,
    ) -> Result {
        let context = trigger.reads_context();
        let mut list = self.copy(1)?;
        list.push(Arc::new(trigger, GFP_KERNEL)?, GFP_KERNEL)?;
        let list = Arc::new(list, GFP_KERNEL)?;
        self.publish(shared, open_file, context, |dispatch| {
            dispatch.triggers.swap(list)
        })
    }

    /// A copy of the triggers with room for some more.
    fn copy(&self, more: usize) -> Result<Triggers> {
        let triggers = self.triggers();
        let mut list = Triggers::with_capacity(triggers.len() + more, GFP_KERNEL)?;
        for trigger in triggers.iter() {
            list.push(trigger.clone(), GFP_KERNEL)?;
        }
        Ok(list)
    }
}

/// Publishes the part of a list that is to be kept, which is not all of it.
fn retain<T: Send + Sync>(
    list: &Published<KVec<Arc<T>>>,
    none: &Arc<KVec<Arc<T>>>,
    keep: impl Fn(&T) -> bool,
) -> Result {
    let old = list.get();
    let kept = old.iter().filter(|item| keep(item)).count();
    if kept == 0 {
        list.replace(none.clone());
    } else {
        let mut new = KVec::with_capacity(kept, GFP_KERNEL)?;
        for item in old.iter().filter(|item| keep(item)) {
            new.push(item.clone(), GFP_KERNEL)?;
        }
        list.replace(Arc::new(new, GFP_KERNEL)?);
    }
    Ok(())
}

/// A trigger or a switch: an event has it in one tracing directory.
pub(crate) trait Placed {
    fn dir(&self) -> &TracingDir;
}

/// The triggers or switches that an event has in one tracing directory.
pub(crate) struct InDir<T: Placed> {
    pub(crate) all: Arc<KVec<Arc<T>>>,
    pub(crate) dir: TracingDir,
}

impl<T: Placed> InDir<T> {
    /// Each of them, in the order of the list.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.all.iter().filter(|item| *item.dir() == self.dir)
    }
}

impl Drop for Hook {
    fn drop(&mut self) {
        Self::disconnect(core::slice::from_mut(self));
    }
}
