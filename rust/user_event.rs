// SPDX-License-Identifier: GPL-2.0

//! Trace events whose records come from user space: see `rust/user_event.c`.

use super::bindings;
use super::instance::Instance;
use core::ffi::CStr;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ptr;
use core::ptr::NonNull;
use core::slice;
use kernel::error::to_result;
use kernel::ffi;
use kernel::iov::IovIterSource;
use kernel::prelude::*;
use kernel::sync::Arc;

/// The state that an event has for its owner, and what that does for the event: `rhist_user_event_ops`.
/// Called with event_mutex held unless it says otherwise.
pub(crate) trait UserEventOps: Send + Sync + Sized + 'static {
    /// The event was enabled or disabled somewhere: in how many trace instances it is enabled now, and by how
    /// many users of perf.
    fn changed(event: &Arc<UserEvent<Self>>, instances: u32, perf: u32);

    /// The event is about to be removed, by a command of `dynamic_events` or not. Unless this fails, it is
    /// not used any more.
    fn retire(&self, by_command: bool) -> Result;

    /// Whether the event is in use although it is not enabled.
    fn is_busy(&self) -> bool;

    /// The event was removed by a command of `dynamic_events`.
    fn removed(event: &Arc<UserEvent<Self>>);

    /// Whether such a command is for this event. `declaration` is its text after the name.
    fn matches(&self, system: Option<&[u8]>, name: &[u8], declaration: &[u8]) -> bool;

    /// The fields of the event.
    fn fields(&self) -> impl Iterator<Item = FieldDef<'_>>;

    /// Whether each payload that is long enough is valid. Called by a writer, without event_mutex.
    fn accepts_all(&self) -> bool;

    /// Whether a payload is valid. Called as [`UserEventOps::accepts_all`].
    fn accepts(&self, payload: &[u8]) -> bool;
}

/// A field of an event.
pub(crate) struct FieldDef<'a> {
    pub(crate) type_: &'a CStr,
    pub(crate) name: &'a CStr,
    /// Bytes from the beginning of the record.
    pub(crate) offset: u32,
    /// Bytes.
    pub(crate) size: u32,
    pub(crate) signed: bool,
}

/// The texts of an event for C. Each ends in a NUL, and has no other.
pub(crate) struct Declaration {
    pub(crate) system: &'static CStr,
    pub(crate) name: KVec<u8>,
    pub(crate) print_fmt: KVec<u8>,
    /// As it is listed in `dynamic_events`.
    pub(crate) line: KVec<u8>,
}

/// Carries out commands of `dynamic_events`.
pub(crate) trait DynEventOps: Send + Sync + Sized + 'static {
    /// `u:` and a description. The kernel's lock of such commands is held.
    fn create(self: &Arc<Self>, description: &[u8]) -> Result;
}

/// The event for C.
struct RawUserEvent(NonNull<bindings::rhist_user_event>);

impl Drop for RawUserEvent {
    fn drop(&mut self) {
        // SAFETY: Made by `rhist_user_event_new`, and not visible: a visible event has a
        // reference to what owns this.
        unsafe { bindings::rhist_user_event_free(self.0.as_ptr()) }
    }
}

/// A trace event whose records programs write.
pub(crate) struct UserEvent<S> {
    // First, since it points to the rest.
    raw: RawUserEvent,
    declaration: Declaration,
    /// The types and names of its fields.
    _texts: KVec<KVec<u8>>,
    state: S,
}

// SAFETY: The functions that take `raw` lock for themselves; the rest does not change.
unsafe impl<S: Send> Send for UserEvent<S> {}
// SAFETY: As above.
unsafe impl<S: Sync> Sync for UserEvent<S> {}

/// # Safety
///
/// `owner` must be what [`UserEvent::publish`] gave to C, of an event that is visible, so that it
/// has a reference to itself; that one is only borrowed.
unsafe fn visible<S>(owner: *const ffi::c_void) -> ManuallyDrop<Arc<UserEvent<S>>> {
    // SAFETY: A visible event has a reference to itself, which stays where it is: this one is never dropped.
    ManuallyDrop::new(unsafe { Arc::from_raw(owner.cast()) })
}

/// # Safety
///
/// For `rhist_user_event_ops` of a [`UserEvent`], as all of these.
unsafe extern "C" fn changed<S: UserEventOps>(
    owner: *const ffi::c_void,
    files: ffi::c_uint,
    perf: ffi::c_uint,
) {
    // SAFETY: C calls with the owner of a visible event.
    let event = unsafe { visible(owner) };
    S::changed(&event, files, perf);
}

