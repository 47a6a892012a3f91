// SPDX-License-Identifier: GPL-2.0

//! The id of this boot of the kernel.
//!
//! C source: `drivers/char/random.c`, which offers it only as a file in `/proc/sys`.

use super::bindings;

/// The id of a boot, a UUID as text.
pub(crate) type BootId = [u8; 36];

/// Reads the boot id. `None` if the running task, which loads the module, cannot read
/// `/proc/sys/kernel/random/boot_id`, or something else is mounted there. Task context, may sleep.
pub(crate) fn boot_id() -> Option<BootId> {
    let mut id: BootId = [0; 36];
    // SAFETY: `id` is valid for its length. The caller is in task context and may sleep.
    let len = unsafe { bindings::rhist_read_boot_id(id.as_mut_ptr().cast(), id.len()) };
    let is_digit = |(at, byte): (usize, &u8)| match at {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    let is_id = usize::try_from(len) == Ok(id.len()) && id.iter().enumerate().all(is_digit);
    is_id.then_some(id)
}
