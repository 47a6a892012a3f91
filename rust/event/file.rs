// SPDX-License-Identifier: GPL-2.0

//! References on the files of events in the top instance.

use crate::rust::bindings;
use core::{
    ffi::CStr,
    ptr::{
        self,
        NonNull, //
    },
};
use kernel::{
    error::from_err_ptr,
    prelude::*, //
};

/// A reference on the file of an event in the top instance, which pins the event.
///
/// # Invariants
///
/// Owns a reference taken by `trace_get_event_file()`.
pub(in crate::rust) struct EventFileRef(NonNull<bindings::trace_event_file>);

impl EventFileRef {
    /// Finds the file of an event in the top instance. Takes `event_mutex`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the event does not exist or cannot be enabled; `EBUSY` if it is being removed.
    pub(in crate::rust) fn get(system: &CStr, event: &CStr) -> Result<Self> {
        // INVARIANT: `trace_get_event_file()` returns a file with a reference.
        // SAFETY: Both names end in a NUL; a null instance is the top one.
        let file = from_err_ptr(unsafe {
            bindings::trace_get_event_file(ptr::null(), system.as_char_ptr(), event.as_char_ptr())
        })?;
        NonNull::new(file).map(Self).ok_or(EINVAL)
    }

    /// Returns the event, which stays registered as long as `self` exists.
    pub(in crate::rust) fn call(&self) -> *mut bindings::trace_event_call {
        // SAFETY: By the type invariant `self` holds a reference on the file, whose `event_call`
        // never changes.
        unsafe { (*self.0.as_ptr()).event_call }
    }
}

impl Drop for EventFileRef {
    /// Takes `event_mutex`.
    fn drop(&mut self) {
        // SAFETY: By the type invariant `self` owns a reference, which is not used afterwards.
        unsafe { bindings::trace_put_event_file(self.0.as_ptr()) }
    }
}

/// Returns the top instance, which is never removed. Takes `event_mutex`. Fails as
/// [`EventFileRef::get`].
pub(in crate::rust) fn top_array() -> Result<NonNull<bindings::trace_array>> {
    // Any event leads to it; this one always exists.
    let any = EventFileRef::get(c"rhist", c"sync")?;
    // SAFETY: `any` holds a reference on a file of the top instance.
    NonNull::new(unsafe { (*any.0.as_ptr()).tr }).ok_or(ENODEV)
}
