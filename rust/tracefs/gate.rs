// SPDX-License-Identifier: GPL-2.0

//! Pinning the module while a file is open.
//!
//! See `gate` in `rust/tracefs.c`: whoever calls `open` of ours has pinned the gate, not the module.

use crate::ftrace::bindings;
use kernel::prelude::*;

/// The owner for operations of inodes of ours.
pub(super) fn owner() -> *mut bindings::module {
    // SAFETY: No requirements.
    unsafe { bindings::rhist_gate() }
}

/// Waits until no operation of ours runs and no file is open, while the module is going. To be
/// called in task context, when nothing leads to the operations any more that are waited for.
pub(in crate::ftrace) fn wait() {
    // SAFETY: Task context without locks.
    unsafe { bindings::rhist_gate_wait() }
}

/// A reference on the module.
pub(crate) struct Entry(());

impl Entry {
    /// Pins the module. Fails with `ENODEV` if it is going.
    pub(crate) fn new() -> Result<Self> {
        // SAFETY: No requirements.
        match unsafe { bindings::rhist_enter() } {
            true => Ok(Self(())),
            false => Err(ENODEV),
        }
    }

    /// Leaves the reference to the file that was opened.
    pub(super) fn keep(self) {
        core::mem::forget(self);
    }

    /// The reference that an open file has, to be given back.
    ///
    /// # Safety
    ///
    /// For `release` only, of a file whose `open` has called [`Entry::keep`].
    pub(super) unsafe fn of_file() -> Self {
        Self(())
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        // SAFETY: The reference is ours to give back. The code that runs stays: `open` and
        // `release` are called with the gate held, which the module waits for when it goes.
        unsafe { bindings::rhist_leave() }
    }
}
