// SPDX-License-Identifier: GPL-2.0

//! Events with triggers, and the path of a hit to them.
//!
//! A [`Hook`] is an event with its triggers. Its [`Source`] passes each hit, with the record, to
//! its [`Dispatch`], which is the [`Receiver`] and passes the hit to the triggers.
//!
//! # Contexts
//!
//! A hit may come in any context, NMI included, always with preemption off. It reads the list of
//! triggers through one pointer. A replaced list is freed after a grace period, so a hit takes
//! neither lock nor reference.

pub(crate) mod clock;
mod disconnected;
pub(crate) mod groups;
mod leftovers;
mod origin;
mod placed;
pub(crate) mod poll;
pub(crate) mod site;
pub(crate) mod snapshot;
pub(crate) mod stack;
pub(crate) mod switch;
pub(crate) mod synthetic;
pub(crate) mod trigger;
pub(crate) mod user_objects;
pub(crate) mod user_stack;

use crate::{
    event::{
        group,
        Clock,
        Context,
        Group,
        GroupPlace,
        GroupTask,
        Hit,
        LongBuffer,
        Record,
        Stack,
        Tail, //
    },
    hist::Tag,
    limits::COMM_LEN,
    rust::{
        cgroup,
        cpu,
        event::{
            Event,
            EventId, //
        },
        instance::Instance,
        memory,
        queue::Queue,
        source::{
            event_file::EventFile,
            marker::Marker,
            probe::{
                find,
                probe_entry_points,
                Probe,
                Records, //
            },
            sample::Sampler,
            Receiver,
            Source, //
        },
        stack::Frame,
        synthetic::Emitted,
        task::TaskArg,
        tracefs::TracingDir, //
    },
    sync::{
        Load,
        PreemptOff,
        Published,
        Retired, //
    },
};
use core::{
    cell::Cell,
    ptr, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed,
            Release, //
        },
        Arc, //
    },
};
pub(crate) use leftovers::Leftovers;
use origin::Origin;
pub(crate) use placed::{
    InDir,
    Placed, //
};
use poll::Pollers;
pub(crate) use site::{
    HistTrigger,
    Triggers, //
};
use stack::Handlers;
pub(crate) use switch::Switches;
use switch::{
    Switch,
    SwitchSettings, //
};
use trigger::Entry;

/// Passes the hits of an event to its switches, then to its triggers.
pub(crate) struct Dispatch {
    /// The trigger of the fast path, or null: the only trigger of the event, if it is a
    /// [leaf](HistTrigger::is_leaf) and the event has no switches. It is on the list of triggers,
    /// too, and cleared here before it is removed there.
    leaf: Atomic<*mut HistTrigger>,
    /// Like `leaf`, for an [emitter](HistTrigger::is_emitter).
    emitter: Atomic<*mut HistTrigger>,
    switches: Published<Switches>,
    triggers: Arc<Published<Triggers>>,
    handlers: Arc<Handlers>,
    /// Set if the event is a synthetic one.
    emitted: Option<Emitted>,
    pollers: Arc<Pollers>,
    /// The wait queue of pollers of this event.
    poll_index: usize,
    /// Number of hits lost because the source failed to allocate a record.
    lost: Atomic<u64>,
}

/// The context of the current hit.
struct HitContext<'a> {
    /// The clock that was read last, and its time: the same for all triggers.
    time: Cell<Option<(Clock, u64)>>,
    handlers: &'a Handlers,
    /// The frame where the stack begins. `None` on the fast path, which reads no stack; a synthetic
    /// event that the hit emits may read it nevertheless.
    frame: Option<Frame<'a>>,
    /// The task of its tracepoint.
    arg: TaskArg<'a>,
    /// The hit of another event that emits this one.
    origin: Option<&'a Origin<'a>>,
}

