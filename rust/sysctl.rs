// SPDX-License-Identifier: GPL-2.0

//! Numbers that an administrator sets in `/proc/sys/kernel`.

use super::bindings;
use core::ffi::CStr;
use core::ptr::NonNull;
use kernel::prelude::*;
use kernel::sync::atomic::Atomic;
use kernel::sync::atomic::Relaxed;

/// The table entry and its value, pinned while registered.
struct SysctlEntry {
    table: bindings::ctl_table,
    value: Atomic<u32>,
}

/// A number of 32 bits without a sign, which everybody may read and root may set, until this is
/// dropped.
pub(crate) struct Sysctl {
    header: NonNull<bindings::ctl_table_header>,
    entry: Pin<KBox<SysctlEntry>>,
}

// SAFETY: The table does not change, and the kernel locks what the header is of.
unsafe impl Send for Sysctl {}
// SAFETY: As above; the value is an atomic one.
unsafe impl Sync for Sysctl {}

impl Sysctl {
    /// Registers the sysctl with an initial value.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, also if there is one of this name.
    pub(crate) fn new(name: &'static CStr, value: u32) -> Result<Self> {
        let mut entry = KBox::new(
            SysctlEntry {
                table: bindings::ctl_table {
                    procname: name.as_char_ptr(),
                    maxlen: size_of::<u32>() as i32,
                    mode: 0o644,
                    proc_handler: Some(bindings::proc_douintvec),
                    ..Default::default()
                },
                value: Atomic::new(value),
            },
            GFP_KERNEL,
        )?;
        entry.table.data = entry.value.as_ptr().cast();
        // SAFETY: The path is a string; the box with the table and the value stays until `drop`.
        let header = unsafe {
            bindings::register_sysctl_sz(c"kernel".as_char_ptr(), &raw const entry.table, 1)
        };
        Ok(Self {
            header: NonNull::new(header).ok_or(ENOMEM)?,
            entry: KBox::into_pin(entry),
        })
    }

    /// The current value.
    pub(crate) fn value(&self) -> u32 {
        self.entry.value.load(Relaxed)
    }
}

impl Drop for Sysctl {
    /// Waits for who reads or sets it.
    fn drop(&mut self) {
        // SAFETY: Registered by `new`.
        unsafe { bindings::unregister_sysctl_table(self.header.as_ptr()) }
    }
}
