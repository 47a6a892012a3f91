// SPDX-License-Identifier: GPL-2.0

//! What the probes for static events need (`rust/probe/`).

use super::bindings;
use super::event::Event;
use core::ptr::NonNull;
use kernel::error::to_result;
use kernel::ffi;
use kernel::prelude::*;

/// The memory that probes make their records in: 16 KiB for each possible CPU. There is one of it at
/// a time.
pub(crate) struct Records(());

impl Records {
    /// Allocates it. Task context, sleeps. Fails with `ENOMEM`.
    ///
    /// # Safety
    ///
    /// There must be no other. Probes may be connected as long as the result lives.
    pub(crate) unsafe fn new() -> Result<Self> {
        // SAFETY: By the contract.
        to_result(unsafe { bindings::rhist_probes_init() })?;
        Ok(Self(()))
    }
}

impl Drop for Records {
    fn drop(&mut self) {
        // SAFETY: By the contract of `new`, no probe is connected.
        unsafe { bindings::rhist_probes_exit() }
    }
}

/// The probe of ours for an event, if there is one.
pub(crate) fn find(event: &Event) -> Option<NonNull<ffi::c_void>> {
    // SAFETY: The event is referenced.
    NonNull::new(unsafe { bindings::rhist_probe_find(event.call()) })
}
