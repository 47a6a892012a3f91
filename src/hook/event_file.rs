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
//! What the kernel reads of these structures on that way: of the file `flags` (also whether it is
//! enabled, in its user events), `event_call`, `tr` and `triggers`; of the trigger data `paused`,
//! `filter`, `flags`, `cmd_ops` and `list`; of the command `flags` and `trigger`
//! (`kernel/trace/trace_events_trigger.c`, `kernel/trace/trace.h`).

use super::Dispatch;
use super::Source;
use crate::ftrace::bindings;
use crate::ftrace::event::Event;
use crate::ftrace::instance::Instance;
use crate::ftrace::tracefs::KernelFile;
use core::marker::PhantomPinned;
use core::ptr;
use kernel::error::to_result;
use kernel::ffi;
use kernel::prelude::*;
use kernel::sync::Arc;

/// The structures that the kernel calls us through. They point at each other: pinned.
struct Callback {
    file: bindings::trace_event_file,
    trigger: bindings::event_trigger_data,
    command: bindings::event_command,
    dispatch: Arc<Dispatch>,
    _pinned: PhantomPinned,
}

/// An event's probe connected to a file of ours, until it is [disconnected](Source::disconnect).
pub(crate) struct EventFile {
    callback: Pin<KBox<Callback>>,
    instance: Arc<Instance>,
}

// SAFETY: The kernel's functions that get the structures lock for themselves; of our own, only
// `dispatch` is used while the probe is connected, and it is `Sync`.
unsafe impl Send for EventFile {}
// SAFETY: As above.
unsafe impl Sync for EventFile {}

impl EventFile {
    /// Connects the probe of `event`. `open_file` is any open file of tracefs.
    ///
    /// # Safety
    ///
    /// The caller disconnects the result, and waits for the hits, before it drops it or gives back
    /// its reference on the event.
    pub(super) unsafe fn attach(
        instance: Arc<Instance>,
        event: &Event,
        dispatch: Arc<Dispatch>,
        open_file: &KernelFile,
    ) -> Result<KBox<dyn Source>> {
        // Records take longer to make without that, and are the same.
        let _ = instance.spare_ring_buffer(open_file);
        let flags = bindings::EVENT_FILE_FL_ENABLED
            | bindings::EVENT_FILE_FL_SOFT_DISABLED
            | bindings::EVENT_FILE_FL_TRIGGER_MODE
            | bindings::EVENT_FILE_FL_TRIGGER_COND;
        let callback = KBox::new(
            Callback {
                file: bindings::trace_event_file {
                    event_call: event.call(),
                    tr: instance.as_ptr(),
                    flags: flags as usize,
                    ..Default::default()
                },
                trigger: Default::default(),
                command: bindings::event_command {
                    trigger: Some(hit),
                    ..Default::default()
                },
                dispatch,
                _pinned: PhantomPinned,
            },
            GFP_KERNEL,
        )?;
        let raw = KBox::into_raw(callback);
        // SAFETY: Just boxed; nobody else has it. It stays where it is, since it gets pinned.
        let callback = unsafe {
            let Callback {
                file,
                trigger,
                command,
                ..
            } = &mut *raw;
            trigger.cmd_ops = command;
            file.list.next = &raw mut file.list;
            file.list.prev = &raw mut file.list;
            file.triggers.next = &raw mut trigger.list;
            file.triggers.prev = &raw mut trigger.list;
            trigger.list.next = &raw mut file.triggers;
            trigger.list.prev = &raw mut file.triggers;
            Pin::new_unchecked(KBox::from_raw(raw))
        };
        // Boxed before it is connected: nothing can fail afterwards.
        let source = KBox::new(Self { callback, instance }, GFP_KERNEL)?;
        source.instance.with_event_mutex(|| {
            // SAFETY: event_mutex is held.
            unsafe { reg(&source.callback, true) }
        })?;
        Ok(source)
    }
}

impl Source for EventFile {
    fn disconnect(&mut self) {
        // The probe must not outlive us.
        self.instance.insist_with_event_mutex(|| {
            // SAFETY: event_mutex is held.
            unsafe { reg(&self.callback, false) }
        });
    }

    fn name(&self) -> &'static str {
        "event_file"
    }
}

/// Connects the probe of the event to our file, or disconnects it.
///
/// # Safety
///
/// event_mutex must be held.
unsafe fn reg(callback: &Callback, on: bool) -> Result {
    let file = ptr::from_ref(&callback.file).cast_mut();
    // SAFETY: event_mutex is held, as kprobe events demand. The file is complete, and pinned until
    // the probe is disconnected and no longer running. The kernel writes to it only where it uses
    // atomic operations on its counters.
    to_result(unsafe { bindings::rhist_event_reg(callback.file.event_call, file, on) })
}

/// A hit. Called by the kernel between reserving a record and giving it back: in any context, NMI
/// included, with preemption off.
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
    // SAFETY: `data` is in a callback, which is there as long as the probe may run.
    let dispatch = unsafe { &(*kernel::container_of!(data, Callback, trigger)).dispatch };
    // SAFETY: The kernel called with this record.
    unsafe { dispatch.called(record, event) };
}
