// SPDX-License-Identifier: GPL-2.0

//! The source for every event: the event's own probe, with a `trace_event_file` of rhist.
//!
//! The file belongs to the instance `rhist` (`rust/event/event_file.c`). So the probe makes a
//! record in the ring buffer of that instance, calls the triggers on the list of the file with it,
//! and discards it, since the file is always soft-disabled. It shares neither lists nor flags with
//! the kernel's files. Mostly the record is not in the ring buffer, but in a page for such records
//! (`Instance::set_trigger`).
//!
//! Most hits of kprobe events and fprobe events that are only counted do not get that far: handlers
//! of rhist count them (`rust/probe/handlers.c`).
//!
//! The kernel reads these members of the file for a hit: `flags` (also whether it is enabled, in
//! its user events), `event_call`, `tr` and `triggers` (`kernel/trace/trace_events_trigger.c`,
//! `kernel/trace/trace.h`).

use super::{
    probe::Callback,
    trigger::EventTrigger,
    Receiver,
    Source, //
};
use crate::rust::{
    bindings,
    event::Event,
    instance::Instance, //
};
use core::ptr::{
    self,
    NonNull, //
};
use kernel::{
    error::from_err_ptr,
    prelude::*,
    sync::Arc, //
};

/// A trigger on the list of an event's file, until it is [disconnected](Source::disconnect).
///
/// # Invariants
///
/// `file` was returned by `rhist_event_file_connect()` for `trigger`.
pub(crate) struct EventFile<R> {
    /// `None` until it is connected.
    file: Option<NonNull<bindings::rhist_event_file>>,
    trigger: Pin<KBox<EventTrigger<R>>>,
    /// Callback for handlers of rhist, if they are to be used.
    callback: Option<Pin<KBox<Callback<R>>>>,
    instance: Arc<Instance>,
}

// SAFETY: The file is changed under event_mutex. Hits only use the receiver of the trigger, which
// is `Sync`.
unsafe impl<R: Receiver> Send for EventFile<R> {}
// SAFETY: Hits only use the receiver of the trigger, which is `Sync`; the file is changed under
// event_mutex.
unsafe impl<R: Receiver> Sync for EventFile<R> {}

impl<R: Receiver> EventFile<R> {
    /// Connects the probe of `event`; with `handlers`, uses handlers of rhist if it has some for
    /// the event. Fails with `ENOMEM`, and as the event's `reg()` does.
    ///
    /// # Safety
    ///
    /// The caller disconnects the result, and waits for the hits, before it drops it or, unless the
    /// event is built in, puts its reference to the event.
    pub(crate) unsafe fn attach(
        instance: Arc<Instance>,
        event: &Event,
        receiver: Arc<R>,
        handlers: bool,
    ) -> Result<KBox<dyn Source>> {
        let callback = match handlers {
            true => Some(Callback::new(event, receiver.clone(), false, true)?),
            false => None,
        };
        // Allocated before it is connected, so that nothing can fail afterwards.
        let mut source = KBox::new(
            Self {
                file: None,
                trigger: EventTrigger::new::<true>(0, receiver)?,
                callback,
                instance: instance.clone(),
            },
            GFP_KERNEL,
        )?;
        instance.with_event_mutex(|| {
            // INVARIANT: It is connected for the trigger here.
            // SAFETY: event_mutex is held. Trigger and callback are complete. The caller guarantees
            // that the source, which pins them, is disconnected and its hits have ended before it
            // is dropped, and that the event is referenced until then.
            source.file = NonNull::new(from_err_ptr(unsafe {
                let data = source.trigger.data();
                let callback = source.callback.as_ref();
                let probed = callback.map_or(ptr::null_mut(), |callback| callback.probed());
                bindings::rhist_event_file_connect(instance.as_ptr(), event.call(), data, probed)
            })?);
            Ok(())
        })?;
        Ok(source)
    }
}

impl<R: Receiver> Source for EventFile<R> {
    fn disconnect(&mut self) {
        // The probe must not outlive the module.
        self.instance.with_event_mutex_retry(|| {
            if let Some(file) = self.file {
                let data = self.trigger.data();
                // SAFETY: event_mutex is held, and by the type invariant the file is connected for
                // the trigger.
                unsafe { bindings::rhist_event_file_disconnect(file.as_ptr(), data) };
            }
            Ok(())
        });
    }

    fn name(&self) -> &'static str {
        let has_handlers = self.file.is_some_and(|file| {
            // SAFETY: By the type invariant the file is connected.
            unsafe { bindings::rhist_event_file_has_handlers(file.as_ptr()) }
        });
        match has_handlers {
            true => "handler",
            false => "event_file",
        }
    }
}

impl<R> Drop for EventFile<R> {
    fn drop(&mut self) {
        if let Some(file) = self.file {
            // SAFETY: By the type invariant the file is referenced. The caller of `attach()`
            // guarantees that it was disconnected and the hits have ended.
            unsafe { bindings::rhist_event_file_put(file.as_ptr()) };
        }
    }
}
