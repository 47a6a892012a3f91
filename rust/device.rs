// SPDX-License-Identifier: GPL-2.0

//! Character devices: `/dev/<name>`.

use super::{
    bindings,
    tracefs::{
        wait_for_open_files,
        SpecialFops, //
    },
};
use core::{
    cell::UnsafeCell,
    ffi::CStr, //
};
use kernel::{
    error::to_result,
    prelude::*,
    sync::Arc, //
};

/// A registered misc device, removed when this is dropped. An open file of it pins the module.
///
/// # Invariants
///
/// `misc` is registered, and its operations are in `_operations`.
pub(crate) struct Device {
    misc: Pin<KBox<UnsafeCell<bindings::miscdevice>>>,
    _operations: Arc<SpecialFops>,
}

// SAFETY: Any task may deregister the device. The kernel changes `misc` with `misc_mtx` held.
unsafe impl Send for Device {}
// SAFETY: `Device` has no methods that take a shared reference.
unsafe impl Sync for Device {}

impl Device {
    /// Registers the device `name` with the permission bits `mode`. Takes `misc_mtx`; sleeps.
    ///
    /// # Errors
    ///
    /// `EEXIST` if a device of this name exists, `EBUSY` if all minor numbers are taken, `ENOMEM`.
    pub(crate) fn new(
        name: &'static CStr,
        mode: u16,
        operations: Arc<SpecialFops>,
    ) -> Result<Self> {
        let misc = KBox::pin(
            UnsafeCell::new(bindings::miscdevice {
                minor: bindings::RHIST_MISC_DYNAMIC_MINOR,
                name: name.as_char_ptr(),
                fops: operations.fops(),
                mode,
                ..Default::default()
            }),
            GFP_KERNEL,
        )?;
        // SAFETY: `misc` is pinned. It and the operations stay valid until `drop` has deregistered
        // the device.
        to_result(unsafe { bindings::misc_register(misc.get()) })?;
        // INVARIANT: The device was registered with the `fops` of `operations`.
        Ok(Self {
            misc,
            _operations: operations,
        })
    }
}

impl Drop for Device {
    /// Removes the device, then waits until no file of rhist is open. Drop it only during unload or
    /// when init fails. Takes `misc_mtx`; sleeps.
    fn drop(&mut self) {
        // SAFETY: By the type invariant the device is registered.
        unsafe { bindings::misc_deregister(self.misc.get()) };
        // An open file uses `_operations` until the end of its release.
        wait_for_open_files();
    }
}
