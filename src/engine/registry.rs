// SPDX-License-Identifier: GPL-2.0

//! The events that have triggers.
//!
//! # Locks
//!
//! The lock of the registry is taken in task context, with no lock held other than the one of
//! commands. It is the outermost lock of the module: event_mutex and mmap_lock of the running task
//! are taken inside it. Callbacks that the kernel calls with either of these held never take it.
//! Hits that may use removed objects are waited for after it was released: see [`Leftovers`].

use super::triggers::{
    Listed,
    Triggers, //
};
use crate::{
    hist::Histogram,
    hook::{
        clock::CLOCKS,
        site::EventSite,
        switch::{
            Switch,
            SwitchSettings, //
        },
        synthetic::Scratch,
        user_stack::KernelFiles,
        HistTrigger,
        Hook,
        InDir,
        Leftovers,
        Placed,
        Shared, //
    },
    intervals::{
        Reader,
        Readers, //
    },
    rust::{
        event::{
            self,
            Event,
            EventId, //
        },
        instance::Instance,
        parameters::parameters,
        tracefs::{
            EventName,
            TracingDir, //
        },
    },
    text::Text,
    worker::{
        objects::KeepsObjects,
        Worker,
        Works, //
    },
};
use core::{
    ops::ControlFlow,
    ptr, //
};
use kernel::{
    prelude::*,
    str::CString,
    sync::{
        atomic::{
            Atomic,
            Release, //
        },
        lock::mutex::MutexGuard,
        Arc,
        Mutex, //
    },
};

/// All hooks. Dropping it unhooks every event.
#[pin_data(PinnedDrop)]
pub(crate) struct Registry {
    #[pin]
    hooks: Mutex<KVec<Hook>>,
    #[pin]
    commands: Mutex<CommandState>,
    /// See [`Engine::changes`](super::Engine::changes).
    pub(super) changes: Atomic<u64>,
    /// Readers of intervals.
    pub(super) readers: Arc<Readers>,
    pub(super) works: Works,
    /// The objects of programs' stacks.
    pub(super) objects: KeepsObjects,
    pub(crate) shared: Shared,
}

/// State shared by `hist` commands.
#[derive(Default)]
pub(crate) struct CommandState {
    /// Memory for actions that emit synthetic events; allocated for the first of them.
    scratch: Option<Arc<Scratch>>,
}

impl CommandState {
    /// The memory for actions. Fails with `ENOMEM`.
    pub(crate) fn scratch(&mut self) -> Result<Arc<Scratch>> {
        match &self.scratch {
            Some(scratch) => Ok(scratch.clone()),
            None => {
                let scratch = Arc::new(Scratch::new()?, GFP_KERNEL)?;
                Ok(self.scratch.insert(scratch).clone())
            }
        }
    }
}

impl Registry {
    /// Creates the registry, with or without rhist's own probes. Fails with `ENOMEM`, and with
    /// `EBUSY` if another registry with probes exists.
    pub(crate) fn new(instance: Arc<Instance>, probes: bool) -> Result<Pin<KBox<Self>>> {
        let shared = Shared::new(instance, probes)?;
        let works = Worker::start(CLOCKS)?;
        let max_bytes = (parameters().unwind_mb as usize) << 20;
        KBox::pin_init(
            pin_init!(Self {
                hooks <- kernel::new_mutex!(KVec::new()),
                commands <- kernel::new_mutex!(CommandState::default()),
                changes: Atomic::new(0),
                readers: Readers::new(works.worker().clone())?,
                works,
                objects: KeepsObjects::new(&KernelFiles, max_bytes)?,
                shared,
            }? Error),
            GFP_KERNEL,
        )
    }

    /// Finds an event: see [`Event::find`].
    pub(crate) fn find(&self, name: EventName<'_>) -> Result<Event> {
        Event::find(name, &self.shared.instance)
    }

    /// The instance of rhist.
    pub(crate) fn instance(&self) -> &Arc<Instance> {
        &self.shared.instance
    }

