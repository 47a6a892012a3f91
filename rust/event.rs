// SPDX-License-Identifier: GPL-2.0

//! Trace events of the kernel.
//!
//! C header: `include/linux/trace_events.h`.

use super::bindings;
pub(crate) use super::bindings::FILTER_COMM;
pub(crate) use super::bindings::FILTER_CPU;
pub(crate) use super::bindings::FILTER_CPUMASK;
pub(crate) use super::bindings::FILTER_DYN_STRING;
pub(crate) use super::bindings::FILTER_PTR_STRING;
pub(crate) use super::bindings::FILTER_RDYN_STRING;
pub(crate) use super::bindings::FILTER_STACKTRACE;
pub(crate) use super::bindings::FILTER_STATIC_STRING;
pub(crate) use super::bindings::FILTER_TRACE_FN;
use super::instance::Instance;
use super::instance::KeptInstance;
use super::tracefs::EventName;
use super::tracefs::KernelFile;
use super::tracefs::TracingDir;
use core::ffi::CStr;
use core::ptr::NonNull;
use kernel::error::to_result;
use kernel::ffi;
use kernel::prelude::*;
use kernel::sync::Arc;

/// A trace event in one of the tracing directories, with a reference on the event.
///
/// The event stays: its module cannot be unloaded, and deleting a dynamic event fails with
/// `EBUSY`. The instance does not, unless it is [asked for](Event::keep_marker).
pub(crate) struct Event {
    call: NonNull<bindings::trace_event_call>,
    /// What keeps it; `None` for `ftrace:print`, which the kernel always has.
    ///
    /// Of the top instance, whichever the directory is: that of another instance would keep that
    /// from being removed. Events exist in all of them.
    pin: Option<EventPin>,
    dir: TracingDir,
    /// See [`Event::keep_marker`].
    instance: Option<KeptInstance>,
}

/// Pins an event.
enum EventPin {
    File(EventFileRef),
    UserEvent(UserEventRef),
    Probe(NopProbe),
}

impl EventPin {
    /// Keeps an event of the kernel. Takes `event_mutex`.
    fn new(name: &EventName<'_>, instance: &Arc<Instance>) -> Result<Self> {
        let of_user = name.system == c"user_events" || name.system == c"user_events_multi";
        if !(cfg!(CONFIG_USER_EVENTS) && of_user) {
            return Ok(Self::File(EventFileRef::get(name.system, name.event)?));
        }
        let probe = UnregisteredNopProbe::new(instance)?;
        let mut pin = None;
        instance.with_event_mutex(|| {
            // SAFETY: event_mutex is held, so the event stays until it is kept.
            unsafe {
                let call = find_locked(name)?;
                pin = Some(match UserEventRef::get(call) {
                    Some(event) => Self::UserEvent(event),
                    None => Self::Probe(probe.register(call, instance)?),
                });
            }
            Ok(())
        })?;
        pin.ok_or(EINVAL)
    }

    fn call(&self) -> *mut bindings::trace_event_call {
        let file = match self {
            Self::File(file) => file.0,
            Self::UserEvent(event) => return event.0,
            Self::Probe(probe) => probe.file,
        };
        // SAFETY: The file stays, and its event never changes.
        unsafe { (*file.as_ptr()).event_call }
    }
}

/// A reference on the file of an event.
struct EventFileRef(NonNull<bindings::trace_event_file>);

impl EventFileRef {
    /// The file of an event in the top instance.
    fn get(system: &CStr, event: &CStr) -> Result<Self> {
        // SAFETY: Both names end in a NUL; a null instance is the top one.
        let file = kernel::error::from_err_ptr(unsafe {
            bindings::trace_get_event_file(
                core::ptr::null(),
                system.as_char_ptr(),
                event.as_char_ptr(),
            )
        })?;
        NonNull::new(file).map(Self).ok_or(EINVAL)
    }
}

impl Drop for EventFileRef {
    /// Takes `event_mutex`.
    fn drop(&mut self) {
        // SAFETY: The reference is ours to give back.
        unsafe { bindings::trace_put_event_file(self.0.as_ptr()) }
    }
}

/// A reference on a user event of rhist.
struct UserEventRef(*mut bindings::trace_event_call);

impl UserEventRef {
    /// Takes a reference, if it is a user event of rhist.
    ///
    /// # Safety
    ///
    /// `call` must be a registered event, and `event_mutex` held.
    unsafe fn get(call: *mut bindings::trace_event_call) -> Option<Self> {
        // SAFETY: The event is registered, and stays so while event_mutex is held.
        unsafe { bindings::rhist_user_event_get(call) }.then_some(Self(call))
    }
}

impl Drop for UserEventRef {
    fn drop(&mut self) {
        // SAFETY: The reference is ours to give back.
        unsafe { bindings::rhist_user_event_put(self.0) }
    }
}

