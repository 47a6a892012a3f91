// SPDX-License-Identifier: GPL-2.0

//! The callbacks of the VFS for rhist's directories.
//!
//! All functions are called in task context: inode operations with `i_rwsem` of the directory held,
//! file operations on a directory that is open, which pins the module, or is being opened.
//!
//! No callback waits for `i_rwsem` of the kernel's directory while `i_rwsem` of rhist's is held:
//! see [`object`](super::object). [`lookup`] only tries to take it, the others unlock rhist's
//! directory first: see [`Unlocked`].

use super::{
    dentry::{
        dentry_of,
        DentryKind, //
    },
    gate::{
        self,
        ModulePin, //
    },
    node::NodeOps,
    object::{
        forget,
        object_of,
        Object, //
    },
};
use crate::rust::bindings;
use core::ptr;
use kernel::{
    error::{
        from_err_ptr,
        from_result,
        to_result,
        Error, //
    },
    ffi,
    prelude::*, //
};

/// Returns the inode operations of directories. `attributes` has the operations for mode and owner.
pub(super) fn inode_operations<N: NodeOps>(
    attributes: bindings::inode_operations,
) -> bindings::inode_operations {
    bindings::inode_operations {
        lookup: Some(lookup::<N>),
        mkdir: Some(mkdir::<N, _>),
        rmdir: Some(rmdir::<N>),
        ..attributes
    }
}

pub(super) fn file_operations<N: NodeOps>() -> bindings::file_operations {
    bindings::file_operations {
        owner: gate::owner(),
        open: Some(open::<N>),
        iterate_shared: Some(iterate::<N>),
        fsync: Some(fsync),
        llseek: Some(llseek),
        read: Some(bindings::generic_read_dir),
        release: Some(release),
        ..Default::default()
    }
}

/// Returns the name of a dentry that is being looked up, created or removed.
///
/// # Safety
///
/// `dentry` must be valid, and `i_rwsem` of its directory held while the result is used.
unsafe fn lookup_name<'a>(dentry: *mut bindings::dentry) -> &'a [u8] {
    // SAFETY: `i_rwsem` of the directory keeps the name from changing. A `struct qstr` is valid for
    // `len` bytes.
    unsafe {
        let name = &*bindings::rhist_name_of(dentry);
        core::slice::from_raw_parts(
            name.name,
            name.__bindgen_anon_1.__bindgen_anon_1.len as usize,
        )
    }
}

/// Copies the name of a dentry, to be used when the directory is not locked any more:
/// `d_splice_alias()` of another task may replace the name by a copy. Fails with `ENOMEM`.
///
/// # Safety
///
/// `dentry` must be valid, and `i_rwsem` of its directory held.
unsafe fn copied_name(dentry: *mut bindings::dentry) -> Result<KVec<u8>> {
    let mut copy = KVec::new();
    // SAFETY: The caller guarantees that the dentry is valid and its directory locked, so the name
    // stays as it is until it is copied.
    copy.extend_from_slice(unsafe { lookup_name(dentry) }, GFP_KERNEL)?;
    Ok(copy)
}

/// Unlocks directories of rhist that the VFS has locked for a callback, so that the kernel's can be
/// locked. Dropping this locks them again.
///
/// # Invariants
///
/// The inodes are referenced by the caller of the callback, and were locked as for `how` when this
/// was created.
struct Unlocked {
    dir: *mut bindings::inode,
    how: How,
}

/// The locks that a callback finds taken.
#[derive(Clone, Copy)]
enum How {
    /// `i_rwsem` of the directory, shared.
    Shared,
    /// `i_rwsem` of the directory, exclusively, and of this subdirectory, unless it is null.
    Exclusive(*mut bindings::inode),
}

impl Unlocked {
    /// Unlocks `dir`.
    ///
    /// # Safety
    ///
    /// The inodes must be referenced, and be locked by the caller as `how` says. The module must be
    /// pinned until the result was dropped: unloading waits only for tasks that hold the lock.
    unsafe fn new(dir: *mut bindings::inode, how: How) -> Self {
        // SAFETY: The caller has locked the inodes this way.
        unsafe {
            match how {
                How::Shared => bindings::rhist_unlock_dir_shared(dir),
                How::Exclusive(child) => bindings::rhist_unlock_dir(dir, child),
            }
        }
        // INVARIANT: The caller guarantees that the inodes are referenced and were locked this way.
        Self { dir, how }
    }
}

impl Drop for Unlocked {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the inodes are referenced, and `new` has unlocked them.
        unsafe {
            match self.how {
                How::Shared => bindings::rhist_relock_dir_shared(self.dir),
                How::Exclusive(child) => bindings::rhist_relock_dir(self.dir, child),
            }
        }
    }
}