    /// Returns whether a tracing directory has an event of this system and name, which may be one
    /// of the tracer itself. Fails with `ENODEV` if the instance is gone.
    pub(crate) fn knows(&self, dir: &TracingDir, names: [&[u8]; 2]) -> Result<bool> {
        let mut known = false;
        event::for_each(&self.shared.instance, dir, |event| {
            known |= names == [event.system, event.event].map(CStr::to_bytes);
            Ok(())
        })?;
        Ok(known)
    }

    /// Waits for other `hist` commands to end, and keeps new ones waiting, so that the things a
    /// trigger refers to stay until it is attached. Taken before the lock of the registry, which is
    /// released while memory is allocated.
    pub(crate) fn lock_commands(&self) -> MutexGuard<'_, CommandState> {
        self.commands.lock()
    }

    /// Locks the registry. Also removes triggers and switches of removed instances from the lists,
    /// because the kernel does not notify of the removal of an instance; they are dropped with the
    /// guard.
    pub(crate) fn lock(&self) -> RegistryGuard<'_> {
        let mut hooks = RegistryGuard {
            hooks: self.hooks.lock(),
            shared: &self.shared,
            left: Leftovers::default(),
        };
        if hooks.hooks.iter().any(Hook::is_orphaned) {
            // If an allocation fails, the next call tries again.
            let _ = hooks.retain(|_, dir, _| !dir.removed());
            self.changed();
        }
        hooks
    }

    /// Notes that triggers may have changed.
    pub(super) fn changed(&self) {
        self.changes.fetch_add(1, Release);
    }
}

#[pinned_drop]
impl PinnedDrop for Registry {
    fn drop(self: Pin<&mut Self>) {
        let mut hooks = core::mem::replace(&mut *self.hooks.lock(), KVec::new());
        // All together: each one on its own would wait for a grace period.
        let mut left = Leftovers::default();
        for hook in hooks.iter_mut() {
            hook.disconnect(&mut left);
        }
        drop(left);
        // The flags that keep instances from being removed would outlast the module.
        for hook in hooks.iter() {
            let triggers = hook.triggers();
            let with_vars = triggers.iter().filter(|trigger| trigger.spec().has_vars());
            with_vars.for_each(|trigger| trigger.site.dir.set_busy(false));
        }
    }
}

/// The locked registry. Dropping it unlocks the registry, and then waits for hits that may use
/// removed objects.
pub(crate) struct RegistryGuard<'a> {
    // Fields are dropped in this order.
    hooks: MutexGuard<'a, KVec<Hook>>,
    left: Leftovers,
    shared: &'a Shared,
}

