// SPDX-License-Identifier: GPL-2.0

//! The kernel's list of the events of an instance.

use crate::rust::{
    bindings,
    instance::Instance,
    tracefs::{
        EventName,
        TracingDir, //
    },
};
use core::{
    ffi::CStr,
    ptr::NonNull, //
};
use kernel::{
    ffi,
    prelude::*, //
};

/// The identity of an event. Not reused while the event exists.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct EventId(pub(super) *mut bindings::trace_event_call);

// SAFETY: The address only identifies the event: it is compared, and not followed.
unsafe impl Send for EventId {}
// SAFETY: As for `Send`.
unsafe impl Sync for EventId {}

impl EventId {
    /// Returns a number that identifies the event while it exists.
    pub(crate) fn number(self) -> u64 {
        self.0 as usize as u64
    }
}

/// An event in the kernel's list of an instance.
pub(crate) struct ListedEvent<'a> {
    pub(crate) id: EventId,
    pub(crate) system: &'a CStr,
    pub(crate) event: &'a CStr,
    /// Whether the event can be enabled. The tracer's own events (`ftrace:*`) cannot.
    pub(crate) enables: bool,
    /// Whether the event has triggers of the kernel in this instance.
    pub(crate) triggered: bool,
    /// Its file in this instance.
    pub(super) file: NonNull<bindings::trace_event_file>,
}

/// Calls `visit` with `event_mutex` held for each event of a tracing directory, in the order of the
/// kernel's `available_events`, until it fails. Task context, sleeps.
///
/// # Errors
///
/// `ENODEV` if the instance of the directory was removed; the errors of
/// [`Instance::with_event_mutex`] and of `visit`.
pub(crate) fn for_each(
    instance: &Instance,
    dir: &TracingDir,
    visit: impl FnMut(ListedEvent<'_>) -> Result,
) -> Result {
    // SAFETY: `with_event_mutex` calls the closure with event_mutex held.
    instance.with_event_mutex(|| unsafe { for_each_locked(dir.array()?, visit) })
}

/// Finds an event by name. A user event of the kernel and one of rhist may have the same name; then
/// the older one, which comes last in the list, has the directory and is found. Fails with `EINVAL`
/// if no event of this name can be enabled, and as [`for_each_locked`].
///
/// # Safety
///
/// event_mutex must be held.
pub(super) unsafe fn find_locked(name: &EventName<'_>) -> Result<*mut bindings::trace_event_call> {
    let mut call = None;
    // SAFETY: The caller holds event_mutex.
    unsafe {
        for_each_locked(name.dir.array()?, |event| {
            if event.enables && (event.system, event.event) == (name.system, name.event) {
                call = Some(event.id.0);
            }
            Ok(())
        })?;
    }
    call.ok_or(EINVAL)
}

/// Returns whether an event of this name exists. `top` is the top instance, which has all events.
///
/// # Safety
///
/// event_mutex must be held.
pub(in crate::rust) unsafe fn exists_locked(
    top: NonNull<bindings::trace_array>,
    system: &CStr,
    event: &CStr,
) -> bool {
    // SAFETY: The caller holds event_mutex.
    let searched = unsafe {
        for_each_locked(top, |listed| {
            match (listed.system, listed.event) == (system, event) {
                true => Err(EEXIST),
                false => Ok(()),
            }
        })
    };
    searched.is_err()
}

/// Calls `visit` for each event of an instance, the newest first, as in the kernel's
/// `available_events`, until it fails.
///
/// # Errors
///
/// The error of `visit`.
///
/// # Safety
///
/// event_mutex must be held since `array` was found, unless it is the top instance.
pub(super) unsafe fn for_each_locked(
    array: NonNull<bindings::trace_array>,
    mut visit: impl FnMut(ListedEvent<'_>) -> Result,
) -> Result {
    // SAFETY: The caller holds event_mutex, under which instances are removed and the list, the
    // files on it and their events change.
    unsafe {
        let head = bindings::rhist_events(array.as_ptr());
        let mut link = (*head).next;
        while link != head {
            let file = &*kernel::container_of!(link, bindings::trace_event_file, list);
            let call = file.event_call;
            let class = &*(*call).class;
            let ignored = (*call).flags & bindings::TRACE_EVENT_FL_IGNORE_ENABLE as ffi::c_int != 0;
            visit(ListedEvent {
                id: EventId(call),
                system: CStr::from_char_ptr(class.system),
                event: CStr::from_char_ptr(bindings::rhist_event_name(call)),
                enables: class.reg.is_some() && !ignored,
                triggered: !core::ptr::eq(file.triggers.next, &raw const file.triggers),
                file: NonNull::from(file),
            })?;
            link = (*link).next;
        }
    }
    Ok(())
}
