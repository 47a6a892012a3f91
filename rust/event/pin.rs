// SPDX-License-Identifier: GPL-2.0

//! References that pin an event, of the kind that it needs.

use super::{
    file::EventFileRef,
    list::find_locked,
    synth_ref::SynthEventRef, //
};
use crate::rust::{
    bindings,
    instance::Instance,
    tracefs::EventName, //
};
use core::ptr::{
    self,
    NonNull, //
};
use kernel::{
    error::to_result,
    ffi,
    prelude::*,
    sync::Arc, //
};

/// A reference that pins an event, of the kind that the event needs.
pub(super) enum EventPin {
    File(EventFileRef),
    SynthEvent(SynthEventRef),
    UserEvent(UserEventRef),
    EventProbe(EventProbeRef),
    /// The event of a module, pinned by the module.
    #[expect(dead_code, reason = "the reference on the module is dropped")]
    Module(EventModuleRef, *mut bindings::trace_event_call),
    Probe(NopProbe),
    /// An event of rhist itself, which exists as long as this module: a reference on that would
    /// keep it from being unloaded.
    Own(*mut bindings::trace_event_call),
}

impl EventPin {
    /// Pins an event. Takes `event_mutex`. Fails as [`Event::find`](super::Event::find).
    pub(super) fn new(name: &EventName<'_>, instance: &Arc<Instance>) -> Result<Self> {
        // Pins the event's module, or an event probe, until the event itself is pinned.
        let _module = match EarlyPin::new(name, instance)? {
            EarlyPin::EventProbe(probe) => return Ok(Self::EventProbe(probe)),
            EarlyPin::Own(call) => return Ok(Self::Own(call)),
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

    pub(super) fn call(&self) -> *mut bindings::trace_event_call {
        match self {
            Self::File(file) => file.call(),
            Self::SynthEvent(event) => event.call(),
            Self::UserEvent(event) => event.0,
            Self::EventProbe(probe) => probe.call,
            Self::Module(_, call) | Self::Own(call) => *call,
            // SAFETY: The probe owns its file, whose `event_call` never changes.
            Self::Probe(probe) => unsafe { (*probe.file.as_ptr()).event_call },
        }
    }
}

/// A reference on a user event of rhist.
///
/// # Invariants
///
/// Owns a reference taken by `rhist_user_event_get()`.
pub(super) struct UserEventRef(*mut bindings::trace_event_call);

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
pub(super) struct EventModuleRef(*mut bindings::module);

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
    /// An event of rhist itself.
    Own(*mut bindings::trace_event_call),
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
                } else if bindings::rhist_event_is_own(call) {
                    pin = Some(Self::Own(call));
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
pub(super) struct EventProbeRef {
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
pub(super) struct NopProbe {
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
