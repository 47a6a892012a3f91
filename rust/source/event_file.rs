// SPDX-License-Identifier: GPL-2.0

//! The source that serves every event: the event's own probe, with a `trace_event_file` of ours.
//!
//! `class->reg` connects the probe of an event to any `trace_event_file`, not only to those that
//! the kernel has listed. Ours belongs to the instance `rhist` and has one trigger on its list, so
//! the probe makes a record in the instance's ring buffer, calls the trigger with it, and discards
//! it, since the file is soft-disabled for ever. No list or flag is shared with the kernel's
//! files. Mostly the record is not in the ring buffer, but in a
//! [page for such records](Instance::spare_ring_buffer).
//!
//! What the kernel reads of the file on that way: `flags` (also whether it is enabled, in its user
//! events), `event_call`, `tr` and `triggers` (`kernel/trace/trace_events_trigger.c`,
//! `kernel/trace/trace.h`).

use super::trigger::Trigger;
use super::Receiver;
use super::Source;
use crate::ftrace::bindings;
use crate::ftrace::event::Event;
use crate::ftrace::instance::Instance;
use crate::ftrace::tracefs::KernelFile;
use kernel::error::to_result;
use kernel::prelude::*;
use kernel::sync::Arc;
use kernel::types::Opaque;

/// An event's probe connected to a file of ours, until it is [disconnected](Source::disconnect).
///
/// # Invariants
///
/// `trigger` is the only one on the list of `file`.
pub(crate) struct EventFile<R> {
    file: Pin<KBox<Opaque<bindings::trace_event_file>>>,
    #[expect(dead_code)]
    trigger: Pin<KBox<Trigger<R>>>,
    event: *mut bindings::trace_event_call,
    instance: Arc<Instance>,
}

// SAFETY: The kernel's functions that get the structures lock for themselves; of our own, only
// `receiver` is used while the probe is connected, and it is `Sync`.
unsafe impl<R: Receiver> Send for EventFile<R> {}
// SAFETY: As above.
unsafe impl<R: Receiver> Sync for EventFile<R> {}

impl<R: Receiver> EventFile<R> {
    /// Connects the probe of `event`. `open_file` is any open file of tracefs.
    ///
    /// # Safety
    ///
    /// The caller disconnects the result, and waits for the hits, before it drops it or gives back
    /// its reference on the event.
    pub(crate) unsafe fn attach(
        instance: Arc<Instance>,
        event: &Event,
        receiver: Arc<R>,
        open_file: &KernelFile,
    ) -> Result<KBox<dyn Source>> {
        // Records take longer to make without that, and are the same.
        let _ = instance.spare_ring_buffer(open_file);
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
        let trigger = Trigger::new::<true>(0, receiver)?;
        // SAFETY: Nobody else has them yet, and they are pinned.
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
        // Boxed before it is connected: nothing can fail afterwards.
        let event = event.call();
        // INVARIANT: The trigger was put on its list, and nobody puts another one there.
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

    /// Connects the probe of the event to our file, or disconnects it.
    ///
    /// # Safety
    ///
    /// event_mutex must be held.
    unsafe fn reg(&self, on: bool) -> Result {
        let file = self.file.get();
        // SAFETY: event_mutex is held, as kprobe events demand. The file is complete, and pinned until
        // the probe is disconnected and no longer running; the event is referenced until then.
        to_result(unsafe { bindings::rhist_event_reg(self.event, file, on) })
    }
}

impl<R: Receiver> Source for EventFile<R> {
    fn disconnect(&mut self) {
        // The probe must not outlive us.
        self.instance.insist_with_event_mutex(|| {
            // SAFETY: event_mutex is held.
            unsafe { self.reg(false) }
        });
    }

    fn name(&self) -> &'static str {
        "event_file"
    }
}
