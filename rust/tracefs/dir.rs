// SPDX-License-Identifier: GPL-2.0

//! The callbacks of the VFS for rhist's directories.
//!
//! All functions are called in task context: those of the inode with the directory locked, those
//! of the file with the directory open, which pins the module, or being opened.

use super::dentry::name_of;
use super::gate;
use super::gate::ModulePin;
use super::object::dentry_of;
use super::object::forget;
use super::object::object_of;
use super::object::NodeOps;
use super::object::Object;
use crate::ftrace::bindings;
use core::ffi::CStr;
use core::ptr;
use kernel::error::from_err_ptr;
use kernel::error::from_result;
use kernel::error::to_result;
use kernel::ffi;
use kernel::prelude::*;

pub(super) fn inode_operations<N: NodeOps>() -> bindings::inode_operations {
    bindings::inode_operations {
        lookup: Some(lookup::<N>),
        mkdir: Some(mkdir::<N>),
        rmdir: Some(rmdir::<N>),
        ..Default::default()
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

/// The name of a dentry that is being looked up or made.
///
/// # Safety
///
/// The directory of `dentry` must be locked while the result is used.
unsafe fn lookup_name<'a>(dentry: *mut bindings::dentry) -> &'a [u8] {
    // SAFETY: The caller keeps the name from changing; it has `len` bytes.
    unsafe {
        let len = (*dentry)
            .__bindgen_anon_1
            .d_name
            .__bindgen_anon_1
            .__bindgen_anon_1
            .len;
        core::slice::from_raw_parts(name_of(dentry), len as usize)
    }
}

/// # Safety
///
/// For `inode_operations` of rhist's directories only.
unsafe extern "C" fn lookup<N: NodeOps>(
    dir: *mut bindings::inode,
    dentry: *mut bindings::dentry,
    _flags: ffi::c_uint,
) -> *mut bindings::dentry {
    // SAFETY: The VFS has the directory locked.
    let (object, name) = unsafe { (object_of::<N>(dir), lookup_name(dentry)) };
    if object.real.removed() {
        // SAFETY: A dentry holds its parent.
        return unsafe { forget::<N>((*dentry).d_parent, ENOENT) }.to_ptr();
    }
    let inode = match object.node.lookup(&object.real, name) {
        Ok(inode) => inode.into_raw(),
        Err(err) if err == ENOENT => ptr::null_mut(),
        Err(err) => return err.to_ptr(),
    };
    // SAFETY: `dentry` is the one to be looked up; the reference on the inode is handed over.
    unsafe { bindings::d_splice_alias(inode, dentry) }
}

/// # Safety
///
/// For `inode_operations` of rhist's directories only.
unsafe extern "C" fn mkdir<N: NodeOps>(
    idmap: *mut bindings::mnt_idmap,
    dir: *mut bindings::inode,
    dentry: *mut bindings::dentry,
    mode: bindings::umode_t,
) -> *mut bindings::dentry {
    // SAFETY: The VFS has the directory locked.
    let (object, name) = unsafe { (object_of::<N>(dir), lookup_name(dentry)) };
    // SAFETY: The object holds the kernel's directory; the name is copied where it is kept.
    let err = unsafe {
        let len = name.len() as u32;
        bindings::rhist_mkdir(idmap, object.real.as_ptr(), name.as_ptr().cast(), len, mode)
    };
    // As in tracefs itself, the dentry stays negative and the directory is found by a look-up.
    to_result(err).map_or_else(Error::to_ptr, |()| ptr::null_mut())
}

/// # Safety
///
/// For `inode_operations` of rhist's directories only.
unsafe extern "C" fn rmdir<N: NodeOps>(
    dir: *mut bindings::inode,
    dentry: *mut bindings::dentry,
) -> ffi::c_int {
    // SAFETY: The VFS has the directory locked.
    let (object, name) = unsafe { (object_of::<N>(dir), lookup_name(dentry)) };
    // SAFETY: The object holds the kernel's directory.
    let err = unsafe {
        bindings::rhist_rmdir(
            object.real.as_ptr(),
            name.as_ptr().cast(),
            name.len() as u32,
        )
    };
    if err == 0 {
        object.node.child_removed();
    }
    err
}

/// Opens the kernel's directory, too.
///
/// # Safety
///
/// For `file_operations` of rhist's directories only.
unsafe extern "C" fn open<N: NodeOps>(
    inode: *mut bindings::inode,
    file: *mut bindings::file,
) -> ffi::c_int {
    from_result(|| {
        let pin = ModulePin::new()?;
        // SAFETY: The file is being opened, and keeps the inode.
        let object = unsafe { object_of::<N>(inode) };
        if object.real.removed() {
            // SAFETY: The file is being opened, by its path.
            return Err(unsafe { forget::<N>(dentry_of(file), ENOENT) });
        }
        // SAFETY: `file` has its path; the object holds the kernel's directory.
        let real = unsafe { bindings::rhist_open_dir(file, object.real.as_ptr()) };
        let real = from_err_ptr(real)?;
        // SAFETY: The file is ours while it is opened. `release` gives the reference back.
        unsafe { (*file).private_data = real.cast() };
        pin.keep();
        Ok(0)
    })
}

/// # Safety
///
/// For files opened by [`open`] only.
unsafe extern "C" fn release(
    _inode: *mut bindings::inode,
    file: *mut bindings::file,
) -> ffi::c_int {
    // SAFETY: `open` kept it.
    let _pin = unsafe { ModulePin::from_file() };
    // SAFETY: Put there by `open`.
    unsafe { bindings::fput(real_dir(file)) };
    0
}

/// # Safety
///
/// `file` must have been opened by [`open`].
unsafe fn real_dir(file: *mut bindings::file) -> *mut bindings::file {
    // SAFETY: `file` is open, and a directory of rhist.
    unsafe { (*file).private_data.cast() }
}

/// The position of rhist's first entry; those of the kernel's directories are small numbers.
const OURS: i64 = 1 << 40;

/// # Safety
///
/// For files opened by [`open`] only.
unsafe extern "C" fn llseek(
    file: *mut bindings::file,
    offset: bindings::loff_t,
    whence: ffi::c_int,
) -> bindings::loff_t {
    // SAFETY: `llseek` is called with the position locked; the kernel's directory is open too, and
    // positions below `OURS` are its own.
    unsafe {
        let here = (*file).f_pos;
        let target = match whence as u32 {
            bindings::SEEK_SET => offset,
            bindings::SEEK_CUR => here.wrapping_add(offset),
            _ => return i64::from(EINVAL.to_errno()),
        };
        let set = if target >= OURS {
            target
        } else {
            bindings::vfs_llseek(real_dir(file), target, bindings::SEEK_SET as ffi::c_int)
        };
        if set >= 0 {
            (*file).f_pos = set;
        }
        set
    }
}

/// Passes on what the kernel's directory has, except what is hidden.
#[repr(C)]
struct ReaddirContext<'a, N: NodeOps> {
    /// First, so that the pointer to it leads here.
    ctx: bindings::dir_context,
    caller: *mut bindings::dir_context,
    object: &'a Object<N>,
    full: bool,
}

/// # Safety
///
/// `ctx` must be that of a [`ReaddirContext`].
unsafe extern "C" fn filter_entry<N: NodeOps>(
    ctx: *mut bindings::dir_context,
    name: *const ffi::c_char,
    len: ffi::c_int,
    pos: bindings::loff_t,
    ino: u64,
    kind: ffi::c_uint,
) -> bool {
    // SAFETY: The context is that of a `ReaddirContext`, which nobody else has while the directory is read.
    let filter = unsafe { &mut *ctx.cast::<ReaddirContext<'_, N>>() };
    // SAFETY: The name has `len` bytes.
    let bytes = unsafe { core::slice::from_raw_parts(name.cast::<u8>(), len as usize) };
    if filter.object.node.hides(bytes) {
        return true;
    }
    // SAFETY: The caller's context is valid while it reads the directory.
    let taken = unsafe { emit(filter.caller, name, len, pos, ino, kind) };
    filter.full |= !taken;
    taken
}

/// Gives an entry to who reads a directory; false if there is no more room.
///
/// # Safety
///
/// `ctx` must be valid, and `name` have `len` bytes.
unsafe fn emit(
    ctx: *mut bindings::dir_context,
    name: *const ffi::c_char,
    len: ffi::c_int,
    pos: bindings::loff_t,
    ino: u64,
    kind: ffi::c_uint,
) -> bool {
    // SAFETY: A context has an actor, which is called with the context itself.
    unsafe {
        (*ctx)
            .actor
            .is_some_and(|actor| actor(ctx, name, len, pos, ino, kind))
    }
}

/// The kernel's entries first, then rhist's.
///
/// # Safety
///
/// For files opened by [`open`] only.
unsafe extern "C" fn iterate<N: NodeOps>(
    file: *mut bindings::file,
    ctx: *mut bindings::dir_context,
) -> ffi::c_int {
    // SAFETY: The directory is open and locked.
    let object = unsafe { object_of::<N>((*file).f_inode) };
    // SAFETY: The context is valid, and nobody else uses it meanwhile.
    let mut pos = unsafe { (*ctx).pos };
    if pos < OURS {
        let mut filter = ReaddirContext {
            ctx: bindings::dir_context {
                actor: Some(filter_entry::<N>),
                // SAFETY: As above.
                ..unsafe { *ctx }
            },
            caller: ctx,
            object,
            full: false,
        };
        // SAFETY: The kernel's directory is open; the filter lives as long as the call.
        let err = unsafe { bindings::iterate_dir(real_dir(file), &mut filter.ctx) };
        pos = filter.ctx.pos;
        // eventfs returns a positive number at the end of a directory.
        if err < 0 || filter.full {
            // SAFETY: As above.
            unsafe { (*ctx).pos = pos };
            return err.min(0);
        }
        pos = OURS;
    }
    for (index, name) in object.node.names(&object.real).enumerate() {
        if (index as i64) < pos - OURS {
            continue;
        }
        let taken = name.map(CStr::to_bytes).is_none_or(|name| {
            let len = name.len() as ffi::c_int;
            // SAFETY: The context is valid. An inode that nobody looked up yet has no number; tracefs
            // numbers none with 1.
            unsafe { emit(ctx, name.as_ptr().cast(), len, pos, 1, bindings::DT_REG) }
        });
        if !taken {
            break;
        }
        pos += 1;
    }
    // SAFETY: As above.
    unsafe { (*ctx).pos = pos };
    0
}
