// SPDX-License-Identifier: GPL-2.0

//! The source for static events, and for synthetic events whose fields are numbers: rhist's own
//! probe on the tracepoint of the event. It is the cheapest source.
//!
//! Probes of static events are compiled from the kernel's definitions of the events
//! (`rust/probe/`). They make the record as the kernel's own probe does, but on the stack, or, if
//! it is long or of variable length, in memory per CPU: nothing is reserved in a ring buffer and
//! discarded. That memory has room for one record per context, so a hit can interrupt another one.
//! On the slow path, one hit at a time is counted in each context: hits that nest in it are counted
//! as lost. Hits of synthetic events may nest; the action that emits the event limits how deep.

use super::{
    Receiver,
    Source, //
};
pub(crate) use crate::rust::bindings::{
    rhist_frame as ProbeFrame,
    rhist_probed as Probed, //
};
use crate::{
    rust::{
        bindings,
        event::Event,
        stack::Frame,
        task::TaskArg, //
    },
    sync::PreemptOff, //
};
use core::{
    ptr::{
        self,
        NonNull, //
    },
    slice, //
};
use kernel::{
    error::to_result,
    ffi,
    prelude::*,
    sync::{
        rcu,
        Arc, //
    },
    types::Opaque, //
};

/// Memory for the records of probes: four pages for each possible CPU. Each connected probe holds a
/// reference to it.
pub(crate) struct Records(());

impl Records {
    /// Allocates the memory. Task context, may sleep, not to be called concurrently. Fails with
    /// `ENOMEM`, and with `EBUSY` if it exists already.
    pub(crate) fn new() -> Result<Self> {
        // SAFETY: The function fails if the memory exists; otherwise no probe is connected.
        to_result(unsafe { bindings::rhist_records_init() })?;
        Ok(Self(()))
    }
}

impl Drop for Records {
    fn drop(&mut self) {
        // SAFETY: Each connected probe holds a reference to `self`, so none is connected.
        unsafe { bindings::rhist_records_exit() }
    }
}

/// Finds rhist's probe for an event, if it has one.
pub(crate) fn find(event: &Event) -> Option<NonNull<ffi::c_void>> {
    // SAFETY: The event is referenced.
    NonNull::new(unsafe { bindings::rhist_probe_find(event.call()) })
}

/// Private data that a probe is registered with.
pub(super) struct Callback<R> {
    probed: Opaque<bindings::rhist_probed>,
    receiver: Arc<R>,
}

impl<R: Receiver> Callback<R> {
    /// Creates the private data for an event: for a handler if `handler`, otherwise for a probe,
    /// which fills in the context of hits if `context`. Fails with `ENOMEM`.
    pub(super) fn new(
        event: &Event,
        receiver: Arc<R>,
        context: bool,
        handler: bool,
    ) -> Result<Pin<KBox<Self>>> {
        let probed = bindings::rhist_probed {
            // SAFETY: The event is referenced, and keeps its number.
            type_: unsafe { (*event.call()).event.type_ } as u16,
            context,
            handler,
            n_fields: 0,
        };
        let callback = Self {
            probed: Opaque::new(probed),
            receiver,
        };
        Ok(KBox::pin(callback, GFP_KERNEL)?)
    }

    /// The address by which functions in C know it.
    pub(super) fn probed(&self) -> *mut bindings::rhist_probed {
        self.probed.get()
    }

    /// See [`Source::want_context`].
    pub(super) fn want_context(&self) {
        // SAFETY: `context` may be read at any time. It is written here only, always to `true`.
        unsafe { (&raw mut (*self.probed()).context).write_volatile(true) };
        rcu::synchronize_rcu();
    }
}

/// A probe of rhist on the tracepoint of an event, until it is [disconnected](Source::disconnect).
pub(crate) struct Probe<R> {
    callback: Pin<KBox<Callback<R>>>,
    call: *mut bindings::trace_event_call,
    probe: NonNull<ffi::c_void>,
    /// Memory for its records.
    _records: Arc<Records>,
}

// SAFETY: The kernel's functions that get the pointers do their own locking. Hits only use the
// receiver, which is `Sync`, and the flag that `want_context()` writes.
unsafe impl<R: Receiver> Send for Probe<R> {}
// SAFETY: Hits only use the receiver, which is `Sync`, and the flag that `want_context()` writes;
// the kernel's functions lock for themselves.
unsafe impl<R: Receiver> Sync for Probe<R> {}

