// SPDX-License-Identifier: GPL-2.0

//! Synthetic events of the kernel, which actions of histograms emit.
//!
//! C sources: `kernel/trace/trace_synth.h`, `kernel/trace/trace_events_synth.c`.

use super::{
    bindings,
    event::{
        Event,
        EventFileRef,
        SynthEventRef, //
    },
    instance::Instance,
    source::{
        probe,
        Receiver, //
    }, //
};
use crate::sync::PreemptOff;
use core::{
    ffi::CStr,
    ptr::{
        self,
        NonNull, //
    },
    slice, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// Maximum number of return addresses of a stack in the record of a synthetic event.
pub(crate) const STACK_DEPTH: usize = bindings::RHIST_SYNTH_STACK_MOST as usize;

/// A synthetic event, with a reference.
///
/// Dropping it takes `event_mutex`; task context.
///
/// # Invariants
///
/// `tracepoint` is the tracepoint of the event, and `fields` points to its `n_fields` fields. None
/// of these changes until the event is deleted.
pub(crate) struct KernelSynthEvent {
    tracepoint: NonNull<bindings::tracepoint>,
    n_fields: usize,
    fields: NonNull<*mut bindings::synth_field>,
    /// Keeps the event.
    reference: SynthEventRef,
}

// SAFETY: Any task may put the reference.
unsafe impl Send for KernelSynthEvent {}
// SAFETY: Through a shared reference the fields are read, which are constant, and the probes of the
// tracepoint called, which any number of CPUs may do at once.
unsafe impl Sync for KernelSynthEvent {}

/// A field of a synthetic event.
pub(crate) struct KernelSynthField<'a> {
    /// The kernel's internal type: `u64`, `char[16]`, `__data_loc char[]`, `__data_loc unsigned
    /// long[]`.
    pub(crate) type_: &'a CStr,
    /// Size in bytes; 8 if `is_dynamic`.
    pub(crate) size: u32,
    pub(crate) signed: bool,
    /// Whether it is a string, of fixed length or `is_dynamic`.
    pub(crate) is_string: bool,
    /// Whether the length of the data varies.
    pub(crate) is_dynamic: bool,
    /// Whether it is a stack, which always `is_dynamic`.
    pub(crate) is_stack: bool,
}

impl KernelSynthEvent {
    /// Finds a synthetic event by name. `None` if the group `synthetic` has no event of this name,
    /// or only one of another kind: a probe may have been defined there. `instance` is rhist's.
    /// Takes `event_mutex`; task context.
    ///
    /// # Errors
    ///
    /// The errors of `trace_get_event_file()`, except those for an event that does not exist, and
    /// of [`Instance::with_event_mutex`].
    pub(crate) fn find(name: &CStr, instance: &Arc<Instance>) -> Result<Option<Self>> {
        let file = match EventFileRef::get(c"synthetic", name) {
            Err(err) if err == EINVAL || err == EBUSY => return Ok(None),
            file => file?,
        };
        if !SynthEventRef::is_synthetic(&file) {
            return Ok(None);
        }
        let reference = SynthEventRef::new(file, instance)?;
        let call = reference.call();
        let mut n_fields = 0;
        // SAFETY: `reference` keeps the event registered, which is a synthetic one. Like all events
        // with a tracepoint, it has it in `tp`.
        let (fields, tracepoint) = unsafe {
            let fields = bindings::rhist_synthetic_fields(call, &mut n_fields);
            (fields, (*call).__bindgen_anon_1.tp)
        };
        // INVARIANT: `call` is a synthetic event, and these are its tracepoint and its fields. They
        // were complete before the event could be found.
        Ok(Some(Self {
            tracepoint: NonNull::new(tracepoint).ok_or(EINVAL)?,
            n_fields: n_fields as usize,
            fields: NonNull::new(fields).ok_or(EINVAL)?,
            reference,
        }))
    }