impl Context for HitContext<'_> {
    fn time(&self, clock: Clock) -> u64 {
        match self.time.get() {
            Some((last, time)) if last == clock => time,
            _ => {
                let time = clock::read(clock);
                self.time.set(Some((clock, time)));
                time
            }
        }
    }

    fn stack(&self, preempt: PreemptOff<'_>, to: &mut Stack) {
        match (self.origin, self.frame) {
            (Some(origin), _) => origin.0.stack(preempt, to),
            (None, Some(frame)) => self.handlers.stack(frame, preempt, to),
            (None, None) => {
                let stack = |frame: Frame<'_>| self.handlers.stack(frame, preempt, to);
                crate::rust::stack::with_frame(Stack::BEFORE, stack);
            }
        }
    }

    fn user_stack(&self, preempt: PreemptOff<'_>, most: usize, to: &mut Tail<'_>) {
        // The table exists while a histogram takes such stacks.
        if let Some(objects) = user_objects::current(preempt) {
            user_stack::take(objects, preempt, most, to);
        }
    }

    fn long_buffer<'a>(&'a self, preempt: PreemptOff<'a>) -> Option<LongBuffer<'a>> {
        user_objects::current(preempt)?.long_buffer(preempt)
    }

    fn comm(&self) -> [u8; COMM_LEN] {
        cpu::current_comm()
    }

    fn comm_of(&self, pid: u32) -> Option<[u8; COMM_LEN]> {
        cpu::comm_of(pid, self.arg)
    }

    fn tgid(&self) -> u32 {
        cpu::current_tgid()
    }

    fn ppid(&self) -> u32 {
        cpu::current_ppid()
    }

    fn cgroup(&self) -> u64 {
        cgroup::id()
    }

    fn cgroup_of(&self, pid: u32) -> u64 {
        match pid {
            0 => group::IDLE,
            _ => match cgroup::id_of(pid, self.arg) {
                0 => group::GONE,
                id => id,
            },
        }
    }

    fn cgroup_node<'a>(&self, preempt: PreemptOff<'a>, task: GroupTask) -> Option<Group<'a>> {
        if task == Some(0) {
            return None;
        }
        let (id, node) = cgroup::of(task, self.arg)?;
        // SAFETY: The node was found with preemption off, and is aligned like a pointer.
        Some(unsafe { Group::new(preempt, id, node) })
    }

    fn is_in_cgroup(&self, group: GroupPlace) -> bool {
        cgroup::is_below(group.id, group.level)
    }

    fn read(&self, to: &mut [u8], address: usize) -> bool {
        match memory::is_user(address, to.len()) {
            true => memory::read_user(to, address),
            false => memory::read_kernel(to, address),
        }
    }

    fn read_kernel(&self, to: &mut [u8], address: usize) -> bool {
        memory::read_kernel(to, address)
    }
}

/// The id of a task's control group, if it is found without a search: see [`Context::cgroup_of`].
/// Any context.
#[inline(always)]
fn known_group(task: GroupTask, arg: TaskArg<'_>) -> Option<u64> {
    match task {
        None => Some(cgroup::id()),
        Some(0) => Some(group::IDLE),
        Some(pid) => cgroup::id_of_known(pid, arg),
    }
}

// Tags as constants that functions are compiled for.
const FIELDS: u32 = Tag::Fields as u32;
const COLUMNS: u32 = Tag::Columns as u32;
const DISTRIBUTIONS: u32 = Tag::Distributions as u32;
const SET: u32 = Tag::Set as u32;
const LATENCY: u32 = Tag::Latency as u32;

impl Dispatch {
    // Out of line and called last, so that the fast path saves no registers.

    /// Counts a hit of a leaf on the path with this tag. Any context.
    #[inline(never)]
    fn hit_path<const TAG: u32>(
        &self,
        trigger: &HistTrigger,
        preempt: PreemptOff<'_>,
        record: Record<'_>,
        entry: Entry,
    ) {
        let Some(tag) = Tag::of(TAG) else {
            return;
        };
        if !trigger.hit_leaf(tag, entry, preempt, record, clock::global, |_| None) {
            // The program of such a path looks for no task.
            self.execute(trigger, preempt, record, TaskArg::NONE);
        }
    }

    /// Counts a hit of a leaf whose key is the control group of a task. Any context.
    #[inline(never)]
    fn hit_group(
        &self,
        trigger: &HistTrigger,
        preempt: PreemptOff<'_>,
        record: Record<'_>,
        arg: TaskArg<'_>,
    ) {
        let group = |task| known_group(task, arg);
        let entry = trigger.entry();
        if !trigger.hit_leaf(Tag::Group, entry, preempt, record, clock::global, group) {
            self.execute(trigger, preempt, record, arg);
        }
    }

