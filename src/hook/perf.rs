// SPDX-License-Identifier: GPL-2.0

//! The source for static events that no probe of ours was made for: the kernel's own probe for perf
//! (`rust/perf.c`).
//!
//! It makes the record in memory that perf has for each processor and each context, at less than half of
//! what a record in a ring buffer costs. What a hit brings forth itself, in the same context while perf
//! makes a record, is lost, and counted as such.

use super::probe::Callback;
use super::Sinks;
use super::Source;
use crate::ftrace::bindings;
use crate::ftrace::event::Event;
use core::ptr::NonNull;
use kernel::error::from_err_ptr;
use kernel::prelude::*;
use kernel::sync::Arc;

/// The probe for perf of an event, until it is [disconnected](Source::disconnect).
pub(super) struct Perf {
    raw: NonNull<bindings::rhist_perf>,
    /// What it leads to.
    _callback: Pin<KBox<Callback>>,
}

// SAFETY: The kernel's functions that get the pointer lock for themselves.
unsafe impl Send for Perf {}
// SAFETY: As above.
unsafe impl Sync for Perf {}

impl Perf {
    /// Connects the probe; `None` if the event has none, or perf is not to be had. Fails with
    /// `ENOMEM`.
    ///
    /// # Safety
    ///
    /// The caller disconnects the result, and waits for the hits, before it drops it or gives back
    /// its reference on the event.
    pub(super) unsafe fn attach(
        event: &Event,
        sinks: &Arc<Sinks>,
    ) -> Result<Option<KBox<dyn Source>>> {
        let memory = KBox::<Self>::new_uninit(GFP_KERNEL)?;
        let callback = Callback::new(event, sinks)?;
        // SAFETY: The event is referenced. The callback is kept until nobody is called with it.
        let raw = unsafe { bindings::rhist_perf_connect(event.call(), callback.probed()) };
        let raw = match from_err_ptr(raw) {
            Err(err) if err == ENOMEM => return Err(err),
            Err(_) => None,
            Ok(raw) => NonNull::new(raw),
        };
        let Some(raw) = raw else {
            return Ok(None);
        };
        Ok(Some(memory.write(Self {
            raw,
            _callback: callback,
        })))
    }
}

impl Source for Perf {
    fn disconnect(&mut self) {
        // SAFETY: It is connected, and the event is still referenced.
        unsafe { bindings::rhist_perf_disconnect(self.raw.as_ptr()) };
    }

    fn name(&self) -> &'static str {
        "perf"
    }
}

impl Drop for Perf {
    fn drop(&mut self) {
        // SAFETY: It was disconnected, and no hit is running any more.
        unsafe { bindings::rhist_perf_free(self.raw.as_ptr()) };
    }
}
