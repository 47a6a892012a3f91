// SPDX-License-Identifier: GPL-2.0

//! Trace events whose records come from user space: see `rust/user_event.c`.

use super::{
    bindings,
    event,
    instance::Instance, //
};
use core::{
    ffi::CStr,
    marker::PhantomData,
    mem::ManuallyDrop,
    ptr::{
        self,
        NonNull, //
    },
    slice, //
};
use kernel::{
    error::to_result,
    ffi,
    iov::IovIterSource,
    prelude::*,
    sync::Arc, //
};

/// Callbacks of an event, implemented by its state (`rhist_user_event_ops`). Called in task context
/// with event_mutex held, unless documented otherwise.
pub(crate) trait UserEventOps: Send + Sync + Sized + 'static {
    /// Notifies that the event was enabled or disabled: it is now enabled in `instances` trace
    /// instances, and if `perf` is not zero, by perf.
    fn changed(event: &Arc<UserEvent<Self>>, instances: u32, perf: u32);

    /// Allows or refuses the removal of the event, which is `by_command` if requested through
    /// `dynamic_events`. After success the event is removed, so it must not get new users.
    fn retire(&self, by_command: bool) -> Result;

    /// Returns whether the event has users other than the listeners that have enabled it.
    fn is_busy(&self) -> bool;

    /// Notifies that the event was removed through `dynamic_events`.
    fn removed(event: &Arc<UserEvent<Self>>);

    /// Returns whether a delete command of `dynamic_events` is for this event. `declaration` is its
    /// text after the name.
    fn matches(&self, system: Option<&[u8]>, name: &[u8], declaration: &[u8]) -> bool;

    /// The fields of the event, always the same. Called by [`UserEvent::new`], without event_mutex.
    fn fields(&self) -> impl Iterator<Item = FieldDef<'_>>;

    /// Returns whether every payload that is long enough is valid. Called by a writer, without
    /// event_mutex.
    fn accepts_all(&self) -> bool;

    /// Returns whether a payload is valid. Called by a writer, without event_mutex; must not sleep.
    fn accepts(&self, payload: &[u8]) -> bool;
}

/// The definition of a field.
pub(crate) struct FieldDef<'a> {
    pub(crate) type_: &'a CStr,
    pub(crate) name: &'a CStr,
    /// Offset in the record, in bytes.
    pub(crate) offset: u32,
    /// Size in bytes.
    pub(crate) size: u32,
    pub(crate) signed: bool,
}

/// The strings of an event for C. Each ends in a NUL and contains no other.
pub(crate) struct Declaration {
    pub(crate) system: &'static CStr,
    pub(crate) name: KVec<u8>,
    pub(crate) print_fmt: KVec<u8>,
    /// Name and fields, as `dynamic_events` lists them.
    pub(crate) line: KVec<u8>,
}

/// Implements commands of `dynamic_events`.
pub(crate) trait DynEventOps: Send + Sync + Sized + 'static {
    /// Creates an event for a command `u:` with this description. Task context, may sleep; called
    /// with the kernel's dyn_event_ops_mutex held.
    fn create(self: &Arc<Self>, description: &[u8]) -> Result;
}

/// Owns a `struct rhist_user_event`.
struct RawUserEvent(NonNull<bindings::rhist_user_event>);

impl Drop for RawUserEvent {
    fn drop(&mut self) {
        // SAFETY: `rhist_user_event_new` has returned it, and only this frees it. It is not
        // registered: a registered event holds a reference to the `UserEvent` with `self`. Its
        // strings are dropped later.
        unsafe { bindings::rhist_user_event_free(self.0.as_ptr()) }
    }
}

/// A trace event whose records programs write.
///
/// # Invariants
///
/// `raw` points to strings of `declaration` and `state`. It is dropped first, and until then
/// neither of them is moved or borrowed mutably.
pub(crate) struct UserEvent<S> {
    raw: RawUserEvent,
    declaration: Declaration,
    state: S,
}

