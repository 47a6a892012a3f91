// SPDX-License-Identifier: GPL-2.0

//! Numbers in `/proc/sys/kernel`.

use super::bindings;
use core::{
    ffi::CStr,
    ptr::NonNull, //
};
use kernel::{
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
};

/// The table entry and its value, pinned while registered.
struct SysctlEntry {
    table: bindings::ctl_table,
    value: Atomic<u32>,
}

/// A `u32` in `/proc/sys/kernel` with mode 0644, removed when this is dropped.
///
/// # Invariants
///
/// `header` is the registration of `entry.table`, and `entry.table.data` points to `entry.value`.
pub(crate) struct Sysctl {
    header: NonNull<bindings::ctl_table_header>,
    entry: Pin<KBox<SysctlEntry>>,
}

// SAFETY: Any task may unregister the table, which the kernel locks for.
unsafe impl Send for Sysctl {}
// SAFETY: A shared reference only allows reading the value, which is atomic.
unsafe impl Sync for Sysctl {}

impl Sysctl {
    /// Registers the sysctl with an initial value.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, also if the name is taken.
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
        // SAFETY: The path ends in a NUL. Table and value are in a box, which is freed only after
        // `drop` has unregistered the table, and `procname` is static.
        let header = unsafe {
            // 6.12 declares the table as writable, but only reads it.
            bindings::register_sysctl_sz(c"kernel".as_char_ptr(), &raw mut entry.table, 1)
        };
        // INVARIANT: `data` was set above, and `header` is not null, so the table is registered.
        Ok(Self {
            header: NonNull::new(header).ok_or(ENOMEM)?,
            entry: KBox::into_pin(entry),
        })
    }

    /// Returns the current value.
    pub(crate) fn value(&self) -> u32 {
        self.entry.value.load(Relaxed)
    }
}

impl Drop for Sysctl {
    /// Removes the sysctl, and waits for tasks that are reading or setting it.
    fn drop(&mut self) {
        // SAFETY: By the type invariant `header` is a registration, which is not used afterwards.
        unsafe { bindings::unregister_sysctl_table(self.header.as_ptr()) }
    }
}
