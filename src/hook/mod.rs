// SPDX-License-Identifier: GPL-2.0

//! Being called for each hit of an event.
//!
//! A [`Hook`] is an event with the triggers that count it. A [`Source`] calls the hook's
//! [`Sinks`] for each hit; where it gets the record from is its own affair.
//!
//! # Contexts
//!
//! A hit may come in any context, NMI included, always with preemption off. It reads the list of
//! triggers through one pointer. Whoever replaces the list waits for the hits that run before
//! it frees what they might see, so nothing is counted and nothing locked on the way of a hit.

pub(crate) mod event_file;
mod marker;
pub(crate) mod poll;
mod probe;
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
use crate::ftrace::bindings;
use crate::ftrace::clock;
use crate::ftrace::cpu;
use crate::ftrace::event::Event;
use crate::ftrace::instance::Instance;
use crate::ftrace::probe::find;
use crate::ftrace::probe::Records;
use crate::ftrace::stack::Frame;
use crate::ftrace::tracefs::KernelFile;
use crate::ftrace::tracefs::TracingDir;
use crate::map::load::Load;
use core::cell::Cell;
use core::ptr;
use core::slice;
use event_file::EventFile;
use kernel::ffi;
use kernel::prelude::*;
use kernel::sync::atomic::Atomic;
use kernel::sync::atomic::Relaxed;
use kernel::sync::atomic::Release;
use kernel::sync::Arc;
use marker::Marker;
use poll::Pollers;
use probe::Probe;
use published::Published;
use stack::Handlers;
use switch::Settings;
use switch::Switch;
use trigger::HistTrigger;

/// Something that calls [`Sinks::hit`] for each hit of an event, from its creation until it is
/// disconnected. What is running then ends before [`wait_for_hits`] does: only then may it be
/// dropped, and the reference on its event be given back.
pub(crate) trait Source: Send + Sync {
    /// Has no more calls begin. Takes `event_mutex`.
    fn disconnect(&mut self);

    /// Has each record tell of the context of its hit, in `common_flags` and `common_preempt_count`:
    /// there are sources that leave that out unless it is asked for. Task context, may sleep.
    fn want_context(&self) {}

    /// What `hist_stats` calls it.
    fn name(&self) -> &'static str;
}

/// The `len` bytes at `start` as a record.
///
/// # Safety
///
/// They are initialised, lie in one allocation, and nobody writes to them for `'a`. (A record belongs to
/// the CPU that reserved it until it is committed.)
#[inline(always)]
unsafe fn record_from_raw<'a>(start: *const u8, len: usize) -> Record<'a> {
    // SAFETY: The caller promises `len` readable bytes that stay unchanged for `'a`.
    Record::new(unsafe { slice::from_raw_parts(start, len) })
}

/// Waits until all hits have returned of the sources that were disconnected before.
fn wait_for_hits() {
    // Probes run under tracepoint_srcu or RCU-tasks-trace; kprobes with preemption off.
    // SAFETY: Task context, no locks that a probe could wait for.
    unsafe { bindings::rhist_tracepoint_synchronize_unregister() };
    cpu::synchronize_hits();
}

/// The triggers of an event, in the order in which they were added.
pub(crate) type Triggers = KVec<Arc<HistTrigger>>;

/// The switches of an event, the newest first.
pub(crate) type Switches = KVec<Arc<Switch>>;

/// Where the hits of an event go: first to the switches, then to the triggers.
pub(crate) struct Sinks {
    /// The only trigger, if there are no switches, and it [is quiet](HistTrigger::is_leaf). It is on the
    /// list of triggers; whoever takes it from there changes this before.
    quiet: Atomic<*mut HistTrigger>,
    switches: Published<Switches>,
    triggers: Arc<Published<Triggers>>,
    handlers: Arc<Handlers>,
    pollers: Arc<Pollers>,
    /// Where those wait who poll this event.
    place: usize,
    /// Hits that the source could make no record of.
    lost: Atomic<u64>,
}

/// The context of the current hit.
struct HitContext<'a> {
    /// The last time that was asked for, so that all who ask get the same.
    time: Cell<Option<(Clock, u64)>>,
    handlers: &'a Handlers,
    /// That of the probe, if it is one of ours.
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