    /// Counts a hit of a leaf by executing its program. Any context.
    #[inline(never)]
    fn execute(
        &self,
        trigger: &HistTrigger,
        preempt: PreemptOff<'_>,
        record: Record<'_>,
        arg: TaskArg<'_>,
    ) {
        let context = self.context(None, arg);
        trigger.execute(&Hit::new(record, preempt, &context));
    }

    /// Counts a hit of a leaf by executing its program, unless the trigger is paused or the filter
    /// rejects the hit. Any context.
    #[inline(never)]
    fn execute_filtered(
        &self,
        trigger: &HistTrigger,
        preempt: PreemptOff<'_>,
        record: Record<'_>,
        arg: TaskArg<'_>,
    ) {
        let context = self.context(None, arg);
        trigger.hit(&Hit::new(record, preempt, &context));
    }

    fn context<'a>(&'a self, frame: Option<Frame<'a>>, arg: TaskArg<'a>) -> HitContext<'a> {
        HitContext {
            time: Cell::new(None),
            handlers: &self.handlers,
            frame,
            arg,
            origin: None,
        }
    }

    /// Returns the trigger of a fast path, unless a file is polled.
    #[inline(always)]
    fn only<'a>(
        &'a self,
        trigger: &Atomic<*mut HistTrigger>,
        _preempt: PreemptOff<'a>,
    ) -> Option<&'a HistTrigger> {
        // SAFETY: The trigger is on the list of triggers: the pointer is cleared before a list
        // without it is published, and the old list is kept for a grace period, which does not end
        // before preemption is on again.
        let trigger = unsafe { trigger.acquire().as_ref() };
        trigger.filter(|_| !Pollers::any())
    }

    /// Makes hits take the slow path, before the lists change.
    fn leave_fast_path(&self) {
        self.leaf.store(ptr::null_mut(), Relaxed);
        self.emitter.store(ptr::null_mut(), Relaxed);
    }

    /// Wakes the pollers of the event's histograms.
    #[cold]
    fn notify(&self, triggers: &Triggers) {
        // A named histogram is shown for other events, too.
        let shared = triggers.iter().any(|trigger| trigger.data.name().is_some());
        self.pollers.notify((!shared).then_some(self.poll_index));
    }
}

impl Receiver for Dispatch {
    type Leaf = HistTrigger;

    #[inline(always)]
    fn leaf<'a>(&'a self, preempt: PreemptOff<'a>) -> Option<&'a HistTrigger> {
        self.only(&self.leaf, preempt)
    }

    #[inline(always)]
    fn hit_leaf(
        &self,
        trigger: &HistTrigger,
        preempt: PreemptOff<'_>,
        record: &[u8],
        arg: TaskArg<'_>,
    ) {
        let record = Record::new(record);
        if trigger.lists_tasks() {
            return self.execute_filtered(trigger, preempt, record, arg);
        }
        let entry = trigger.entry();
        match entry {
            Entry::FIELDS => {
                if !trigger.hit_leaf(Tag::Fields, entry, preempt, record, clock::global, |_| None) {
                    self.execute(trigger, preempt, record, TaskArg::NONE);
                }
                return;
            }
            Entry::FIELDS_RANGED => {
                return self.hit_path::<FIELDS>(trigger, preempt, record, Entry::FIELDS_RANGED)
            }
            _ if !entry.is_open() => return self.execute_filtered(trigger, preempt, record, arg),
            _ => (),
        }
        match entry.tag() {
            Tag::Columns => self.hit_path::<COLUMNS>(trigger, preempt, record, entry),
            Tag::Distributions => self.hit_path::<DISTRIBUTIONS>(trigger, preempt, record, entry),
            Tag::Set => self.hit_path::<SET>(trigger, preempt, record, entry),
            Tag::Latency => self.hit_path::<LATENCY>(trigger, preempt, record, entry),
            Tag::Group => self.hit_group(trigger, preempt, record, arg),
            Tag::Execute => self.execute(trigger, preempt, record, arg),
            // Handled above; never the path of a leaf.
            Tag::Fields | Tag::Trace => (),
        }
    }

    #[inline(always)]
    fn emitter<'a>(&'a self, preempt: PreemptOff<'a>) -> Option<&'a HistTrigger> {
        self.only(&self.emitter, preempt)
    }