impl<R: Receiver> Probe<R> {
    /// Connects `probe`, which was [found](find) for `event`. With `context`, it fills in the
    /// context of hits. Fails with `ENOMEM`.
    ///
    /// # Safety
    ///
    /// The caller disconnects the result, and waits for the hits, before it drops it or, unless the
    /// event is built in, puts its reference to the event. `R` is the type in
    /// `probe_entry_points!`.
    pub(crate) unsafe fn attach(
        event: &Event,
        probe: NonNull<ffi::c_void>,
        records: Arc<Records>,
        receiver: Arc<R>,
        context: bool,
    ) -> Result<KBox<dyn Source>> {
        let call = event.call();
        // Allocated before it is connected, so that nothing can fail afterwards.
        let source = KBox::new(
            Self {
                callback: Callback::new(event, receiver, context, false)?,
                call,
                probe,
                _records: records,
            },
            GFP_KERNEL,
        )?;
        // SAFETY: `probe` was found for the event. Its private data is complete, and the caller
        // guarantees that it stays pinned until it is disconnected and its hits have ended.
        to_result(unsafe {
            let probed = source.callback.probed();
            bindings::rhist_probe_connect(call, probe.as_ptr(), probed)
        })?;
        Ok(source)
    }
}

impl<R: Receiver> Source for Probe<R> {
    fn disconnect(&mut self) {
        // SAFETY: It is connected, and the event is still referenced.
        unsafe {
            let probed = self.callback.probed();
            bindings::rhist_probe_disconnect(self.call, self.probe.as_ptr(), probed)
        };
    }

    fn want_context(&self) {
        self.callback.want_context();
    }

    fn name(&self) -> &'static str {
        "probe"
    }
}

/// Defines the functions that probes call (`rust/probe/record.h`), for the only type that receives
/// their hits: an indirect call would cost more than all the rest.
macro_rules! probe_entry_points {
    ($receiver:ty) => {
        /// Called by probes: see [`hit`]($crate::rust::source::probe::hit).
        ///
        /// # Safety
        ///
        /// As for `hit`.
        #[no_mangle]
        unsafe extern "C" fn rhist_probe_hit(
            probed: *const $crate::rust::source::probe::Probed,
            record: *mut ::kernel::ffi::c_void,
            size: usize,
            cpu: u32,
        ) {
            // SAFETY: A probe passes the data that it is registered with, which is in a callback
            // for this receiver, its own record, and the CPU, with preemption off
            // (`rhist_record_end()`).
            unsafe {
                $crate::rust::source::probe::hit::<$receiver, false>(probed, record, size, cpu)
            }
        }

        /// Called by probes of tracepoints with a task: see
        /// [`hit`]($crate::rust::source::probe::hit).
        ///
        /// # Safety
        ///
        /// As for `hit`.
        #[no_mangle]
        unsafe extern "C" fn rhist_probe_hit_task(
            probed: *const $crate::rust::source::probe::Probed,
            record: *mut ::kernel::ffi::c_void,
            size: usize,
            cpu: u32,
        ) {
            // SAFETY: As in `rhist_probe_hit`, and the task is before the record
            // (`rhist_record_end()`).
            unsafe {
                $crate::rust::source::probe::hit::<$receiver, true>(probed, record, size, cpu)
            }
        }

        /// Called by `rhist_probe_hit_slow()`: see
        /// [`hit_all`]($crate::rust::source::probe::hit_all).
        ///
        /// # Safety
        ///
        /// As for `hit_all`.
        #[no_mangle]
        unsafe extern "C" fn rhist_probe_hit_all(
            probed: *const $crate::rust::source::probe::Probed,
            record: *const ::kernel::ffi::c_void,
            size: usize,
            cpu: u32,
            tasked: *const ::kernel::ffi::c_void,
            frame: *const $crate::rust::source::probe::ProbeFrame,
        ) {
            // SAFETY: `rhist_probe_hit_slow()` passes the data and the record of the probe, which
            // is complete by now, the CPU, the record or null, and the frame of its caller.
            unsafe {
                $crate::rust::source::probe::hit_all::<$receiver>(
                    probed, record, size, cpu, tasked, frame,
                )
            }
        }

        /// Called by `rhist_trigger_hit_slow()`: see
        /// [`hit_all`]($crate::rust::source::trigger::hit_all).
        ///
        /// # Safety
        ///
        /// As for `hit_all`.
        #[no_mangle]
        unsafe extern "C" fn rhist_trigger_hit_all(
            receiver: *const ::kernel::ffi::c_void,
            record: *const ::kernel::ffi::c_void,
            size: usize,
            cpu: u32,
            frame: *const $crate::rust::source::probe::ProbeFrame,
        ) {
            // SAFETY: `rhist_trigger_hit_slow()` passes the receiver and the record that the hit of
            // the trigger has, the CPU, and the frame of its caller.
            unsafe {
                $crate::rust::source::trigger::hit_all::<$receiver>(
                    receiver, record, size, cpu, frame,
                )
            }
        }

        /// Called by `rhist_probe_hit_at()`: see
        /// [`hit_all`]($crate::rust::source::sample::hit_all).
        ///
        /// # Safety
        ///
        /// As for `hit_all`.
        #[no_mangle]
        unsafe extern "C" fn rhist_sample_hit_all(
            probed: *const $crate::rust::source::probe::Probed,
            record: *const ::kernel::ffi::c_void,
            size: usize,
            cpu: u32,
            frame: *const $crate::rust::source::probe::ProbeFrame,
        ) {
            // SAFETY: `rhist_probe_hit_at()` passes the data that it got, which is in a callback
            // for this receiver, its record, which is complete by now, the CPU, and the frame of
            // the interrupted function, if any.
            unsafe {
                $crate::rust::source::sample::hit_all::<$receiver>(probed, record, size, cpu, frame)
            }
        }

        /// Called by probes: see [`lost`]($crate::rust::source::probe::lost).
        ///
        /// # Safety
        ///
        /// As for `lost`.
        #[no_mangle]
        #[cold]
        unsafe extern "C" fn rhist_probe_lost(probed: *const $crate::rust::source::probe::Probed) {
            // SAFETY: A probe passes the data that it is registered with, which is in a callback
            // for this receiver.
            unsafe { $crate::rust::source::probe::lost::<$receiver>(probed) }
        }
    };
}
pub(crate) use probe_entry_points;

