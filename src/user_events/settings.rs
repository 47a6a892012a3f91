// SPDX-License-Identifier: GPL-2.0

//! The module parameters of user events.

use crate::ftrace::tracefs::Access;
use kernel::prelude::*;

/// The settings, fixed when the module is loaded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// Who may open `user_events_data`, and `/dev/user_events` as far as that has permission bits.
    pub(crate) data: Access,
    /// Who may open `user_events_status`.
    pub(crate) status: Access,
    /// A payload that does not fit a buffer is lost for that buffer, and `write(2)` does not fail.
    pub(super) lossy: bool,
    /// `user_events_status` shows each event's bit in the status page.
    pub(super) status_bits: bool,
}

impl Settings {
    /// Reads the parameters.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a mode that has other bits than those of permissions.
    pub(crate) fn new() -> Result<Self> {
        use crate::module_parameters::*;

        let access = |mode: u16| {
            let (uid, gid) = (user_events_uid.value(), user_events_gid.value());
            match mode & !0o777 {
                0 => Ok(Access { mode, uid, gid }),
                _ => Err(EINVAL),
            }
        };
        Ok(Self {
            data: access(user_events_data_mode.value())?,
            status: access(user_events_status_mode.value())?,
            lossy: user_events_lossy.value(),
            status_bits: user_events_status_bits.value(),
        })
    }
}
