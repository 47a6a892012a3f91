// SPDX-License-Identifier: GPL-2.0

//! The trace instance `rhist`.
//!
//! The kernel's probe of an event reserves a record in a ring buffer, even if rhist reads the
//! record and then discards it. A separate instance has a ring buffer of its own, and its own event
//! files: enabling an event there does not affect other instances.
//!
//! C headers: `include/linux/trace.h`, `include/linux/ring_buffer.h`.

use super::{
    bindings,
    tracefs::{
        Dentry,
        KernelFile,
        TracingDir, //
    },
};
use core::ptr::{
    self,
    NonNull, //
};
use kernel::{
    error::{
        from_err_ptr,
        to_result, //
    },
    ffi,
    prelude::*,
    time::{
        delay::fsleep,
        Delta, //
    },
};

/// Bytes of ring buffer per CPU. A record fits a page and is discarded by the hit that reserved it,
/// so several exist at once only if contexts nest.
const BUFFER_SIZE: usize = 32 << 10;

/// The instance, which is removed when this is dropped.
///
/// # Invariants
///
/// `raw` was returned by `rhist_instance_create()`, with a reference and the directory `dir`.
pub(crate) struct Instance {
    raw: NonNull<bindings::trace_array>,
    dir: Dentry,
}

// SAFETY: Any task may use and drop the reference: the functions called with it lock for
// themselves.
unsafe impl Send for Instance {}
// SAFETY: The functions called with it lock for themselves.
unsafe impl Sync for Instance {}

impl Instance {
    /// Creates the instance. Takes `event_mutex`. Call in the task that loads the module, without
    /// locks.
    ///
    /// # Errors
    ///
    /// `EPERM` if the kernel is locked down, `EBUSY` if an instance of this name exists that rhist
    /// did not make, otherwise `ENOMEM`, whatever the reason.
    pub(crate) fn new() -> Result<Self> {
        let mut dir = ptr::null_mut();
        // SAFETY: `dir` is a local variable.
        let tr = from_err_ptr(unsafe { bindings::rhist_instance_create(&mut dir) }).inspect_err(|&err| {
            if err == EBUSY {
                pr_err!("instances/rhist was not made by rhist: remove it with rmdir, then load rhist again\n");
            }
        })?;
        // INVARIANT: `rhist_instance_create()` returns an instance with a reference, and its
        // directory.
        let instance = Self {
            raw: NonNull::new(tr).ok_or(ENOMEM)?,
            // SAFETY: `rhist_instance_create()` has set `dir` to a directory of tracefs, with a
            // reference.
            dir: unsafe { Dentry::from_returned(dir) }?,
        };
        instance.shrink();
        if let Err(err) = instance.set_trigger(c"traceoff") {
            pr_warn!("events without a probe of rhist's are slower, since the kernel has no pages for their records: {err:?}\n");
        }
        Ok(instance)
    }

    /// Returns the root directory of the instance's tracefs.
    pub(crate) fn tracefs_root(&self) -> Dentry {
        self.dir.root()
    }

    pub(crate) fn as_ptr(&self) -> *mut bindings::trace_array {
        self.raw.as_ptr()
    }

    /// Writes `text` to the trigger file of the event rhist:never. While an event has a trigger,
    /// the kernel builds records that are likely to be discarded in a page per CPU, which is
    /// cheaper than the ring buffer (`trace_buffered_event_enable()`). Call in the task that loads
    /// or unloads the module, without locks.
    ///
    /// # Errors
    ///
    /// The errors of looking up the file, and of `rhist_set_trigger()`. The caller may ignore them:
    /// without the pages, hits only take longer.
    fn set_trigger(&self, text: &CStr) -> Result {
        let mut trigger = self.dir.clone();
        for name in [c"events", c"rhist", c"never", c"trigger"] {
            trigger = trigger.lookup(name.to_bytes())?;
        }
        // SAFETY: `trigger` is a trigger file of the kernel, and the text ends in a NUL.
        to_result(unsafe { bindings::rhist_set_trigger(trigger.as_ptr(), text.as_char_ptr()) })
    }

    /// Shrinks the ring buffer to [`BUFFER_SIZE`]. On failure only prints a warning, as the
    /// instance works with a larger buffer too. May sleep.
    fn shrink(&self) {
        let mut file = bindings::trace_event_file {
            tr: self.as_ptr(),
            ..Default::default()
        };
        let mut buffer = ptr::null_mut();
        // The instance's ring buffer is only returned by a reservation.
        // SAFETY: `self` holds a reference on the instance. Of `file`, a reservation reads only the
        // instance and the flags. The record is discarded at once, and the buffer lives as long as
        // the instance.
        unsafe {
            let record = bindings::trace_event_buffer_lock_reserve(&mut buffer, &mut file, 0, 8, 0);
            if !record.is_null() {
                bindings::ring_buffer_discard_commit(buffer, record);
            }
            let all = bindings::RHIST_RING_BUFFER_ALL_CPUS;
            if bindings::ring_buffer_resize(buffer, BUFFER_SIZE, all) < 0 {
                pr_warn!("the ring buffer of the instance keeps its default size\n");
            }
        }
    }

