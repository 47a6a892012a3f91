// SPDX-License-Identifier: GPL-2.0

//! Mode and owner of rhist's files and directories.
//!
//! A mirrored file or directory has the mode and owner of the kernel's: see `copy_mode_and_owner()`
//! in `rust/tracefs/tracefs.c`. rhist's own files, and the top directory, have modes and owners of
//! their own.
//!
//! All functions are called in task context. The VFS holds a reference on the inode, but for a path
//! walk under RCU.

use super::{
    gate::ModulePin,
    node::NodeOps,
    object::{
        object_of,
        Object, //
    },
};
use crate::rust::bindings;
use kernel::{
    error::{
        from_result,
        to_result, //
    },
    ffi,
    prelude::*, //
};

/// Returns the inode operations of files with the kernel's operations. Directories have these three
/// and others.
pub(super) fn mirrored<N: NodeOps>() -> bindings::inode_operations {
    bindings::inode_operations {
        permission: Some(permission::<N>),
        getattr: Some(getattr::<N>),
        setattr: Some(setattr::<N>),
        ..Default::default()
    }
}

/// Returns the inode operations of rhist's own files.
pub(super) fn own() -> bindings::inode_operations {
    bindings::inode_operations {
        setattr: Some(bindings::rhist_setattr_own),
        ..Default::default()
    }
}

/// Returns the object of an inode with the operations of [`mirrored`].
///
/// # Safety
///
/// `inode` must be referenced and the module pinned while the result is used.
unsafe fn object<'a, N: NodeOps>(inode: *mut bindings::inode) -> &'a Object<N> {
    // SAFETY: `i_private` of a directory points to its object. `i_fop` of a file with the kernel's
    // operations points to the first field of its object until the module unloads. The object is
    // not dropped while the inode has another reference.
    unsafe {
        match u32::from((*inode).i_mode) & bindings::S_IFMT {
            bindings::S_IFDIR => object_of(inode),
            _ => &*(*inode).__bindgen_anon_3.i_fop.cast(),
        }
    }
}

/// # Safety
///
/// Must be called by the VFS, through [`mirrored`].
unsafe extern "C" fn permission<N: NodeOps>(
    idmap: *mut bindings::mnt_idmap,
    inode: *mut bindings::inode,
    mask: ffi::c_int,
) -> ffi::c_int {
    from_result(|| {
        // During a path walk under RCU the object may be dropped. The VFS asks again, with a
        // reference.
        if mask as u32 & bindings::MAY_NOT_BLOCK != 0 {
            return Err(ECHILD);
        }
        let _pin = ModulePin::new()?;
        // SAFETY: The VFS passes valid arguments, with a reference on the inode. The object holds a
        // reference on the kernel's file.
        to_result(unsafe {
            let real = object::<N>(inode).real.inode();
            bindings::rhist_permission(idmap, inode, real, mask)
        })?;
        Ok(0)
    })
}

/// # Safety
///
/// Must be called by the VFS, through [`mirrored`].
unsafe extern "C" fn getattr<N: NodeOps>(
    _idmap: *mut bindings::mnt_idmap,
    path: *const bindings::path,
    stat: *mut bindings::kstat,
    request_mask: u32,
    flags: ffi::c_uint,
) -> ffi::c_int {
    from_result(|| {
        let _pin = ModulePin::new()?;
        // SAFETY: The VFS passes valid arguments, and a path that holds references. The object
        // holds a reference on the kernel's file.
        to_result(unsafe {
            let real = object::<N>((*(*path).dentry).d_inode).real.as_ptr();
            bindings::rhist_getattr(path, real, stat, request_mask, flags)
        })?;
        Ok(0)
    })
}

/// # Safety
///
/// Must be called by the VFS, through [`mirrored`].
unsafe extern "C" fn setattr<N: NodeOps>(
    idmap: *mut bindings::mnt_idmap,
    dentry: *mut bindings::dentry,
    attr: *mut bindings::iattr,
) -> ffi::c_int {
    from_result(|| {
        let _pin = ModulePin::new()?;
        // SAFETY: The VFS passes valid arguments, with `i_rwsem` of the inode held and a reference
        // on the dentry. The object holds a reference on the kernel's file.
        to_result(unsafe {
            let real = object::<N>((*dentry).d_inode).real.as_ptr();
            bindings::rhist_setattr(idmap, dentry, real, attr)
        })?;
        Ok(0)
    })
}