impl Sinks {
    /// The kernel called a trigger of ours with what it had reserved. Any context.
    ///
    /// # Safety
    ///
    /// Preemption must be off, and the record, if there is one, be complete and not yet given back.
    #[inline]
    unsafe fn called(&self, record: *mut ffi::c_void, event: *mut bindings::ring_buffer_event) {
        if record.is_null() || event.is_null() {
            return;
        }
        let cpu = cpu::current();
        // SAFETY: The record is ours alone until it is given back.
        let record = unsafe { record_from_raw(record.cast(), bindings::rhist_record_len(event)) };
        // SAFETY: By the contract.
        unsafe { self.recorded(cpu, record) };
    }

    /// There was a hit, and this is its record, wherever it was made. Any context.
    ///
    /// # Safety
    ///
    /// Preemption must be off; `cpu` is where this runs.
    #[inline(always)]
    unsafe fn recorded(&self, cpu: usize, record: Record<'_>) {
        // SAFETY: By the contract.
        unsafe {
            match self.quiet() {
                Some(trigger) => self.hit_quietly(trigger, cpu, record),
                None => self.hit(cpu, record, None),
            }
        }
    }

    /// There was a hit, but no record of it. Any context.
    #[cold]
    fn lost(&self) {
        self.lost.add(1, Relaxed);
    }

    /// The trigger that is all there is to a hit, if it cannot bring forth other hits and looks at nothing
    /// that the record [begins](record::HEAD) with: as `rhist_quiet()` in `rust/probe/probe.h`. Any context.
    ///
    /// # Safety
    ///
    /// Preemption must be off as long as the trigger is used.
    #[inline(always)]
    unsafe fn quiet(&self) -> Option<&HistTrigger> {
        // SAFETY: A trigger that is taken from here is kept for a grace period, as it is on the list, and
        // that does not end before preemption is on again.
        let trigger = unsafe { self.quiet.acquire().as_ref() };
        trigger.filter(|_| !self.pollers.any())
    }

    /// Counts a hit of which there is this record, for a trigger that [is quiet](Sinks::quiet). Any
    /// context.
    ///
    /// # Safety
    ///
    /// Preemption must be off; `cpu` is where this runs.
    #[inline(always)]
    unsafe fn hit_quietly(&self, trigger: &HistTrigger, cpu: usize, record: Record<'_>) {
        // SAFETY: By the contract.
        unsafe {
            if !trigger.hit_fast(record, cpu) {
                self.hit_one(trigger, cpu, record);
            }
        }
    }

    /// Gives a record to a leaf trigger. Out of line and called last, so that the fast path saves no registers.
    /// Any context.
    ///
    /// # Safety
    ///
    /// As for [`Sinks::hit_quietly`].
    #[inline(never)]
    unsafe fn hit_one(&self, trigger: &HistTrigger, cpu: usize, record: Record<'_>) {
        // SAFETY: By the contract.
        unsafe { trigger.hit(&Hit::new(record, cpu, &self.context(None))) };
    }

    /// Gives a record to the triggers, whatever there is to do. `frame` is that of the probe, if it is one
    /// of ours. Any context.
    ///
    /// # Safety
    ///
    /// Preemption must be off; `cpu` is where this runs.
    unsafe fn hit(&self, cpu: usize, record: Record<'_>, frame: Option<Frame<'_>>) {
        // SAFETY: By the contract.
        let (switches, triggers) = unsafe { (self.switches.read(), self.triggers.read()) };
        let context = self.context(frame);
        let hit = Hit::new(record, cpu, &context);
        for switch in switches {
            // SAFETY: By the contract.
            unsafe { switch.hit(&hit) };
        }
        let mut counted = false;
        for trigger in triggers {
            // SAFETY: By the contract.
            counted |= unsafe { trigger.hit(&hit) };
        }
        if counted && self.pollers.any() {
            self.notify(triggers);
        }
    }

    fn context<'a>(&'a self, frame: Option<Frame<'a>>) -> HitContext<'a> {
        HitContext {
            time: Cell::new(None),
            handlers: &self.handlers,
            frame,
        }
    }

    /// Wakes those who poll a histogram that has just counted.
    #[cold]
    fn notify(&self, triggers: &Triggers) {
        // A histogram with a name belongs to other events too.
        let shared = triggers.iter().any(|trigger| trigger.data.name().is_some());
        self.pollers.notify((!shared).then_some(self.place));
    }
}

