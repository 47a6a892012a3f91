// SPDX-License-Identifier: GPL-2.0

//! The conditional snapshot of a trace instance: an action of a histogram decides whether the
//! kernel swaps the instance's ring buffer with the buffer of its file `snapshot`.
//!
//! C source: `kernel/trace/trace_snapshot.c`.

use super::{
    bindings,
    event,
    instance::KeptInstance, //
    tracefs::{
        KernelFile,
        TracingDir, //
    },
};
use crate::sync::PreemptOff;
use core::ptr::{
    self,
    NonNull, //
};
use kernel::{
    error::to_result,
    ffi,
    prelude::*, //
};

/// The conditional snapshot of an instance, which has only one. It is enabled, and the instance
/// kept, while this exists. Meanwhile writes to the file `snapshot` of the instance fail with
/// `EBUSY`, and triggers of the kernel take no snapshots of it.
///
/// # Invariants
///
/// The conditional snapshot of `array` was enabled with [`update`]. `array` is the top instance, or
/// kept by `instance`.
pub(crate) struct KernelSnapshot {
    array: NonNull<bindings::trace_array>,
    /// Keeps the instance; `None` for the top one.
    _instance: Option<KeptInstance>,
}

// SAFETY: Any task may disable it again.
unsafe impl Send for KernelSnapshot {}
// SAFETY: Any number of CPUs may take snapshots at once: the kernel locks.
unsafe impl Sync for KernelSnapshot {}

/// The condition of a hit: returns whether to take a snapshot.
type Decide<'a> = &'a mut dyn FnMut() -> bool;

impl KernelSnapshot {
    /// Enables the conditional snapshot of the instance of `dir`. `open_file` is any open file of
    /// tracefs. Task context; takes `event_mutex` and `trace_types_lock`.
    ///
    /// # Errors
    ///
    /// `EBUSY` if it is enabled already, a tracer uses the snapshot, or the ring buffer is mapped;
    /// `ENODEV` if the kernel lacks snapshots, or the instance was removed; `ENOENT`, `ENOMEM`.
    pub(crate) fn new(dir: &TracingDir, open_file: &KernelFile) -> Result<Self> {
        let instance = match dir.is_top() {
            true => None,
            false => Some(KeptInstance::new(dir, open_file)?),
        };
        let array = match &instance {
            Some(instance) => instance.array(),
            None => event::top_array()?,
        };
        // SAFETY: The instance is kept by `instance`, or is the top one, until the snapshot is
        // disabled.
        to_result(unsafe { bindings::rhist_snapshot_enable(array.as_ptr(), Some(update)) })?;
        // INVARIANT: Enabled above.
        Ok(Self {
            array,
            _instance: instance,
        })
    }

    /// Takes a snapshot if `decide` returns true. `decide` is called with `max_lock` of the
    /// instance held and interrupts off, so that only one CPU decides at a time: it must be short,
    /// and must not take a snapshot or hit an event.
    ///
    /// Takes no snapshot, and does not call `decide`, while the kernel has stopped tracing in the
    /// instance; nor in an NMI, of which the kernel leaves a note in the trace. Any context.
    pub(crate) fn take(&self, _preempt: PreemptOff<'_>, mut decide: Decide<'_>) {
        let data = ptr::from_mut(&mut decide).cast();
        // SAFETY: By the type invariant the instance exists, and its condition is `update`, which
        // gets a pointer to `decide` during this call only. Preemption is off.
        unsafe { bindings::rhist_snapshot_take(self.array.as_ptr(), data) }
    }
}

impl Drop for KernelSnapshot {
    /// Disables the conditional snapshot, which stays allocated. Takes `trace_types_lock`. Task
    /// context with interrupts on. Drop it only a grace period after the trigger was removed: hits
    /// borrow it until then, and the kernel must not call the condition of another owner for them.
    fn drop(&mut self) {
        // SAFETY: By the type invariant it is enabled, and the instance still kept.
        unsafe { bindings::rhist_snapshot_disable(self.array.as_ptr()) }
    }
}

/// The condition, called by the kernel.
///
/// # Safety
///
/// `data` must be null, or point to a [`Decide`] for the exclusive use of this call.
unsafe extern "C" fn update(_tr: *mut bindings::trace_array, data: *mut ffi::c_void) -> bool {
    // Null if called for something other than a hit, such as a trigger `snapshot`. Keep the
    // snapshot that a hit has taken.
    if data.is_null() {
        return false;
    }
    // SAFETY: Only `take` passes data: an instance has one condition at a time, and hits pass their
    // data only while their owner has enabled it. `take` does not use `decide` until the kernel
    // returns.
    let decide = unsafe { &mut *data.cast::<Decide<'_>>() };
    decide()
}