/// Returns the receiver of a probe.
///
/// # Safety
///
/// `probed` must be in a [`Callback`], and its probe must be running, or preemption must have been
/// off since it was connected.
#[inline(always)]
pub(in crate::rust) unsafe fn receiver<'a, R: Receiver>(
    probed: *const bindings::rhist_probed,
) -> &'a R {
    // SAFETY: The caller guarantees that `probed` is in a callback, which is pinned while the probe
    // may run.
    unsafe {
        let probed = Opaque::cast_from(probed).cast_mut();
        &(*kernel::container_of!(probed, Callback<R>, probed)).receiver
    }
}

/// Counts a hit, on the fast path if possible. A probe calls this with its record: in any context,
/// NMI included, with preemption off.
///
/// # Safety
///
/// `probed` must be in a [`Callback`], `record` a record of `size` bytes for the exclusive use of
/// this hit, and `cpu` the current CPU. If the record is in [`Records`], no other hit of this
/// context is being counted. If `TASK`, a task of the tracepoint is right before the record.
#[inline(always)]
pub(crate) unsafe fn hit<R: Receiver, const TASK: bool>(
    probed: *const bindings::rhist_probed,
    record: *mut ffi::c_void,
    size: usize,
    cpu: u32,
) {
    // SAFETY: The caller guarantees that `probed` is in a callback, and `cpu` is the current one.
    let (receiver, preempt) =
        unsafe { (receiver::<R>(probed), PreemptOff::assume_on(cpu as usize)) };
    if let Some(leaf) = receiver.leaf(preempt) {
        // SAFETY: The record has `size` bytes, which do not change before this returns; until then,
        // the task before it stays, too.
        let (record, task) = unsafe {
            (
                slice::from_raw_parts(record.cast_const().cast(), size),
                TaskArg::before(tasked::<TASK>(record)),
            )
        };
        return receiver.hit_leaf(leaf, preempt, record, task);
    }
    // SAFETY: The caller guarantees that `probed` is in a callback, the record has `size` bytes for
    // this hit alone, and `cpu` is the current one. The hit has not been counted.
    unsafe {
        match receiver.emitter(preempt) {
            Some(emitter) => hit_emitter::<R, TASK>(probed, emitter, record, size, cpu),
            None => bindings::rhist_probe_hit_slow(probed, record, size, tasked::<TASK>(record)),
        }
    }
}