// SAFETY: `raw` is not bound to a task or CPU, and owned strings may be sent.
unsafe impl<S: Send> Send for UserEvent<S> {}
// SAFETY: `raw` is changed with event_mutex held only, and read by atomic loads and under SRCU
// otherwise. The strings do not change.
unsafe impl<S: Sync> Sync for UserEvent<S> {}

/// Borrows the reference that a registered event holds to itself.
///
/// # Safety
///
/// `owner` must come from [`UserEvent::publish`] of a `UserEvent<S>`, and the event must stay
/// registered while the result is used.
unsafe fn visible<S>(owner: *const ffi::c_void) -> ManuallyDrop<Arc<UserEvent<S>>> {
    // SAFETY: `owner` comes from `Arc::as_ptr`, and a registered event holds a reference to itself.
    // This `Arc` is never dropped, so the count stays as it is.
    ManuallyDrop::new(unsafe { Arc::from_raw(owner.cast()) })
}

/// # Safety
///
/// Must be called by C for a registered `UserEvent<S>` with its owner, with event_mutex held.
unsafe extern "C" fn changed<S: UserEventOps>(
    owner: *const ffi::c_void,
    files: ffi::c_uint,
    perf: ffi::c_uint,
) {
    // SAFETY: The caller guarantees that `owner` belongs to a registered event, which event_mutex
    // keeps registered.
    let event = unsafe { visible(owner) };
    S::changed(&event, files, perf);
}

/// # Safety
///
/// As for [`changed`].
unsafe extern "C" fn retire<S: UserEventOps>(
    owner: *const ffi::c_void,
    by_command: bool,
) -> ffi::c_int {
    // SAFETY: The caller guarantees that `owner` belongs to a registered event, which event_mutex
    // keeps registered.
    let event = unsafe { visible::<S>(owner) };
    event
        .state
        .retire(by_command)
        .map_or_else(Error::to_errno, |()| 0)
}

/// # Safety
///
/// As for [`changed`].
unsafe extern "C" fn busy<S: UserEventOps>(owner: *const ffi::c_void) -> bool {
    // SAFETY: The caller guarantees that `owner` belongs to a registered event, which event_mutex
    // keeps registered.
    unsafe { visible::<S>(owner) }.state.is_busy()
}

/// Puts the reference that a registered event holds to itself.
///
/// # Safety
///
/// Must be called by C with the owner of a `UserEvent<S>` that it has just unregistered, as the
/// last callback for it.
unsafe extern "C" fn removed<S: UserEventOps>(owner: *const ffi::c_void) {
    // SAFETY: `publish` has forgotten a reference to `owner`. The event is not registered any more,
    // so nothing else uses or puts that reference.
    S::removed(&unsafe { Arc::from_raw(owner.cast()) });
}

/// # Safety
///
/// As for [`changed`]. `name` and the `argc` elements of `argv` must be strings that end in a NUL,
/// and `system` such a string or null.
unsafe extern "C" fn matches<S: UserEventOps>(
    owner: *const ffi::c_void,
    system: *const ffi::c_char,
    name: *const ffi::c_char,
    argc: ffi::c_int,
    argv: *mut *const ffi::c_char,
) -> bool {
    // SAFETY: The caller guarantees that `owner` belongs to a registered event, which event_mutex
    // keeps registered.
    let event = unsafe { visible::<S>(owner) };
    // SAFETY: Only called for `name`, a `system` that is not null, and elements of `argv`: each
    // ends in a NUL.
    let text = |text| unsafe { CStr::from_char_ptr(text) }.to_bytes();
    let system = (!system.is_null()).then(|| text(system));
    let mut declaration = KVec::new();
    for index in 0..argc as usize {
        // SAFETY: `argv` has `argc` elements, and `index` is less.
        let word = text(unsafe { *argv.add(index) });
        let added = declaration.extend_from_slice(word, GFP_KERNEL);
        if added
            .and_then(|()| declaration.push(b' ', GFP_KERNEL))
            .is_err()
        {
            return false;
        }
    }
    event.state.matches(system, text(name), &declaration)
}