/// A probe on an event that does nothing.
///
/// It keeps the kernel's own user events, which go although they are referenced, but not while they are
/// enabled (`user_event_put()`, `destroy_user_event()`). Their programs see the event enabled meanwhile.
struct NopProbe {
    file: NonNull<bindings::trace_event_file>,
    instance: Arc<Instance>,
}

/// A [`NopProbe`] that is not registered yet.
struct UnregisteredNopProbe(KBox<bindings::trace_event_file>);

impl UnregisteredNopProbe {
    fn new(instance: &Instance) -> Result<Self> {
        // Soft-disabled, and not enabled: whichever of both a probe looks at, it does nothing.
        let file = bindings::trace_event_file {
            tr: instance.as_ptr(),
            flags: bindings::EVENT_FILE_FL_SOFT_DISABLED as usize,
            ..Default::default()
        };
        Ok(Self(KBox::new(file, GFP_KERNEL)?))
    }

    /// Registers it.
    ///
    /// # Safety
    ///
    /// `call` must be a registered event, and `event_mutex` held.
    unsafe fn register(
        mut self,
        call: *mut bindings::trace_event_call,
        instance: &Arc<Instance>,
    ) -> Result<NopProbe> {
        self.0.event_call = call;
        let file = KBox::into_raw(self.0);
        // SAFETY: The event is registered, and event_mutex is held. The file is complete, and stays until
        // `drop`.
        let listens = to_result(unsafe { bindings::rhist_event_reg(call, file, true) });
        if let Err(err) = listens {
            // SAFETY: Boxed above, and not registered.
            drop(unsafe { KBox::from_raw(file) });
            return Err(err);
        }
        Ok(NopProbe {
            file: NonNull::new(file).ok_or(EINVAL)?,
            instance: instance.clone(),
        })
    }
}

impl Drop for NopProbe {
    /// Takes `event_mutex`, and waits for the probes that run.
    fn drop(&mut self) {
        let file = self.file.as_ptr();
        self.instance.insist_with_event_mutex(|| {
            // SAFETY: event_mutex is held, and the event stays until then. It is registered.
            to_result(unsafe { bindings::rhist_event_reg((*file).event_call, file, false) })
        });
        // SAFETY: Task context, no locks that a probe could wait for. After it nobody has the file,
        // which was boxed.
        unsafe {
            bindings::rhist_tracepoint_synchronize_unregister();
            drop(KBox::from_raw(file));
        }
    }
}

// SAFETY: What keeps it may be given back by any task, and what is read never changes.
unsafe impl Send for Event {}
// SAFETY: As above.
unsafe impl Sync for Event {}

/// A field of an event's record, as the kernel describes it.
pub(crate) struct KernelField<'a> {
    pub(crate) name: &'a CStr,
    pub(crate) type_: &'a CStr,
    /// Bytes from the beginning of the record.
    pub(crate) offset: u32,
    /// Bytes; 4 for a dynamic field, whose place and length are in the record.
    pub(crate) size: u32,
    pub(crate) signed: bool,
    /// One of `FILTER_*`.
    pub(crate) filter_type: u32,
}

/// The fields that begin the record of every event. The kernel's own list of them is not exported
/// (`trace_define_common_fields()`, `struct trace_entry`).
pub(crate) const COMMON_FIELDS: [KernelField<'static>; 4] = [
    common(c"common_type", c"unsigned short", 0, 2, false),
    common(c"common_flags", c"unsigned char", 2, 1, false),
    common(c"common_preempt_count", c"unsigned char", 3, 1, false),
    common(c"common_pid", c"int", 4, 4, true),
];

const _: () = {
    use core::mem::offset_of;
    use core::mem::size_of;
    assert!(offset_of!(bindings::trace_entry, type_) == 0);
    assert!(offset_of!(bindings::trace_entry, flags) == 2);
    assert!(offset_of!(bindings::trace_entry, preempt_count) == 3);
    assert!(offset_of!(bindings::trace_entry, pid) == 4);
    assert!(size_of::<bindings::trace_entry>() == 8);
};

const fn common(
    name: &'static CStr,
    type_: &'static CStr,
    offset: u32,
    size: u32,
    signed: bool,
) -> KernelField<'static> {
    KernelField {
        name,
        type_,
        offset,
        size,
        signed,
        filter_type: bindings::FILTER_OTHER,
    }
}

impl Event {
    /// Finds an event. Takes `event_mutex`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is no such event, or it is one that cannot be enabled (`ftrace:*`);
    /// `EBUSY` if it is going away.
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

