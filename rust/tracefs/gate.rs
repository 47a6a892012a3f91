// SPDX-License-Identifier: GPL-2.0

//! Pinning the module while a file is open.
//!
//! See `gate` in `rust/tracefs/tracefs.c`: before it calls `open`, the VFS pins the gate and not
//! the module.

use crate::rust::bindings;
use kernel::prelude::*;

/// Returns the gate, for `owner` of rhist's file operations.
pub(super) fn owner() -> *mut bindings::module {
    // SAFETY: The function only returns the address of a static.
    unsafe { bindings::rhist_gate() }
}

/// Waits, during unload, until no file operation of rhist runs and no file is open. Task context,
/// sleeps; call without locks that a file operation takes, after the operations became unreachable.
pub(in crate::rust) fn wait() {
    // SAFETY: Callers are in task context and may sleep.
    unsafe { bindings::rhist_gate_wait() }
}

/// A reference on the module.
///
/// # Invariants
///
/// Owns one reference on the module, taken by `rhist_enter()`.
pub(crate) struct ModulePin(());

impl ModulePin {
    /// Pins the module. Fails with `ENODEV` if it is unloading, or its init has not succeeded yet.
    pub(crate) fn new() -> Result<Self> {
        // SAFETY: The caller runs code of the module, so `THIS_MODULE` is valid.
        match unsafe { bindings::rhist_enter() } {
            // INVARIANT: `rhist_enter()` has taken a reference.
            true => Ok(Self(())),
            false => Err(ENODEV),
        }
    }

    /// Hands the reference over to the file that is being opened.
    pub(super) fn keep(self) {
        core::mem::forget(self);
    }

    /// Takes the reference back from an open file.
    ///
    /// # Safety
    ///
    /// Must be called once for each call of [`ModulePin::keep`]: by `release` of the file.
    pub(super) unsafe fn from_file() -> Self {
        // INVARIANT: Takes over the reference that `keep` has forgotten.
        Self(())
    }
}

impl Drop for ModulePin {
    fn drop(&mut self) {
        // SAFETY: By the type invariant `self` owns a reference. In `open` and `release` the VFS
        // holds the gate, which unload waits for, so the running code stays.
        unsafe { bindings::rhist_leave() }
    }
}
