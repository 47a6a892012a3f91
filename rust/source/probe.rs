// SPDX-License-Identifier: GPL-2.0

//! The source that serves static events at the least cost: a probe of ours on the event's own
//! tracepoint.
//!
//! Such probes are made from the definitions of the kernel's events when the module is compiled
//! (`rust/probe/`). They make the record as the kernel's own probe does, but on the stack, or, if it is
//! long or of no known length, in memory per CPU: nothing is reserved in a ring buffer and discarded. A
//! hit that interrupts another one has memory of its own, one for each context. On the slow path, one hit
//! at a time is counted in each context: those that nest in it are dropped, and counted as lost.

use super::Receiver;
use super::Source;
use crate::ftrace::bindings;
pub(crate) use crate::ftrace::bindings::rhist_frame as ProbeFrame;
pub(crate) use crate::ftrace::bindings::rhist_probed as Probed;
use crate::ftrace::cpu;
use crate::ftrace::cpu::PreemptOff;
use crate::ftrace::event::Event;
use crate::ftrace::stack::Frame;
use core::ptr::NonNull;
use core::slice;
use kernel::error::to_result;
use kernel::ffi;
use kernel::prelude::*;
use kernel::sync::Arc;
use kernel::types::Opaque;

/// The memory that probes make their records in: 16 KiB for each possible CPU. Whoever connects one
/// keeps it.
pub(crate) struct Records(());

impl Records {
    /// Allocates it. Task context, sleeps. To be called by one task at a time. Fails with `ENOMEM`, and
    /// with `EBUSY` if it is there already.
    pub(crate) fn new() -> Result<Self> {
        // SAFETY: It looks whether it is there, and nothing is connected as long as it is not.
        to_result(unsafe { bindings::rhist_probes_init() })?;
        Ok(Self(()))
    }
}

impl Drop for Records {
    fn drop(&mut self) {
        // SAFETY: Nobody keeps it, so no probe is connected.
        unsafe { bindings::rhist_probes_exit() }
    }
}

/// The probe of ours for an event, if there is one.
pub(crate) fn find(event: &Event) -> Option<NonNull<ffi::c_void>> {
    // SAFETY: The event is referenced.
    NonNull::new(unsafe { bindings::rhist_probe_find(event.call()) })
}

/// What a probe is registered with.
struct Callback<R> {
    probed: Opaque<bindings::rhist_probed>,
    receiver: Arc<R>,
}

/// A probe of ours on the tracepoint of an event, until it is [disconnected](Source::disconnect).
pub(crate) struct Probe<R> {
    callback: Pin<KBox<Callback<R>>>,
    call: *mut bindings::trace_event_call,
    probe: NonNull<ffi::c_void>,
    /// What it makes its records in.
    _records: Arc<Records>,
}

// SAFETY: The kernel's functions that get the pointers lock for themselves; of our own, only `receiver`
// is used while the probe is connected, and it is `Sync`.
unsafe impl<R: Receiver> Send for Probe<R> {}
// SAFETY: As above.
unsafe impl<R: Receiver> Sync for Probe<R> {}

impl<R: Receiver> Probe<R> {
    /// Connects `probe`, which was [found](find) for `event`, with the context of hits in its records if
    /// `context`. Fails with `ENOMEM`.
    ///
    /// # Safety
    ///
    /// The caller disconnects the result, and waits for the hits, before it drops it or gives back
    /// its reference on the event. The receivers of all probes are of the type that
    /// `probe_entry_points!` was given.
    pub(crate) unsafe fn attach(
        event: &Event,
        probe: NonNull<ffi::c_void>,
        records: Arc<Records>,
        receiver: Arc<R>,
        context: bool,
    ) -> Result<KBox<dyn Source>> {
        let call = event.call();
        let probed = bindings::rhist_probed {
            // SAFETY: The event is referenced, and keeps its number.
            type_: unsafe { (*call).event.type_ } as u16,
            context,
        };
        let callback = Callback {
            probed: Opaque::new(probed),
            receiver,
        };
        // Boxed before it is connected: nothing can fail afterwards.
        let source = KBox::new(
            Self {
                callback: KBox::pin(callback, GFP_KERNEL)?,
                call,
                probe,
                _records: records,
            },
            GFP_KERNEL,
        )?;
        // SAFETY: The probe is that of the event. What it is registered with is complete, and pinned
        // until it is disconnected and no longer running.
        to_result(unsafe {
            let probed = source.callback.probed.get();
            bindings::rhist_probe_connect(call, probe.as_ptr(), probed)
        })?;
        Ok(source)
    }
}

impl<R: Receiver> Source for Probe<R> {
    fn disconnect(&mut self) {
        // SAFETY: It is connected, and the event is still referenced.
        unsafe {
            let probed = self.callback.probed.get();
            bindings::rhist_probe_disconnect(self.call, self.probe.as_ptr(), probed)
        };
    }

    fn want_context(&self) {
        // SAFETY: It is read at any time, and written here only: `true`.
        unsafe { (&raw mut (*self.callback.probed.get()).context).write_volatile(true) };
        cpu::synchronize_hits();
    }

    fn name(&self) -> &'static str {
        "probe"
    }
}