/// What all hooks use.
pub(crate) struct Shared {
    pub(crate) instance: Arc<Instance>,
    /// For events that have none of their own.
    handlers: Arc<Handlers>,
    /// Those who wait for hits.
    pub(crate) pollers: Arc<Pollers>,
    /// What there is in their place where there are none.
    no_switches: Arc<Switches>,
    no_triggers: Arc<Triggers>,
    /// For probes of ours; `None` if there are to be none.
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

/// An event that is counted, for all tracing directories, unless it is the marker of one: the kernel
/// keeps one file of each system call's event for an instance, so that one of ours has to do for all
/// of them.
///
/// Exists while the event has triggers or switches, or is meant by a switch. Changed by one task at
/// a time.
pub(crate) struct Hook {
    /// `None` while nobody needs to know of hits.
    source: Option<KBox<dyn Source>>,
    sinks: Arc<Sinks>,
    event: Event,
}

impl Hook {
    /// A hook without triggers.
    pub(crate) fn new(shared: &Shared, event: Event) -> Result<Self> {
        let triggers = Published::new(shared.no_triggers.clone());
        let sinks = Sinks {
            quiet: Atomic::new(ptr::null_mut()),
            switches: Published::new(shared.no_switches.clone()),
            triggers: Arc::new(triggers, GFP_KERNEL)?,
            handlers: match Handlers::of(&event)? {
                Some(handlers) => Arc::new(handlers, GFP_KERNEL)?,
                None => shared.handlers.clone(),
            },
            pollers: shared.pollers.clone(),
            place: Pollers::place_of(&event),
            lost: Atomic::new(0),
        };
        Ok(Self {
            source: None,
            sinks: Arc::new(sinks, GFP_KERNEL)?,
            event,
        })
    }

    /// Begins to learn of hits, if it does not yet, with their context in the record if `context`. `beside` is
    /// any file of the kernel's tracing that is open.
    fn connect(&mut self, shared: &Shared, beside: &KernelFile, context: bool) -> Result {
        if self.source.is_none() {
            let (instance, sinks) = (shared.instance.clone(), self.sinks.clone());
            let records = shared.records.clone();
            let probe = records.and_then(|records| Some((find(&self.event)?, records)));
            // SAFETY: A hook disconnects its source, and gives up its event afterwards.
            self.source = Some(unsafe {
                match probe {
                    _ if self.event.is_marker() => {
                        Marker::attach(instance, self.event.dir(), sinks)?
                    }
                    Some((probe, records)) => {
                        Probe::attach(&self.event, probe, records, sinks, context)?
                    }
                    None => EventFile::attach(instance, &self.event, sinks, beside)?,
                }
            });
        }
        Ok(())
    }

    /// Ends the hits of `hooks`, waiting once for all of them.
    pub(crate) fn disconnect(hooks: &mut [Self]) {
        let mut any = false;
        for source in hooks.iter_mut().filter_map(|hook| hook.source.as_mut()) {
            source.disconnect();
            any = true;
        }
        if any {
            wait_for_hits();
        }
        for hook in hooks {
            hook.source = None;
        }
    }

    /// Has it neither triggers nor switches?
    pub(crate) fn is_idle(&self) -> bool {
        self.triggers().is_empty() && self.switches().is_empty()
    }

    /// The system and the name of the event, what tells of its hits, and how many of them were lost
    /// there; `None` while nobody needs to know of them.
    pub(crate) fn source(&self) -> Option<([&CStr; 2], &'static str, u64)> {
        let source = self.source.as_ref()?;
        let lost = self.sinks.lost.load(Relaxed);
        Some((self.event.names(), source.name(), lost))
    }

    /// Is it, in some tracing directory, the hook of the event with this address?
    pub(crate) fn is_called(&self, call: *const bindings::trace_event_call) -> bool {
        ptr::eq(self.event.call(), call)
    }

    /// Is this the hook of `event`, in whichever tracing directory? Each has a marker of its own.
    pub(crate) fn is_of(&self, event: &Event) -> bool {
        self.is_called(event.call()) && (!event.is_marker() || self.event.dir() == event.dir())
    }

    /// The triggers, in the order in which they were added.
    pub(crate) fn triggers(&self) -> Arc<Triggers> {
        self.sinks.triggers.get()
    }

    /// The triggers as they are published: a switch of another event means them by this.
    pub(crate) fn published(&self) -> &Arc<Published<Triggers>> {
        &self.sinks.triggers
    }

    /// The switches, the newest first.
    pub(crate) fn switches(&self) -> Arc<Switches> {
        self.sinks.switches.get()
    }

