// SPDX-License-Identifier: GPL-2.0

//! References that pin synthetic events.

use super::file::EventFileRef;
use crate::rust::{
    bindings,
    instance::Instance, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// A reference on a synthetic event, which is busy while this exists: deleting it, or all of them,
/// fails with `EBUSY`.
///
/// A reference on the event's file alone does not suffice: deleting all events would delete the
/// events listed before it first.
///
/// # Invariants
///
/// `file` is the file of a synthetic event, in whose `ref` this user is counted.
pub(in crate::rust) struct SynthEventRef {
    file: EventFileRef,
    /// rhist's instance, where its histograms get the event.
    instance: Arc<Instance>,
}

impl SynthEventRef {
    /// Returns whether a file belongs to a synthetic event. The group `synthetic` may have other
    /// events: probes can be defined in any group.
    pub(in crate::rust) fn is_synthetic(file: &EventFileRef) -> bool {
        // SAFETY: `file` keeps the event registered.
        unsafe { bindings::rhist_is_synthetic(file.call()) }
    }

    /// Takes a reference. Takes `event_mutex`; task context.
    ///
    /// # Errors
    ///
    /// `EINVAL` if it is not a synthetic event; the errors of [`Instance::with_event_mutex`].
    pub(in crate::rust) fn new(file: EventFileRef, instance: &Arc<Instance>) -> Result<Self> {
        if !Self::is_synthetic(&file) {
            return Err(EINVAL);
        }
        instance.with_event_mutex(|| {
            // SAFETY: event_mutex is held, and this is a synthetic event.
            unsafe { bindings::rhist_synthetic_count(file.call(), 1) };
            Ok(())
        })?;
        // INVARIANT: This user has just been counted.
        Ok(Self {
            file,
            instance: instance.clone(),
        })
    }

    /// Returns the event, which stays registered as long as `self` exists.
    pub(in crate::rust) fn call(&self) -> *mut bindings::trace_event_call {
        self.file.call()
    }

    /// Returns rhist's instance.
    #[inline]
    pub(in crate::rust) fn instance(&self) -> &Instance {
        &self.instance
    }
}

impl Drop for SynthEventRef {
    /// Takes `event_mutex`; task context.
    fn drop(&mut self) {
        self.instance.with_event_mutex_retry(|| {
            // SAFETY: event_mutex is held. By the type invariant this is a synthetic event, which
            // counts this user.
            unsafe { bindings::rhist_synthetic_count(self.call(), -1) };
            Ok(())
        });
    }
}
