// SPDX-License-Identifier: GPL-2.0

//! The source for every event: the event's own probe, with a `trace_event_file` of rhist.
//!
//! `class->reg` connects the probe of an event to any `trace_event_file`, not only to those on the kernel's
//! lists. The file of rhist belongs to the instance `rhist` and has one trigger on its list. So the probe
//! makes a record in the ring buffer of that instance, calls the trigger with it, and discards it, since
//! the file is always soft-disabled. No list or flag is shared with the kernel's files. Mostly the record is
//! not in the ring buffer, but in a page for such records (`Instance::set_trigger`).
//!
//! What the kernel reads of the file on that way: `flags` (also whether it is enabled, in its user
//! events), `event_call`, `tr` and `triggers` (`kernel/trace/trace_events_trigger.c`,
//! `kernel/trace/trace.h`).

use super::trigger::EventTrigger;
use super::Receiver;
use super::Source;
use crate::ftrace::bindings;
use crate::ftrace::event::Event;
use crate::ftrace::instance::Instance;
use kernel::error::to_result;
use kernel::prelude::*;
use kernel::sync::Arc;
use kernel::types::Opaque;

/// An event's probe connected to a file of rhist, until it is [disconnected](Source::disconnect).
///
/// # Invariants
///
/// `trigger` is the only one on the list of `file`.
pub(crate) struct EventFile<R> {
    file: Pin<KBox<Opaque<bindings::trace_event_file>>>,
    #[expect(dead_code)]
    trigger: Pin<KBox<EventTrigger<R>>>,
    event: *mut bindings::trace_event_call,
    instance: Arc<Instance>,
}

// SAFETY: The kernel's functions that get the file and the event do their own locking. Hits only use the receiver
// of the trigger, which is `Sync`.
unsafe impl<R: Receiver> Send for EventFile<R> {}
// SAFETY: As above.
unsafe impl<R: Receiver> Sync for EventFile<R> {}

impl<R: Receiver> EventFile<R> {
    /// Connects the probe of `event`.
    ///
    /// # Safety
    ///
    /// The caller disconnects the result, and waits for the hits, before it drops it or, unless the event is
    /// built in, puts its reference to the event.
    pub(crate) unsafe fn attach(
        instance: Arc<Instance>,
        event: &Event,
        receiver: Arc<R>,
    ) -> Result<KBox<dyn Source>> {
        let flags = bindings::EVENT_FILE_FL_ENABLED
            | bindings::EVENT_FILE_FL_SOFT_DISABLED
            | bindings::EVENT_FILE_FL_TRIGGER_MODE
            | bindings::EVENT_FILE_FL_TRIGGER_COND;
        let file = bindings::trace_event_file {
            event_call: event.call(),
            tr: instance.as_ptr(),
            flags: flags as usize,
            ..Default::default()
        };
        let file = KBox::pin(Opaque::new(file), GFP_KERNEL)?;
        let trigger = EventTrigger::new::<true>(0, receiver)?;
        // SAFETY: The kernel does not have them yet, and they are pinned.
        unsafe {
            let [files, file, trigger] = [
                &raw mut (*file.get()).list,
                &raw mut (*file.get()).triggers,
                &raw mut (*trigger.data()).list,
            ];
            (*files).next = files;
            (*files).prev = files;
            (*file).next = trigger;
            (*file).prev = trigger;
            (*trigger).next = file;
            (*trigger).prev = file;
        }
        // Allocated before it is connected, so that nothing can fail afterwards.
        let event = event.call();
        // INVARIANT: The trigger was put on the list, which no other code has.
        let source = KBox::new(
            Self {
                file,
                trigger,
                event,
                instance,
            },
            GFP_KERNEL,
        )?;
        source.instance.with_event_mutex(|| {
            // SAFETY: event_mutex is held.
            unsafe { source.reg(true) }
        })?;
        Ok(source)
    }

    /// Connects the probe of the event to the file, or disconnects it.
    ///
    /// # Safety
    ///
    /// event_mutex must be held.
    unsafe fn reg(&self, on: bool) -> Result {
        let file = self.file.get();
        // SAFETY: event_mutex is held by the caller, as kprobe events require. The file is complete and pinned, and
        // the event referenced, until the probe is disconnected and its hits have ended: see `attach()`.
        to_result(unsafe { bindings::rhist_event_reg(self.event, file, on) })
    }
}

impl<R: Receiver> Source for EventFile<R> {
    fn disconnect(&mut self) {
        // The probe must not outlive the module.
        self.instance.insist_with_event_mutex(|| {
            // SAFETY: event_mutex is held.
            unsafe { self.reg(false) }
        });
    }

    fn name(&self) -> &'static str {
        "event_file"
    }
}