/// Defines the functions that probes call (`rust/probe/probe.h`), for the one type that receives their
/// hits: a call through a pointer would cost more than all the rest.
macro_rules! probe_entry_points {
    ($receiver:ty) => {
        /// See [`hit`]($crate::ftrace::source::probe::hit).
        ///
        /// # Safety
        ///
        /// As that.
        #[no_mangle]
        unsafe extern "C" fn rhist_probe_hit(
            probed: *const $crate::ftrace::source::probe::Probed,
            record: *mut ::kernel::ffi::c_void,
            size: usize,
            cpu: u32,
        ) {
            // SAFETY: The probes in C pass what is required here: see `rust/probe/probe.h`.
            unsafe { $crate::ftrace::source::probe::hit::<$receiver>(probed, record, size, cpu) }
        }

        /// See [`hit_all`]($crate::ftrace::source::probe::hit_all).
        ///
        /// # Safety
        ///
        /// As that.
        #[no_mangle]
        unsafe extern "C" fn rhist_probe_hit_all(
            probed: *const $crate::ftrace::source::probe::Probed,
            record: *const ::kernel::ffi::c_void,
            size: usize,
            cpu: u32,
            frame: *const $crate::ftrace::source::probe::ProbeFrame,
        ) {
            // SAFETY: `rhist_probe_hit_slow()` passes what is required here: see `rust/probe.c`.
            unsafe {
                $crate::ftrace::source::probe::hit_all::<$receiver>(
                    probed, record, size, cpu, frame,
                )
            }
        }

        /// See [`lost`]($crate::ftrace::source::probe::lost).
        ///
        /// # Safety
        ///
        /// As that.
        #[no_mangle]
        #[cold]
        unsafe extern "C" fn rhist_probe_lost(
            probed: *const $crate::ftrace::source::probe::Probed,
        ) {
            // SAFETY: The probes in C pass what is required here: see `rust/probe/probe.h`.
            unsafe { $crate::ftrace::source::probe::lost::<$receiver>(probed) }
        }
    };
}
pub(crate) use probe_entry_points;

/// The receiver of what a probe is registered with.
///
/// # Safety
///
/// For the `rhist_probed` in a [`Callback`] only, while its probe runs.
#[inline(always)]
unsafe fn receiver<'a, R: Receiver>(probed: *const bindings::rhist_probed) -> &'a R {
    // SAFETY: `probed` is in a callback, which is there as long as the probe may run.
    unsafe {
        let probed = Opaque::cast_from(probed).cast_mut();
        &(*kernel::container_of!(probed, Callback<R>, probed)).receiver
    }
}

/// A hit. Called by a probe that has made a record: in any context, NMI included, with preemption off.
///
/// # Safety
///
/// For the `rhist_probed` in a [`Callback`], a record of `size` bytes that nobody else has, and the CPU that
/// this runs on. If the record is in [`Records`], no other hit of this context is being counted.
#[inline(always)]
pub(crate) unsafe fn hit<R: Receiver>(
    probed: *const bindings::rhist_probed,
    record: *mut ffi::c_void,
    size: usize,
    cpu: u32,
) {
    // SAFETY: By the caller, `probed` is in a callback, and `cpu` is the current one.
    let (receiver, preempt) =
        unsafe { (receiver::<R>(probed), PreemptOff::assume_on(cpu as usize)) };
    match receiver.leaf(preempt) {
        Some(leaf) => {
            // SAFETY: The record has `size` bytes, to which nobody writes before this returns.
            let record = unsafe { slice::from_raw_parts(record.cast(), size) };
            receiver.hit_leaf(leaf, preempt, record);
        }
        // SAFETY: The caller has called this as it would that.
        None => unsafe { bindings::rhist_probe_hit_slow(probed, record, size) },
    }
}

/// The slow path of a hit, as [`hit`] with a complete record; for one hit at a time within one context.
///
/// # Safety
///
/// For the `rhist_probed` in a [`Callback`], a record of `size` bytes to which nobody writes, the CPU that this
/// runs on, and the frame that the stack of the hit begins in.
#[inline(always)]
pub(crate) unsafe fn hit_all<R: Receiver>(
    probed: *const bindings::rhist_probed,
    record: *const ffi::c_void,
    size: usize,
    cpu: u32,
    frame: *const bindings::rhist_frame,
) {
    // SAFETY: By the caller, `probed` is in a callback, `cpu` is the current one, and the frame is that of a
    // function that waits for this one.
    let (receiver, preempt, frame) = unsafe {
        let preempt = PreemptOff::assume_on(cpu as usize);
        (receiver::<R>(probed), preempt, Frame::from_raw(frame))
    };
    // SAFETY: The record has `size` bytes, to which nobody writes before this returns.
    let record = unsafe { slice::from_raw_parts(record.cast(), size) };
    receiver.hit_all(preempt, record, Some(frame));
}

/// A hit without a record. Called as [`hit`].
///
/// # Safety
///
/// For the `rhist_probed` in a [`Callback`].
#[cold]
pub(crate) unsafe fn lost<R: Receiver>(probed: *const bindings::rhist_probed) {
    // SAFETY: `probed` is in a callback, whose probe runs.
    unsafe { receiver::<R>(probed) }.lost();
}