    /// Calls `visit` for each field in the order of definition, until it fails.
    pub(crate) fn for_each_field(
        &self,
        mut visit: impl FnMut(KernelSynthField<'_>) -> Result,
    ) -> Result {
        // SAFETY: By the type invariant `fields` points to `n_fields` pointers to fields, which are
        // constant.
        let fields = unsafe { slice::from_raw_parts(self.fields.as_ptr(), self.n_fields) };
        for &field in fields {
            // SAFETY: The pointers are valid and the fields constant, by the type invariant. The
            // string ends in a NUL.
            visit(unsafe {
                KernelSynthField {
                    type_: CStr::from_char_ptr((*field).type_),
                    size: (*field).size as u32,
                    signed: (*field).is_signed,
                    is_string: (*field).is_string,
                    is_dynamic: (*field).is_dynamic,
                    is_stack: (*field).is_stack,
                }
            })?;
        }
        Ok(())
    }

    /// Returns whether the event has a listener: it is enabled in an instance or for perf, or has
    /// triggers. Any context.
    #[inline]
    pub(crate) fn listened(&self) -> bool {
        // SAFETY: By the type invariant the tracepoint is valid. The kernel writes its `funcs`
        // while this reads it.
        !unsafe { (&raw const (*self.tracepoint.as_ptr()).funcs).read_volatile() }.is_null()
    }

    /// Returns the receiver of rhist's own probe, if that is the only listener. Other listeners may
    /// be added before this returns. Any context.
    ///
    /// # Safety
    ///
    /// `R` is the type in `probe_entry_points!`.
    #[inline]
    pub(crate) unsafe fn only_receiver<'a, R: Receiver>(
        &'a self,
        _preempt: PreemptOff<'a>,
    ) -> Option<&'a R> {
        // SAFETY: By the type invariant the tracepoint belongs to a synthetic event. The caller
        // guarantees that `probed` is in a callback of this receiver type. It was found connected
        // with preemption off, and is freed only after a disconnect that waits until preemption is
        // on again.
        unsafe {
            let probed = bindings::rhist_synthetic_listener(self.tracepoint.as_ptr());
            (!probed.is_null()).then(|| probe::receiver(probed))
        }
    }

    /// Calls the probes of the event, on behalf of `origin`: see [`Emitted::origin`]. Field `i` of
    /// the record gets the value `vals[idx[i]]`, cut to the size of the field. Any context, NMI
    /// included.
    ///
    /// Returns false, and calls nothing, if too many records are incomplete on this CPU, too little
    /// of the stack is left, or an index is out of range.
    ///
    /// The hits of the event nest in this call, including hits of rhist's own triggers.
    ///
    /// # Safety
    ///
    /// The kernel reads these twice while this runs, so their contents must not change meanwhile:
    ///
    /// - The value of a string is the address of a kernel string, which ends in a NUL and has at
    ///   most 256 bytes with it (`STR_VAR_LEN_MAX`).
    /// - The value of a stack is the address of words (`usize`): the number of entries, 1 to
    ///   [`STACK_DEPTH`], that many entries that are not 0, and a 0 if they are fewer than
    ///   `STACK_DEPTH`.
    #[must_use]
    pub(crate) unsafe fn emit<O>(
        &self,
        origin: &O,
        _preempt: PreemptOff<'_>,
        vals: &[u64],
        idx: &[u32],
    ) -> bool {
        // The kernel reads one index for each field.
        if idx.len() < self.n_fields || idx.iter().any(|&n| n as usize >= vals.len()) {
            return false;
        }
        // SAFETY: By the type invariant the tracepoint belongs to a synthetic event. Its probes
        // find an element of `idx`, and of `vals`, for each field. The caller guarantees that
        // strings and stacks are valid. The instance exists. Preemption is off.
        unsafe {
            let tracepoint = self.tracepoint.as_ptr();
            let instance = self.reference.instance().as_ptr();
            let origin = ptr::from_ref(origin).cast();
            bindings::rhist_synthetic_emit(
                tracepoint,
                instance,
                vals.as_ptr(),
                idx.as_ptr(),
                origin,
            )
        }
    }
}

/// A synthetic event, as seen by its hits.
pub(crate) struct Emitted(*const bindings::tracepoint);

// SAFETY: It is only compared.
unsafe impl Send for Emitted {}
// SAFETY: The pointer is only compared.
unsafe impl Sync for Emitted {}

impl Emitted {
    /// Returns the event's tracepoint; `None` if `event` is not synthetic.
    pub(crate) fn of(event: &Event) -> Option<Self> {
        // SAFETY: The event is referenced. All events with a tracepoint, as synthetic ones are,
        // have it in `tp`.
        unsafe {
            let is_synthetic = bindings::rhist_is_synthetic(event.call());
            is_synthetic.then(|| Self((*event.call()).__bindgen_anon_1.tp))
        }
    }

    /// Returns the origin on whose behalf the current hit was [emitted](KernelSynthEvent::emit).
    /// `None`: C has emitted it. Any context.
    ///
    /// # Safety
    ///
    /// Every emitter must pass an `O` as origin. To be called in a hit of this event; the result
    /// must not be used after the hit.
    pub(crate) unsafe fn origin<'a, O>(&self, _preempt: PreemptOff<'a>) -> Option<&'a O> {
        // SAFETY: Preemption is off. The pointer was given to a call of `emit()` that does not
        // return before this hit.
        unsafe {
            bindings::rhist_synthetic_origin(self.0)
                .cast::<O>()
                .as_ref()
        }
    }
}
