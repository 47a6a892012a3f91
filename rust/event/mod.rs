// SPDX-License-Identifier: GPL-2.0

//! Trace events of the kernel.
//!
//! C header: `include/linux/trace_events.h`.

mod field;
mod file;
mod list;
mod pin;
mod synth_ref;
mod task_filter;

use super::{
    bindings,
    instance::{
        Instance,
        KeptInstance, //
    },
    tracefs::{
        EventName,
        KernelFile,
        TracingDir, //
    },
};
use core::{
    ffi::CStr,
    ptr::NonNull, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

pub(crate) use super::bindings::{
    FILTER_COMM,
    FILTER_CPU,
    FILTER_CPUMASK,
    FILTER_DYN_STRING,
    FILTER_PTR_STRING,
    FILTER_RDYN_STRING,
    FILTER_STACKTRACE,
    FILTER_STATIC_STRING,
    FILTER_TRACE_FN, //
};
pub(crate) use field::{
    KernelField,
    COMMON_FIELDS, //
};
pub(super) use file::{
    top_array,
    EventFileRef, //
};
pub(super) use list::exists_locked;
use list::find_locked;
pub(crate) use list::{
    for_each,
    EventId, //
};
use pin::EventPin;
pub(super) use synth_ref::SynthEventRef;
pub(crate) use task_filter::TaskFilter;

/// A trace event in one of the tracing directories, with a reference on the event.
///
/// It pins the event: its module cannot be unloaded, and deleting a dynamic event fails with
/// `EBUSY`. It does not pin the instance, except after [`Event::keep_marker`].
///
/// # Invariants
///
/// `call` is a registered event, and stays so: it is pinned by `pin`, or is built into the kernel.
pub(crate) struct Event {
    call: NonNull<bindings::trace_event_call>,
    /// Pins the event; `None` for `ftrace:print`, which is built into the kernel.
    ///
    /// An event exists in every instance. The reference is on its file in the top instance, as one
    /// on the file in another instance would also pin that instance.
    pin: Option<EventPin>,
    dir: TracingDir,
    /// See [`Event::keep_marker`].
    instance: Option<KeptInstance>,
}

// SAFETY: Any task may drop the references, and unregister the probe with event_mutex.
unsafe impl Send for Event {}
// SAFETY: Through a shared reference only the event is read: its class, names, fields and
// tracepoint do not change while it is pinned.
unsafe impl Sync for Event {}

impl Event {
    /// Finds an event and pins it. Takes `event_mutex`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the event does not exist or cannot be enabled (`ftrace:*`); `EBUSY` if it is
    /// being removed; `ENOMEM`.
    pub(crate) fn find(name: EventName<'_>, instance: &Arc<Instance>) -> Result<Self> {
        let pin = EventPin::new(&name, instance)?;
        let call = NonNull::new(pin.call()).ok_or(EINVAL)?;
        Ok(Self {
            call,
            pin: Some(pin),
            dir: name.dir.clone(),
            instance: None,
        })
    }

    /// Finds an event without pinning it: it may be gone when this returns. Takes `event_mutex`.
    /// Fails as [`Event::find`].
    pub(crate) fn find_id(name: EventName<'_>, instance: &Instance) -> Result<EventId> {
        let mut id = None;
        instance.with_event_mutex(|| {
            // SAFETY: event_mutex is held in this closure.
            id = Some(EventId(unsafe { find_locked(&name) }?));
            Ok(())
        })?;
        id.ok_or(EINVAL)
    }

    /// Returns the event `ftrace:print`, which is recorded for writes to `trace_marker` of a
    /// tracing directory. Takes `event_mutex`.
    ///
    /// # Errors
    ///
    /// `ENODEV` if the kernel lacks this event.
    pub(crate) fn marker(dir: &TracingDir) -> Result<Self> {
        let top = top_array()?;
        // SAFETY: The top instance is never removed, nor is its `trace_marker_file`.
        let call = unsafe {
            let file = bindings::rhist_marker_file(top.as_ptr());
            NonNull::new(file).map(|file| (*file.as_ptr()).event_call)
        };
        Ok(Self {
            call: call.and_then(NonNull::new).ok_or(ENODEV)?,
            pin: None,
            dir: dir.clone(),
            instance: None,
        })
    }

    /// Pins the instance of a marker, as each instance has its own `trace_marker`. Does nothing for
    /// other events and for the top instance. `open_file` is any open file of tracefs. Takes
    /// `event_mutex`. Fails as [`KeptInstance::new`].
    pub(crate) fn keep_marker(&mut self, open_file: &KernelFile) -> Result {
        if self.is_marker() && !self.dir.is_top() {
            self.instance = Some(KeptInstance::new(&self.dir, open_file)?);
        }
        Ok(())
    }

    /// Returns whether it is the event of [`Event::marker`].
    pub(crate) fn is_marker(&self) -> bool {
        self.pin.is_none()
    }

    /// Returns whether it is `rhist:sample`.
    pub(crate) fn is_sample(&self) -> bool {
        // SAFETY: The function compares the address.
        unsafe { bindings::rhist_is_sample(self.call()) }
    }

    /// Returns whether an event of this name exists and can be enabled. Takes `event_mutex`.
    pub(crate) fn exists(system: &CStr, event: &CStr) -> bool {
        EventFileRef::get(system, event).is_ok()
    }

    /// Returns the tracing directory.
    pub(crate) fn dir(&self) -> &TracingDir {
        &self.dir
    }

    /// Returns the identity of the event, which is the same in every instance.
    pub(crate) fn id(&self) -> EventId {
        EventId(self.call())
    }

    /// Returns whether a hit may wait for user memory of its program before it gets to rhist; the
    /// program can delay it for any time.
    pub(crate) fn may_fault(&self) -> bool {
        // SAFETY: By the type invariant the event stays registered, and so do its class and its
        // tracepoint.
        unsafe { bindings::rhist_event_may_fault(self.call()) }
    }

    /// Returns whether it is part of the kernel, and so is never removed.
    pub(crate) fn is_built_in(&self) -> bool {
        // SAFETY: By the type invariant the event stays registered.
        unsafe { bindings::rhist_event_built_in(self.call()) }
    }

    /// Returns the kernel's event, which is the same in every instance.
    pub(super) fn call(&self) -> *mut bindings::trace_event_call {
        self.call.as_ptr()
    }

    /// Returns the system and the name.
    pub(crate) fn names(&self) -> [&CStr; 2] {
        // SAFETY: By the type invariant the event stays registered, and so do its class and its
        // name. Both names end in a NUL.
        unsafe {
            let system = (*(*self.call()).class).system;
            [system, bindings::rhist_event_name(self.call())].map(|name| CStr::from_char_ptr(name))
        }
    }

    /// Calls `visit` for each field of the record in the order of definition, without the common
    /// fields, until it fails.
    pub(crate) fn for_each_field(
        &self,
        mut visit: impl FnMut(KernelField<'_>) -> Result,
    ) -> Result {
        // The kernel adds each field at the head of the list, so go backwards.
        // SAFETY: By the type invariant the event stays registered. Its list of fields is complete
        // before the event can be found, and does not change until it is removed. The strings end
        // in a NUL.
        unsafe {
            let head = bindings::rhist_event_fields(self.call());
            let mut link = (*head).prev;
            while link != head {
                let field = &*kernel::container_of!(link, bindings::ftrace_event_field, link);
                visit(KernelField {
                    name: CStr::from_char_ptr(field.name),
                    type_: CStr::from_char_ptr(field.type_),
                    offset: field.offset as u32,
                    size: field.size as u32,
                    signed: field.is_signed() != 0,
                    filter_type: field.filter_type as u32,
                })?;
                link = (*link).prev;
            }
        }
        Ok(())
    }
}