    #[inline(always)]
    fn hit_emitter(
        &self,
        emitter: &HistTrigger,
        preempt: PreemptOff<'_>,
        record: &[u8],
        arg: TaskArg<'_>,
    ) -> bool {
        let context = self.context(None, arg);
        emitter.hit_emitter(preempt, Record::new(record), clock::global, &context)
    }

    /// Passes a hit to all switches and triggers, and wakes pollers.
    fn hit_all(&self, preempt: PreemptOff<'_>, record: &[u8], arg: TaskArg<'_>, frame: Frame<'_>) {
        let triggers = self.triggers.read(preempt);
        let origin = match &self.emitted {
            // SAFETY: Every emitter of synthetic events passes an `Origin`. It is used during this
            // hit only.
            Some(emitted) => unsafe { emitted.origin::<Origin<'_>>(preempt) },
            None => None,
        };
        let context = HitContext {
            origin,
            ..self.context(Some(frame), arg)
        };
        let hit = Hit::new(Record::new(record), preempt, &context);
        let switches = self.switches.read(preempt);
        for switch in switches {
            switch.hit(&hit, switches, triggers);
        }
        let mut counted = false;
        for trigger in triggers {
            counted |= trigger.hit(&hit);
        }
        if counted && Pollers::any() {
            self.notify(triggers);
        }
    }

    #[cold]
    fn lost(&self) {
        self.lost.add(1, Relaxed);
    }
}

probe_entry_points!(Dispatch);

/// State shared by all hooks.
pub(crate) struct Shared {
    pub(crate) instance: Arc<Instance>,
    /// Handlers for events without a tracepoint of their own.
    handlers: Arc<Handlers>,
    /// Pollers of `hist` files.
    pub(crate) pollers: Arc<Pollers>,
    /// Empty lists, which can be published without an allocation.
    no_switches: Arc<Switches>,
    no_triggers: Arc<Triggers>,
    /// Memory for the records of rhist's probes; `None` with `probes=0`.
    records: Option<Arc<Records>>,
    /// Drops disconnected sources. Destroyed after all hooks, when the registry is dropped.
    disconnected: Arc<Queue>,
}

impl Shared {
    /// Creates it, with rhist's probes if `probes`. Fails with `ENOMEM`, and with `EBUSY` if their
    /// memory exists already.
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
            disconnected: Arc::new(Queue::new()?, GFP_KERNEL)?,
        })
    }
}

/// An event with triggers or switches, or one that a switch targets.
///
/// One hook serves all tracing directories, since the kernel can connect the event of a system call
/// only once for the instance `rhist`; but each directory has its own hook for the marker. Changed
/// by one task at a time.
pub(crate) struct Hook {
    /// `None` while the hook has neither triggers nor switches.
    source: Option<KBox<dyn Source>>,
    dispatch: Arc<Dispatch>,
    event: Arc<Event>,
    /// The queue of [`Shared`].
    disconnected: Arc<Queue>,
}

impl Hook {
    /// Creates a hook without triggers. Fails with `ENOMEM`.
    pub(crate) fn new(shared: &Shared, event: Event) -> Result<Self> {
        let triggers = Published::new(shared.no_triggers.clone());
        let dispatch = Dispatch {
            leaf: Atomic::new(ptr::null_mut()),
            emitter: Atomic::new(ptr::null_mut()),
            switches: Published::new(shared.no_switches.clone()),
            triggers: Arc::new(triggers, GFP_KERNEL)?,
            handlers: match Handlers::of(&event)? {
                Some(handlers) => Arc::new(handlers, GFP_KERNEL)?,
                None => shared.handlers.clone(),
            },
            emitted: Emitted::of(&event),
            pollers: shared.pollers.clone(),
            poll_index: Pollers::index_of(event.id()),
            lost: Atomic::new(0),
        };
        Ok(Self {
            source: None,
            dispatch: Arc::new(dispatch, GFP_KERNEL)?,
            event: Arc::new(event, GFP_KERNEL)?,
            disconnected: shared.disconnected.clone(),
        })
    }

