// SPDX-License-Identifier: GPL-2.0

//! Trace events of the kernel.
//!
//! C header: `include/linux/trace_events.h`.

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
use super::{
    bindings,
    instance::{
        Instance,
        KeptInstance, //
    },
    synthetic::SynthEventRef,
    tracefs::{
        EventName,
        KernelFile,
        TracingDir, //
    },
};
use crate::sync::PreemptOff;
use core::{
    ffi::CStr,
    ptr::{
        self,
        NonNull, //
    }, //
};
use kernel::{
    error::{
        from_err_ptr,
        to_result, //
    },
    ffi,
    prelude::*,
    sync::Arc, //
};

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

/// A reference that pins an event, of the kind that the event needs.
enum EventPin {
    File(EventFileRef),
    SynthEvent(SynthEventRef),
    UserEvent(UserEventRef),
    EventProbe(EventProbeRef),
    /// The event of a module, pinned by the module.
    #[expect(dead_code, reason = "the reference on the module is dropped")]
    Module(EventModuleRef, *mut bindings::trace_event_call),
    Probe(NopProbe),
}

impl EventPin {
    /// Pins an event. Takes `event_mutex`. Fails as [`Event::find`].
    fn new(name: &EventName<'_>, instance: &Arc<Instance>) -> Result<Self> {
        // Pins the event's module, or an event probe, until the event itself is pinned.
        let _module = match EarlyPin::new(name, instance)? {
            EarlyPin::EventProbe(probe) => return Ok(Self::EventProbe(probe)),
            // Not looked up by its name: another module may have an event of the same name.
            EarlyPin::Module(module, call) if !module.0.is_null() => {
                return Ok(Self::Module(module, call))
            }
            EarlyPin::Module(module, _) => module,
        };
        let of_user = name.system == c"user_events" || name.system == c"user_events_multi";
        if !(cfg!(CONFIG_USER_EVENTS) && of_user) {
            let file = EventFileRef::get(name.system, name.event)?;
            return Ok(if SynthEventRef::is_synthetic(&file) {
                Self::SynthEvent(SynthEventRef::new(file, instance)?)
            } else {
                Self::File(file)
            });
        }
        let probe = UnregisteredNopProbe::new(instance)?;
        let mut pin = None;
        instance.with_event_mutex(|| {
            // SAFETY: event_mutex is held in this closure, so the event stays registered until it
            // is pinned.
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
        match self {
            Self::File(file) => file.call(),
            Self::SynthEvent(event) => event.call(),
            Self::UserEvent(event) => event.0,
            Self::EventProbe(probe) => probe.call,
            Self::Module(_, call) => *call,
            // SAFETY: The probe owns its file, whose `event_call` never changes.
            Self::Probe(probe) => unsafe { (*probe.file.as_ptr()).event_call },
        }
    }
}

/// A reference on the file of an event in the top instance, which pins the event.
///
/// # Invariants
///
/// Owns a reference taken by `trace_get_event_file()`.
pub(super) struct EventFileRef(NonNull<bindings::trace_event_file>);

impl EventFileRef {
    /// Finds the file of an event in the top instance. Takes `event_mutex`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the event does not exist or cannot be enabled; `EBUSY` if it is being removed.
    pub(super) fn get(system: &CStr, event: &CStr) -> Result<Self> {
        // INVARIANT: `trace_get_event_file()` returns a file with a reference.
        // SAFETY: Both names end in a NUL; a null instance is the top one.
        let file = from_err_ptr(unsafe {
            bindings::trace_get_event_file(
                core::ptr::null(),
                system.as_char_ptr(),
                event.as_char_ptr(),
            )
        })?;
        NonNull::new(file).map(Self).ok_or(EINVAL)
    }

    /// Returns the event, which stays registered as long as `self` exists.
    pub(super) fn call(&self) -> *mut bindings::trace_event_call {
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
pub(super) fn top_array() -> Result<NonNull<bindings::trace_array>> {
    // Any event leads to it; this one always exists.
    let any = EventFileRef::get(c"rhist", c"sync")?;
    // SAFETY: `any` holds a reference on a file of the top instance.
    NonNull::new(unsafe { (*any.0.as_ptr()).tr }).ok_or(ENODEV)
}

/// Tests whether an event ignores hits of the current task, because of `set_event_pid` and
/// `set_event_notrace_pid` of a tracing directory.
///
/// The kernel updates the answer at each task switch, per CPU (`trace_event_ignore_this_pid()`).
/// While either file lists tasks, the event's file in the instance has a flag.
///
/// # Invariants
///
/// `file`, if present, has a reference taken by `rhist_file_get()`, and `flags` points to its
/// flags. Otherwise `flags` points to [`NO_FLAGS`].
pub(crate) struct TaskFilter {
    flags: NonNull<usize>,
    file: Option<NonNull<bindings::trace_event_file>>,
}

/// Flags for a [`TaskFilter`] without a file.
static NO_FLAGS: usize = 0;

// SAFETY: Any task may drop the reference. The file is only read.
unsafe impl Send for TaskFilter {}
// SAFETY: The file is only read through a shared reference.
unsafe impl Sync for TaskFilter {}

impl TaskFilter {
    /// Takes a reference on the file of an event in its tracing directory. The marker needs no
    /// file: the kernel records it for all tasks. Takes `event_mutex`. Fails with `ENODEV` if the
    /// instance is gone.
    pub(crate) fn new(event: &Event, instance: &Instance) -> Result<Self> {
        let mut filter = Self {
            flags: NonNull::from(&NO_FLAGS),
            file: None,
        };
        if event.is_marker() {
            return Ok(filter);
        }
        instance.with_event_mutex(|| {
            // SAFETY: event_mutex is held in this closure, so the file stays until it has our
            // reference.
            unsafe {
                for_each_locked(event.dir().array()?, |listed| {
                    if listed.id == event.id() && filter.file.is_none() {
                        bindings::rhist_file_get(listed.file.as_ptr());
                        // INVARIANT: The file has our reference now.
                        filter.file = Some(listed.file);
                        filter.flags =
                            NonNull::new(&raw mut (*listed.file.as_ptr()).flags).ok_or(EINVAL)?;
                    }
                    Ok(())
                })
            }
        })?;
        match filter.file {
            Some(_) => Ok(filter),
            None => Err(ENODEV),
        }
    }

    /// The flags of the file. Any context.
    #[inline(always)]
    fn flags(&self) -> usize {
        // SAFETY: By the type invariant `flags` is valid. The kernel changes the flags atomically.
        unsafe { self.flags.read_volatile() }
    }

    /// Whether tasks are listed. Any context.
    #[inline(always)]
    pub(crate) fn is_set(&self) -> bool {
        self.flags() & bindings::EVENT_FILE_FL_PID_FILTER as usize != 0
    }

    /// Whether the event has a trigger of the kernel, in the tracing directory, that needs the
    /// record of a hit. Any context.
    pub(crate) fn needs_record(&self) -> bool {
        self.flags() & bindings::EVENT_FILE_FL_TRIGGER_COND as usize != 0
    }

    /// Whether hits of the current task are ignored. Any context.
    #[inline(always)]
    pub(crate) fn ignores(&self, preempt: PreemptOff<'_>) -> bool {
        self.is_set() && self.ignores_current(preempt)
    }

    /// Slow path of [`TaskFilter::ignores`], for the rare case that tasks are listed. Out of line.
    #[cold]
    #[inline(never)]
    fn ignores_current(&self, _preempt: PreemptOff<'_>) -> bool {
        self.file.is_some_and(|file| {
            // SAFETY: By the type invariant the file has our reference; and preemption is off.
            unsafe { bindings::rhist_file_ignores_task(file.as_ptr()) }
        })
    }
}

impl Drop for TaskFilter {
    fn drop(&mut self) {
        if let Some(file) = self.file {
            // SAFETY: By the type invariant the file has our reference, which is not used
            // afterwards.
            unsafe { bindings::rhist_file_put(file.as_ptr()) }
        }
    }
}

/// A reference on a user event of rhist.
///
/// # Invariants
///
/// Owns a reference taken by `rhist_user_event_get()`.
struct UserEventRef(*mut bindings::trace_event_call);

impl UserEventRef {
    /// Takes a reference, if it is a user event of rhist.
    ///
    /// # Safety
    ///
    /// `call` must be a registered event, and `event_mutex` held.
    unsafe fn get(call: *mut bindings::trace_event_call) -> Option<Self> {
        // INVARIANT: If it returns true, `rhist_user_event_get()` has taken a reference.
        // SAFETY: The caller holds event_mutex, so `call` stays registered during the call.
        unsafe { bindings::rhist_user_event_get(call) }.then_some(Self(call))
    }
}

impl Drop for UserEventRef {
    fn drop(&mut self) {
        // SAFETY: By the type invariant `self` owns a reference, which is not used afterwards.
        unsafe { bindings::rhist_user_event_put(self.0) }
    }
}

/// A reference on the module of an event, if it has one.
///
/// # Invariants
///
/// The pointer is null, or `self` owns a reference on the module.
struct EventModuleRef(*mut bindings::module);

impl Drop for EventModuleRef {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: By the type invariant `self` owns a reference, which is not used afterwards.
            unsafe { bindings::rhist_module_put(self.0) };
        }
    }
}

/// A pin on an event while it is looked up.
enum EarlyPin {
    EventProbe(EventProbeRef),
    /// The module of another event, and the event.
    Module(EventModuleRef, *mut bindings::trace_event_call),
}

impl EarlyPin {
    /// Pins an event probe, or the module of another event. Takes `event_mutex`. Fails as
    /// [`find_locked`], with `ENOMEM`, and with `EBUSY` while the module is being loaded: if its
    /// init failed, the module and the event would vanish.
    fn new(name: &EventName<'_>, instance: &Arc<Instance>) -> Result<Self> {
        let mut pin = None;
        instance.with_event_mutex(|| {
            // SAFETY: event_mutex is held in this closure, so the event stays registered until it
            // is pinned.
            unsafe {
                let call = find_locked(name)?;
                if (*call).flags & bindings::TRACE_EVENT_FL_EPROBE as ffi::c_int != 0 {
                    to_result(bindings::rhist_event_probe_pin(call))?;
                    // INVARIANT: `rhist_event_probe_pin()` has pinned it.
                    pin = Some(Self::EventProbe(EventProbeRef {
                        call,
                        instance: instance.clone(),
                    }));
                } else {
                    let mut module = ptr::null_mut();
                    to_result(bindings::rhist_event_get_module(call, &mut module))?;
                    // INVARIANT: `rhist_event_get_module()` has referenced the module, or set
                    // `module` to null.
                    pin = Some(Self::Module(EventModuleRef(module), call));
                }
            }
            Ok(())
        })?;
        pin.ok_or(EINVAL)
    }
}

/// A pin on an event probe.
///
/// Neither a reference on such an event nor one on its file keeps it from being removed
/// (`unregister_trace_eprobe()`).
///
/// # Invariants
///
/// Owns a pin taken by `rhist_event_probe_pin()`.
struct EventProbeRef {
    call: *mut bindings::trace_event_call,
    instance: Arc<Instance>,
}

impl Drop for EventProbeRef {
    /// Takes `event_mutex`.
    fn drop(&mut self) {
        self.instance.with_event_mutex_retry(|| {
            // SAFETY: event_mutex is held. By the type invariant `self` owns a pin, which is not
            // used afterwards.
            unsafe { bindings::rhist_event_probe_unpin(self.call) };
            Ok(())
        });
    }
}

/// A probe that does nothing, to pin one of the kernel's user events.
///
/// A reference on such an event does not keep it from being removed, but enabling it does
/// (`user_event_put()`, `destroy_user_event()`). So its programs see the event enabled meanwhile.
///
/// # Invariants
///
/// `file` is from a `KBox`, and registered with the event `file->event_call`.
struct NopProbe {
    file: NonNull<bindings::trace_event_file>,
    instance: Arc<Instance>,
}

/// A [`NopProbe`] that is not registered yet.
struct UnregisteredNopProbe(KBox<bindings::trace_event_file>);

impl UnregisteredNopProbe {
    fn new(instance: &Instance) -> Result<Self> {
        // Soft-disabled and not enabled: some probes test one flag, some the other, and all return.
        let file = bindings::trace_event_file {
            tr: instance.as_ptr(),
            flags: bindings::EVENT_FILE_FL_SOFT_DISABLED as usize,
            ..Default::default()
        };
        Ok(Self(KBox::new(file, GFP_KERNEL)?))
    }

    /// Registers the probe. May sleep.
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
        // SAFETY: `call` is registered, and the caller holds event_mutex. `file` is initialised as
        // far as a probe reads it, and is freed only after it is unregistered.
        let listens = to_result(unsafe { bindings::rhist_event_reg(call, file, true) });
        if let Err(err) = listens {
            // SAFETY: `file` is from `KBox::into_raw` above. Registration failed, so the kernel
            // does not keep it.
            drop(unsafe { KBox::from_raw(file) });
            return Err(err);
        }
        // INVARIANT: `file` is from the box above and was registered.
        Ok(NopProbe {
            file: NonNull::new(file).ok_or(EINVAL)?,
            instance: instance.clone(),
        })
    }
}

impl Drop for NopProbe {
    /// Unregisters the probe. Takes `event_mutex`, then waits for running probes. Task context,
    /// sleeps.
    fn drop(&mut self) {
        let file = self.file.as_ptr();
        self.instance.with_event_mutex_retry(|| {
            // SAFETY: event_mutex is held in this closure. By the type invariant the probe is
            // registered, which keeps the event.
            to_result(unsafe { bindings::rhist_event_reg((*file).event_call, file, false) })
        });
        // SAFETY: By the type invariant `file` is from a box. It is unregistered, and after the
        // wait no probe uses it.
        unsafe {
            bindings::rhist_tracepoint_synchronize_unregister();
            drop(KBox::from_raw(file));
        }
    }
}

// SAFETY: Any task may drop the references, and unregister the probe with event_mutex.
unsafe impl Send for Event {}
// SAFETY: Through a shared reference only the event is read: its class, names, fields and
// tracepoint do not change while it is pinned.
unsafe impl Sync for Event {}

/// A field of an event's record, as the kernel describes it.
pub(crate) struct KernelField<'a> {
    pub(crate) name: &'a CStr,
    pub(crate) type_: &'a CStr,
    /// Offset in the record, in bytes.
    pub(crate) offset: u32,
    /// Size in bytes; 4 for a dynamic field, for the offset and length of its data.
    pub(crate) size: u32,
    pub(crate) signed: bool,
    /// One of `FILTER_*`.
    pub(crate) filter_type: u32,
}

