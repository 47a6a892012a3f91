// SPDX-License-Identifier: GPL-2.0

//! The source that serves static events at the least cost: a probe of ours on the event's own
//! tracepoint.
//!
//! Such probes are made from the definitions of the kernel's events when the module is compiled
//! (`rust/probe/`). They make the record as the kernel's own probe does, but on the stack, or, if it is
//! long or of no known length, in memory per CPU: nothing is reserved in a ring buffer and discarded. A
//! hit that interrupts another one has memory of its own, one for each context. On the slow path, one hit
//! at a time is counted in each context: those that nest in it are dropped, and counted as lost.

use super::record_from_raw;
use super::Dispatch;
use super::Source;
use crate::ftrace::bindings;
use crate::ftrace::cpu;
use crate::ftrace::event::Event;
use crate::ftrace::probe::Records;
use crate::ftrace::stack::Frame;
use core::marker::PhantomPinned;
use core::ptr::NonNull;
use kernel::error::to_result;
use kernel::ffi;
use kernel::prelude::*;
use kernel::sync::Arc;

/// What the probe is registered with.
struct Callback {
    probed: bindings::rhist_probed,
    dispatch: Arc<Dispatch>,
    _pinned: PhantomPinned,
}

impl Callback {
    /// For hits of `event` that go to `dispatch`. Fails with `ENOMEM`.
    fn new(event: &Event, dispatch: Arc<Dispatch>, context: bool) -> Result<Pin<KBox<Self>>> {
        let callback = Self {
            probed: bindings::rhist_probed {
                // SAFETY: The event is referenced, and keeps its number.
                type_: unsafe { (*event.call()).event.type_ } as u16,
                context,
                leaf: dispatch.leaf.as_ptr().cast(),
                watchers: dispatch.pollers.watchers(),
            },
            dispatch,
            _pinned: PhantomPinned,
        };
        Ok(KBox::pin(callback, GFP_KERNEL)?)
    }

    /// Where C has it.
    fn probed(&self) -> *mut bindings::rhist_probed {
        (&raw const self.probed).cast_mut()
    }
}

/// A probe of ours on the tracepoint of an event, until it is [disconnected](Source::disconnect).
pub(super) struct Probe {
    callback: Pin<KBox<Callback>>,
    call: NonNull<bindings::trace_event_call>,
    probe: NonNull<ffi::c_void>,
    /// What it makes its records in.
    _records: Arc<Records>,
}

// SAFETY: The kernel's functions that get the pointers lock for themselves; of our own, only `dispatch`
// is used while the probe is connected, and it is `Sync`.
unsafe impl Send for Probe {}
// SAFETY: As above.
unsafe impl Sync for Probe {}

impl Probe {
    /// Connects `probe`, which was [found](crate::ftrace::probe::find) for `event`, with the context of hits in
    /// its records if `context`. Fails with `ENOMEM`.
    ///
    /// # Safety
    ///
    /// The caller disconnects the result, and waits for the hits, before it drops it or gives back
    /// its reference on the event.
    pub(super) unsafe fn attach(
        event: &Event,
        probe: NonNull<ffi::c_void>,
        records: Arc<Records>,
        dispatch: Arc<Dispatch>,
        context: bool,
    ) -> Result<KBox<dyn Source>> {
        let call = NonNull::new(event.call()).ok_or(EINVAL)?;
        // Boxed before it is connected: nothing can fail afterwards.
        let source = KBox::new(
            Self {
                callback: Callback::new(event, dispatch, context)?,
                call,
                probe,
                _records: records,
            },
            GFP_KERNEL,
        )?;
        // SAFETY: The probe is that of the event. What it is registered with is complete, and pinned
        // until it is disconnected and no longer running.
        to_result(unsafe {
            bindings::rhist_probe_connect(call.as_ptr(), probe.as_ptr(), source.callback.probed())
        })?;
        Ok(source)
    }
}

impl Source for Probe {
    fn disconnect(&mut self) {
        // SAFETY: It is connected, and the event is still referenced.
        unsafe {
            let probed = self.callback.probed();
            bindings::rhist_probe_disconnect(self.call.as_ptr(), self.probe.as_ptr(), probed)
        };
    }

    fn want_context(&self) {
        // SAFETY: It is read at any time, and written here only: `true`.
        unsafe { (&raw mut (*self.callback.probed()).context).write_volatile(true) };
        cpu::synchronize_hits();
    }

    fn name(&self) -> &'static str {
        "probe"
    }
}

/// The dispatch of what a probe is registered with.
///
/// # Safety
///
/// For the `rhist_probed` in a [`Callback`] only, while its probe runs.
#[inline]
unsafe fn dispatch<'a>(probed: *const bindings::rhist_probed) -> &'a Dispatch {
    // SAFETY: `probed` is in a callback, which is there as long as the probe may run.
    unsafe { &(*kernel::container_of!(probed.cast_mut(), Callback, probed)).dispatch }
}

/// A hit that is all that a trigger needs. Called by a probe that has made a record: in any context, NMI
/// included, with preemption off.
///
/// # Safety
///
/// For the `rhist_probed` in a [`Callback`], what was at its `leaf` since preemption was switched off, a
/// record of `size` bytes, and the CPU that this runs on.
#[no_mangle]
unsafe extern "C" fn rhist_probe_hit_leaf(
    probed: *const bindings::rhist_probed,
    trigger: *const ffi::c_void,
    record: *const ffi::c_void,
    size: usize,
    cpu: u32,
) {
    // SAFETY: The trigger is kept until preemption is on again, `record` has `size` bytes that are ours alone
    // until this returns, and `cpu` is the current one.
    unsafe {
        let (trigger, record) = (&*trigger.cast(), record_from_raw(record.cast(), size));
        dispatch(probed).hit_leaf(trigger, cpu as usize, record);
    }
}

/// Any other hit. Called as that, and within one context for one hit at a time.
///
/// # Safety
///
/// For the `rhist_probed` in a [`Callback`], a record of `size` bytes, the CPU that this runs on, and the
/// frame of the probe.
#[no_mangle]
unsafe extern "C" fn rhist_probe_hit(
    probed: *const bindings::rhist_probed,
    record: *const ffi::c_void,
    size: usize,
    cpu: u32,
    frame: *const bindings::rhist_frame,
) {
    // SAFETY: `record` has `size` bytes that are ours alone until this returns, `cpu` is the current one, and
    // the frame is that of the caller, which waits for this.
    unsafe {
        let record = record_from_raw(record.cast(), size);
        dispatch(probed).hit(cpu as usize, record, Some(Frame::from_raw(frame)));
    }
}

/// A hit without a record. Called as [`rhist_probe_hit_leaf`].
///
/// # Safety
///
/// For the `rhist_probed` in a [`Callback`].
#[no_mangle]
#[cold]
unsafe extern "C" fn rhist_probe_lost(probed: *const bindings::rhist_probed) {
    // SAFETY: `probed` is in a callback, whose probe runs.
    unsafe { dispatch(probed) }.lost();
}