/// # Safety
///
/// As above.
unsafe extern "C" fn retire<S: UserEventOps>(
    owner: *const ffi::c_void,
    by_command: bool,
) -> ffi::c_int {
    // SAFETY: C calls with the owner of a visible event.
    let event = unsafe { visible::<S>(owner) };
    event
        .state
        .retire(by_command)
        .map_or_else(Error::to_errno, |()| 0)
}

/// # Safety
///
/// As above.
unsafe extern "C" fn busy<S: UserEventOps>(owner: *const ffi::c_void) -> bool {
    // SAFETY: C calls with the owner of a visible event.
    unsafe { visible::<S>(owner) }.state.is_busy()
}

/// # Safety
///
/// As above, and the event is not visible any more.
unsafe extern "C" fn removed<S: UserEventOps>(owner: *const ffi::c_void) {
    // SAFETY: This is the reference of the event to itself, which it does not need any more.
    S::removed(&unsafe { Arc::from_raw(owner.cast()) });
}

/// # Safety
///
/// As above; the strings end in a NUL, but `system` may be null, and `argv` has `argc` of them.
unsafe extern "C" fn matches<S: UserEventOps>(
    owner: *const ffi::c_void,
    system: *const ffi::c_char,
    name: *const ffi::c_char,
    argc: ffi::c_int,
    argv: *mut *const ffi::c_char,
) -> bool {
    // SAFETY: C calls with the owner of a visible event.
    let event = unsafe { visible::<S>(owner) };
    // SAFETY: Each text ends in a NUL.
    let text = |text| unsafe { CStr::from_char_ptr(text) }.to_bytes();
    let system = (!system.is_null()).then(|| text(system));
    let mut declaration = KVec::new();
    for index in 0..argc as usize {
        // SAFETY: As above.
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

/// What C is given for each kind of event.
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
    /// Makes an event that is not registered yet. Fails with `ENOMEM`.
    pub(crate) fn new(mut declaration: Declaration, state: S) -> Result<Arc<Self>> {
        // SAFETY: All texts end in a NUL and live as long as the event: their memory stays where it is
        // when they are moved into it.
        let raw = NonNull::new(unsafe {
            bindings::rhist_user_event_new(
                declaration.system.as_char_ptr(),
                declaration.name.as_mut_ptr().cast(),
                declaration.print_fmt.as_mut_ptr().cast(),
                declaration.line.as_ptr().cast(),
                OpsTable::<S>::OPS,
            )
        });
        let raw = RawUserEvent(raw.ok_or(ENOMEM)?);
        let mut texts = KVec::new();
        for field in state.fields() {
            let (type_, name) = (copy(field.type_)?, copy(field.name)?);
            // SAFETY: As above.
            to_result(unsafe {
                bindings::rhist_user_event_field(
                    raw.0.as_ptr(),
                    type_.as_ptr().cast(),
                    name.as_ptr().cast(),
                    field.offset,
                    field.size,
                    field.signed,
                )
            })?;
            texts.push(type_, GFP_KERNEL_ACCOUNT)?;
            texts.push(name, GFP_KERNEL_ACCOUNT)?;
        }
        let event = Self {
            raw,
            declaration,
            _texts: texts,
            state,
        };
        Ok(Arc::new(event, GFP_KERNEL_ACCOUNT)?)
    }

    /// Makes the event visible. Takes event_mutex.
    ///
    /// # Errors
    ///
    /// `ENODEV` if there is no number left for the type of the event, `EBUSY`, `ENOMEM`.
    pub(crate) fn publish(self: &Arc<Self>, instance: &Instance) -> Result {
        instance.with_event_mutex(|| {
            let owner = Arc::as_ptr(self).cast();
            // SAFETY: event_mutex is held. The event gets a reference to itself.
            to_result(unsafe { bindings::rhist_user_event_add(self.raw.0.as_ptr(), owner) })?;
            core::mem::forget(self.clone());
            Ok(())
        })
    }

    /// Makes the event invisible. Takes event_mutex.
    ///
    /// # Errors
    ///
    /// `EBUSY` if it is enabled, in use, or referenced; `ENOENT` if it is not visible any more.
    pub(crate) fn withdraw(self: &Arc<Self>, instance: &Instance) -> Result {
        // Who waits for it tries often, and should not take event_mutex each time.
        // SAFETY: The event is valid.
        if unsafe { bindings::rhist_user_event_busy(self.raw.0.as_ptr()) } {
            return Err(EBUSY);
        }
        instance.with_event_mutex(|| {
            // SAFETY: event_mutex is held.
            to_result(unsafe { bindings::rhist_user_event_remove(self.raw.0.as_ptr()) })
        })?;
        // SAFETY: The event was visible and is not any more, so this is its reference to itself.
        drop(unsafe { Arc::from_raw(Arc::as_ptr(self)) });
        Ok(())
    }
}

impl<S: UserEventOps> UserEvent<S> {
    /// The name of the trace event.
    pub(crate) fn name(&self) -> &[u8] {
        let name = &self.declaration.name;
        name.strip_suffix(b"\0").unwrap_or_default()
    }

    /// The state.
    pub(crate) fn state(&self) -> &S {
        &self.state
    }

    /// The longest payload, in bytes, that fits the buffers of all who have the event enabled.
    pub(crate) fn limit(&self) -> usize {
        // SAFETY: The event is valid.
        unsafe { bindings::rhist_user_event_limit(self.raw.0.as_ptr()) }
    }

    /// Writes a payload to all who have the event enabled. Task context; does not sleep.
    pub(crate) fn write(&self, payload: &[u8]) {
        let (at, len) = (payload.as_ptr(), payload.len());
        // SAFETY: The payload is valid for its length.
        unsafe { bindings::rhist_user_event_write(self.raw.0.as_ptr(), at.cast(), len) }
    }

    /// Copies a payload from the program straight into a record. False, and nothing was done, if the event is
    /// not enabled exactly once, if the buffer does not take the payload, or if the payload is not all in
    /// memory or not valid. Task context; does not sleep.
    #[inline]
    pub(crate) fn write_direct(&self, source: &mut IovIterSource<'_>) -> bool {
        let accept: bindings::rhist_accept_t = match self.state.accepts_all() {
            true => None,
            false => Some(accept::<S>),
        };
        let state = ptr::from_ref(&self.state).cast();
        // SAFETY: The source is one while we have it. The type is the same one, from another run
        // of bindgen. The state is what `accept` takes.
        unsafe {
            let source = source.as_raw().cast();
            bindings::rhist_user_event_write_direct(self.raw.0.as_ptr(), source, accept, state)
        }
    }
}

/// Copies a text with its NUL.
fn copy(text: &CStr) -> Result<KVec<u8>> {
    let mut copy = KVec::new();
    copy.extend_from_slice(text.to_bytes_with_nul(), GFP_KERNEL_ACCOUNT)?;
    Ok(copy)
}

/// # Safety
///
/// `state` must be an `S`, and the payload be valid for its size.
unsafe extern "C" fn accept<S: UserEventOps>(
    state: *const ffi::c_void,
    payload: *const ffi::c_void,
    size: usize,
) -> bool {
    // SAFETY: The state is an `S`, and the payload has `size` bytes.
    unsafe { (*state.cast::<S>()).accepts(slice::from_raw_parts(payload.cast(), size)) }
}

/// Whether the running task may make events that stay: if it may trace the whole system.
pub(crate) fn may_keep() -> bool {
    // SAFETY: No requirements.
    unsafe { bindings::rhist_perfmon_capable() }
}

/// Commands of `dynamic_events` that are carried out until this is dropped. There is one.
pub(crate) struct DynamicEvents<C> {
    _commands: Arc<C>,
    _ops: KBox<bindings::rhist_user_event_ops>,
    instance: Arc<Instance>,
}

/// # Safety
///
/// `owner` must be the commands of a [`DynamicEvents`], and the text end in a NUL.
unsafe extern "C" fn create<C: DynEventOps>(
    owner: *const ffi::c_void,
    description: *const ffi::c_char,
) -> ffi::c_int {
    // SAFETY: `owner` is that of a [`DynamicEvents`], which has a reference; this one is never dropped.
    let commands = ManuallyDrop::new(unsafe { Arc::<C>::from_raw(owner.cast()) });
    // SAFETY: C gives a text that ends in a NUL.
    let description = unsafe { CStr::from_char_ptr(description) }.to_bytes();
    commands
        .create(description)
        .map_or_else(Error::to_errno, |()| 0)
}

impl<C: DynEventOps> DynamicEvents<C> {
    /// Begins to carry out commands. Takes event_mutex.
    ///
    /// # Errors
    ///
    /// `EBUSY` if there is an event `synthetic:rhist_anchor`, `ENOMEM`.
    pub(crate) fn new(instance: Arc<Instance>, commands: Arc<C>) -> Result<Self> {
        let ops = KBox::new(
            bindings::rhist_user_event_ops {
                create: Some(create::<C>),
                ..Default::default()
            },
            GFP_KERNEL,
        )?;
        // SAFETY: Both stay until `drop`.
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
    /// To be dropped when the module goes, after all events.
    fn drop(&mut self) {
        // SAFETY: Entered by `new`. Each event keeps the module.
        unsafe { bindings::rhist_dynamic_events_leave(self.instance.as_ptr()) }
    }
}
