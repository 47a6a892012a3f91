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

use super::Dispatch;
use super::Source;
use crate::ftrace::bindings;
use crate::ftrace::instance::Instance;
use crate::ftrace::tracefs::TracingDir;
use core::marker::PhantomPinned;
use core::ptr;
use core::ptr::NonNull;
use kernel::ffi;
use kernel::prelude::*;
use kernel::sync::Arc;

/// What the kernel calls us through. Pinned: it is on a list, and points at itself.
struct Callback {
    trigger: bindings::event_trigger_data,
    command: bindings::event_command,
    /// No event probe.
    nobody: *mut ffi::c_void,
    dispatch: Arc<Dispatch>,
    _pinned: PhantomPinned,
}

/// A trigger of ours on the list of the event, until it is [disconnected](Source::disconnect).
pub(super) struct Marker {
    callback: Pin<KBox<Callback>>,
    instance: Arc<Instance>,
}

// SAFETY: The list is changed under event_mutex; of our own, only `dispatch` is used while the trigger
// is on it, and it is `Sync`.
unsafe impl Send for Marker {}
// SAFETY: As above.
unsafe impl Sync for Marker {}

impl Marker {
    /// Puts a trigger on the list of the marker in a tracing directory. Fails with `ENODEV` if the
    /// instance is gone, and with `ENOMEM`.
    ///
    /// # Safety
    ///
    /// The caller disconnects the result, and waits for the hits, before it drops it.
    pub(super) unsafe fn attach(
        instance: Arc<Instance>,
        dir: &TracingDir,
        dispatch: Arc<Dispatch>,
    ) -> Result<KBox<dyn Source>> {
        let callback = KBox::new(
            Callback {
                trigger: bindings::event_trigger_data {
                    flags: bindings::EVENT_TRIGGER_FL_PROBE as ffi::c_int,
                    ..Default::default()
                },
                command: bindings::event_command {
                    trigger: Some(hit),
                    print: Some(print),
                    ..Default::default()
                },
                nobody: ptr::null_mut(),
                dispatch,
                _pinned: PhantomPinned,
            },
            GFP_KERNEL,
        )?;
        let raw = KBox::into_raw(callback);
        // SAFETY: Just boxed; nobody else has it. It stays where it is, since it gets pinned.
        let callback = unsafe {
            (*raw).trigger.cmd_ops = &raw mut (*raw).command;
            (*raw).trigger.private_data = (&raw mut (*raw).nobody).cast();
            Pin::new_unchecked(KBox::from_raw(raw))
        };
        // Boxed before it is put there: nothing can fail afterwards.
        let source = KBox::new(Self { callback, instance }, GFP_KERNEL)?;
        source.instance.with_event_mutex(|| {
            // SAFETY: event_mutex is held. The trigger is complete, and pinned until it has been off
            // the list for a grace period.
            unsafe {
                let file = bindings::rhist_marker_file(dir.array()?.as_ptr());
                let file = NonNull::new(file).ok_or(ENODEV)?;
                bindings::rhist_trigger_list(file.as_ptr(), source.trigger());
            }
            Ok(())
        })?;
        Ok(source)
    }

    fn trigger(&self) -> *mut bindings::event_trigger_data {
        ptr::from_ref(&self.callback.trigger).cast_mut()
    }
}

impl Source for Marker {
    fn disconnect(&mut self) {
        self.instance.insist_with_event_mutex(|| {
            // SAFETY: event_mutex is held, and the trigger is on the list.
            unsafe { bindings::rhist_trigger_unlist(self.trigger()) };
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
unsafe extern "C" fn hit(
    data: *mut bindings::event_trigger_data,
    _buffer: *mut bindings::trace_buffer,
    record: *mut ffi::c_void,
    event: *mut bindings::ring_buffer_event,
) {
    // SAFETY: `data` is in a callback, which is there as long as it is on the list and whoever
    // found it there has preemption off.
    let dispatch = unsafe { &(*kernel::container_of!(data, Callback, trigger)).dispatch };
    // SAFETY: The kernel called with this record.
    unsafe { dispatch.called(record, event) };
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