/// The callbacks for C, for each type of state.
struct OpsTable<S>(PhantomData<S>);

impl<S: UserEventOps> OpsTable<S> {
    const OPS: &'static bindings::rhist_user_event_ops = &bindings::rhist_user_event_ops {
        create: None,
        changed: Some(changed::<S>),
        retire: Some(retire::<S>),
        busy: Some(busy::<S>),
        removed: Some(removed::<S>),
        matches: Some(matches::<S>),
    };
}

impl<S: UserEventOps> UserEvent<S> {
    /// Allocates an event, which is not registered yet. May sleep. Fails with `ENOMEM`.
    pub(crate) fn new(mut declaration: Declaration, state: S) -> Result<Arc<Self>> {
        let fields = state.fields().count() as u32;
        // SAFETY: The strings end in a NUL. They are moved into the event with `raw`, which does
        // not move their contents, and dropped after it; `OPS` is static.
        let raw = NonNull::new(unsafe {
            bindings::rhist_user_event_new(
                declaration.system.as_char_ptr(),
                declaration.name.as_mut_ptr().cast(),
                declaration.print_fmt.as_mut_ptr().cast(),
                declaration.line.as_ptr().cast(),
                fields,
                OpsTable::<S>::OPS,
            )
        });
        let raw = RawUserEvent(raw.ok_or(ENOMEM)?);
        // INVARIANT: An `Arc` does not move its contents, and nothing below borrows them mutably.
        let event = Arc::new(
            Self {
                raw,
                declaration,
                state,
            },
            GFP_KERNEL_ACCOUNT,
        )?;
        for field in event.state.fields() {
            // SAFETY: `raw` is not registered yet. Both strings end in a NUL, and are borrowed from
            // `state`, so by the type invariant they are valid as long as `raw`.
            unsafe {
                bindings::rhist_user_event_field(
                    event.raw.0.as_ptr(),
                    field.type_.as_char_ptr(),
                    field.name.as_char_ptr(),
                    field.offset,
                    field.size,
                    field.signed,
                )
            }
        }
        Ok(event)
    }

    /// Registers the event, which then holds a reference to itself. Takes event_mutex.
    ///
    /// # Errors
    ///
    /// `EEXIST` if it is registered already, or the kernel's own user events have one of this name;
    /// `ENODEV` if all event type numbers are in use; `EBUSY` if event_mutex could not be taken
    /// (see [`Instance::with_event_mutex`]); `ENOMEM`.
    pub(crate) fn publish(self: &Arc<Self>, instance: &Instance) -> Result {
        let top = match cfg!(CONFIG_USER_EVENTS) {
            true => Some(event::top_array()?),
            false => None,
        };
        instance.with_event_mutex(|| {
            let name = CStr::from_bytes_with_nul(&self.declaration.name).map_err(|_| EINVAL)?;
            let system = self.declaration.system;
            // SAFETY: event_mutex is held in this closure.
            let exists = |top| unsafe { event::exists_locked(top, system, name) };
            // The directories of both would have one path, which leads to the older one.
            if top.is_some_and(exists) {
                return Err(EEXIST);
            }
            let owner = Arc::as_ptr(self).cast();
            // SAFETY: event_mutex is held in this closure. `owner` is valid while the event is
            // registered: the reference that is forgotten below is put only after the event was
            // unregistered.
            to_result(unsafe { bindings::rhist_user_event_add(self.raw.0.as_ptr(), owner) })?;
            core::mem::forget(self.clone());
            Ok(())
        })
    }

