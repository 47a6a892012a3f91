// SPDX-License-Identifier: GPL-2.0

//! The user whom the running task acts for.

use super::bindings;

/// Whether a limit for users does not apply to the running task (`capable(CAP_SYS_RESOURCE)`). Task context. To be
/// called only if the limit is exceeded, because security modules may log the answer.
pub(crate) fn may_exceed_limits() -> bool {
    // SAFETY: Only checks the credentials of the running task.
    unsafe { bindings::rhist_may_exceed_limits() }
}

/// Identifies a user (`kuid_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct UserId(u32);

impl UserId {
    /// The user to be charged for what the running task asks for: the real user, or in a user namespace the one who
    /// has made it, as the users in it are as many as that one likes. Task context.
    pub(crate) fn charged() -> Self {
        // SAFETY: Only reads the credentials of the running task.
        Self(unsafe { bindings::rhist_charged_user() })
    }
}
