// SPDX-License-Identifier: GPL-2.0

//! A trigger that the kernel calls for each hit of the `trace_event_file` that has it on its list.
//!
//! What the kernel reads of these structures: of the trigger data `paused`, `filter`, `flags`, `cmd_ops`,
//! `list` and `private_data`; of the command `flags`, `trigger` and `print`
//! (`kernel/trace/trace_events_trigger.c`, `kernel/trace/trace.h`).

use super::Receiver;
use crate::ftrace::bindings;
use crate::ftrace::cpu;
use crate::ftrace::cpu::PreemptOff;
use core::ptr;
use core::slice;
use kernel::ffi;
use kernel::prelude::*;
use kernel::sync::Arc;
use kernel::types::Opaque;

/// The structures that the kernel calls us through.
///
/// # Invariants
///
/// `data` points at the others.
pub(super) struct Trigger<R> {
    data: Opaque<bindings::event_trigger_data>,
    /// The kernel only reads it, and what is behind it.
    command: bindings::event_command,
    no_event_probe: NoEventProbe,
    receiver: Arc<R>,
}

/// Where the kernel looks for an event probe.
struct NoEventProbe(#[expect(dead_code)] *mut ffi::c_void);

impl<R: Receiver> Trigger<R> {
    /// Makes a trigger with these `EVENT_TRIGGER_FL_*` that passes hits to `receiver`. With `BUFFERED`, records
    /// may be in the kernel's [page for records that are discarded](super::event_file); else all are in a ring
    /// buffer. Fails with `ENOMEM`.
    pub(super) fn new<const BUFFERED: bool>(
        flags: u32,
        receiver: Arc<R>,
    ) -> Result<Pin<KBox<Self>>> {
        let data = bindings::event_trigger_data {
            flags: flags as ffi::c_int,
            ..Default::default()
        };
        let command = bindings::event_command {
            trigger: Some(hit::<R, BUFFERED>),
            print: Some(print),
            ..Default::default()
        };
        let trigger = KBox::pin(
            Self {
                data: Opaque::new(data),
                command,
                no_event_probe: NoEventProbe(ptr::null_mut()),
                receiver,
            },
            GFP_KERNEL,
        )?;
        let data = trigger.data();
        // INVARIANT: Here it is pointed at them.
        // SAFETY: The kernel has not got it yet, and what it points at is pinned.
        unsafe {
            (*data).cmd_ops = ptr::from_ref(&trigger.command).cast_mut();
            (*data).private_data = ptr::from_ref(&trigger.no_event_probe).cast_mut().cast();
        }
        Ok(trigger)
    }

    /// What goes on the list of a `trace_event_file`. It has to be off that for a grace period before the
    /// trigger is dropped.
    pub(super) fn data(&self) -> *mut bindings::event_trigger_data {
        self.data.get()
    }
}

/// A hit. Called by the kernel between reserving a record and giving it back: in any context, NMI
/// included, with preemption off.
///
/// # Safety
///
/// For the `event_command` in a [`Trigger`] only.
unsafe extern "C" fn hit<R: Receiver, const BUFFERED: bool>(
    data: *mut bindings::event_trigger_data,
    _buffer: *mut bindings::trace_buffer,
    record: *mut ffi::c_void,
    event: *mut bindings::ring_buffer_event,
) {
    // The kernel calls some triggers without a record, too.
    if record.is_null() || event.is_null() {
        return;
    }
    // SAFETY: `data` is in a trigger, which stays until a grace period after it was taken from the list that
    // the kernel found it on: preemption is off.
    let receiver = unsafe {
        let data = Opaque::cast_from(data).cast_mut();
        &*(*kernel::container_of!(data, Trigger<R>, data)).receiver
    };
    // SAFETY: The kernel has reserved `event`, and `record` in it, which belongs to this CPU until it is
    // committed or discarded. The length is that of the record: where ring buffers have larger pages than
    // memory, what begins at one of memory's may still be in a ring buffer.
    let record = unsafe {
        let len = match BUFFERED {
            true => bindings::rhist_record_len(event),
            false => bindings::ring_buffer_event_length(event) as usize,
        };
        slice::from_raw_parts(record.cast(), len)
    };
    // SAFETY: Preemption is off until this returns.
    let preempt = unsafe { PreemptOff::assume_on(cpu::current()) };
    match receiver.leaf(preempt) {
        Some(leaf) => receiver.hit_leaf(leaf, preempt, record),
        None => receiver.hit_all(preempt, record, None),
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
