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
mod gate;
mod kernel_file;
mod object;
mod special;

use super::bindings;
use core::{
    ffi::CStr,
    ptr::NonNull, //
};
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
pub(crate) use object::{
    Contents,
    LookedUp,
    NodeOps,
    ObjectType,
    Objects, //
};
pub(crate) use special::{
    Special,
    SpecialFops, //
};

/// Fails with `EPERM` if the kernel is locked down (`LOCKDOWN_TRACEFS`).
pub(crate) fn check_lockdown() -> Result {
    // SAFETY: The function takes no arguments and may be called in task context.
    to_result(unsafe { bindings::rhist_locked_down() })
}

/// A tracing directory: the top one or an instance's.
///
/// It does not pin the instance. A new instance with the name of a removed one has a different
/// directory.
#[derive(Clone)]
pub(crate) struct TracingDir(Dentry);

impl TracingDir {
    /// Wraps the dentry of a tracing directory.
    pub(crate) fn new(dir: Dentry) -> Self {
        Self(dir)
    }

    /// Returns whether this is the directory of the top instance.
    pub(crate) fn is_top(&self) -> bool {
        self.0.is_root()
    }

    /// The name of the directory, and so of the instance.
    pub(crate) fn name(&self) -> &CStr {
        self.0.name()
    }

    /// Returns whether the instance has been removed.
    pub(crate) fn removed(&self) -> bool {
        self.0.removed()
    }

    /// Makes rmdir(2) of the directory fail with `EBUSY` while it is busy. Calls do not nest. Does
    /// nothing for the top directory and the directory of rhist's own instance, which cannot be
    /// removed anyway. Task context; takes `i_rwsem` of the directory, so it must not be held.
    ///
    /// Does not stop a removal that has begun already: see [`TracingDir::removed`].
    pub(crate) fn set_busy(&self, busy: bool) {
        if self.is_top() || self.name() == c"rhist" {
            return;
        }
        // SAFETY: `self` holds a reference on the directory.
        unsafe { bindings::rhist_set_busy(self.0.as_ptr(), busy) }
    }

    /// Returns the instance.
    ///
    /// # Errors
    ///
    /// `ENODEV` if it has been removed, or has no `trace_marker` because its buffer is from an
    /// earlier boot; `ENOMEM`.
    ///
    /// # Safety
    ///
    /// event_mutex must be held as long as the result is used. `instance_rmdir()` removes the files
    /// and then the instance, both with event_mutex held.
    pub(crate) unsafe fn array(&self) -> Result<NonNull<bindings::trace_array>> {
        // Any file that lives as long as the instance would do.
        let file = match self.0.lookup(b"trace_marker") {
            Err(error) if error == ENOENT => Err(ENODEV),
            file => file,
        }?;
        if self.removed() {
            return Err(ENODEV);
        }
        // SAFETY: `file` holds a reference on the dentry, and thus on the inode. `i_private` of
        // `trace_marker` is the instance.
        let array = unsafe { bindings::rhist_inode_private(file.inode()) };
        NonNull::new(array.cast()).ok_or(ENODEV)
    }
}

impl PartialEq for TracingDir {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_ptr() == other.0.as_ptr()
    }
}

/// System and name of an event in a tracing directory.
#[derive(Clone, Copy)]
pub(crate) struct EventName<'a> {
    pub(crate) dir: &'a TracingDir,
    pub(crate) system: &'a CStr,
    pub(crate) event: &'a CStr,
}

/// Permissions and ownership of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    /// Permission bits.
    pub(crate) mode: u16,
    /// User ID of the owner, or [`Access::SAME`].
    pub(crate) uid: u32,
    /// Group ID, or [`Access::SAME`].
    pub(crate) gid: u32,
}

impl Access {
    /// Keeps the ID of the kernel's directory.
    pub(crate) const SAME: u32 = u32::MAX;
}
