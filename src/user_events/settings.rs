// SPDX-License-Identifier: GPL-2.0

//! The module parameters of user events.

use crate::rust::{
    parameters::Parameters,
    tracefs::Access, //
};
use kernel::prelude::*;

/// The settings, read once when the module is loaded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// Owner and mode of `user_events_data`. `/dev/user_events` has the same mode, but not the
    /// owner.
    pub(crate) data: Access,
    /// Owner and mode of `user_events_status`.
    pub(crate) status: Access,
    /// Whether a payload that is too long for a buffer is dropped there, and `write(2)` succeeds.
    pub(super) lossy: bool,
    /// Whether `user_events_status` shows each event's bit in the status page.
    pub(super) status_bits: bool,
}

impl Settings {
    /// Reads the module's parameters.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a mode with bits other than permission bits.
    pub(crate) fn new(given: &Parameters) -> Result<Self> {
        let access = |mode: u16| match mode & !0o777 {
            0 => Ok(Access {
                mode,
                uid: given.user_events_uid,
                gid: given.user_events_gid,
            }),
            _ => Err(EINVAL),
        };
        Ok(Self {
            data: access(given.user_events_data_mode)?,
            status: access(given.user_events_status_mode)?,
            lossy: given.user_events_lossy,
            status_bits: given.user_events_status_bits,
        })
    }
}
