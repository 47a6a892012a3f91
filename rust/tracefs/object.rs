// SPDX-License-Identifier: GPL-2.0

//! Objects: rhist's directories and files in tracefs, each for a dentry of the kernel.
//!
//! C headers: `include/linux/fs.h`, `include/linux/dcache.h`, `include/linux/tracefs.h`.

use super::{
    dentry::{
        Dentry,
        Inode, //
    },
    node::NodeOps,
    special::SpecialFops, //
};
use crate::rust::bindings;
use kernel::{
    error::to_result,
    prelude::*,
    sync::Arc, //
};

/// A directory or file of rhist that was looked up.
///
/// # Invariants
///
/// - The object does not move, and is dropped only when the tree has the last reference on its
///   inode, or a grace period after the inode was revoked. Until then the inode may point to it and
///   to objects that it owns.
/// - `i_private` of the inode of an `ObjectType::Dir` or `ObjectType::File` points to the object.
/// - `i_fop` of the inode of an `ObjectType::Kernel` or an `ObjectType::Special` points to `fops`.
#[repr(C)]
pub(super) struct Object<N: NodeOps> {
    /// The operations of `ObjectType::Kernel`, and those with which an `ObjectType::Special` is
    /// opened. First, so that `file->f_op` points to the object.
    pub(super) fops: bindings::file_operations,
    /// The operations of the kernel's file, from which `fops` was copied. Valid while a file is
    /// open with `fops`: see `KernelFops`.
    pub(super) real_fops: *const bindings::file_operations,
    pub(super) real: Dentry,
    pub(super) node: N,
    /// The operations of an open `ObjectType::Special`.
    pub(super) operations: Option<Arc<SpecialFops>>,
    /// `None` only while it is being created.
    pub(super) inode: Option<Inode>,
}

impl<N: NodeOps> Object<N> {
    /// Returns whether the file or directory was removed, by the kernel or as [`NodeOps::is_gone`].
    pub(super) fn removed(&self) -> bool {
        self.real.removed() || self.node.is_gone()
    }

    /// Looks up the kernel's file behind a file of rhist, as [`NodeOps::behind`].
    pub(super) fn behind(&self) -> Result<Dentry> {
        let behind = self.node.behind(&self.real)?;
        // rhist may have created this very file in the kernel's directory (`CreatedDentry`).
        let own = self.inode.as_ref().map(Inode::as_ptr);
        (own != Some(behind.inode()))
            .then_some(behind)
            .ok_or(ENOENT)
    }
}

/// Returns the object of a directory (`ObjectType::Dir`) or file (`ObjectType::File`) of rhist.
///
/// # Safety
///
/// `inode` must be the inode of such an object with a node `N`, and not revoked. While the result
/// is used, it must be referenced, and either `i_rwsem` held or a file open, or being opened, by
/// one of rhist's file operations.
pub(super) unsafe fn object_of<'a, N: NodeOps>(inode: *mut bindings::inode) -> &'a Object<N> {
    // SAFETY: By the invariant of `Object`, `i_private` points to the object. It is not dropped:
    // the caller has a reference besides the tree's, and `Objects::close` waits for `i_rwsem` and
    // for open files.
    unsafe { &*bindings::rhist_inode_private(inode).cast::<Object<N>>() }
}

/// Unhashes rhist's `dentry` after the file or directory was [removed](Object::removed), and
/// likewise its parents. A dentry in use would otherwise stay in the dentry cache, and hide a new
/// object of that name.
///
/// Returns the error for the lookup or `open`: `ESTALE` if a dentry was unhashed, so that the VFS
/// repeats the path walk, or `gone` if all were already.
///
/// # Safety
///
/// `dentry` must be referenced, and belong to an object with a node `N`. The caller must be in a
/// callback of the VFS for that object, so that `Objects::close` waits for it.
pub(super) unsafe fn forget<N: NodeOps>(dentry: *mut bindings::dentry, gone: Error) -> Error {
    let mut here = dentry;
    let mut err = gone;
    loop {
        // SAFETY: A dentry holds a reference on its parent, which never changes in tracefs. The
        // parents are rhist's directories, up to the top one, where the loop ends: it is for the
        // root of tracefs, which is never removed.
        unsafe {
            if let Err(stale) = to_result(bindings::rhist_forget(here)) {
                err = stale;
            }
            here = (*here).d_parent;
            if !object_of::<N>((*here).d_inode).removed() {
                return err;
            }
        }
    }
}