    /// Adds a switch for the histograms of `target`, which it may be itself.
    /// `beside` is as for [`Hook::add`].
    pub(crate) fn add_switch(
        &mut self,
        shared: &Shared,
        settings: Settings,
        target: Arc<Published<Triggers>>,
        beside: &KernelFile,
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
        self.publish(shared, beside, context, |sinks| {
            sinks.switches.replace(list)
        })
    }

    /// Publishes triggers or switches with one more, and then sees to it that there are hits. In this order:
    /// a program may be told by the connection that its event is enabled, and what it writes then has to be
    /// counted. With `context`, the new one reads that in records.
    fn publish(
        &mut self,
        shared: &Shared,
        beside: &KernelFile,
        context: bool,
        replace: impl FnOnce(&Sinks),
    ) -> Result {
        if let (true, Some(source)) = (context, &self.source) {
            source.want_context();
        }
        self.change(|sinks| {
            replace(sinks);
            Ok(())
        })?;
        let connected = self.connect(shared, beside, context);
        if connected.is_err() {
            // There was no source, so there was nothing but this one.
            self.change(|sinks| {
                sinks.triggers.replace(shared.no_triggers.clone());
                sinks.switches.replace(shared.no_switches.clone());
                Ok(())
            })?;
        }
        connected
    }

    /// Changes the triggers or the switches. Hits are off the fast path meanwhile.
    fn change(&self, change: impl FnOnce(&Sinks) -> Result) -> Result {
        let sinks = &self.sinks;
        sinks.quiet.store(ptr::null_mut(), Relaxed);
        let done = change(sinks);
        if let [trigger] = &self.triggers()[..] {
            if self.switches().is_empty() && trigger.is_leaf() {
                sinks.quiet.store(Arc::as_ptr(trigger).cast_mut(), Release);
            }
        }
        done
    }

    /// Is something of it in a tracing directory that was removed?
    pub(crate) fn is_orphaned(&self) -> bool {
        self.triggers().iter().any(|trigger| trigger.dir.removed())
            || self.switches().iter().any(|switch| switch.dir().removed())
    }

    /// Removes the triggers that are not to be kept. No hit reaches them any more when this
    /// returned. Fails with `ENOMEM` if some are kept, and has then removed none.
    pub(crate) fn retain(&self, shared: &Shared, keep: impl Fn(&HistTrigger) -> bool) -> Result {
        match self.triggers().iter().all(|trigger| keep(trigger)) {
            true => Ok(()),
            false => self.change(|sinks| retain(&sinks.triggers, &shared.no_triggers, keep)),
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
            false => self.change(|sinks| retain(&sinks.switches, &shared.no_switches, keep)),
        }
    }

    /// Adds a trigger. It misses no hit that begins after this returned. `beside` is any file of the kernel's
    /// tracing that is open.
    pub(crate) fn add(
        &mut self,
        shared: &Shared,
        trigger: HistTrigger,
        beside: &KernelFile,
    ) -> Result {
        let context = trigger.reads_context();
        let mut list = self.copy(1)?;
        list.push(Arc::new(trigger, GFP_KERNEL)?, GFP_KERNEL)?;
        let list = Arc::new(list, GFP_KERNEL)?;
        self.publish(shared, beside, context, |sinks| {
            sinks.triggers.replace(list)
        })
    }

    /// A copy of the list with room for some more.
    fn copy(&self, more: usize) -> Result<Triggers> {
        let triggers = self.triggers();
        let mut list = Triggers::with_capacity(triggers.len() + more, GFP_KERNEL)?;
        for trigger in triggers.iter() {
            list.push(trigger.clone(), GFP_KERNEL)?;
        }
        Ok(list)
    }
}

/// Replaces a list by what is to be kept of it, which is not all.
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

/// Something that an event has in one tracing directory.
pub(crate) trait Placed {
    fn dir(&self) -> &TracingDir;
}

/// What an event has in one tracing directory, of a list for all of them.
pub(crate) struct InDir<T: Placed> {
    pub(crate) all: Arc<KVec<Arc<T>>>,
    pub(crate) dir: TracingDir,
}

impl<T: Placed> InDir<T> {
    /// They, in the order of the list.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.all.iter().filter(|item| *item.dir() == self.dir)
    }
}

impl Drop for Hook {
    fn drop(&mut self) {
        Self::disconnect(core::slice::from_mut(self));
    }
}
