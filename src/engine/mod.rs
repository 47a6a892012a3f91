// SPDX-License-Identifier: GPL-2.0

//! The engine: executes commands, looks up events and histograms, and attaches triggers. A command
//! that fails changes nothing.
//!
//! The engine owns the histograms of all events, and their names. `src/tree/` implements the files:
//! it passes commands to the engine, logs the errors, and shows the histograms.

mod command;
pub mod failure;
pub mod hist_command;
pub mod host;
mod kernel_host;
mod registry;
pub mod triggers;

use crate::{
    hist::Histogram,
    hook::{
        poll::Poller,
        HistTrigger, //
    },
    intervals::{
        Listed,
        Reader, //
    },
    rust::{
        cpu,
        event::{
            Event,
            EventId, //
        },
        instance::Instance,
        tracefs::{
            Dentry,
            EventName,
            TracingDir, //
        },
    },
    text::Text,
    worker::objects::ObjectKeeper, //
};
pub(crate) use failure::Failure;
use kernel::{
    prelude::*,
    str::CString,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed, //
        },
        Arc, //
    },
};
use registry::Registry;
use triggers::Triggers;

/// The histograms of all events.
pub(crate) struct Engine {
    registry: Pin<KBox<Registry>>,
    /// Number of `hist` commands that add or change a trigger.
    commands: Atomic<u64>,
}

/// The parts of a trigger that are shown, without a lock. It holds the histogram, but not the
/// trigger, so that a removed trigger is dropped at once, with the synthetic events and the
/// snapshot that it uses.
pub(crate) struct ShownTrigger {
    pub(crate) histogram: Arc<Histogram>,
    /// The text `name=…`, if it has one.
    pub(crate) name: Option<KVec<u8>>,
    /// The text of its filter.
    pub(crate) filter: Option<KVec<u8>>,
    pub(crate) paused: bool,
}

impl Engine {
    /// Creates an engine without histograms. With `probes`, events with a probe of rhist use it.
    /// Fails with `ENOMEM`, and with `EBUSY` if another engine with probes exists.
    pub(crate) fn new(instance: Arc<Instance>, probes: bool) -> Result<Self> {
        Ok(Self {
            registry: Registry::new(instance, probes)?,
            commands: Atomic::new(0),
        })
    }

    /// Looks up an event. `None` for `ftrace:*` events, which cannot be hooked, except
    /// `ftrace:print`.
    ///
    /// # Errors
    ///
    /// `ENODEV` if it is gone, `ENOMEM`.
    pub(crate) fn find(&self, name: EventName<'_>) -> Result<Option<Event>> {
        if (name.system, name.event) == (c"ftrace", c"print") {
            return Event::marker(name.dir).map(Some);
        }
        found(name, self.registry.find(name))
    }

    /// Looks up whether an event exists, without keeping it from being removed. Returns and fails
    /// as [`Engine::find`].
    pub(crate) fn find_id(&self, name: EventName<'_>) -> Result<Option<EventId>> {
        if (name.system, name.event) == (c"ftrace", c"print") {
            return Event::marker(name.dir).map(|event| Some(event.id()));
        }
        found(name, Event::find_id(name, self.registry.instance()))
    }

    /// Looks up an event that may have triggers or switches of rhist; `None` for all others. Avoids
    /// thousands of lookups when a tool reads every event's file. Fails as [`Engine::find`].
    fn find_hooked(&self, name: EventName<'_>) -> Result<Option<Event>> {
        let hooked = self.registry.lock().has_hook(&name);
        match hooked {
            true => self.find(name),
            false => Ok(None),
        }
    }

    /// The triggers of an event, with their histograms as they are now.
    ///
    /// # Errors
    ///
    /// `ENODEV` if an event that had some is gone, `ENOMEM`.
    pub(crate) fn triggers(&self, name: EventName<'_>) -> Result<KVec<ShownTrigger>> {
        let mut attached = KVec::new();
        let Some(event) = self.find_hooked(name)? else {
            return Ok(attached);
        };
        // Locked to the end, so that a task that removes a trigger waits until its use here has
        // ended. So the memory is not charged to the reader, which might have to wait for it.
        let copy = |text: &[u8]| -> Result<KVec<u8>> {
            let mut copy = KVec::new();
            copy.extend_from_slice(text, GFP_KERNEL)?;
            Ok(copy)
        };
        let hooks = self.registry.lock();
        let triggers = hooks.triggers(&event);
        for trigger in triggers.iter().flat_map(|triggers| triggers.iter()) {
            let shown = ShownTrigger {
                histogram: trigger.data.histogram(),
                name: trigger.data.name().map(copy).transpose()?,
                filter: trigger.filter().map(copy).transpose()?,
                paused: trigger.paused(),
            };
            attached.push(shown, GFP_KERNEL)?;
        }
        drop(triggers);
        drop(hooks);
        Ok(attached)
    }

    /// The trigger lines of the switches of an event, each with the number of kernel triggers that
    /// are older. Fails as [`Engine::triggers`].
    pub(crate) fn switches(&self, name: EventName<'_>) -> Result<KVec<(usize, KVec<u8>)>> {
        let mut lines = KVec::new();
        let switches = self
            .find_hooked(name)?
            .and_then(|event| self.registry.lock().switches(&event));
        for switch in switches.iter().flat_map(|switches| switches.iter()) {
            lines.push((switch.older(), switch.line()?), GFP_KERNEL)?;
        }
        Ok(lines)
    }