    /// Unregisters the event and puts its reference to itself. Takes event_mutex.
    ///
    /// # Errors
    ///
    /// `EBUSY` if it is enabled, used or referenced, or event_mutex could not be taken; `ENOENT` if
    /// it is not registered; the errors of [`UserEventOps::retire`].
    pub(crate) fn withdraw(self: &Arc<Self>, instance: &Instance) -> Result {
        // Tested first without event_mutex, because a caller that polls would take it each time.
        // SAFETY: `self` owns `raw`, whose counts are read atomically.
        if unsafe { bindings::rhist_user_event_busy(self.raw.0.as_ptr()) } {
            return Err(EBUSY);
        }
        instance.with_event_mutex(|| {
            // SAFETY: event_mutex is held in this closure, and `self` owns `raw`.
            to_result(unsafe { bindings::rhist_user_event_remove(self.raw.0.as_ptr()) })
        })?;
        // SAFETY: The event was registered, so `publish` has forgotten a reference. It is
        // unregistered now, so that C does not use this reference any more, and `removed` is not
        // called for it.
        drop(unsafe { Arc::from_raw(Arc::as_ptr(self)) });
        Ok(())
    }
}

impl<S: UserEventOps> UserEvent<S> {
    /// Returns whether the event, which was removed, has to be kept because a ring buffer may have
    /// records of it. Its records are printed by it; without it, they would be printed as records
    /// of the next event that gets its type number.
    pub(crate) fn is_held(&self) -> bool {
        // SAFETY: `self` owns `raw`, and a list of one item is read atomically.
        unsafe { bindings::rhist_user_event_held(self.raw.0.as_ptr()) }
    }

    /// The name of the trace event, without the NUL.
    pub(crate) fn name(&self) -> &[u8] {
        let name = &self.declaration.name;
        name.strip_suffix(b"\0").unwrap_or_default()
    }

    /// The state that was given to [`UserEvent::new`].
    pub(crate) fn state(&self) -> &S {
        &self.state
    }

    /// The size in bytes of the largest payload that fits all buffers for which the event is
    /// enabled now.
    pub(crate) fn limit(&self) -> usize {
        // SAFETY: `self` owns `raw`. The probes are read under SRCU.
        unsafe { bindings::rhist_user_event_limit(self.raw.0.as_ptr()) }
    }

    /// Writes a payload to all buffers for which the event is enabled. Task context; does not
    /// sleep.
    pub(crate) fn write(&self, payload: &[u8]) {
        let (at, len) = (payload.as_ptr(), payload.len());
        // SAFETY: `self` owns `raw`, and `at` is valid for reads of `len` bytes.
        unsafe { bindings::rhist_user_event_write(self.raw.0.as_ptr(), at.cast(), len) }
    }

    /// Copies a payload from user memory directly into a record. Returns false, with nothing
    /// written, no trigger called and `source` unchanged, if the event is not enabled exactly once,
    /// if it has a trigger that reads no record, if the buffer does not take the payload, or if the
    /// payload is not all in memory or not valid. Task context; does not sleep.
    #[inline]
    pub(crate) fn write_direct(&self, source: &mut IovIterSource<'_>) -> bool {
        let accept: bindings::rhist_accept_t = match self.state.accepts_all() {
            true => None,
            false => Some(accept::<S>),
        };
        let state = ptr::from_ref(&self.state).cast();
        // SAFETY: `self` owns `raw`. `source` is borrowed mutably, and the cast is between two
        // bindings of `struct iov_iter`. `state` points to the `S` that `accept::<S>` expects, and
        // outlives the call.
        unsafe {
            let source = source.as_raw().cast();
            bindings::rhist_user_event_write_direct(self.raw.0.as_ptr(), source, accept, state)
        }
    }
}

/// # Safety
///
/// `state` must point to an `S`, and `payload` be valid for reads of `size` bytes that do not
/// change.
unsafe extern "C" fn accept<S: UserEventOps>(
    state: *const ffi::c_void,
    payload: *const ffi::c_void,
    size: usize,
) -> bool {
    // SAFETY: `state` comes from `write_direct`, which passes an `S`. `payload` is the part of a
    // reserved record after its header, of `size` bytes, and nothing else writes to a reserved
    // record.
    unsafe { (*state.cast::<S>()).accepts(slice::from_raw_parts(payload.cast(), size)) }
}