    /// Connects a source, unless one is connected. With `context`, it fills in the context of hits.
    fn connect(&mut self, shared: &Shared, context: bool) -> Result {
        if self.source.is_none() {
            let (instance, dispatch) = (shared.instance.clone(), self.dispatch.clone());
            let records = shared.records.clone();
            let probe = records.and_then(|records| Some((find(&self.event)?, records)));
            // SAFETY: The source is disconnected, and its hits are waited for, before it and its
            // event are dropped (`Hook::disconnect()`, `Detached`). The receiver is a `Dispatch`,
            // as `probe_entry_points!` requires.
            self.source = Some(unsafe {
                match probe {
                    _ if self.event.is_marker() => {
                        Marker::attach(instance, self.event.dir(), dispatch)?
                    }
                    _ if self.event.is_sample() => Sampler::attach(&self.event, dispatch, context)?,
                    Some((probe, records)) => {
                        Probe::attach(&self.event, probe, records, dispatch, context)?
                    }
                    None => {
                        let handlers = shared.records.is_some();
                        EventFile::attach(instance, &self.event, dispatch, handlers)?
                    }
                }
            });
        }
        Ok(())
    }

    /// Disconnects the source, if one is connected. Dropping `left` waits for its hits.
    pub(crate) fn disconnect(&mut self, left: &mut Leftovers) {
        if let Some(mut source) = self.source.take() {
            source.disconnect();
            left.keep_source(source, &self.event, &self.disconnected);
        }
    }

    /// Returns whether the hook has neither triggers nor switches.
    pub(crate) fn is_idle(&self) -> bool {
        self.triggers().is_empty() && self.switches().is_empty()
    }

    /// System and name of the event, the name of its source, and the hits lost in it; `None`
    /// without a source.
    pub(crate) fn source(&self) -> Option<([&CStr; 2], &'static str, u64)> {
        let source = self.source.as_ref()?;
        let lost = self.dispatch.lost.load(Relaxed);
        Some((self.event.names(), source.name(), lost))
    }

    /// System and name of the event.
    pub(crate) fn names(&self) -> [&CStr; 2] {
        self.event.names()
    }

    /// The event's id, the same in all tracing directories.
    pub(crate) fn id(&self) -> EventId {
        self.event.id()
    }

    /// Returns whether it is the hook of `event`. Its tracing directory matters for the marker
    /// only.
    pub(crate) fn is_of(&self, event: EventId, dir: &TracingDir) -> bool {
        self.id() == event && (!self.event.is_marker() || self.event.dir() == dir)
    }

    /// The triggers, in the order in which they were added.
    pub(crate) fn triggers(&self) -> Arc<Triggers> {
        self.dispatch.triggers.get()
    }

    /// The published list of triggers, for a switch that targets them.
    pub(crate) fn published(&self) -> &Arc<Published<Triggers>> {
        &self.dispatch.triggers
    }

    /// The switches, the newest first.
    pub(crate) fn switches(&self) -> Arc<Switches> {
        self.dispatch.switches.get()
    }

    /// Adds a switch for the histograms of `target`, which may be this hook's own. Fails with
    /// `ENOMEM`, and as the source does.
    pub(crate) fn add_switch(
        &mut self,
        shared: &Shared,
        settings: SwitchSettings,
        target: Arc<Published<Triggers>>,
        left: &mut Leftovers,
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
        self.publish(shared, context, left, |dispatch, left| {
            left.keep_switches(dispatch.switches.swap(list));
        })
    }

    /// Publishes a list with a new trigger or switch, then connects the source. In this order,
    /// since connecting a user event may set the enable bit of a program, whose writes have to be
    /// counted from then on. With `context`, the new one reads the context of hits. `swap`
    /// publishes the new list and keeps the old one in `left`.
    fn publish(
        &mut self,
        shared: &Shared,
        context: bool,
        left: &mut Leftovers,
        swap: impl FnOnce(&Dispatch, &mut Leftovers),
    ) -> Result {
        if let (true, Some(source)) = (context, &self.source) {
            source.want_context();
        }
        self.dispatch.leave_fast_path();
        swap(&self.dispatch, left);
        self.choose_leaf();
        let connected = self.connect(shared, context);
        if connected.is_err() {
            // The source was not connected before, so the lists had been empty.
            self.change(|dispatch| {
                left.keep_triggers(dispatch.triggers.swap(shared.no_triggers.clone()));
                left.keep_switches(dispatch.switches.swap(shared.no_switches.clone()));
                Ok(())
            })?;
        }
        connected
    }

