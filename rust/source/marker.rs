// SPDX-License-Identifier: GPL-2.0

//! The source for `ftrace:print`, the event of writes to `trace_marker`.
//!
//! This event lacks a probe. A write calls the triggers on its `trace_event_file` in the instance
//! after reserving the record and before committing it. So a trigger of rhist is put on that list,
//! under event_mutex, as the kernel changes it.
//!
//! While it is there, the instance must not be removed: the kernel would assume that the trigger
//! has enabled the event, and disable it. The function that would undo that is not exported.
//!
//! An export of the ring buffer (`register_ftrace_export()`) would share no list. But it is called
//! for the marks of all instances without naming the instance, and after a newline was appended to
//! the text: `buf == "start"` would not match.
//!
//! To the kernel, the trigger is one of an event probe: it neither prints its line, nor counts it
//! as one of the user's triggers. Event probes are found by the first word behind `private_data`
//! (`kernel/trace/trace_eprobe.c`), which matches none for this trigger.

use super::{
    trigger::EventTrigger,
    Receiver,
    Source, //
};
use crate::rust::{
    bindings,
    instance::Instance,
    tracefs::TracingDir, //
};
use core::ptr::NonNull;
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// A trigger of rhist on the list of the event, until it is [disconnected](Source::disconnect).
pub(crate) struct Marker<R> {
    trigger: Pin<KBox<EventTrigger<R>>>,
    instance: Arc<Instance>,
}

// SAFETY: The list is changed under event_mutex. Hits only use the receiver of the trigger, which
// is `Sync`.
unsafe impl<R: Receiver> Send for Marker<R> {}
// SAFETY: Hits only use the receiver of the trigger, which is `Sync`; the list is changed under
// event_mutex.
unsafe impl<R: Receiver> Sync for Marker<R> {}

impl<R: Receiver> Marker<R> {
    /// Puts a trigger on the list of the marker in a tracing directory. Fails with `ENODEV` if the
    /// instance is gone, and with `ENOMEM`.
    ///
    /// # Safety
    ///
    /// The caller disconnects the result, and waits for the hits, before it drops it.
    pub(crate) unsafe fn attach(
        instance: Arc<Instance>,
        dir: &TracingDir,
        receiver: Arc<R>,
    ) -> Result<KBox<dyn Source>> {
        let trigger = EventTrigger::new::<false>(bindings::EVENT_TRIGGER_FL_PROBE, receiver)?;
        // Allocated before the trigger is put on the list, so that nothing can fail afterwards.
        let source = KBox::new(Self { trigger, instance }, GFP_KERNEL)?;
        source.instance.with_event_mutex(|| {
            // SAFETY: event_mutex is held. The trigger is complete, and pinned until it has been
            // off the list for a grace period.
            unsafe {
                let file = bindings::rhist_marker_file(dir.array()?.as_ptr());
                let file = NonNull::new(file).ok_or(ENODEV)?;
                bindings::rhist_trigger_list(file.as_ptr(), source.trigger.data());
            }
            Ok(())
        })?;
        Ok(source)
    }
}

impl<R: Receiver> Source for Marker<R> {
    fn disconnect(&mut self) {
        self.instance.with_event_mutex_retry(|| {
            // SAFETY: event_mutex is held, and the trigger is on the list.
            unsafe { bindings::rhist_trigger_unlist(self.trigger.data()) };
            Ok(())
        });
    }

    fn name(&self) -> &'static str {
        "marker"
    }
}
