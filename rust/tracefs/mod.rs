// SPDX-License-Identifier: GPL-2.0

//! rhist's directories and files in tracefs.
//!
//! An [`Object`](object::Object) is a directory that mirrors one of the kernel's, a file with the
//! kernel's operations, or a file of rhist. The VFS callbacks are in this folder; they call the
//! [`NodeOps`] of the object for its contents and behavior.

mod attributes;
mod dentry;
mod dir;
mod file;
mod folder;
mod gate;
mod kernel_file;
mod node;
mod object;
mod objects;
mod special;
mod tracing_dir;

use super::bindings;
use kernel::{
    error::to_result,
    prelude::*, //
};

pub(crate) use dentry::{
    CreatedDentry,
    Dentry,
    DentryKind,
    Inode, //
};
pub(super) use gate::wait as wait_for_open_files;
pub(crate) use gate::ModulePin;
pub(crate) use kernel_file::{
    KernelFile,
    UserBuffer, //
};
pub(crate) use node::{
    Access,
    Contents,
    LookedUp,
    NodeOps,
    ObjectType, //
};
pub(crate) use objects::Objects;
pub(crate) use special::{
    Special,
    SpecialFops, //
};
pub(crate) use tracing_dir::{
    EventName,
    TracingDir, //
};

/// Fails with `EPERM` if the kernel is locked down (`LOCKDOWN_TRACEFS`).
pub(crate) fn check_lockdown() -> Result {
    // SAFETY: The function takes no arguments and may be called in task context.
    to_result(unsafe { bindings::rhist_locked_down() })
}