/// Prepares for events to be registered. Fails with `ENODEV`. Takes event_mutex.
pub(crate) fn init() -> Result {
    // SAFETY: The top instance is never removed. No event is registered yet.
    unsafe { bindings::rhist_user_events_init(event::top_array()?.as_ptr()) }
    Ok(())
}

/// Looks for records of removed events, after which [`UserEvent::is_held`] may be false. May sleep;
/// takes event_mutex.
///
/// # Errors
///
/// If event_mutex could not be taken. Then nothing has changed.
pub(crate) fn look_for_records(instance: &Instance) -> Result {
    instance.with_event_mutex(|| {
        // SAFETY: event_mutex is held in this closure.
        unsafe { bindings::rhist_user_events_look() };
        Ok(())
    })
}

/// Empties the ring buffers that may have records of removed events. Takes event_mutex; sleeps.
pub(crate) fn remove_records(instance: &Instance) {
    instance.with_event_mutex_retry(|| {
        // SAFETY: event_mutex is held in this closure.
        unsafe { bindings::rhist_user_events_empty() };
        Ok(())
    });
}

/// Returns whether the running task may register events that are kept when unused
/// (`perfmon_capable()`).
pub(crate) fn may_keep() -> bool {
    // SAFETY: Only checks the credentials of the running task.
    unsafe { bindings::rhist_perfmon_capable() }
}

/// Registration for `u:` commands of `dynamic_events`, until this is dropped. At most one exists.
pub(crate) struct DynamicEvents<C> {
    _commands: Arc<C>,
    _ops: KBox<bindings::rhist_user_event_ops>,
    instance: Arc<Instance>,
}

/// # Safety
///
/// `owner` must be the pointer that an existing [`DynamicEvents<C>`] has registered, and
/// `description` a string that ends in a NUL.
unsafe extern "C" fn create<C: DynEventOps>(
    owner: *const ffi::c_void,
    description: *const ffi::c_char,
) -> ffi::c_int {
    // SAFETY: The `DynamicEvents` holds a reference to `owner` until it has unregistered. This
    // `Arc` is never dropped, so the count is left as it is.
    let commands = ManuallyDrop::new(unsafe { Arc::<C>::from_raw(owner.cast()) });
    // SAFETY: `dynamic_create()` passes the rest of its command, which ends in a NUL.
    let description = unsafe { CStr::from_char_ptr(description) }.to_bytes();
    commands
        .create(description)
        .map_or_else(Error::to_errno, |()| 0)
}

impl<C: DynEventOps> DynamicEvents<C> {
    /// Registers `commands`. Does nothing if the kernel has user events itself, or lacks kprobe
    /// events. May sleep; takes event_mutex.
    ///
    /// # Errors
    ///
    /// `EBUSY` if another [`DynamicEvents`] exists, or event_mutex could not be taken; `EEXIST` if
    /// a probe of another kind is called `kprobes:rhist_anchor`; `ENOMEM`.
    pub(crate) fn new(instance: Arc<Instance>, commands: Arc<C>) -> Result<Self> {
        let ops = KBox::new(
            bindings::rhist_user_event_ops {
                create: Some(create::<C>),
                ..Default::default()
            },
            GFP_KERNEL,
        )?;
        // SAFETY: `ops` and `commands` are moved into the result, and so valid until `drop`
        // unregisters them. If this fails, C does not keep the pointers.
        to_result(unsafe {
            let owner = Arc::as_ptr(&commands).cast();
            bindings::rhist_dynamic_events_enter(instance.as_ptr(), &*ops, owner)
        })?;
        Ok(Self {
            _commands: commands,
            _ops: ops,
            instance,
        })
    }
}

impl<C> Drop for DynamicEvents<C> {
    /// Unregisters the commands. Only dropped while the module is unloaded, when no event is left.
    /// Sleeps; takes dyn_event_ops_mutex and event_mutex.
    fn drop(&mut self) {
        // SAFETY: `new` has registered them. No event is registered any more, as each pins the
        // module.
        unsafe { bindings::rhist_dynamic_events_leave(self.instance.as_ptr()) }
    }
}
