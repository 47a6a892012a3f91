// SPDX-License-Identifier: GPL-2.0

//! References on dentries and inodes of tracefs.

use crate::rust::bindings;
use core::{
    ffi::CStr,
    ptr::NonNull, //
};
use kernel::{
    error::from_err_ptr,
    ffi,
    prelude::*, //
};

/// A reference on a dentry.
///
/// # Invariants
///
/// Owns one reference on a positive dentry of tracefs. Such a dentry does not become negative, and
/// tracefs lacks rename: its inode, name and parent are constant.
pub(crate) struct Dentry(NonNull<bindings::dentry>);

/// The type of a dentry's inode.
pub(crate) enum DentryKind {
    Dir,
    File,
}

impl Dentry {
    /// Returns the root directory of the file system.
    pub(crate) fn root(&self) -> Self {
        // INVARIANT: `rhist_root_of` takes a reference, and the root is positive.
        // SAFETY: `self` holds a reference on the dentry, and so on its file system, whose root is
        // not null.
        Self(unsafe { NonNull::new_unchecked(bindings::rhist_root_of(self.as_ptr())) })
    }

    /// Takes over the reference that a function of the kernel returned.
    ///
    /// # Safety
    ///
    /// `dentry` must be null, an `ERR_PTR` or a positive dentry of tracefs with a reference for the
    /// caller.
    pub(in crate::rust) unsafe fn from_returned(dentry: *mut bindings::dentry) -> Result<Self> {
        let dentry = from_err_ptr(dentry)?;
        // INVARIANT: The dentry is positive, and the reference is the caller's.
        NonNull::new(dentry).map(Self).ok_or(ENOMEM)
    }

    /// Takes another reference on a dentry.
    ///
    /// # Safety
    ///
    /// `dentry` must be a positive dentry of tracefs that is referenced during the call.
    pub(super) unsafe fn of(dentry: *mut bindings::dentry) -> Self {
        // INVARIANT: `rhist_dget` takes a reference.
        // SAFETY: The dentry is valid, and `rhist_dget` returns it, so it is not null.
        Self(unsafe { NonNull::new_unchecked(bindings::rhist_dget(dentry)) })
    }

    pub(in crate::rust) fn as_ptr(&self) -> *mut bindings::dentry {
        self.0.as_ptr()
    }

    pub(super) fn inode(&self) -> *mut bindings::inode {
        // SAFETY: By the type invariant the dentry is valid, and `d_inode` does not change.
        unsafe { (*self.as_ptr()).d_inode }
    }

    /// Returns the type; `None` if it is neither a directory nor a regular file.
    pub(crate) fn kind(&self) -> Option<DentryKind> {
        // SAFETY: By the type invariant the dentry is positive, so its inode is valid. The file
        // type in `i_mode` never changes.
        match u32::from(unsafe { (*self.inode()).i_mode }) & bindings::S_IFMT {
            bindings::S_IFDIR => Some(DentryKind::Dir),
            bindings::S_IFREG => Some(DentryKind::File),
            _ => None,
        }
    }

    /// Returns whether it is the root of its file system.
    pub(crate) fn is_root(&self) -> bool {
        // SAFETY: By the type invariant the dentry is valid, and `d_parent` does not change.
        unsafe { (*self.as_ptr()).d_parent == self.as_ptr() }
    }

    /// Returns the name.
    pub(crate) fn name(&self) -> &CStr {
        // SAFETY: By the type invariant the dentry is valid and its name constant for the lifetime
        // of `self`. The name of a dentry ends in a NUL.
        unsafe { CStr::from_char_ptr(name_of(self.as_ptr())) }
    }

    /// Looks up `name` in this directory of the kernel. Below `events/`, this may take `i_rwsem` of
    /// the directory, so `i_rwsem` of a directory of rhist must not be held.
    ///
    /// # Errors
    ///
    /// `ENOENT`, `ENOMEM`, and the errors of the directory's `lookup`; `EINTR` if the task is
    /// killed while it waits.
    pub(crate) fn lookup(&self, name: &[u8]) -> Result<Self> {
        // SAFETY: By the type invariant the directory is valid. `name` is valid for its length, and
        // the dcache copies it. `rhist_lookup` returns an `ERR_PTR` or a positive dentry with a
        // reference.
        unsafe {
            Self::from_returned(bindings::rhist_lookup(
                self.as_ptr(),
                name.as_ptr().cast(),
                name.len() as u32,
            ))
        }
    }

