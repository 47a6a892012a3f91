// SPDX-License-Identifier: GPL-2.0

//! Character devices: `/dev/<name>`.

use super::bindings;
use super::tracefs::wait_for_open_files;
use super::tracefs::SpecialFops;
use core::cell::UnsafeCell;
use core::ffi::CStr;
use kernel::error::to_result;
use kernel::prelude::*;
use kernel::sync::Arc;

/// A device, removed when this is dropped. An open one pins the module.
pub(crate) struct Device {
    misc: Pin<KBox<UnsafeCell<bindings::miscdevice>>>,
    _operations: Arc<SpecialFops>,
}

// SAFETY: The kernel locks what it changes of a registered device, which nobody else looks into.
unsafe impl Send for Device {}
// SAFETY: As above.
unsafe impl Sync for Device {}

impl Device {
    /// Makes the device, with permission bits. Takes the kernel's lock of such devices.
    ///
    /// # Errors
    ///
    /// `EEXIST` if there is one of this name, `EBUSY` if there is no number left, `ENOMEM`.
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
        // SAFETY: Both stay until `drop`.
        to_result(unsafe { bindings::misc_register(misc.get()) })?;
        Ok(Self {
            misc,
            _operations: operations,
        })
    }
}

impl Drop for Device {
    /// To be dropped when the module goes, or has failed to come. Waits for who is on the way in.
    fn drop(&mut self) {
        // SAFETY: Registered by `new`.
        unsafe { bindings::misc_deregister(self.misc.get()) };
        // What was opened has its operations until the very end of its release.
        wait_for_open_files();
    }
}
