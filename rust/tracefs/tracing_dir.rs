// SPDX-License-Identifier: GPL-2.0

//! Tracing directories, and names of events in them.

use super::dentry::Dentry;
use crate::rust::bindings;
use core::{
    ffi::CStr,
    ptr::NonNull, //
};
use kernel::prelude::*;

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

    /// Returns its dentry.
    pub(super) fn dentry(&self) -> &Dentry {
        &self.0
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