    /// Looks up `name` in this directory of the kernel, while `i_rwsem` of a directory of rhist is
    /// held. Does not wait for a lock.
    ///
    /// # Errors
    ///
    /// `ENOENT`, `ENOMEM`. `ERESTARTNOINTR` or `EAGAIN`, to be returned to the VFS, if another task
    /// holds `i_rwsem` of this directory.
    pub(crate) fn lookup_nested(&self, name: &[u8]) -> Result<Self> {
        // SAFETY: By the type invariant the directory is valid. `name` is valid for its length, and
        // the dcache copies it. `rhist_lookup_nested` returns an `ERR_PTR` or a positive dentry
        // with a reference.
        unsafe {
            Self::from_returned(bindings::rhist_lookup_nested(
                self.as_ptr(),
                name.as_ptr().cast(),
                name.len() as u32,
            ))
        }
    }

    /// Returns whether the kernel has removed the file or directory.
    pub(crate) fn removed(&self) -> bool {
        // SAFETY: By the type invariant the dentry is valid and positive.
        unsafe { bindings::rhist_removed(self.as_ptr()) }
    }

    /// Returns whether it is the `trigger` file of an event.
    pub(super) fn lists_triggers(&self) -> bool {
        // SAFETY: By the type invariant the dentry is valid and positive.
        unsafe { bindings::rhist_lists_triggers(self.as_ptr()) }
    }

    /// Returns whether it is the `trigger` file of an event that has triggers in the kernel. They
    /// may change at once.
    pub(super) fn has_triggers(&self) -> bool {
        // SAFETY: By the type invariant the dentry is valid and positive. The second function is
        // called only for a `trigger` file.
        self.lists_triggers() && unsafe { bindings::rhist_has_triggers(self.as_ptr()) }
    }

    /// Returns the directory that it is in.
    pub(crate) fn parent(&self) -> Self {
        // SAFETY: By the type invariant the dentry is valid. It holds a reference on its parent, a
        // directory of tracefs, which does not change.
        unsafe { Self::of((*self.as_ptr()).d_parent) }
    }

    /// Returns the name of the directory that it is in.
    pub(crate) fn parent_name(&self) -> &CStr {
        // SAFETY: The dentry holds a reference on its parent, and `self` on the dentry. By the type
        // invariant neither the parent nor its name changes.
        unsafe { CStr::from_char_ptr(name_of((*self.as_ptr()).d_parent)) }
    }
}

/// Returns the name of a dentry, which ends in a NUL.
///
/// # Safety
///
/// `dentry` must be valid. The result is valid while the dentry is referenced and not renamed.
pub(super) unsafe fn name_of(dentry: *mut bindings::dentry) -> *const ffi::c_uchar {
    // SAFETY: The dentry is valid.
    unsafe { (*bindings::rhist_name_of(dentry)).name }
}

/// Returns the dentry that a file was opened by. The file holds a reference on it.
///
/// # Safety
///
/// `file` must be open, or being opened.
pub(super) unsafe fn dentry_of(file: *mut bindings::file) -> *mut bindings::dentry {
    // SAFETY: The file is valid.
    unsafe { bindings::rhist_dentry_of(file) }
}

impl Clone for Dentry {
    fn clone(&self) -> Self {
        // SAFETY: By the type invariant the dentry is referenced, so another reference may be
        // taken.
        unsafe { bindings::rhist_dget(self.as_ptr()) };
        // INVARIANT: The reference was taken above.
        Self(self.0)
    }
}

impl Drop for Dentry {
    fn drop(&mut self) {
        // SAFETY: By the type invariant `self` owns a reference, which is not used afterwards.
        unsafe { bindings::dput(self.as_ptr()) }
    }
}

// SAFETY: A reference on a dentry may be dropped by any task.
unsafe impl Send for Dentry {}
// SAFETY: The fields read through a shared reference are constant by the type invariant;
// `rhist_lookup`, `rhist_lookup_nested` and `rhist_removed` may be called concurrently.
unsafe impl Sync for Dentry {}

/// A reference on an inode.
///
/// # Invariants
///
/// Owns one reference on the inode.
pub(crate) struct Inode(NonNull<bindings::inode>);

impl Inode {
    /// Takes over the reference that a function of the kernel returned, or fails with `ENOMEM` if
    /// it is null.
    ///
    /// # Safety
    ///
    /// `inode` must be null or an inode with a reference for the caller.
    pub(super) unsafe fn from_returned(inode: *mut bindings::inode) -> Result<Self> {
        // INVARIANT: The reference is the caller's.
        NonNull::new(inode).map(Self).ok_or(ENOMEM)
    }

    pub(super) fn as_ptr(&self) -> *mut bindings::inode {
        self.0.as_ptr()
    }

