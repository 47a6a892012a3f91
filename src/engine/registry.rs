// SPDX-License-Identifier: GPL-2.0

//! The events that have triggers.
//!
//! # Locks
//!
//! The lock of the registry is taken in task context with no other lock held but, when an instance
//! is removed, those of its directories, and is the outermost one of the module: inside it
//! event_mutex is taken, and mmap_lock of the running task, and grace periods are waited for. Nothing
//! that the kernel calls with either held takes it.

use crate::ftrace::event;
use crate::ftrace::event::Event;
use crate::ftrace::instance::Instance;
use crate::ftrace::tracefs::EventName;
use crate::ftrace::tracefs::TracingDir;
use crate::hook::switch::Switch;
use crate::hook::switch::SwitchSettings;
use crate::hook::trigger::HistData;
use crate::hook::trigger::HistTrigger;
use crate::hook::Hook;
use crate::hook::InDir;
use crate::hook::Placed;
use crate::hook::Shared;
use core::ptr;
use kernel::prelude::*;
use kernel::str::CString;
use kernel::sync::lock::mutex::MutexGuard;
use kernel::sync::Arc;
use kernel::sync::Mutex;

/// All hooks. Dropping it unhooks every event.
#[pin_data(PinnedDrop)]
pub(crate) struct Registry {
    #[pin]
    hooks: Mutex<KVec<Hook>>,
    pub(crate) shared: Shared,
}

impl Registry {
    /// Creates the registry, with or without rhist's own probes. Fails with `ENOMEM`, and with `EBUSY`
    /// if there is another one with probes.
    pub(crate) fn new(instance: Arc<Instance>, probes: bool) -> Result<Pin<KBox<Self>>> {
        let shared = Shared::new(instance, probes)?;
        KBox::pin_init(
            pin_init!(Self {
                hooks <- kernel::new_mutex!(KVec::new()),
                shared,
            }),
            GFP_KERNEL,
        )
    }

    /// Finds an event: see [`Event::find`].
    pub(crate) fn find(&self, name: EventName<'_>) -> Result<Event> {
        Event::find(name, &self.shared.instance)
    }

    /// Whether a tracing directory has an event of this system and name, which may be one of the tracer
    /// itself. Fails with `ENODEV` if the instance is gone.
    pub(crate) fn knows(&self, dir: &TracingDir, names: [&[u8]; 2]) -> Result<bool> {
        let mut known = false;
        event::for_each(&self.shared.instance, dir, |event| {
            known |= names == [event.system, event.event].map(CStr::to_bytes);
            Ok(())
        })?;
        Ok(known)
    }

    /// Locks the registry. Before that returns, triggers and switches of removed instances are
    /// dropped, because the kernel does not notify of the removal of an instance.
    pub(crate) fn lock(&self) -> RegistryGuard<'_> {
        let mut hooks = RegistryGuard {
            hooks: self.hooks.lock(),
            shared: &self.shared,
        };
        if hooks.hooks.iter().any(Hook::is_orphaned) {
            // Without memory, the next call tries again.
            let _ = hooks.retain(|_, dir| !dir.removed());
        }
        hooks
    }
}

#[pinned_drop]
impl PinnedDrop for Registry {
    fn drop(self: Pin<&mut Self>) {
        // Disconnects all hooks together: each one on its own would wait for a grace period.
        Hook::disconnect(&mut self.hooks.lock());
    }
}

/// The registry, locked.
pub(crate) struct RegistryGuard<'a> {
    hooks: MutexGuard<'a, KVec<Hook>>,
    shared: &'a Shared,
}