/// # Safety
///
/// Must be called by the VFS, through [`inode_operations`], here or in
/// [`folder`](super::folder).
pub(super) unsafe extern "C" fn lookup<N: NodeOps>(
    dir: *mut bindings::inode,
    dentry: *mut bindings::dentry,
    _flags: ffi::c_uint,
) -> *mut bindings::dentry {
    // SAFETY: Only rhist's directories have these operations, and the VFS holds `i_rwsem` of `dir`.
    let (object, name) = unsafe { (object_of::<N>(dir), lookup_name(dentry)) };
    if object.removed() {
        // SAFETY: `dentry` holds a reference on its parent, which is the dentry of `dir`.
        return unsafe { forget::<N>((*dentry).d_parent, ENOENT) }.to_ptr();
    }
    let inode = match object.node.lookup(&object.real, name) {
        Ok(found) => {
            // SAFETY: The VFS passes a new dentry to `lookup`, and `found` holds a reference on the
            // kernel's.
            unsafe { bindings::rhist_keep_name(dentry, found.lasts_as.as_ptr()) };
            found.inode.into_raw()
        }
        Err(err) if err == ENOENT => ptr::null_mut(),
        Err(err) => return err.to_ptr(),
    };
    // SAFETY: The VFS passes a new dentry to `lookup`. `inode` is null, or comes with a reference
    // that `d_splice_alias` consumes.
    unsafe { bindings::d_splice_alias(inode, dentry) }
}

/// The result of `mkdir` of the inode operations: the directory or null; before 6.15, an errno or
/// 0.
trait MkdirResult {
    fn from_result(made: Result) -> Self;
}

impl MkdirResult for *mut bindings::dentry {
    fn from_result(made: Result) -> Self {
        made.map_or_else(Error::to_ptr, |()| ptr::null_mut())
    }
}

impl MkdirResult for ffi::c_int {
    fn from_result(made: Result) -> Self {
        made.map_or_else(Error::to_errno, |()| 0)
    }
}

/// # Safety
///
/// Must be called by the VFS, through [`inode_operations`].
unsafe extern "C" fn mkdir<N: NodeOps, R: MkdirResult>(
    idmap: *mut bindings::mnt_idmap,
    dir: *mut bindings::inode,
    dentry: *mut bindings::dentry,
    mode: bindings::umode_t,
) -> R {
    let made = || -> Result {
        // Dropped last, when the directory is locked again: unloading waits for that lock.
        let _pin = ModulePin::new()?;
        // SAFETY: Only rhist's directories have these operations, and the VFS holds `i_rwsem` of
        // `dir`.
        let (object, name) = unsafe { (object_of::<N>(dir), copied_name(dentry)?) };
        // SAFETY: The VFS has locked `dir`, and holds references. The module is pinned.
        let unlocked = unsafe { Unlocked::new(dir, How::Exclusive(ptr::null_mut())) };
        // SAFETY: The object holds a reference on the kernel's directory. `name` is valid for its
        // length, and the dcache copies it. The VFS passes a valid `idmap`.
        let err = unsafe {
            let len = name.len() as u32;
            bindings::rhist_mkdir(idmap, object.real.as_ptr(), name.as_ptr().cast(), len, mode)
        };
        drop(unlocked);
        to_result(err)?;
        // As in tracefs itself, the dentry stays negative, and the next lookup finds the directory,
        // even if another task has looked up the dentry meanwhile, and keeps it.
        // SAFETY: The VFS passes a dentry with a reference.
        unsafe { bindings::d_drop(dentry) };
        Ok(())
    };
    R::from_result(made())
}

/// # Safety
///
/// Must be called by the VFS, through [`inode_operations`].
unsafe extern "C" fn rmdir<N: NodeOps>(
    dir: *mut bindings::inode,
    dentry: *mut bindings::dentry,
) -> ffi::c_int {
    from_result(|| {
        // Dropped last, when the directories are locked again: unloading waits for these locks.
        let _pin = ModulePin::new()?;
        // SAFETY: Only rhist's directories have these operations, and the VFS holds `i_rwsem` of
        // `dir`.
        let (object, name) = unsafe { (object_of::<N>(dir), copied_name(dentry)?) };
        // SAFETY: The VFS has locked `dir` and the directory of `dentry`, and holds references. The
        // module is pinned.
        let _unlocked = unsafe { Unlocked::new(dir, How::Exclusive((*dentry).d_inode)) };
        // SAFETY: The object holds a reference on the kernel's directory, and `name` is valid for
        // its length.
        to_result(unsafe {
            let len = name.len() as u32;
            bindings::rhist_rmdir(object.real.as_ptr(), name.as_ptr().cast(), len)
        })?;
        object.node.child_removed();
        Ok(0)
    })
}