/// Returns `record` if a task is before it, else null.
fn tasked<const TASK: bool>(record: *const ffi::c_void) -> *const ffi::c_void {
    match TASK {
        true => record,
        false => ptr::null(),
    }
}

/// Counts a hit of this emitter, on its fast path or on the slow one. Called last, so that [`hit`]
/// saves no registers.
///
/// # Safety
///
/// The requirements of [`hit`].
#[inline(never)]
unsafe fn hit_emitter<R: Receiver, const TASK: bool>(
    probed: *const bindings::rhist_probed,
    emitter: &R::Leaf,
    record: *mut ffi::c_void,
    size: usize,
    cpu: u32,
) {
    // SAFETY: The caller guarantees that `probed` is in a callback, `cpu` is the current one, and
    // the record has `size` bytes, which do not change before this returns, behind the task.
    unsafe {
        let (receiver, preempt) = (receiver::<R>(probed), PreemptOff::assume_on(cpu as usize));
        let bytes = slice::from_raw_parts(record.cast_const().cast(), size);
        let tasked = tasked::<TASK>(record);
        if !receiver.hit_emitter(emitter, preempt, bytes, TaskArg::before(tasked)) {
            bindings::rhist_probe_hit_slow(probed, record, size, tasked);
        }
    }
}

/// Maximum number of functions from the caller of `rhist_probe_hit_slow()` to the traced function:
/// perhaps `rhist_probe_hit()`; then rhist's probe, the iterator of the tracepoint, and
/// `__do_trace_*()`.
const BEFORE: usize = 5;

/// Counts a hit on the slow path. Called like [`hit`], but with a complete record, and for one hit
/// at a time in each context, except for synthetic events.
///
/// # Safety
///
/// `probed` must be in a [`Callback`], `record` a record of `size` bytes that does not change,
/// `cpu` the current CPU, and `frame` the frame that the stack of the hit begins in. `tasked` must
/// be null, or `record` if a task of the tracepoint is right before it.
#[inline(always)]
pub(crate) unsafe fn hit_all<R: Receiver>(
    probed: *const bindings::rhist_probed,
    record: *const ffi::c_void,
    size: usize,
    cpu: u32,
    tasked: *const ffi::c_void,
    frame: *const bindings::rhist_frame,
) {
    // SAFETY: The frame belongs to a function that waits for this one, and so does the task. The
    // caller guarantees the rest.
    unsafe {
        let (task, frame) = (TaskArg::before(tasked), Frame::from_raw(frame, BEFORE));
        hit_all_in::<R>(probed, record, size, cpu, task, frame);
    }
}

/// [`hit_all`] with the task, and the frame in which the stack of the hit begins.
///
/// # Safety
///
/// As for `hit_all`.
#[inline(always)]
pub(super) unsafe fn hit_all_in<R: Receiver>(
    probed: *const bindings::rhist_probed,
    record: *const ffi::c_void,
    size: usize,
    cpu: u32,
    task: TaskArg<'_>,
    frame: Frame<'_>,
) {
    // SAFETY: The caller guarantees that `probed` is in a callback, and `cpu` is the current one.
    let (receiver, preempt) =
        unsafe { (receiver::<R>(probed), PreemptOff::assume_on(cpu as usize)) };
    // SAFETY: The record has `size` bytes, which do not change before this returns.
    let record = unsafe { slice::from_raw_parts(record.cast(), size) };
    receiver.hit_all(preempt, record, task, frame);
}

/// Counts a hit as lost, since the allocation of its record failed. Called like [`hit`].
///
/// # Safety
///
/// `probed` must be in a [`Callback`].
#[cold]
pub(crate) unsafe fn lost<R: Receiver>(probed: *const bindings::rhist_probed) {
    // SAFETY: The caller guarantees that `probed` is in a callback, whose probe is running.
    unsafe { receiver::<R>(probed) }.lost();
}
