// SPDX-License-Identifier: GPL-2.0

//! The trace instance `rhist`.
//!
//! The kernel's probe of an event needs a ring buffer to make its record in, also if the record is
//! thrown away right after we have looked at it. An instance of our own gives one that nobody else
//! writes to, and keeps our use of an event apart from everybody's: no list is shared.
//!
//! C headers: `include/linux/trace.h`, `include/linux/ring_buffer.h`.

use super::bindings;
use super::tracefs::KernelFile;
use super::tracefs::TracingDir;
use core::ptr::NonNull;
use kernel::error::to_result;
use kernel::ffi;
use kernel::prelude::*;
use kernel::sync::atomic::Atomic;
use kernel::sync::atomic::Relaxed;
use kernel::time::delay::fsleep;
use kernel::time::Delta;

/// Bytes of ring buffer per CPU. A record lives from its reservation to its being discarded, a
/// few at once if contexts nest, and fits a page.
const BUFFER_SIZE: usize = 32 << 10;

/// The instance, with a reference.
pub(crate) struct Instance {
    raw: NonNull<bindings::trace_array>,
    /// Has rhist:never a trigger?
    spares_ring_buffer: Atomic<bool>,
}

// SAFETY: The functions that take it lock for themselves.
unsafe impl Send for Instance {}
// SAFETY: As above.
unsafe impl Sync for Instance {}

impl Instance {
    /// Creates the instance, or takes the one of this name that exists. Takes `event_mutex`.
    pub(crate) fn new() -> Result<Self> {
        // The second name restricts the events that it has files for to those of this module.
        // SAFETY: Both names end in a NUL.
        let tr = unsafe {
            bindings::trace_array_get_by_name(c"rhist".as_char_ptr(), c"rhist".as_char_ptr())
        };
        let instance = Self {
            raw: NonNull::new(tr).ok_or(ENOMEM)?,
            spares_ring_buffer: Atomic::new(false),
        };
        // SAFETY: The instance is referenced.
        unsafe { bindings::rhist_record_no_names(instance.as_ptr()) };
        instance.shrink();
        Ok(instance)
    }

    pub(crate) fn as_ptr(&self) -> *mut bindings::trace_array {
        self.raw.as_ptr()
    }

    /// Has the kernel make records that are thrown away in a page for each CPU, if it does not yet, where
    /// that costs less than in the ring buffer: by a trigger of rhist:never, which goes with the instance.
    /// `open_file` is any open file of tracefs. Takes `event_mutex`.
    ///
    /// # Errors
    ///
    /// Those of [`KernelFile::write_text`], and of opening a file. All works without it too.
    pub(crate) fn spare_ring_buffer(&self, open_file: &KernelFile) -> Result {
        if self.spares_ring_buffer.load(Relaxed) {
            return Ok(());
        }
        let path = [
            c"instances",
            c"rhist",
            c"events",
            c"rhist",
            c"never",
            c"trigger",
        ];
        let trigger = open_file.open_other(&open_file.top(), &path, bindings::O_WRONLY)?;
        trigger.write_text(b"traceoff")?;
        self.spares_ring_buffer.store(true, Relaxed);
        Ok(())
    }

    /// Makes the ring buffer as small as it needs to be. The instance works without that too, so
    /// a failure is no error.
    fn shrink(&self) {
        let mut file = bindings::trace_event_file {
            tr: self.as_ptr(),
            ..Default::default()
        };
        let mut buffer = core::ptr::null_mut();
        // A reservation is the way to learn which buffer the instance has.
        // SAFETY: The instance is referenced; of the file, a reservation reads nothing but the
        // instance and the flags. The record is discarded at once.
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

    /// Calls `f` with `event_mutex` held, which must not be held already.
    ///
    /// # Errors
    ///
    /// That of `f`, or `EBUSY` if somebody kept the event `rhist:sync` of the instance busy.
    pub(crate) fn with_event_mutex<F: FnOnce() -> Result>(&self, f: F) -> Result {
        /// # Safety
        ///
        /// `arg` must be an `Option<F>`.
        unsafe extern "C" fn call<F: FnOnce() -> Result>(arg: *mut ffi::c_void) -> ffi::c_int {
            // SAFETY: `arg` is what was given with this function, below: an `Option<F>` that nobody else has meanwhile.
            let f = unsafe { &mut *arg.cast::<Option<F>>() }.take();
            f.map_or(Err(EBUSY), |f| f())
                .map_or_else(Error::to_errno, |()| 0)
        }

        let mut f = Some(f);
        // SAFETY: The instance has the event of this module; `call` is given what it asks for, and
        // is called before this returns or not at all.
        to_result(unsafe {
            bindings::rhist_with_event_mutex(
                self.as_ptr(),
                Some(call::<F>),
                core::ptr::from_mut(&mut f).cast(),
            )
        })
    }

    /// As [`Instance::with_event_mutex`], for what must not be left undone: tries until `f` has been
    /// called, once.
    pub(crate) fn insist_with_event_mutex(&self, f: impl FnOnce() -> Result) {
        let mut f = Some(f);
        loop {
            // What `f` ends with is not to be mended by doing it again.
            let _ = self.with_event_mutex(|| f.take().map_or(Ok(()), |f| f()));
            if f.is_none() {
                return;
            }
            // Somebody plays with `enable` of rhist:sync. There is no other way but the next try.
            fsleep(Delta::from_millis(10));
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // SAFETY: The reference is ours to give back. The instance is compared with those that
        // exist, not looked into, so it may already be gone when it is to be destroyed.
        let err = unsafe {
            bindings::trace_array_put(self.as_ptr());
            bindings::trace_array_destroy(self.as_ptr())
        };
        if err != 0 {
            // A file of it is open. It is a plain instance from now on.
            pr_warn!("instances/rhist is in use and stays; rmdir removes it\n");
        }
    }
}

/// A reference on an instance of others: it cannot be removed (`EBUSY`).
pub(crate) struct KeptInstance(NonNull<bindings::trace_array>);

// SAFETY: The reference may be given back by any task, and nothing is read through it.
unsafe impl Send for KeptInstance {}
// SAFETY: As above.
unsafe impl Sync for KeptInstance {}

impl KeptInstance {
    /// Keeps the instance of a tracing directory, which is not the top one. `open_file` is any open
    /// file of tracefs. Takes `event_mutex`.
    ///
    /// # Errors
    ///
    /// `ENOENT` or `ENODEV` if it is gone, or has no marker; `ENOMEM`.
    pub(crate) fn new(dir: &TracingDir, open_file: &KernelFile) -> Result<Self> {
        // Without a file of it that is open it might be gone, and be made anew by its name.
        let _open = open_file.open_other(dir, &[c"trace_marker"], bindings::O_WRONLY)?;
        // SAFETY: The name ends in a NUL.
        let array = unsafe {
            bindings::trace_array_get_by_name(dir.name().as_char_ptr(), core::ptr::null())
        };
        NonNull::new(array).map(Self).ok_or(ENODEV)
    }
}

impl Drop for KeptInstance {
    fn drop(&mut self) {
        // SAFETY: The reference is ours to give back.
        unsafe { bindings::trace_array_put(self.0.as_ptr()) }
    }
}
