// SPDX-License-Identifier: GPL-2.0

//! What the probes for static events need (`rust/probe/`).

use super::bindings;
use super::event::Event;
use core::ptr::NonNull;
use kernel::error::to_result;
use kernel::ffi;
use kernel::prelude::*;

/// The memory that probes make their records in: 16 KiB for each possible CPU. Whoever connects one
/// keeps it.
pub(crate) struct Records(());

impl Records {
    /// Allocates it. Task context, sleeps. To be called by one task at a time. Fails with `ENOMEM`, and
    /// with `EBUSY` if it is there already.
    pub(crate) fn new() -> Result<Self> {
        // SAFETY: It looks whether it is there, and nothing is connected as long as it is not.
        to_result(unsafe { bindings::rhist_probes_init() })?;
        Ok(Self(()))
    }
}

impl Drop for Records {
    fn drop(&mut self) {
        // SAFETY: Nobody keeps it, so no probe is connected.
        unsafe { bindings::rhist_probes_exit() }
    }
}

/// The probe of ours for an event, if there is one.
pub(crate) fn find(event: &Event) -> Option<NonNull<ffi::c_void>> {
    // SAFETY: The event is referenced.
    NonNull::new(unsafe { bindings::rhist_probe_find(event.call()) })
}