    /// Calls `f` with `event_mutex` held. Task context, sleeps; the caller must hold neither
    /// `event_mutex` nor a lock that nests inside it.
    ///
    /// # Errors
    ///
    /// The error of `f`. `EBUSY` if another task enabled the event `rhist:sync` of the instance at
    /// the same time, or the error of enabling that event: `f` was not called then.
    pub(crate) fn with_event_mutex<F: FnOnce() -> Result>(&self, f: F) -> Result {
        /// # Safety
        ///
        /// `arg` must point to an `Option<F>` for the exclusive use of this call.
        unsafe extern "C" fn call<F: FnOnce() -> Result>(arg: *mut ffi::c_void) -> ffi::c_int {
            // SAFETY: The caller guarantees that `arg` points to an `Option<F>` for the exclusive
            // use of this call.
            let f = unsafe { &mut *arg.cast::<Option<F>>() }.take();
            f.map_or(Err(EBUSY), |f| f())
                .map_or_else(Error::to_errno, |()| 0)
        }

        let mut f = Some(f);
        // SAFETY: The instance has the event `rhist:sync`. `call::<F>` gets a pointer to `f`, an
        // `Option<F>`, and is called at most once, before `rhist_with_event_mutex` returns.
        to_result(unsafe {
            bindings::rhist_with_event_mutex(
                self.as_ptr(),
                Some(call::<F>),
                ptr::from_mut(&mut f).cast(),
            )
        })
    }

    /// Calls `f` with `event_mutex` held, for cleanup that must not fail: repeats
    /// [`Instance::with_event_mutex`] until `f` was called, once. The error of `f` is ignored.
    pub(crate) fn with_event_mutex_retry(&self, f: impl FnOnce() -> Result) {
        let mut f = Some(f);
        loop {
            // An error of `f` is final: it cannot be called again.
            let _ = self.with_event_mutex(|| f.take().map_or(Ok(()), |f| f()));
            if f.is_none() {
                return;
            }
            // A program keeps writing to `enable` of rhist:sync. Try again.
            fsleep(Delta::from_millis(10));
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // The kernel frees triggers with their instance, but not with their event. The event goes
        // with the module, even if the instance stays.
        let _ = self.set_trigger(c"!traceoff");
        // SAFETY: By the type invariant the reference is from `rhist_instance_create()`, and not
        // used afterwards.
        let err = unsafe { bindings::rhist_instance_destroy(self.as_ptr(), self.dir.as_ptr()) };
        if err != 0 {
            pr_warn!("instances/rhist is in use and stays; rmdir removes it\n");
        }
    }
}

/// A reference on a user's instance. While it exists, removing the instance fails with `EBUSY`.
///
/// # Invariants
///
/// Owns a reference taken by `trace_array_get_by_name()`.
pub(crate) struct KeptInstance(NonNull<bindings::trace_array>);

// SAFETY: Any task may drop the reference.
unsafe impl Send for KeptInstance {}
// SAFETY: The only method that takes a shared reference reads a pointer that does not change.
unsafe impl Sync for KeptInstance {}

impl KeptInstance {
    /// Pins the instance of a tracing directory, which must not be the top one. `open_file` is any
    /// open file of tracefs. Takes `event_mutex`.
    ///
    /// # Errors
    ///
    /// `ENOENT` or `ENODEV` if the instance was removed, or has no `trace_marker`; `ENOMEM`.
    pub(crate) fn new(dir: &TracingDir, open_file: &KernelFile) -> Result<Self> {
        // The open file pins the instance, so that the lookup by name does not find or create
        // another one.
        let _open = open_file.open_other(dir, &[c"trace_marker"], bindings::O_WRONLY)?;
        // INVARIANT: `trace_array_get_by_name()` takes a reference.
        // SAFETY: The name ends in a NUL.
        let array =
            unsafe { bindings::trace_array_get_by_name(dir.name().as_char_ptr(), ptr::null()) };
        NonNull::new(array).map(Self).ok_or(ENODEV)
    }

    /// Returns the instance, which is valid as long as `self` exists.
    pub(super) fn array(&self) -> NonNull<bindings::trace_array> {
        self.0
    }
}

impl Drop for KeptInstance {
    fn drop(&mut self) {
        // SAFETY: By the type invariant `self` owns a reference, which is not used afterwards.
        unsafe { bindings::trace_array_put(self.0.as_ptr()) }
    }
}