    /// Creates a revoked inode in the file system of `like`, to get the kernel's operations of bad
    /// inodes from. Fails with `ENOMEM`.
    pub(super) fn revoked(like: &Dentry) -> Result<Self> {
        let none = core::ptr::null();
        // SAFETY: `like` holds a reference on its dentry, and thus on its inode. The new inode is
        // not published, so its null operations are not used before it is revoked.
        // `rhist_new_inode` returns null or an inode with a reference.
        unsafe {
            let like = like.inode();
            let inode =
                bindings::rhist_new_inode(like, 0, none, core::ptr::null(), core::ptr::null_mut());
            let inode = Self::from_returned(inode)?;
            bindings::rhist_inode_revoke(inode.as_ptr());
            Ok(inode)
        }
    }

    /// Returns whether the inode can be dropped: this is the last reference on it, and its mode and
    /// owner were not changed, or the file was `removed`. Takes `i_lock`.
    pub(super) fn is_unused(&self, removed: bool) -> bool {
        // SAFETY: By the type invariant the inode is valid.
        unsafe { bindings::rhist_inode_unused(self.as_ptr(), removed) }
    }

    /// Hands the reference over to the caller, for a dentry to own.
    pub(super) fn into_raw(self) -> *mut bindings::inode {
        let raw = self.as_ptr();
        core::mem::forget(self);
        raw
    }
}

impl Clone for Inode {
    fn clone(&self) -> Self {
        // SAFETY: By the type invariant the inode is referenced, as `ihold` requires.
        unsafe { bindings::ihold(self.as_ptr()) };
        // INVARIANT: The reference was taken above.
        Self(self.0)
    }
}

impl Drop for Inode {
    fn drop(&mut self) {
        // SAFETY: By the type invariant `self` owns a reference, which is not used afterwards.
        unsafe { bindings::iput(self.as_ptr()) }
    }
}

// SAFETY: A reference on an inode may be dropped by any task.
unsafe impl Send for Inode {}
// SAFETY: A shared reference only allows `ihold` and reading the count with `i_lock` held.
unsafe impl Sync for Inode {}

/// A dentry that rhist has created in a directory of the kernel. Dropping this removes it.
///
/// # Invariants
///
/// The dentry was created by `rhist_create_dir` or `rhist_create_file` and not removed yet: it is
/// persistent, so it stays without a reference.
pub(crate) enum CreatedDentry {
    Dir(NonNull<bindings::dentry>),
    File(NonNull<bindings::dentry>),
}

impl CreatedDentry {
    /// Creates a directory. Takes `i_rwsem` of `parent`. Fails with `EEXIST` if the name is taken,
    /// and with `ENOMEM`.
    pub(crate) fn dir(parent: &Dentry, name: &CStr, inode: &Inode) -> Result<Self> {
        // INVARIANT: The directory was created by `rhist_create_dir`.
        // SAFETY: `parent` and `inode` hold references, and `name` ends in a NUL. The new dentry
        // takes its own reference on the inode.
        let dir = from_err_ptr(unsafe {
            bindings::rhist_create_dir(parent.as_ptr(), name.as_char_ptr(), inode.as_ptr())
        })?;
        NonNull::new(dir).map(Self::Dir).ok_or(ENOMEM)
    }

    /// Creates a file. Takes `i_rwsem` of `parent`. Fails as [`CreatedDentry::dir`].
    pub(crate) fn file(parent: &Dentry, name: &CStr, inode: &Inode) -> Result<Self> {
        // INVARIANT: The file was created by `rhist_create_file`.
        // SAFETY: `parent` and `inode` hold references, and `name` ends in a NUL. The new dentry
        // takes its own reference on the inode.
        let file = from_err_ptr(unsafe {
            bindings::rhist_create_file(parent.as_ptr(), name.as_char_ptr(), inode.as_ptr())
        })?;
        NonNull::new(file).map(Self::File).ok_or(ENOMEM)
    }
}

impl Drop for CreatedDentry {
    /// Removes the dentry. Takes `i_rwsem` of its parent. The inode of a directory must have been
    /// revoked by [`Objects::close`](super::Objects::close).
    fn drop(&mut self) {
        // SAFETY: By the type invariant the dentry was created by the matching function and is
        // still there.
        unsafe {
            match self {
                Self::Dir(dir) => bindings::rhist_remove_dir(dir.as_ptr()),
                Self::File(file) => bindings::simple_recursive_removal(file.as_ptr(), None),
            }
        }
    }
}

// SAFETY: Any task may remove the dentry.
unsafe impl Send for CreatedDentry {}
// SAFETY: `CreatedDentry` has no methods that take a shared reference.
unsafe impl Sync for CreatedDentry {}
