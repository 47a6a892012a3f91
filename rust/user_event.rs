// SPDX-License-Identifier: GPL-2.0

//! Trace events whose records come from user space: see `rust/user_event.c`.

use super::bindings;
use super::instance::Instance;
use crate::user_events::field::Fields;
use core::ffi::CStr;
use core::ptr::NonNull;
use kernel::error::to_result;
use kernel::ffi;
use kernel::prelude::*;
use kernel::sync::Arc;

/// Is told who listens to an event.
pub(crate) trait Listener: Send + Sync + 'static {
    /// The number of listeners is another: trace instances, and whether perf is one. Called with
    /// event_mutex held.
    fn changed(event: &Arc<UserEvent<Self>>, instances: u32, perf: u32)
    where
        Self: Sized;
}

/// The event as C has it.
struct Raw(NonNull<bindings::rhist_user_event>);

impl Drop for Raw {
    fn drop(&mut self) {
        // SAFETY: Made by `rhist_user_event_new`, and not visible: a visible event has a
        // reference to what owns this.
        unsafe { bindings::rhist_user_event_free(self.0.as_ptr()) }
    }
}

/// A trace event, and what is told of it.
pub(crate) struct UserEvent<L> {
    // First, since it points to the rest.
    raw: Raw,
    name: KVec<u8>,
    fields: Fields,
    _print_fmt: KVec<u8>,
    listener: L,
}

// SAFETY: The functions that take `raw` lock for themselves; the rest does not change.
unsafe impl<L: Send> Send for UserEvent<L> {}
// SAFETY: As above.
unsafe impl<L: Sync> Sync for UserEvent<L> {}

/// # Safety
///
/// `owner` must be what [`UserEvent::publish`] gave to C.
unsafe extern "C" fn changed<L: Listener>(
    owner: *const ffi::c_void,
    files: ffi::c_uint,
    perf: ffi::c_uint,
) {
    // SAFETY: By the contract; the event is visible, so it has a reference to itself, which is
    // only borrowed here.
    let event = core::mem::ManuallyDrop::new(unsafe { Arc::from_raw(owner.cast()) });
    L::changed(&event, files, perf);
}

impl<L: Listener> UserEvent<L> {
    /// Makes an event that nobody sees yet. `name` ends in a NUL and has no other.
    pub(crate) fn new(
        system: &'static CStr,
        mut name: KVec<u8>,
        fields: Fields,
        listener: L,
    ) -> Result<Arc<Self>> {
        let mut print_fmt = fields.print_fmt()?;
        // SAFETY: All strings end in a NUL and live as long as the event: their memory stays where
        // it is when they are moved into it.
        let raw = NonNull::new(unsafe {
            bindings::rhist_user_event_new(
                system.as_char_ptr(),
                name.as_mut_ptr().cast(),
                print_fmt.as_mut_ptr().cast(),
                Some(changed::<L>),
            )
        });
        let raw = Raw(raw.ok_or(ENOMEM)?);
        for field in fields.iter() {
            // SAFETY: As above.
            to_result(unsafe {
                bindings::rhist_user_event_field(
                    raw.0.as_ptr(),
                    field.type_().as_char_ptr(),
                    field.name().as_char_ptr(),
                    field.offset,
                    field.size,
                    field.is_signed(),
                )
            })?;
        }
        let event = Self {
            raw,
            name,
            fields,
            _print_fmt: print_fmt,
            listener,
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
    /// `EBUSY` if anybody listens to it or has a reference on it.
    pub(crate) fn withdraw(self: &Arc<Self>, instance: &Instance) -> Result {
        instance.with_event_mutex(|| {
            // SAFETY: event_mutex is held.
            to_result(unsafe { bindings::rhist_user_event_remove(self.raw.0.as_ptr()) })
        })?;
        // SAFETY: The event was visible and is not any more, so this is its reference to itself.
        drop(unsafe { Arc::from_raw(Arc::as_ptr(self)) });
        Ok(())
    }
}

impl<L> UserEvent<L> {
    /// The name that everybody sees.
    pub(crate) fn name(&self) -> &[u8] {
        self.name.strip_suffix(b"\0").unwrap_or_default()
    }

    /// The fields.
    pub(crate) fn fields(&self) -> &Fields {
        &self.fields
    }

    /// Who is told of listeners.
    pub(crate) fn listener(&self) -> &L {
        &self.listener
    }

    /// Bytes of payload that everybody who listens can take.
    pub(crate) fn limit(&self) -> usize {
        // SAFETY: The event is valid.
        unsafe { bindings::rhist_user_event_limit(self.raw.0.as_ptr()) }
    }

    /// Gives a payload to everybody who listens; false if nobody does. Task context; does not
    /// sleep.
    pub(crate) fn write(&self, payload: &[u8]) -> bool {
        let (at, len) = (payload.as_ptr(), payload.len());
        // SAFETY: The payload is valid for its length.
        unsafe { bindings::rhist_user_event_write(self.raw.0.as_ptr(), at.cast(), len) }
    }
}

/// May the running task make events that stay? Those who may trace the whole system may.
pub(crate) fn may_keep() -> bool {
    // SAFETY: No requirements.
    unsafe { bindings::rhist_perfmon_capable() }
}
