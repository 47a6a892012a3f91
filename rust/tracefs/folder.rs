// SPDX-License-Identifier: GPL-2.0

//! The callbacks of the VFS for directories of rhist that mirror none of the kernel's.
//!
//! All functions are called in task context: inode operations with `i_rwsem` of the directory held,
//! file operations on a directory that is open, which pins the module, or is being opened.

use super::{
    dentry::dentry_of,
    dir::{
        emit_ours,
        lookup,
        OURS, //
    },
    gate::{
        self,
        ModulePin, //
    },
    node::NodeOps,
    object::{
        forget,
        object_of, //
    },
};
use crate::rust::bindings;
use kernel::{
    error::from_result,
    ffi,
    prelude::*, //
};

/// Returns the inode operations of these directories. `attributes` has the operations for mode and
/// owner. Without `mkdir` and others, the VFS refuses to make or remove names.
pub(super) fn inode_operations<N: NodeOps>(
    attributes: bindings::inode_operations,
) -> bindings::inode_operations {
    bindings::inode_operations {
        lookup: Some(lookup::<N>),
        ..attributes
    }
}

pub(super) fn file_operations<N: NodeOps>() -> bindings::file_operations {
    bindings::file_operations {
        owner: gate::owner(),
        open: Some(open::<N>),
        iterate_shared: Some(iterate::<N>),
        llseek: Some(llseek),
        read: Some(bindings::generic_read_dir),
        release: Some(release),
        ..Default::default()
    }
}

/// # Safety
///
/// Must be called by the VFS, through [`file_operations`].
unsafe extern "C" fn open<N: NodeOps>(
    inode: *mut bindings::inode,
    file: *mut bindings::file,
) -> ffi::c_int {
    from_result(|| {
        let pin = ModulePin::new()?;
        // SAFETY: Only rhist's directories have these operations, and `file` holds a reference on
        // the inode.
        if unsafe { object_of::<N>(inode) }.removed() {
            // SAFETY: The VFS has set the path of `file`, which holds a reference on the dentry of
            // `inode`.
            return Err(unsafe { forget::<N>(dentry_of(file), ENOENT) });
        }
        pin.keep();
        Ok(0)
    })
}

/// # Safety
///
/// Must be called by the VFS, for a file opened by [`open`].
unsafe extern "C" fn release(
    _inode: *mut bindings::inode,
    _file: *mut bindings::file,
) -> ffi::c_int {
    // SAFETY: `open` has called `ModulePin::keep`, and the VFS calls `release` once.
    drop(unsafe { ModulePin::from_file() });
    0
}

/// Lists `.` and `..` at the positions 0 and 1, and the others from [`OURS`] on.
///
/// # Safety
///
/// Must be called by the VFS, for a file opened by [`open`].
unsafe extern "C" fn iterate<N: NodeOps>(
    file: *mut bindings::file,
    ctx: *mut bindings::dir_context,
) -> ffi::c_int {
    // SAFETY: The VFS passes a valid context, for the exclusive use of this call, and an open
    // directory, which holds a reference on its inode.
    unsafe {
        if (*ctx).pos < OURS {
            if !bindings::rhist_emit_dots(file, ctx) {
                return 0;
            }
            (*ctx).pos = OURS;
        }
        emit_ours(object_of::<N>((*file).f_inode), ctx)
    }
}

/// Moves the position: `SEEK_SET` and `SEEK_CUR`.
///
/// # Safety
///
/// Must be called by the VFS, for a file opened by [`open`].
unsafe extern "C" fn llseek(
    file: *mut bindings::file,
    offset: bindings::loff_t,
    whence: ffi::c_int,
) -> bindings::loff_t {
    // SAFETY: The VFS calls `llseek` with `f_pos_lock` held.
    unsafe {
        let target = match whence as u32 {
            bindings::SEEK_SET => Some(offset),
            bindings::SEEK_CUR => (*file).f_pos.checked_add(offset),
            _ => None,
        };
        match target {
            Some(target) if target >= 0 => {
                (*file).f_pos = target;
                target
            }
            _ => i64::from(EINVAL.to_errno()),
        }
    }
}
