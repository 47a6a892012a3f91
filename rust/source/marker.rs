// SPDX-License-Identifier: GPL-2.0

//! The source that serves `ftrace:print`: what programs write to `trace_marker`.
//!
//! That event has no probe. Whoever writes calls the triggers of its `trace_event_file` in the
//! instance, if there are any, between reserving the record and giving it back. So a trigger of
//! ours goes on that list, under event_mutex as all that is done to it.
//!
//! While it is there, the instance must not go: the kernel would take it for one that has switched the
//! event on, and undo that. What does so is not exported.
//!
//! An export of the ring buffer (`register_ftrace_export()`) would share no list, but it is called
//! for the marks of every instance, without being told which, and when the text has got its newline
//! already: `buf == "start"` would not hold.
//!
//! The kernel takes our trigger for one of an event probe, of which it neither prints the line nor
//! counts it among those that the user made. What else it reads of it, it also reads of others'
//! (`kernel/trace/trace_events_trigger.c`), except that an event probe is looked for by the first
//! word behind `private_data` (`kernel/trace/trace_eprobe.c`); there are none on this event.

use super::trigger::Trigger;
use super::Receiver;
use super::Source;
use crate::ftrace::bindings;
use crate::ftrace::instance::Instance;
use crate::ftrace::tracefs::TracingDir;
use core::ptr::NonNull;
use kernel::prelude::*;
use kernel::sync::Arc;

/// A trigger of ours on the list of the event, until it is [disconnected](Source::disconnect).
pub(crate) struct Marker<R> {
    trigger: Pin<KBox<Trigger<R>>>,
    instance: Arc<Instance>,
}

// SAFETY: The list is changed under event_mutex; of our own, only `receiver` is used while the trigger
// is on it, and it is `Sync`.
unsafe impl<R: Receiver> Send for Marker<R> {}
// SAFETY: As above.
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
        let trigger = Trigger::new::<false>(bindings::EVENT_TRIGGER_FL_PROBE as u32, receiver)?;
        // Boxed before it is put there: nothing can fail afterwards.
        let source = KBox::new(Self { trigger, instance }, GFP_KERNEL)?;
        source.instance.with_event_mutex(|| {
            // SAFETY: event_mutex is held. The trigger is complete, and pinned until it has been off
            // the list for a grace period.
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
        self.instance.insist_with_event_mutex(|| {
            // SAFETY: event_mutex is held, and the trigger is on the list.
            unsafe { bindings::rhist_trigger_unlist(self.trigger.data()) };
            Ok(())
        });
    }

    fn name(&self) -> &'static str {
        "marker"
    }
}
