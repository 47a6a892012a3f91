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

use super::reserved;
use super::Receiver;
use super::Source;
use crate::ftrace::bindings;
use crate::ftrace::instance::Instance;
use crate::ftrace::tracefs::TracingDir;
use core::ptr;
use core::ptr::NonNull;
use kernel::ffi;
use kernel::prelude::*;
use kernel::sync::Arc;
use kernel::types::Opaque;

/// What the kernel calls us through.
struct Callback<R> {
    /// On the kernel's list, and pointing at the rest.
    trigger: Opaque<bindings::event_trigger_data>,
    /// The kernel only reads these.
    command: bindings::event_command,
    nobody: NoEventProbe,
    receiver: Arc<R>,
}

/// Where the kernel looks for an event probe.
struct NoEventProbe(#[expect(dead_code)] *mut ffi::c_void);

/// A trigger of ours on the list of the event, until it is [disconnected](Source::disconnect).
pub(crate) struct Marker<R> {
    callback: Pin<KBox<Callback<R>>>,
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
        let callback = KBox::pin(
            Callback {
                trigger: Opaque::new(bindings::event_trigger_data {
                    flags: bindings::EVENT_TRIGGER_FL_PROBE as ffi::c_int,
                    ..Default::default()
                }),
                command: bindings::event_command {
                    trigger: Some(hit::<R>),
                    print: Some(print),
                    ..Default::default()
                },
                nobody: NoEventProbe(ptr::null_mut()),
                receiver,
            },
            GFP_KERNEL,
        )?;
        let trigger = callback.trigger.get();
        // SAFETY: Nobody else has it yet, and what it points at stays where it is.
        unsafe {
            (*trigger).cmd_ops = ptr::from_ref(&callback.command).cast_mut();
            (*trigger).private_data = ptr::from_ref(&callback.nobody).cast_mut().cast();
        }
        // Boxed before it is put there: nothing can fail afterwards.
        let source = KBox::new(Self { callback, instance }, GFP_KERNEL)?;
        source.instance.with_event_mutex(|| {
            // SAFETY: event_mutex is held. The trigger is complete, and pinned until it has been off
            // the list for a grace period.
            unsafe {
                let file = bindings::rhist_marker_file(dir.array()?.as_ptr());
                let file = NonNull::new(file).ok_or(ENODEV)?;
                bindings::rhist_trigger_list(file.as_ptr(), source.callback.trigger.get());
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
            unsafe { bindings::rhist_trigger_unlist(self.callback.trigger.get()) };
            Ok(())
        });
    }

    fn name(&self) -> &'static str {
        "marker"
    }
}

/// A hit. Called by the kernel between reserving a record and giving it back: in task context, with
/// preemption off.
///
/// # Safety
///
/// For the `event_command` in a [`Callback`] only.
unsafe extern "C" fn hit<R: Receiver>(
    data: *mut bindings::event_trigger_data,
    _buffer: *mut bindings::trace_buffer,
    record: *mut ffi::c_void,
    event: *mut bindings::ring_buffer_event,
) {
    // SAFETY: `data` is in a callback, which is there as long as it is on the list and whoever found it
    // there has preemption off. The kernel called with this record.
    unsafe {
        let data = Opaque::cast_from(data).cast_mut();
        let callback = &*kernel::container_of!(data, Callback<R>, trigger);
        // Always in a ring buffer, whose pages may be larger ones than those of memory.
        reserved(&*callback.receiver, record, event, |event| {
            bindings::ring_buffer_event_length(event) as usize
        });
    }
}

/// Prints nothing: the line is in our own `trigger` file.
///
/// # Safety
///
/// None.
unsafe extern "C" fn print(
    _file: *mut bindings::seq_file,
    _data: *mut bindings::event_trigger_data,
) -> ffi::c_int {
    0
}