    /// Removes all triggers and switches of an event; none of the triggers if another trigger
    /// refers to one of them. Returns a text that names the other one then. Fails with `ENOMEM`
    /// only if the same event has some in another instance, and as [`Engine::triggers`].
    pub(crate) fn remove_all(&self, name: EventName<'_>) -> Result<Option<Text>> {
        let Some(event) = &self.find_hooked(name)? else {
            return Ok(None);
        };
        let _commands = self.registry.lock_commands();
        let mut hooks = self.registry.lock();
        let done = hooks.remove_all(event);
        hooks.update_readers(&self.registry.readers);
        self.registry.changed();
        let referrer = done?;
        let busy = hooks.has_vars(|site| site.dir == *event.dir());
        drop(hooks);
        event.dir().set_busy(busy);
        Ok(referrer)
    }

    /// System and name of the events in a tracing directory that may have triggers, the kernel's or
    /// rhist's, in the kernel's order. As in C, without `ftrace:*` events. Fails with `ENODEV` if
    /// the instance is gone, and with `ENOMEM`.
    pub(crate) fn triggered(&self, dir: &TracingDir) -> Result<KVec<[CString; 2]>> {
        self.registry.lock().triggered(dir)
    }

    /// Calls `f` for each event with a source: with its system and name, the name of the source,
    /// and the number of hits lost there.
    pub(crate) fn for_each_source(&self, f: impl FnMut([&CStr; 2], &str, u64) -> Result) -> Result {
        self.registry.lock().for_each_source(f)
    }

    /// Calls `f` for each trigger: with system and name of its event, its number in the `hist`
    /// file, and itself.
    pub(crate) fn for_each_trigger(
        &self,
        f: impl FnMut([&CStr; 2], usize, &HistTrigger) -> Result,
    ) -> Result {
        self.registry.lock().for_each_trigger(f)
    }

    /// Counts the hits in the histograms of an event so far. Visits all slots of these, and yields
    /// the CPU meanwhile. Fails as [`Engine::triggers`], and with `EINTR` if the task was killed.
    pub(crate) fn hits(&self, name: EventName<'_>) -> Result<u64> {
        let Some(event) = self.find_id(name)? else {
            return Ok(0);
        };
        let mut hits = 0u64;
        // Without a list, whose allocation might fail: `poll()` cannot. The registry is not locked
        // during the count.
        for n in 0.. {
            let histogram = self.registry.lock().histogram(event, name.dir, n);
            let Some(histogram) = histogram else { break };
            hits = hits.wrapping_add(histogram.count_hits(&cpu::yield_unless_killed)?);
        }
        Ok(hits)
    }

    /// A number that changes after each change of triggers: with the same one, only hits can change
    /// what [`Engine::hits`] returns.
    pub(crate) fn changes(&self) -> u64 {
        self.registry.changes.load(Acquire)
    }

    /// Creates the state that an open file needs to poll for hits of an event.
    pub(crate) fn poller(&self, event: Option<EventId>) -> Poller {
        Poller::new(self.registry.shared.pollers.clone(), event)
    }

    /// Creates a reader of the intervals of an event's histograms, which must begin its first one.
    /// `real` is the kernel's directory of the event. Fails with `ENOMEM`.
    pub(crate) fn reader(&self, event: EventId, dir: &TracingDir, real: Dentry) -> Result<Listed> {
        // So that no histogram begins unnoticed.
        let _commands = self.registry.lock_commands();
        let readers = &self.registry.readers;
        let listed = readers.add(event, dir.clone(), real)?;
        self.registry.lock().update_readers(readers);
        Ok(listed)
    }

    /// Notes for a reader of intervals which triggers of its event are paused, and the triggers
    /// that it lacks.
    pub(crate) fn update_reader(&self, reader: &Reader) {
        if reader.is_behind() {
            let _commands = self.registry.lock_commands();
            self.registry.lock().update_readers(&self.registry.readers);
        }
        self.registry.lock().update_paused(reader);
    }

    /// Bytes of memory that a histogram may take, or a reader of its intervals.
    pub(crate) fn max_map_bytes(&self) -> usize {
        kernel_host::max_map_bytes()
    }

    /// The keeper of the objects of programs' stacks.
    pub(crate) fn user_objects(&self) -> &Arc<ObjectKeeper> {
        self.registry.objects.keeper()
    }

    /// Number of `hist` commands so far that add or change a trigger.
    pub(crate) fn commands(&self) -> u64 {
        self.commands.load(Relaxed)
    }

    /// Removes the triggers and switches of removed instances.
    pub(crate) fn instance_removed(&self) {
        drop(self.registry.lock());
        self.registry.readers.wake();
    }
}

/// Converts the result of a lookup to a result of [`Engine::find`].
fn found<T>(name: EventName<'_>, result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(event) => Ok(Some(event)),
        Err(ENOMEM) => Err(ENOMEM),
        Err(_) if name.system == c"ftrace" => Ok(None),
        Err(_) => Err(ENODEV),
    }
}