/// The common fields at the beginning of every record (`struct trace_entry`). The kernel's own list
/// of them (`trace_define_common_fields()`) is not exported.
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

    /// Whether it is the event of [`Event::marker`].
    pub(crate) fn is_marker(&self) -> bool {
        self.pin.is_none()
    }

    /// Whether an event of this name exists and can be enabled. Takes `event_mutex`.
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

    /// Whether a hit may wait for user memory of its program before it gets to rhist; the program
    /// can delay it for any time.
    pub(crate) fn may_fault(&self) -> bool {
        // SAFETY: By the type invariant the event stays registered, and so do its class and its
        // tracepoint.
        unsafe { bindings::rhist_event_may_fault(self.call()) }
    }

    /// Whether it is part of the kernel, and so is never removed.
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
        // The kernel adds each field at the head of the list, so go backwards. SAFETY: By the type
        // invariant the event stays registered. Its list of fields is complete before the event can
        // be found, and does not change until it is removed. The strings end in a NUL.
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

/// The identity of an event. Not reused while the event exists.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct EventId(*mut bindings::trace_event_call);

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
    file: NonNull<bindings::trace_event_file>,
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
unsafe fn find_locked(name: &EventName<'_>) -> Result<*mut bindings::trace_event_call> {
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

/// Whether an event of this name exists. `top` is the top instance, which has all events.
///
/// # Safety
///
/// event_mutex must be held.
pub(super) unsafe fn exists_locked(
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
unsafe fn for_each_locked(
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