    /// The event `ftrace:print`, of what is written to `trace_marker` of a tracing directory. Takes
    /// `event_mutex`.
    ///
    /// # Errors
    ///
    /// `ENODEV` if the kernel has no such event.
    pub(crate) fn marker(dir: &TracingDir) -> Result<Self> {
        // An event that there always is, our own.
        let any = EventFileRef::get(c"rhist", c"sync")?;
        // SAFETY: The file is referenced, and belongs to the top instance, which stays, and so does
        // its file of the marker.
        let call = unsafe {
            let file = bindings::rhist_marker_file((*any.0.as_ptr()).tr);
            NonNull::new(file).map(|file| (*file.as_ptr()).event_call)
        };
        Ok(Self {
            call: call.and_then(NonNull::new).ok_or(ENODEV)?,
            pin: None,
            dir: dir.clone(),
            instance: None,
        })
    }

    /// Keeps the instance from being removed, if it is the marker of one: each has one of its own.
    /// `open_file` is any open file of tracefs. Fails as [`KeptInstance::new`].
    pub(crate) fn keep_marker(&mut self, open_file: &KernelFile) -> Result {
        if self.is_marker() && !self.dir.is_top() {
            self.instance = Some(KeptInstance::new(&self.dir, open_file)?);
        }
        Ok(())
    }

    /// Is it [`Event::marker`]?
    pub(crate) fn is_marker(&self) -> bool {
        self.pin.is_none()
    }

    /// Is there an event of this name that can be enabled? Takes `event_mutex`.
    pub(crate) fn exists(system: &CStr, event: &CStr) -> bool {
        EventFileRef::get(system, event).is_ok()
    }

    /// The tracing directory.
    pub(crate) fn dir(&self) -> &TracingDir {
        &self.dir
    }

    /// Which event it is, in every instance the same.
    pub(crate) fn id(&self) -> EventId {
        EventId(self.call())
    }

    /// The event itself, which is one and the same for every instance.
    pub(super) fn call(&self) -> *mut bindings::trace_event_call {
        self.call.as_ptr()
    }

    /// Its system and its name.
    pub(crate) fn names(&self) -> [&CStr; 2] {
        // SAFETY: The event is referenced; both stay as long as it does, and end in a NUL.
        unsafe {
            let system = (*(*self.call()).class).system;
            [system, bindings::rhist_event_name(self.call())].map(|name| CStr::from_char_ptr(name))
        }
    }

    /// Calls `visit` for each field of the record, in the order of their definition, until it
    /// fails. The common fields at the beginning are not among them.
    pub(crate) fn for_each_field(
        &self,
        mut visit: impl FnMut(KernelField<'_>) -> Result,
    ) -> Result {
        // SAFETY: The event is referenced. The list is complete before an event can be found, and
        // stays until the event goes. The kernel puts each new field at its head.
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

/// Which event it is, as long as that exists.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct EventId(*mut bindings::trace_event_call);

impl EventId {
    /// A number that no other event has meanwhile.
    pub(crate) fn number(self) -> u64 {
        self.0 as usize as u64
    }
}

/// An event as the kernel lists it.
pub(crate) struct ListedEvent<'a> {
    pub(crate) id: EventId,
    pub(crate) system: &'a CStr,
    pub(crate) event: &'a CStr,
    /// It can be enabled, which those of the tracer itself (`ftrace:*`) cannot.
    pub(crate) enables: bool,
    /// It has triggers of the kernel.
    pub(crate) triggered: bool,
}

/// Calls `visit` for each event of a tracing directory, in the order of the kernel. Takes `event_mutex`.
///
/// # Errors
///
/// `ENODEV` if the instance of the directory is gone, and those of `visit`, after which no more are visited.
pub(crate) fn for_each(
    instance: &Instance,
    dir: &TracingDir,
    visit: impl FnMut(ListedEvent<'_>) -> Result,
) -> Result {
    // SAFETY: event_mutex is held.
    instance.with_event_mutex(|| unsafe { for_each_locked(dir, visit) })
}

/// The event of a name. Fails with `EINVAL` if there is none that can be enabled.
///
/// # Safety
///
/// event_mutex must be held.
unsafe fn find_locked(name: &EventName<'_>) -> Result<*mut bindings::trace_event_call> {
    let mut call = None;
    // SAFETY: event_mutex is held.
    unsafe {
        for_each_locked(name.dir, |event| {
            let is_it = event.enables && (event.system, event.event) == (name.system, name.event);
            if is_it && call.is_none() {
                call = Some(event.id.0);
            }
            Ok(())
        })?;
    }
    call.ok_or(EINVAL)
}

/// Calls `visit` for each event of a tracing directory, in the order of the kernel's
/// `available_events`, until it fails.
///
/// # Errors
///
/// `ENODEV` if the instance is gone, and those of `visit`.
///
/// # Safety
///
/// event_mutex must be held.
unsafe fn for_each_locked(
    dir: &TracingDir,
    mut visit: impl FnMut(ListedEvent<'_>) -> Result,
) -> Result {
    // SAFETY: event_mutex is held: the instance stays, and so do the list, the files on it, and their
    // events.
    unsafe {
        let head = bindings::rhist_events(dir.array()?.as_ptr());
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
            })?;
            link = (*link).next;
        }
    }
    Ok(())
}
