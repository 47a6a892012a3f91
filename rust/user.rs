// SPDX-License-Identifier: GPL-2.0

//! The user of the running task.

use super::bindings;

/// Returns whether a limit for users does not apply to the running task
/// (`capable(CAP_SYS_RESOURCE)`). Task context. Call it only if the limit is exceeded, because
/// security modules may log the check.
pub(crate) fn may_exceed_limits() -> bool {
    // SAFETY: Only checks the credentials of the running task.
    unsafe { bindings::rhist_may_exceed_limits() }
}

/// Returns whether the running task may see the mappings of all processes
/// (`capable(CAP_SYS_PTRACE)`). Task context. Security modules may log the check.
pub(crate) fn may_see_mappings() -> bool {
    // SAFETY: Only checks the credentials of the running task.
    unsafe { bindings::rhist_may_see_mappings() }
}

/// Identifies a user (`kuid_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct UserId(u32);

impl UserId {
    /// Returns the user to charge for a request of the running task: its real user; in a user
    /// namespace, the creator of the outermost namespace, who can create any number of users in it.
    /// Task context.
    pub(crate) fn charged() -> Self {
        // SAFETY: Only reads the credentials of the running task.
        Self(unsafe { bindings::rhist_charged_user() })
    }
}