/// Opens the directory, and the kernel's directory that it mirrors.
///
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
        let object = unsafe { object_of::<N>(inode) };
        if object.real.removed() {
            // SAFETY: The VFS has set the path of `file`, which holds a reference on the dentry of
            // `inode`.
            return Err(unsafe { forget::<N>(dentry_of(file), ENOENT) });
        }
        // SAFETY: The VFS has set the path of `file`. The object holds a reference on the kernel's
        // directory.
        let real = unsafe { bindings::rhist_open_dir(file, object.real.as_ptr()) };
        let real = from_err_ptr(real)?;
        // SAFETY: `file` is not used by others before `open` returns. `release` drops the
        // reference.
        unsafe { (*file).private_data = real.cast() };
        pin.keep();
        Ok(0)
    })
}

/// # Safety
///
/// Must be called by the VFS, for a file opened by [`open`].
unsafe extern "C" fn release(
    _inode: *mut bindings::inode,
    file: *mut bindings::file,
) -> ffi::c_int {
    // SAFETY: `open` has called `ModulePin::keep`, and the VFS calls `release` once.
    let _pin = unsafe { ModulePin::from_file() };
    // SAFETY: `open` has put a reference on the kernel's open directory there, which is not used
    // afterwards.
    unsafe { bindings::fput(real_dir(file)) };
    0
}

/// Returns the kernel's open directory.
///
/// # Safety
///
/// `file` must have been opened by [`open`].
unsafe fn real_dir(file: *mut bindings::file) -> *mut bindings::file {
    // SAFETY: `open` has set `private_data`, and `file` is still open.
    unsafe { (*file).private_data.cast() }
}

/// # Safety
///
/// Must be called by the VFS, for a file opened by [`open`].
unsafe extern "C" fn fsync(
    file: *mut bindings::file,
    start: bindings::loff_t,
    end: bindings::loff_t,
    datasync: ffi::c_int,
) -> ffi::c_int {
    // SAFETY: `open` has opened the kernel's directory, which stays open during the call.
    unsafe { bindings::rhist_fsync(real_dir(file), start, end, datasync) }
}

/// The position of rhist's first entry. Positions in the kernel's directories are below it.
pub(super) const OURS: i64 = 1 << 40;

/// Moves the position: below [`OURS`] as the kernel's directory allows, above it freely.
///
/// # Safety
///
/// Must be called by the VFS, for a file opened by [`open`].
unsafe extern "C" fn llseek(
    file: *mut bindings::file,
    offset: bindings::loff_t,
    whence: ffi::c_int,
) -> bindings::loff_t {
    // SAFETY: The VFS calls `llseek` with `f_pos_lock` held. `open` has opened the kernel's
    // directory.
    unsafe {
        let here = (*file).f_pos;
        let (target, whence) = match whence as u32 {
            bindings::SEEK_CUR => (here.wrapping_add(offset), bindings::SEEK_SET),
            whence => (offset, whence),
        };
        let set = if target >= OURS && whence == bindings::SEEK_SET {
            target
        } else {
            bindings::vfs_llseek(real_dir(file), target, whence as ffi::c_int)
        };
        if set >= 0 {
            (*file).f_pos = set;
        }
        set
    }
}

/// Passes the entries of the kernel's directory on to the caller's context, except hidden ones.
///
/// # Invariants
///
/// `caller` is valid, and not used otherwise, while `ctx` is in use.
#[repr(C)]
struct ReaddirContext<'a, N: NodeOps> {
    /// First, so that a pointer to it is one to the [`ReaddirContext`].
    ctx: bindings::dir_context,
    caller: *mut bindings::dir_context,
    object: &'a Object<N>,
    /// Whether the caller's actor has returned false: its buffer is full.
    full: bool,
}

