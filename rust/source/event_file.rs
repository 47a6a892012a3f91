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

use super::reserved;
use super::Receiver;
use super::Source;
use crate::ftrace::bindings;
use crate::ftrace::event::Event;
use crate::ftrace::instance::Instance;
use crate::ftrace::tracefs::KernelFile;
use core::ptr;
use kernel::error::to_result;
use kernel::ffi;
use kernel::prelude::*;
use kernel::sync::Arc;
use kernel::types::Opaque;

/// The structures that the kernel calls us through. They point at each other.
struct Callback<R> {
    file: Opaque<bindings::trace_event_file>,
    trigger: Opaque<bindings::event_trigger_data>,
    /// The kernel only reads it.
    command: bindings::event_command,
    receiver: Arc<R>,
}

/// An event's probe connected to a file of ours, until it is [disconnected](Source::disconnect).
pub(crate) struct EventFile<R> {
    callback: Pin<KBox<Callback<R>>>,
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
        let callback = KBox::pin(
            Callback {
                file: Opaque::new(bindings::trace_event_file {
                    event_call: event.call(),
                    tr: instance.as_ptr(),
                    flags: flags as usize,
                    ..Default::default()
                }),
                trigger: Opaque::new(bindings::event_trigger_data::default()),
                command: bindings::event_command {
                    trigger: Some(hit::<R>),
                    ..Default::default()
                },
                receiver,
            },
            GFP_KERNEL,
        )?;
        let (file, trigger) = (callback.file.get(), callback.trigger.get());
        // SAFETY: Nobody else has them yet, and they stay where they are.
        unsafe {
            (*trigger).cmd_ops = ptr::from_ref(&callback.command).cast_mut();
            let [files, file, trigger] = [
                &raw mut (*file).list,
                &raw mut (*file).triggers,
                &raw mut (*trigger).list,
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
        let source = KBox::new(
            Self {
                callback,
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
        let file = self.callback.file.get();
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

/// A hit. Called by the kernel between reserving a record and giving it back: in any context, NMI
/// included, with preemption off.
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
    // SAFETY: `data` is in a callback, which is there as long as the probe may run, and the kernel called
    // with this record.
    unsafe {
        let data = Opaque::cast_from(data).cast_mut();
        let callback = &*kernel::container_of!(data, Callback<R>, trigger);
        reserved(&*callback.receiver, record, event, |event| {
            bindings::rhist_record_len(event)
        });
    }
}
