// SPDX-License-Identifier: GPL-2.0

//! References on dentries and inodes.

use crate::ftrace::bindings;
use core::ffi::CStr;
use core::ptr::NonNull;
use kernel::error::from_err_ptr;
use kernel::ffi;
use kernel::prelude::*;

/// A reference on a dentry.
pub(super) struct Dentry(NonNull<bindings::dentry>);

impl Dentry {
    /// Takes over the reference that a function of the kernel returned.
    ///
    /// # Safety
    ///
    /// `dentry` must be null, an `ERR_PTR` or a dentry with a reference for the caller.
    pub(super) unsafe fn from_returned(dentry: *mut bindings::dentry) -> Result<Self> {
        let dentry = from_err_ptr(dentry)?;
        NonNull::new(dentry).map(Self).ok_or(ENOMEM)
    }

    /// One more reference on a dentry.
    ///
    /// # Safety
    ///
    /// `dentry` must be referenced.
    pub(super) unsafe fn of(dentry: *mut bindings::dentry) -> Self {
        // SAFETY: The dentry is valid, and `rhist_dget` returns it, so it is not null.
        Self(unsafe { NonNull::new_unchecked(bindings::rhist_dget(dentry)) })
    }

    pub(super) fn as_ptr(&self) -> *mut bindings::dentry {
        self.0.as_ptr()
    }

    pub(super) fn inode(&self) -> *mut bindings::inode {
        // SAFETY: A referenced dentry is valid. Those kept here are positive, and a dentry with a
        // reference does not become negative.
        unsafe { (*self.as_ptr()).d_inode }
    }

    pub(super) fn mode(&self) -> u32 {
        // SAFETY: The inode of a referenced positive dentry is valid; its type never changes.
        u32::from(unsafe { (*self.inode()).i_mode })
    }

    /// Is it the root of its file system?
    pub(super) fn is_root(&self) -> bool {
        // SAFETY: The dentry is referenced, and its parent never changes in tracefs.
        unsafe { (*self.as_ptr()).d_parent == self.as_ptr() }
    }

    /// The name; those of tracefs never change.
    pub(super) fn name(&self) -> &CStr {
        // SAFETY: There is no rename in tracefs, so the name stays as it is while the dentry is
        // referenced; it ends in a NUL.
        unsafe { CStr::from_char_ptr(name_of(self.as_ptr())) }
    }

    /// A name in this directory of the kernel. Locks the directory shared.
    pub(super) fn lookup(&self, name: &[u8]) -> Result<Self> {
        // SAFETY: The directory is referenced; the name is copied where it is kept.
        unsafe {
            Self::from_returned(bindings::rhist_lookup(
                self.as_ptr(),
                name.as_ptr().cast(),
                name.len() as u32,
            ))
        }
    }

    /// Has the kernel removed what it stands for?
    pub(super) fn removed(&self) -> bool {
        // SAFETY: The dentry is referenced.
        unsafe { bindings::rhist_removed(self.as_ptr()) }
    }

    /// The directory that it is in.
    pub(super) fn parent(&self) -> Self {
        // SAFETY: A dentry holds a reference on its parent, which never changes in tracefs.
        unsafe { Self::of((*self.as_ptr()).d_parent) }
    }

    /// The name of the directory that it is in.
    pub(super) fn parent_name(&self) -> &CStr {
        // SAFETY: As above; a dentry holds a reference on its parent, which never changes here.
        unsafe { CStr::from_char_ptr(name_of((*self.as_ptr()).d_parent)) }
    }
}

/// # Safety
///
/// `dentry` must be referenced.
pub(super) unsafe fn name_of(dentry: *mut bindings::dentry) -> *const ffi::c_uchar {
    // SAFETY: The dentry is valid; the fields of both names of the union are laid out alike.
    unsafe { (*dentry).__bindgen_anon_1.d_name.name }
}

impl Clone for Dentry {
    fn clone(&self) -> Self {
        // SAFETY: A referenced dentry may be referenced once more.
        unsafe { bindings::rhist_dget(self.as_ptr()) };
        Self(self.0)
    }
}

impl Drop for Dentry {
    fn drop(&mut self) {
        // SAFETY: The reference is ours to give back.
        unsafe { bindings::dput(self.as_ptr()) }
    }
}

// SAFETY: References on dentries may be given back by any task.
unsafe impl Send for Dentry {}
// SAFETY: What is read through a shared reference never changes.
unsafe impl Sync for Dentry {}

/// A reference on an inode.
pub(super) struct Inode(NonNull<bindings::inode>);

impl Inode {
    /// Takes over the reference that a function of the kernel returned, or fails with `ENOMEM`.
    ///
    /// # Safety
    ///
    /// `inode` must be null or an inode with a reference for the caller.
    pub(super) unsafe fn from_returned(inode: *mut bindings::inode) -> Result<Self> {
        NonNull::new(inode).map(Self).ok_or(ENOMEM)
    }

    pub(super) fn as_ptr(&self) -> *mut bindings::inode {
        self.0.as_ptr()
    }

    /// A revoked inode, whose operations are the kernel's for such. `like` is any inode of the
    /// file system.
    pub(super) fn revoked(like: *mut bindings::inode) -> Result<Self> {
        let none = core::ptr::null();
        // SAFETY: The caller has a reference on `like`. The new inode is ours alone, and nothing
        // is looked up or opened through it before it is revoked.
        unsafe {
            let inode =
                bindings::rhist_new_inode(like, 0, none, core::ptr::null(), core::ptr::null_mut());
            let inode = Self::from_returned(inode)?;
            bindings::rhist_inode_revoke(inode.as_ptr());
            Ok(inode)
        }
    }

    /// A pointer with a reference of its own, for a dentry to keep.
    pub(super) fn into_raw(self) -> *mut bindings::inode {
        let raw = self.as_ptr();
        core::mem::forget(self);
        raw
    }
}

impl Clone for Inode {
    fn clone(&self) -> Self {
        // SAFETY: A referenced inode may be referenced once more.
        unsafe { bindings::ihold(self.as_ptr()) };
        Self(self.0)
    }
}

impl Drop for Inode {
    fn drop(&mut self) {
        // SAFETY: The reference is ours to give back.
        unsafe { bindings::iput(self.as_ptr()) }
    }
}

// SAFETY: References on inodes may be given back by any task.
unsafe impl Send for Inode {}
// SAFETY: Nothing is read through a shared reference.
unsafe impl Sync for Inode {}