impl RegistryGuard<'_> {
    fn position(&self, event: &Event) -> Option<usize> {
        self.hooks
            .iter()
            .position(|hook| hook.is_of(event.id(), event.dir()))
    }

    /// Returns whether an event of this system and name has a hook in any tracing directory.
    pub(crate) fn has_hook(&self, name: &EventName<'_>) -> bool {
        let names = [name.system, name.event];
        self.hooks.iter().any(|hook| hook.names() == names)
    }

    /// The triggers of an event, in the order in which they were added; `None` if it has none.
    pub(crate) fn triggers(&self, event: &Event) -> Option<InDir<HistTrigger>> {
        self.triggers_of(event.id(), event.dir())
    }

    /// Notes the triggers of each event for its readers of intervals, after a command. Called with
    /// the lock of commands held.
    pub(crate) fn update_readers(&self, readers: &Readers) {
        readers.each(|reader, event, dir| {
            reader.update(self.triggers_of(event, dir).as_ref(), |data| {
                let is_of = |trigger: &Arc<HistTrigger>| Arc::ptr_eq(&trigger.data, data);
                self.hooks
                    .iter()
                    .any(|hook| hook.triggers().iter().any(is_of))
            });
        });
    }

    /// Notes for a reader of intervals which triggers of its event are paused.
    pub(crate) fn update_paused(&self, reader: &Reader) {
        if reader.is_gone() {
            return;
        }
        let (event, dir) = reader.site();
        reader.update_paused(self.triggers_of(event, dir).as_ref());
    }

    /// The triggers of an event in a tracing directory; `None` without a hook.
    fn triggers_of(&self, event: EventId, dir: &TracingDir) -> Option<InDir<HistTrigger>> {
        let hook = self.hooks.iter().find(|hook| hook.is_of(event, dir))?;
        Some(InDir {
            all: hook.triggers(),
            dir: dir.clone(),
        })
    }

    /// The histogram of the `n`th trigger of an event in a tracing directory, counted from 0.
    pub(crate) fn histogram(
        &self,
        event: EventId,
        dir: &TracingDir,
        n: usize,
    ) -> Option<Arc<Histogram>> {
        let triggers = self.triggers_of(event, dir)?;
        let mut triggers = triggers.iter();
        triggers.nth(n).map(|trigger| trigger.data.histogram())
    }

    /// Removes the helper triggers of actions that are gone. If an allocation fails, a later call
    /// does.
    pub(crate) fn remove_unused_helpers(&mut self) {
        let mut left = core::mem::take(&mut self.left);
        for hook in self.hooks.iter() {
            let _ = hook.retain(self.shared, &mut left, |trigger| {
                !self.is_unused_helper(trigger)
            });
        }
        self.left = left;
        self.tidy();
    }

    /// Calls `f` for each trigger: with system and name of its event, and its number in its tracing
    /// directory, counted from 1.
    pub(crate) fn for_each_trigger(
        &self,
        mut f: impl FnMut([&CStr; 2], usize, &HistTrigger) -> Result,
    ) -> Result {
        for hook in self.hooks.iter() {
            let triggers = hook.triggers();
            for (n, trigger) in triggers.iter().enumerate() {
                let older = &triggers[..n];
                let before = older
                    .iter()
                    .filter(|other| other.site.dir == trigger.site.dir);
                f(hook.names(), before.count() + 1, trigger)?;
            }
        }
        Ok(())
    }

    /// The switches of an event, the newest first; `None` if it has none.
    pub(crate) fn switches(&self, event: &Event) -> Option<InDir<Switch>> {
        let hook = &self.hooks[self.position(event)?];
        Some(InDir {
            all: hook.switches(),
            dir: event.dir().clone(),
        })
    }

    /// System and name of the events in a tracing directory that may have triggers, the kernel's or
    /// rhist's, in the kernel's order. As in C, without `ftrace:*` events. Fails with `ENODEV` if
    /// the instance is gone, and with `ENOMEM`.
    pub(crate) fn triggered(&self, dir: &TracingDir) -> Result<KVec<[CString; 2]>> {
        let mut names = KVec::new();
        event::for_each(&self.shared.instance, dir, |event| {
            let ours = || self.hooks.iter().any(|hook| hook.id() == event.id);
            if event.enables && (event.triggered || ours()) {
                let [system, event] = [event.system, event.event].map(CString::try_from);
                names.push([system?, event?], GFP_KERNEL)?;
            }
            Ok(())
        })?;
        Ok(names)
    }

    /// Returns the index of the hook of an event; creates the hook if needed.
    fn hook(&mut self, event: Event) -> Result<usize> {
        if let Some(index) = self.position(&event) {
            return Ok(index);
        }
        self.hooks
            .push(Hook::new(self.shared, event)?, GFP_KERNEL)?;
        Ok(self.hooks.len() - 1)
    }

    /// Calls `f` for each event with a source: with its system and name, the name of the source,
    /// and the number of hits lost there.
    pub(crate) fn for_each_source(
        &self,
        mut f: impl FnMut([&CStr; 2], &str, u64) -> Result,
    ) -> Result {
        let mut sources = self.hooks.iter().filter_map(Hook::source);
        sources.try_for_each(|(names, source, lost)| f(names, source, lost))
    }

    /// Adds a trigger to an event.
    pub(crate) fn add(&mut self, event: Event, trigger: HistTrigger) -> Result {
        let hook = self.hook(event)?;
        let hook = &mut self.hooks[hook];
        let done = hook.add(self.shared, trigger, &mut self.left);
        self.tidy();
        done
    }

    /// Adds a switch to an event, for the histograms of `target`. Fails with `EEXIST` if the event
    /// has one for that target.
    pub(crate) fn add_switch(
        &mut self,
        event: Event,
        target: Event,
        settings: SwitchSettings,
    ) -> Result {
        let target = self.hook(target)?;
        let target = self.hooks[target].published().clone();
        let done = self.hook(event).and_then(|hook| {
            let (hook, left) = (&mut self.hooks[hook], &mut self.left);
            let switches = hook.switches();
            if switches
                .iter()
                .any(|other| other.is(&settings.dir, &target))
            {
                return Err(EEXIST);
            }
            hook.add_switch(self.shared, settings, target, left)
        });
        self.tidy();
        done
    }

    /// Removes the switch of an event for the histograms of `target`, if the event has one.
    pub(crate) fn remove_switch(&mut self, event: &Event, target: &Event) -> Result {
        if let (Some(hook), Some(target)) = (self.position(event), self.position(target)) {
            let target = self.hooks[target].published().clone();
            let is_target = |switch: &Switch| switch.is(event.dir(), &target);
            let (hook, left) = (&self.hooks[hook], &mut self.left);
            hook.retain_switches(self.shared, left, |switch| !is_target(switch))?;
            self.tidy();
        }
        Ok(())
    }

    /// Removes one of the triggers of an event. Fails with `ENOMEM`.
    pub(crate) fn remove(&mut self, event: &Event, trigger: &HistTrigger) -> Result {
        if let Some(index) = self.position(event) {
            let (hook, left) = (&self.hooks[index], &mut self.left);
            hook.retain(self.shared, left, |other| !ptr::eq(other, trigger))?;
            self.remove_unused_helpers();
        }
        Ok(())
    }

    /// Removes all triggers and switches of an event; but, as in C, none of the triggers if one of
    /// them is referred to. Then returns the text of [`Triggers::referrer_text`], unless its
    /// allocation fails. Fails with `ENOMEM` only if the same event has triggers or switches in
    /// another instance.
    pub(crate) fn remove_all(&mut self, event: &Event) -> Result<Option<Text>> {
        let triggers = self.triggers(event);
        let mut triggers = triggers.iter().flat_map(|triggers| triggers.iter());
        let referenced = triggers.find(|trigger| self.is_referenced(trigger));
        let referrer = referenced.and_then(|trigger| self.referrer_text(trigger).ok().flatten());
        let referenced = referenced.is_some();
        self.retain(|hook, dir, is_trigger| {
            !hook.is_of(event.id(), event.dir()) || dir != event.dir() || (referenced && is_trigger)
        })?;
        self.remove_unused_helpers();
        Ok(referrer)
    }

    /// Removes the triggers and switches for which `keep`, called with hook and tracing directory,
    /// is false. Its last argument is true for triggers.
    fn retain(&mut self, keep: impl Fn(&Hook, &TracingDir, bool) -> bool) -> Result {
        let mut done = Ok(());
        for hook in self.hooks.iter() {
            let (shared, left) = (self.shared, &mut self.left);
            let triggers = hook.retain(shared, left, |trigger| keep(hook, &trigger.site.dir, true));
            let switches =
                hook.retain_switches(shared, left, |switch| keep(hook, switch.dir(), false));
            done = done.and(triggers).and(switches);
        }
        self.tidy();
        done
    }

    /// Returns whether a switch of another event targets the triggers of this hook.
    fn is_targeted(&self, index: usize) -> bool {
        let triggers = self.hooks[index].published();
        self.hooks.iter().enumerate().any(|(other, hook)| {
            other != index
                && hook
                    .switches()
                    .iter()
                    .any(|switch| switch.targets(triggers))
        })
    }

    /// Disconnects hooks without triggers and switches, and drops the hooks among them that no
    /// switch targets.
    fn tidy(&mut self) {
        for index in (0..self.hooks.len()).rev() {
            if !self.hooks[index].is_idle() {
                continue;
            }
            self.hooks[index].disconnect(&mut self.left);
            if !self.is_targeted(index) {
                drop(self.hooks.remove(index));
            }
        }
    }
}

impl Triggers for RegistryGuard<'_> {
    type Site = EventSite;

    fn each(&self, f: &mut dyn FnMut(Listed<'_, EventSite>) -> ControlFlow<()>) {
        for (event, hook) in self.hooks.iter().enumerate() {
            let names = hook.names().map(CStr::to_bytes);
            for trigger in hook.triggers().iter() {
                let listed = Listed {
                    event,
                    names,
                    trigger,
                };
                if f(listed).is_break() {
                    return;
                }
            }
        }
    }
}