    /// Changes the lists by `change`. Hits take the slow path meanwhile.
    fn change<T>(&self, change: impl FnOnce(&Dispatch) -> Result<T>) -> Result<T> {
        self.dispatch.leave_fast_path();
        let done = change(&self.dispatch);
        self.choose_leaf();
        done
    }

    /// Publishes the only trigger as the one of a fast path, if it can take one.
    fn choose_leaf(&self) {
        if let ([trigger], true) = (&self.triggers()[..], self.switches().is_empty()) {
            let only = Arc::as_ptr(trigger).cast_mut();
            if trigger.is_leaf() {
                self.dispatch.leaf.store(only, Release);
            } else if trigger.is_emitter() {
                self.dispatch.emitter.store(only, Release);
            }
        }
    }

    /// Returns whether the tracing directory of one of its triggers or switches was removed.
    pub(crate) fn is_orphaned(&self) -> bool {
        self.triggers()
            .iter()
            .any(|trigger| trigger.site.dir.removed())
            || self.switches().iter().any(|switch| switch.dir().removed())
    }

    /// Removes the triggers for which `keep` is false: hits may use them until `left` is dropped.
    /// Fails with `ENOMEM`, unless all are removed; on failure, none is removed.
    pub(crate) fn retain(
        &self,
        shared: &Shared,
        left: &mut Leftovers,
        keep: impl Fn(&HistTrigger) -> bool,
    ) -> Result {
        if !self.triggers().iter().all(|trigger| keep(trigger)) {
            let list =
                self.change(|dispatch| retain(&dispatch.triggers, &shared.no_triggers, keep))?;
            left.keep_triggers(list);
        }
        Ok(())
    }

    /// [`Hook::retain`] for switches.
    pub(crate) fn retain_switches(
        &self,
        shared: &Shared,
        left: &mut Leftovers,
        keep: impl Fn(&Switch) -> bool,
    ) -> Result {
        if !self.switches().iter().all(|switch| keep(switch)) {
            let list =
                self.change(|dispatch| retain(&dispatch.switches, &shared.no_switches, keep))?;
            left.keep_switches(list);
        }
        Ok(())
    }

    /// Adds a trigger. It counts all hits that begin after this returns. Fails with `ENOMEM`, and
    /// as the source does.
    pub(crate) fn add(
        &mut self,
        shared: &Shared,
        trigger: HistTrigger,
        left: &mut Leftovers,
    ) -> Result {
        let context = trigger.reads_context();
        let mut list = self.copy(1)?;
        list.push(Arc::new(trigger, GFP_KERNEL)?, GFP_KERNEL)?;
        let list = Arc::new(list, GFP_KERNEL)?;
        self.publish(shared, context, left, |dispatch, left| {
            left.keep_triggers(dispatch.triggers.swap(list));
        })
    }

    /// Copies the list of triggers, with capacity for `more`.
    fn copy(&self, more: usize) -> Result<Triggers> {
        let triggers = self.triggers();
        let mut list = Triggers::with_capacity(triggers.len() + more, GFP_KERNEL)?;
        for trigger in triggers.iter() {
            list.push(trigger.clone(), GFP_KERNEL)?;
        }
        Ok(list)
    }
}

/// Publishes the items of a list for which `keep` is true, which are not all of them. Returns the
/// old list.
fn retain<T: Send + Sync>(
    list: &Published<KVec<Arc<T>>>,
    none: &Arc<KVec<Arc<T>>>,
    keep: impl Fn(&T) -> bool,
) -> Result<Retired<KVec<Arc<T>>>> {
    let old = list.get();
    let kept = old.iter().filter(|item| keep(item)).count();
    if kept == 0 {
        return Ok(list.swap(none.clone()));
    }
    let mut new = KVec::with_capacity(kept, GFP_KERNEL)?;
    for item in old.iter().filter(|item| keep(item)) {
        new.push(item.clone(), GFP_KERNEL)?;
    }
    Ok(list.swap(Arc::new(new, GFP_KERNEL)?))
}

impl Drop for Hook {
    fn drop(&mut self) {
        // Waits here, if the source was still connected.
        self.disconnect(&mut Leftovers::default());
    }
}
