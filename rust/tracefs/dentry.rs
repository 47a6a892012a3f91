// SPDX-License-Identifier: GPL-2.0

//! References on dentries and inodes.

use crate::ftrace::bindings;
use core::ffi::CStr;
use core::ptr::NonNull;
use kernel::error::from_err_ptr;
use kernel::ffi;
use kernel::prelude::*;

/// A reference on a dentry.
pub(crate) struct Dentry(NonNull<bindings::dentry>);

/// What a dentry stands for.
pub(crate) enum DentryKind {
    Dir,
    File,
}

impl Dentry {
    /// The root directory of tracefs, in which `name` has to be free. `EEXIST` if it is not, the kernel is
    /// locked down, or there is no memory: tracefs does not say which.
    pub(crate) fn root(name: &CStr) -> Result<Self> {
        // SAFETY: `name` ends in a NUL; the root comes with a reference.
        unsafe { Self::from_returned(bindings::rhist_tracefs_root(name.as_char_ptr())) }
            .map_err(|_| EEXIST)
    }

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

    /// What is there; `None` for what is neither a directory nor a file.
    pub(crate) fn kind(&self) -> Option<DentryKind> {
        // SAFETY: The inode of a referenced positive dentry is valid; its type never changes.
        match u32::from(unsafe { (*self.inode()).i_mode }) & bindings::S_IFMT {
            bindings::S_IFDIR => Some(DentryKind::Dir),
            bindings::S_IFREG => Some(DentryKind::File),
            _ => None,
        }
    }

    /// Is it the root of its file system?
    pub(crate) fn is_root(&self) -> bool {
        // SAFETY: The dentry is referenced, and its parent never changes in tracefs.
        unsafe { (*self.as_ptr()).d_parent == self.as_ptr() }
    }

    /// The name; those of tracefs never change.
    pub(crate) fn name(&self) -> &CStr {
        // SAFETY: There is no rename in tracefs, so the name stays as it is while the dentry is
        // referenced; it ends in a NUL.
        unsafe { CStr::from_char_ptr(name_of(self.as_ptr())) }
    }

    /// A name in this directory of the kernel. Locks the directory shared.
    pub(crate) fn lookup(&self, name: &[u8]) -> Result<Self> {
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
    pub(crate) fn removed(&self) -> bool {
        // SAFETY: The dentry is referenced.
        unsafe { bindings::rhist_removed(self.as_ptr()) }
    }

    /// The directory that it is in.
    pub(crate) fn parent(&self) -> Self {
        // SAFETY: A dentry holds a reference on its parent, which never changes in tracefs.
        unsafe { Self::of((*self.as_ptr()).d_parent) }
    }

    /// The name of the directory that it is in.
    pub(crate) fn parent_name(&self) -> &CStr {
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
pub(crate) struct Inode(NonNull<bindings::inode>);

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

    /// Whether this reference is the only one left. Takes i_lock.
    pub(super) fn is_only_ours(&self) -> bool {
        // SAFETY: The reference is valid.
        unsafe { bindings::rhist_inode_only_ours(self.as_ptr()) }
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

/// A name that rhist has entered in a directory of the kernel, removed when this is dropped.
pub(crate) enum CreatedDentry {
    Dir(NonNull<bindings::dentry>),
    File(NonNull<bindings::dentry>),
}

impl CreatedDentry {
    /// Enters a directory. Fails with `EEXIST` if the name is taken, and with `ENOMEM`.
    pub(crate) fn dir(parent: &Dentry, name: &CStr, inode: &Inode) -> Result<Self> {
        // SAFETY: Both are referenced; the new directory takes a reference of its own.
        let dir = from_err_ptr(unsafe {
            bindings::rhist_create_dir(parent.as_ptr(), name.as_char_ptr(), inode.as_ptr())
        })?;
        NonNull::new(dir).map(Self::Dir).ok_or(ENOMEM)
    }

    /// Enters a file. Fails as [`CreatedDentry::dir`].
    pub(crate) fn file(parent: &Dentry, name: &CStr, inode: &Inode) -> Result<Self> {
        // SAFETY: As for a directory.
        let file = from_err_ptr(unsafe {
            bindings::rhist_create_file(parent.as_ptr(), name.as_char_ptr(), inode.as_ptr())
        })?;
        NonNull::new(file).map(Self::File).ok_or(ENOMEM)
    }
}

impl Drop for CreatedDentry {
    /// A directory's inode has been revoked, by [`Objects::close`](super::Objects::close).
    fn drop(&mut self) {
        // SAFETY: Made by `rhist_create_dir` or `rhist_create_file`, and stays until then.
        unsafe {
            match self {
                Self::Dir(dir) => bindings::rhist_remove_dir(dir.as_ptr()),
                Self::File(file) => bindings::simple_recursive_removal(file.as_ptr(), None),
            }
        }
    }
}

// SAFETY: Any task may remove it.
unsafe impl Send for CreatedDentry {}
// SAFETY: Nothing is done through a shared reference.
unsafe impl Sync for CreatedDentry {}