/// The actor of [`ReaddirContext`].
///
/// # Safety
///
/// `ctx` must point to the field of a [`ReaddirContext`] for the exclusive use of this call, and
/// `name` be valid for `len` bytes.
unsafe extern "C" fn filter_entry<N: NodeOps>(
    ctx: *mut bindings::dir_context,
    name: *const ffi::c_char,
    len: ffi::c_int,
    pos: bindings::loff_t,
    ino: u64,
    kind: ffi::c_uint,
) -> bool {
    // SAFETY: The caller guarantees that `ctx` is the first field of a `ReaddirContext` for the
    // exclusive use of this call.
    let filter = unsafe { &mut *ctx.cast::<ReaddirContext<'_, N>>() };
    // SAFETY: `iterate_shared` of the kernel's directory passes a name that is valid for `len`
    // bytes.
    let bytes = unsafe { core::slice::from_raw_parts(name.cast::<u8>(), len as usize) };
    if filter.object.node.hides(bytes) {
        return true;
    }
    // SAFETY: `caller` is valid by the type invariant, and `name` is valid for `len` bytes.
    let taken = unsafe { emit(filter.caller, name, len, pos, ino, kind) };
    filter.full |= !taken;
    taken
}

/// Emits an entry (`dir_emit()`). Returns false if the buffer is full.
///
/// # Safety
///
/// `ctx` must be valid and not be used otherwise during the call, and `name` be valid for `len`
/// bytes.
unsafe fn emit(
    ctx: *mut bindings::dir_context,
    name: *const ffi::c_char,
    len: ffi::c_int,
    pos: bindings::loff_t,
    ino: u64,
    kind: ffi::c_uint,
) -> bool {
    // SAFETY: `ctx` is valid, and its actor is called with the context itself and a valid name.
    unsafe {
        (*ctx)
            .actor
            .is_some_and(|actor| actor(ctx, name, len, pos, ino, kind))
    }
}

/// Lists the kernel's entries, then rhist's. Takes `i_rwsem` of the kernel's directory shared.
/// `i_rwsem` of rhist's is not needed: `f_pos_lock` keeps others from using the file.
///
/// # Safety
///
/// Must be called by the VFS, for a file opened by [`open`].
unsafe extern "C" fn iterate<N: NodeOps>(
    file: *mut bindings::file,
    ctx: *mut bindings::dir_context,
) -> ffi::c_int {
    // SAFETY: `file` is an open directory of rhist, which holds a reference on its inode.
    let object = unsafe { object_of::<N>((*file).f_inode) };
    // SAFETY: The VFS has locked the directory shared, and holds a reference. The open file pins
    // the module.
    let _unlocked = unsafe { Unlocked::new((*file).f_inode, How::Shared) };
    // SAFETY: The VFS passes a valid context for the exclusive use of this call.
    let mut pos = unsafe { (*ctx).pos };
    if pos < OURS {
        // INVARIANT: The VFS passes a valid context, and this function does not use it during
        // `iterate_dir`.
        let mut filter = ReaddirContext {
            ctx: bindings::dir_context {
                actor: Some(filter_entry::<N>),
                // SAFETY: The VFS passes a valid context.
                ..unsafe { *ctx }
            },
            caller: ctx,
            object,
            full: false,
        };
        // SAFETY: `open` has opened the kernel's directory, and `filter` outlives the call.
        let err = unsafe { bindings::iterate_dir(real_dir(file), &mut filter.ctx) };
        pos = filter.ctx.pos;
        // eventfs returns a positive number at the end of a directory.
        if err < 0 || filter.full {
            // SAFETY: The VFS passes a valid context, and `filter` does not use it any more.
            unsafe { (*ctx).pos = pos };
            return err.min(0);
        }
        // SAFETY: The VFS passes a valid context.
        unsafe { (*ctx).pos = OURS };
    }
    // SAFETY: The VFS passes a valid context, whose position is in rhist's entries.
    unsafe { emit_ours(object, ctx) }
}

/// Emits rhist's entries of a directory from the position of `ctx` on, which is at least [`OURS`].
/// Returns 0, or `ENOMEM` as a negative number.
///
/// # Safety
///
/// `ctx` must be valid, and not be used otherwise during the call.
pub(super) unsafe fn emit_ours<N: NodeOps>(
    object: &Object<N>,
    ctx: *mut bindings::dir_context,
) -> ffi::c_int {
    // SAFETY: The caller guarantees that the context is valid.
    let from = unsafe { (*ctx).pos } - OURS;
    let each = |index: u64, name: &[u8], kind: DentryKind| {
        let pos = OURS + index as i64;
        let len = name.len() as ffi::c_int;
        let kind = match kind {
            DentryKind::Dir => bindings::DT_DIR,
            DentryKind::File => bindings::DT_REG,
        };
        // An inode that was not looked up yet lacks a number. tracefs does not use 1.
        // SAFETY: The context is valid, and `name` is valid for its length.
        let taken = unsafe {
            (*ctx).pos = pos;
            emit(ctx, name.as_ptr().cast(), len, pos, 1, kind)
        };
        if taken {
            // SAFETY: The context is valid.
            unsafe { (*ctx).pos = pos + 1 };
        }
        taken
    };
    from_result(|| {
        object
            .node
            .entries(&object.real, from as u64, each)
            .map(|()| 0)
    })
}
