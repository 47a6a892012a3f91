// SPDX-License-Identifier: GPL-2.0

//! A trigger (`event_trigger_data`) of rhist on the list of a `trace_event_file`. The kernel calls
//! it for each hit of that file.
//!
//! The kernel reads these members of the structures: of the trigger data `paused`, `filter`,
//! `flags`, `cmd_ops`, `list` and `private_data`; of the command `flags`, `trigger` and `print`
//! (`kernel/trace/trace_events_trigger.c`, `kernel/trace/trace.h`).

use super::Receiver;
use crate::{
    rust::{
        bindings,
        cpu,
        stack::Frame,
        task::TaskArg, //
    },
    sync::PreemptOff, //
};
use core::{
    ptr,
    slice, //
};
use kernel::{
    ffi,
    prelude::*,
    sync::Arc,
    types::Opaque, //
};

/// A trigger that passes hits to a receiver.
///
/// # Invariants
///
/// `data` points to `command` and `no_event_probe`.
pub(super) struct EventTrigger<R> {
    data: Opaque<bindings::event_trigger_data>,
    /// Only read, like the rest of the fields.
    command: bindings::event_command,
    no_event_probe: NoEventProbe,
    receiver: Arc<R>,
}

/// Private data of the trigger. The kernel may compare its first word with the address of an event
/// probe, which never matches.
struct NoEventProbe(#[expect(dead_code)] *mut ffi::c_void);

impl<R: Receiver> EventTrigger<R> {
    /// Creates a trigger with these `EVENT_TRIGGER_FL_*` that passes hits to `receiver`. With
    /// `BUFFERED`, records may be in the kernel's [page for records that are
    /// discarded](super::event_file); otherwise all are in a ring buffer. Fails with `ENOMEM`.
    pub(super) fn new<const BUFFERED: bool>(
        flags: u32,
        receiver: Arc<R>,
    ) -> Result<Pin<KBox<Self>>> {
        let data = bindings::event_trigger_data {
            flags: flags as ffi::c_int,
            ..Default::default()
        };
        let command = bindings::event_command {
            // The kernel reads the flags if another trigger of the file is removed.
            flags: bindings::EVENT_CMD_FL_NEEDS_REC as ffi::c_int,
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
        // INVARIANT: `data` gets its pointers here.
        // SAFETY: The kernel does not have `data` yet, and the objects that it points to are
        // pinned.
        unsafe {
            (*data).cmd_ops = ptr::from_ref(&trigger.command).cast_mut();
            (*data).private_data = ptr::from_ref(&trigger.no_event_probe).cast_mut().cast();
        }
        Ok(trigger)
    }

    /// The item for the list of a `trace_event_file`. The trigger may be dropped a grace period
    /// after the item was taken off the list.
    pub(super) fn data(&self) -> *mut bindings::event_trigger_data {
        self.data.get()
    }
}

/// Passes a hit to the receiver. The kernel calls this after reserving a record and before
/// discarding or committing it: in any context, NMI included, with preemption off.
///
/// # Safety
///
/// For the `event_command` in a [`EventTrigger`] only.
unsafe extern "C" fn hit<R: Receiver, const BUFFERED: bool>(
    data: *mut bindings::event_trigger_data,
    _buffer: *mut bindings::trace_buffer,
    record: *mut ffi::c_void,
    event: *mut bindings::ring_buffer_event,
) {
    // The kernel also calls triggers without a record.
    if record.is_null() || event.is_null() {
        return;
    }
    // SAFETY: `data` is in an `EventTrigger`, which is kept for a grace period after it was taken
    // off the list on which the kernel found it; and preemption is off.
    let receiver = unsafe {
        let data = Opaque::cast_from(data).cast_mut();
        &*(*kernel::container_of!(data, EventTrigger<R>, data)).receiver
    };
    // SAFETY: The kernel has reserved `event` with `record` in it, which no other CPU writes to
    // until it is committed or discarded. `len` is the length of the record. Without `BUFFERED` the
    // event is always in a ring buffer, even if it begins a page of memory: pages of ring buffers
    // may be larger.
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
        Some(leaf) => receiver.hit_leaf(leaf, preempt, record, TaskArg::NONE),
        None => match receiver.emitter(preempt) {
            Some(emitter) if receiver.hit_emitter(emitter, preempt, record, TaskArg::NONE) => (),
            // SAFETY: The hit has not been counted, and the record does not change before this
            // returns.
            _ => unsafe {
                let receiver = ptr::from_ref(receiver).cast();
                bindings::rhist_trigger_hit_slow(receiver, record.as_ptr().cast(), record.len())
            },
        },
    }
}

/// Maximum number of functions from [`hit`] to the traced function: `event_triggers_call()`, its
/// callers in the event's own probe, and the kernel's handlers of kprobes and the like.
const BEFORE: usize = 20;

/// Counts a hit on the slow path, in any context, with preemption off.
///
/// # Safety
///
/// `receiver` must be in an [`EventTrigger`], `record` a record of `size` bytes that does not
/// change, `cpu` the current CPU, and `frame` the frame that the stack of the hit begins in.
#[inline(always)]
pub(crate) unsafe fn hit_all<R: Receiver>(
    receiver: *const ffi::c_void,
    record: *const ffi::c_void,
    size: usize,
    cpu: u32,
    frame: *const bindings::rhist_frame,
) {
    // SAFETY: The caller guarantees that `receiver` is in a trigger, `cpu` is the current one, and
    // the frame belongs to a function that waits for this one. The record has `size` bytes, which
    // do not change before this returns.
    let (receiver, preempt, record, frame) = unsafe {
        (
            &*receiver.cast::<R>(),
            PreemptOff::assume_on(cpu as usize),
            slice::from_raw_parts(record.cast(), size),
            Frame::from_raw(frame, BEFORE),
        )
    };
    receiver.hit_all(preempt, record, TaskArg::NONE, frame);
}

/// Prints nothing: the line of the trigger is in rhist's `trigger` file.
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