impl RegistryGuard<'_> {
    fn position(&self, event: &Event) -> Option<usize> {
        self.hooks.iter().position(|hook| hook.is_of(event))
    }

    /// The triggers of an event, in the order in which they were added; `None` if it has none.
    pub(crate) fn triggers(&self, event: &Event) -> Option<InDir<HistTrigger>> {
        let hook = &self.hooks[self.position(event)?];
        Some(InDir {
            all: hook.triggers(),
            dir: event.dir().clone(),
        })
    }

    /// The histogram with this name, of whatever events.
    pub(crate) fn named(&self, name: &[u8]) -> Option<Arc<HistData>> {
        self.hooks.iter().find_map(|hook| {
            let triggers = hook.triggers();
            let named = triggers
                .iter()
                .find(|trigger| trigger.data.name() == Some(name));
            named.map(|trigger| trigger.data.clone())
        })
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
    /// rhist's, in the kernel's order. As in C, without `ftrace:*` events. Fails with `ENODEV` if the
    /// instance is gone, and with `ENOMEM`.
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

    /// The index of the hook of an event, which is created if there is none.
    fn hook(&mut self, event: Event) -> Result<usize> {
        if let Some(index) = self.position(&event) {
            return Ok(index);
        }
        self.hooks
            .push(Hook::new(self.shared, event)?, GFP_KERNEL)?;
        Ok(self.hooks.len() - 1)
    }

    /// Calls `f` for each event with a source: with its system and name, the name of the source, and the hits
    /// lost there.
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
        let done = hook.add(self.shared, trigger);
        self.tidy();
        done
    }

    /// Adds a switch to an event, for the histograms of `target`. Fails with `EEXIST` if it has one
    /// for that.
    pub(crate) fn add_switch(
        &mut self,
        event: Event,
        target: Event,
        settings: SwitchSettings,
    ) -> Result {
        let target = self.hook(target)?;
        let target = self.hooks[target].published().clone();
        let done = self.hook(event).and_then(|hook| {
            let hook = &mut self.hooks[hook];
            let switches = hook.switches();
            if switches
                .iter()
                .any(|other| other.is(&settings.dir, &target))
            {
                return Err(EEXIST);
            }
            hook.add_switch(self.shared, settings, target)
        });
        self.tidy();
        done
    }

    /// Removes the switch of an event for the histograms of `target`, if there is one.
    pub(crate) fn remove_switch(&mut self, event: &Event, target: &Event) -> Result {
        if let (Some(hook), Some(target)) = (self.position(event), self.position(target)) {
            let target = self.hooks[target].published().clone();
            let is_target = |switch: &Switch| switch.is(event.dir(), &target);
            self.hooks[hook].retain_switches(self.shared, |switch| !is_target(switch))?;
            self.tidy();
        }
        Ok(())
    }

    /// Removes one of the triggers of an event. Fails with `ENOMEM`.
    pub(crate) fn remove(&mut self, event: &Event, trigger: &HistTrigger) -> Result {
        if let Some(index) = self.position(event) {
            self.hooks[index].retain(self.shared, |other| !ptr::eq(other, trigger))?;
            self.tidy();
        }
        Ok(())
    }

    /// Removes all triggers and switches of an event. Fails with `ENOMEM` only if the same event
    /// has some in another instance.
    pub(crate) fn remove_all(&mut self, event: &Event) -> Result {
        self.retain(|hook, dir| !hook.is_of(event) || dir != event.dir())
    }

    /// Removes the triggers and switches for whose hook and tracing directory `keep` is false.
    fn retain(&mut self, keep: impl Fn(&Hook, &TracingDir) -> bool) -> Result {
        let mut done = Ok(());
        for hook in self.hooks.iter() {
            let triggers = hook.retain(self.shared, |trigger| keep(hook, &trigger.dir));
            let switches = hook.retain_switches(self.shared, |switch| keep(hook, switch.dir()));
            done = done.and(triggers).and(switches);
        }
        self.tidy();
        done
    }

    /// Whether a switch of another event targets the triggers of this hook.
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

    /// Disconnects hooks without triggers and switches, and drops those that no switch targets.
    fn tidy(&mut self) {
        for index in (0..self.hooks.len()).rev() {
            if !self.hooks[index].is_idle() {
                continue;
            }
            if self.is_targeted(index) {
                Hook::disconnect(&mut self.hooks[index..=index]);
            } else {
                drop(self.hooks.remove(index));
            }
        }
    }
}
