// SPDX-License-Identifier: GPL-2.0

//! Synthetic events of the kernel, which are hit by actions of histograms.
//!
//! C sources: `kernel/trace/trace_synth.h`, `kernel/trace/trace_events_synth.c`.

use super::bindings;
use super::cpu::PreemptOff;
use super::event::EventFileRef;
use core::ffi::CStr;
use core::ptr::NonNull;
use core::slice;
use kernel::prelude::*;

/// A synthetic event, with a reference: deleting it fails with `EBUSY`.
///
/// Dropping it takes `event_mutex`; task context.
///
/// # Invariants
///
/// `file` is that of a synthetic event. `tracepoint` and the `n_fields` fields at `fields` are those of the event:
/// none of them changes until the event is deleted.
pub(crate) struct SynthEvent {
    tracepoint: NonNull<bindings::tracepoint>,
    n_fields: usize,
    fields: NonNull<*mut bindings::synth_field>,
    /// Keeps the event.
    _file: EventFileRef,
}

// SAFETY: Any task may put the reference.
unsafe impl Send for SynthEvent {}
// SAFETY: Through a shared reference the fields are read, which are constant, and the probes of the tracepoint
// called, which any number of CPUs may do at once.
unsafe impl Sync for SynthEvent {}

/// A field of a synthetic event.
pub(crate) struct SynthField<'a> {
    /// The type as the kernel has it internally: `u64`, `char[16]`, `__data_loc char[]`,
    /// `__data_loc unsigned long[]`.
    pub(crate) type_: &'a CStr,
    /// Size in bytes; 8 if `is_dynamic`.
    pub(crate) size: u32,
    pub(crate) signed: bool,
    /// A string, of fixed length or `is_dynamic`.
    pub(crate) is_string: bool,
    /// The data have no fixed length.
    pub(crate) is_dynamic: bool,
    /// A stack, which always `is_dynamic`.
    pub(crate) is_stack: bool,
}

impl SynthEvent {
    /// Finds a synthetic event by name. `None` if there is none, or another event of the group `synthetic` is found
    /// instead: a probe may have been defined there. Takes `event_mutex`; task context.
    ///
    /// # Errors
    ///
    /// Those of `trace_get_event_file()` that do not say that there is no such event.
    pub(crate) fn find(name: &CStr) -> Result<Option<Self>> {
        let file = match EventFileRef::get(c"synthetic", name) {
            Err(err) if err == EINVAL || err == EBUSY => return Ok(None),
            file => file?,
        };
        let call = file.call();
        let mut n_fields = 0;
        // SAFETY: `file` keeps the event registered. The second function is called for synthetic events only. All
        // events with a tracepoint, as synthetic ones are, have it in `tp`.
        let (fields, tracepoint) = unsafe {
            if !bindings::rhist_is_synthetic(call) {
                return Ok(None);
            }
            let fields = bindings::rhist_synthetic_fields(call, &mut n_fields);
            (fields, (*call).__bindgen_anon_1.tp)
        };
        // INVARIANT: `call` is a synthetic event, and these are its tracepoint and its fields. They were complete
        // before the event could be found.
        Ok(Some(Self {
            tracepoint: NonNull::new(tracepoint).ok_or(EINVAL)?,
            n_fields: n_fields as usize,
            fields: NonNull::new(fields).ok_or(EINVAL)?,
            _file: file,
        }))
    }

    /// Calls `visit` for each field in the order of definition, until it fails.
    pub(crate) fn for_each_field(&self, mut visit: impl FnMut(SynthField<'_>) -> Result) -> Result {
        // SAFETY: By the type invariant there are `n_fields` pointers to fields, which are constant.
        let fields = unsafe { slice::from_raw_parts(self.fields.as_ptr(), self.n_fields) };
        for &field in fields {
            // SAFETY: As above. The string ends in a NUL.
            visit(unsafe {
                SynthField {
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

    /// Whether anybody listens: the event is enabled in an instance or for perf, or has triggers. Any context.
    pub(crate) fn listened(&self) -> bool {
        // SAFETY: By the type invariant the tracepoint is valid.
        unsafe { bindings::rhist_synthetic_listened(self.tracepoint.as_ptr()) }
    }

    /// Whether so much of the stack is left as the hits of an event may take. Any context.
    pub(crate) fn has_stack(_preempt: PreemptOff<'_>) -> bool {
        // SAFETY: Preemption is off.
        unsafe { bindings::rhist_synthetic_has_stack() }
    }

    /// Hits the event: whoever listens gets a record whose field `i` has the value `vals[idx[i]]`, cut to the size
    /// of the field. Does nothing if there are fewer `idx` than fields. Any context, NMI included.
    ///
    /// Hits of this event nest in this call, also those that rhist receives.
    ///
    /// # Safety
    ///
    /// For each field the element of `idx` is an index of `vals`. The kernel reads at the following addresses while
    /// this runs, twice, and relies on finding the same:
    ///
    /// - The value of a string is the address of a kernel string, which ends in a NUL and has at most 256 bytes with
    ///   it (`STR_VAR_LEN_MAX`).
    /// - The value of a stack is the address of words (`usize`): the number of entries, so many entries that are not
    ///   0, and a 0.
    ///
    /// Nobody changes them meanwhile.
    pub(crate) unsafe fn emit(&self, _preempt: PreemptOff<'_>, vals: &[u64], idx: &[u32]) {
        // The kernel reads as many as there are fields.
        if idx.len() < self.n_fields {
            return;
        }
        // SAFETY: By the type invariant the tracepoint is that of a synthetic event. Its probes find an element of
        // `idx` for each field, and the caller vouches for the rest. Preemption is off.
        unsafe {
            bindings::rhist_synthetic_emit(self.tracepoint.as_ptr(), vals.as_ptr(), idx.as_ptr());
        }
    }
}
