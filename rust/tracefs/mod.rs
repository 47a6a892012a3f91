// SPDX-License-Identifier: GPL-2.0

//! rhist's directories and files in tracefs.
//!
//! An [`Object`](object::Object) is for a dentry of the kernel: a directory that mirrors the kernel's, a
//! file with the kernel's operations, or a file of rhist. The callbacks of the VFS are here; what an
//! object shows and does is up to its [`NodeOps`].

mod dentry;
mod dir;
mod file;
mod gate;
mod kernel_file;
mod object;
mod special;

use super::bindings;
use core::ffi::CStr;
use core::ptr::NonNull;
use kernel::error::to_result;
use kernel::prelude::*;

pub(crate) use dentry::CreatedDentry;
pub(crate) use dentry::Dentry;
pub(crate) use dentry::DentryKind;
pub(crate) use dentry::Inode;
pub(super) use gate::wait as wait_for_open_files;
pub(crate) use gate::ModulePin;
pub(crate) use kernel_file::KernelFile;
pub(crate) use kernel_file::UserBuffer;
pub(crate) use object::NodeOps;
pub(crate) use object::ObjectType;
pub(crate) use object::Objects;
pub(crate) use special::Special;
pub(crate) use special::SpecialFops;

/// Fails with `EPERM` if the kernel is locked down (`LOCKDOWN_TRACEFS`).
pub(crate) fn check_lockdown() -> Result {
    // SAFETY: No requirements.
    to_result(unsafe { bindings::rhist_locked_down() })
}

/// A tracing directory: the top one or that of an instance.
///
/// It does not keep an instance from being removed. One that is made anew by the same name has
/// another directory.
#[derive(Clone)]
pub(crate) struct TracingDir(Dentry);

impl TracingDir {
    /// The tracing directory at a dentry, which has to be that of one.
    pub(crate) fn new(dir: Dentry) -> Self {
        Self(dir)
    }

    /// Whether it is that of the top instance.
    pub(crate) fn is_top(&self) -> bool {
        self.0.is_root()
    }

    /// The name, which is that of the instance.
    pub(crate) fn name(&self) -> &CStr {
        self.0.name()
    }

    /// Whether the instance has been removed.
    pub(crate) fn removed(&self) -> bool {
        self.0.removed()
    }

    /// The instance itself.
    ///
    /// # Errors
    ///
    /// `ENODEV` if it has been removed, or only has the buffer of an earlier boot; `ENOMEM`.
    ///
    /// # Safety
    ///
    /// event_mutex must be held as long as the result is used: an instance is removed with it held,
    /// its files before itself.
    pub(crate) unsafe fn array(&self) -> Result<NonNull<bindings::trace_array>> {
        // Any file of it that is there as long as the instance would do.
        let file = match self.0.lookup(b"trace_marker") {
            Err(error) if error == ENOENT => Err(ENODEV),
            file => file,
        }?;
        if self.removed() {
            return Err(ENODEV);
        }
        // SAFETY: The file is referenced.
        let array = unsafe { bindings::rhist_inode_private(file.inode()) };
        NonNull::new(array.cast()).ok_or(ENODEV)
    }
}

impl PartialEq for TracingDir {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_ptr() == other.0.as_ptr()
    }
}

/// The event in whose directory a file is.
#[derive(Clone, Copy)]
pub(crate) struct EventName<'a> {
    pub(crate) dir: &'a TracingDir,
    pub(crate) system: &'a CStr,
    pub(crate) event: &'a CStr,
}

/// Who may open a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    /// Permission bits.
    pub(crate) mode: u16,
    /// The number of the owner; [`Access::SAME`] stands for that of the directory.
    pub(crate) uid: u32,
    /// That of the group, likewise.
    pub(crate) gid: u32,
}

impl Access {
    /// As the kernel's directory has it.
    pub(crate) const SAME: u32 = u32::MAX;
}
