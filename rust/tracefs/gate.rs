// SPDX-License-Identifier: GPL-2.0

//! Pinning the module while a file is open.
//!
//! See `gate` in `rust/tracefs.c`: the VFS pins the gate, not the module, before it calls `open`.

use crate::ftrace::bindings;
use kernel::prelude::*;

/// The owner of file operations of rhist.
pub(super) fn owner() -> *mut bindings::module {
    // SAFETY: No requirements.
    unsafe { bindings::rhist_gate() }
}

/// Waits, while the module goes, until no file operation of rhist runs and no file is open. Called in task
/// context, after the operations became unreachable.
pub(in crate::ftrace) fn wait() {
    // SAFETY: Task context without locks.
    unsafe { bindings::rhist_gate_wait() }
}

/// A reference on the module.
pub(crate) struct ModulePin(());

impl ModulePin {
    /// Pins the module. Fails with `ENODEV` if it is going.
    pub(crate) fn new() -> Result<Self> {
        // SAFETY: No requirements.
        match unsafe { bindings::rhist_enter() } {
            true => Ok(Self(())),
            false => Err(ENODEV),
        }
    }

    /// Hands the reference over to the file that was opened.
    pub(super) fn keep(self) {
        core::mem::forget(self);
    }

    /// Takes the reference back from an open file.
    ///
    /// # Safety
    ///
    /// For `release` only, of a file whose `open` has called [`ModulePin::keep`].
    pub(super) unsafe fn from_file() -> Self {
        Self(())
    }
}

impl Drop for ModulePin {
    fn drop(&mut self) {
        // SAFETY: The reference is ours to give back. The code that runs stays: `open` and
        // `release` are called with the gate held, which the module waits for when it goes.
        unsafe { bindings::rhist_leave() }
    }
}
