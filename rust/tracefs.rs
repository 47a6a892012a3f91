// SPDX-License-Identifier: GPL-2.0

//! A mirror of the tracing directory with files of ours in it.
//!
//! [`Mirror`] makes one directory in the root of tracefs. Whatever is looked up below it is looked
//! up in the kernel's own tracing directory at that moment, so events appear and vanish with the
//! kernel's. A directory becomes a directory of ours, which mirrors it in turn; a file becomes a
//! file of ours with the kernel's operations and the kernel's data. Files that an [`Overlay`]
//! names are put beside them, or in the place of the kernel's file of that name.
//!
//! # Lifetime
//!
//! Each object that was looked up is a [`Node`], which holds a reference on its inode and on the
//! kernel's dentry behind it. The nodes are kept in a tree until nobody but the tree holds the
//! inode, and are the means to make every inode useless when the module goes: a current
//! directory, an `O_PATH` descriptor or an inotify watch does not pin the module. An open file or
//! directory does, those with the kernel's operations included.
//!
//! # Locks
//!
//! `i_rwsem` of our directory, then `i_rwsem` of the kernel's directory that it mirrors; then, with
//! the latter released again, [`Mirror::nodes`].
//!
//! C headers: `include/linux/fs.h`, `include/linux/dcache.h`, `include/linux/tracefs.h`.

use super::bindings;
use core::ffi::CStr;
use core::ptr;
use kernel::error::code::*;
use kernel::error::to_result;
use kernel::ffi;
use kernel::prelude::*;
use kernel::rbtree::{
    RBTree,
    RBTreeNodeReservation, //
};
use kernel::sync::Mutex;
use kernel::uaccess::{
    UserPtr,
    UserSlice,
    UserSliceReader, //
};

/// The directories of a tracing directory that differ in what is in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Dir {
    /// The tracing directory itself.
    Root,
    /// `events/`
    Events,
    /// `events/<system>/`
    System,
    /// `events/<system>/<event>/`
    Event,
    /// Any other.
    Other,
}

impl Dir {
    /// What the directory `name` in this one is.
    fn child(self, name: &[u8]) -> Self {
        match self {
            Dir::Root if name == b"events" => Dir::Events,
            Dir::Events => Dir::System,
            Dir::System => Dir::Event,
            _ => Dir::Other,
        }
    }
}

/// The event in whose directory a file is.
#[derive(Clone, Copy)]
pub(crate) struct EventName<'a> {
    pub(crate) system: &'a CStr,
    pub(crate) event: &'a CStr,
}

/// A file of ours.
pub(crate) struct OverlayFile {
    pub(crate) name: &'static CStr,
    /// Permission bits.
    pub(crate) mode: u16,
    /// It exists only where the kernel has a file of this name.
    pub(crate) only_over: bool,
}

/// Files of ours in a mirrored tracing directory.
///
/// Every function is called in task context without locks and may sleep. A `file` is the index in
/// [`Overlay::files`] of the directory it is in; `event` is `None` outside of [`Dir::Event`].
pub(crate) trait Overlay: Send + Sync + 'static {
    /// What a file is read as.
    type Text: AsRef<[u8]> + Send + Unpin;

    /// The files of a directory of kind `dir`.
    fn files(dir: Dir) -> &'static [OverlayFile];

    /// The file is being opened, to be emptied first if `truncate`; an error is that of `open(2)`.
    fn open(&self, file: usize, event: Option<EventName<'_>>, truncate: bool) -> Result;

    /// The whole text of the file as it is now.
    fn read(&self, file: usize, event: Option<EventName<'_>>) -> Result<Self::Text>;

    /// One `write(2)` of at least one byte.
    fn write(
        &self,
        file: usize,
        event: Option<EventName<'_>>,
        data: &mut UserSliceReader,
    ) -> Result;
}

/// A reference on a dentry.
struct Dentry(ptr::NonNull<bindings::dentry>);

impl Dentry {
    /// Takes over the reference that a function of the kernel returned.
    ///
    /// # Safety
    ///
    /// `dentry` must be null, an `ERR_PTR` or a dentry with a reference for the caller.
    unsafe fn from_returned(dentry: *mut bindings::dentry) -> Result<Self> {
        let dentry = kernel::error::from_err_ptr(dentry)?;
        ptr::NonNull::new(dentry).map(Self).ok_or(ENOMEM)
    }

    fn as_ptr(&self) -> *mut bindings::dentry {
        self.0.as_ptr()
    }

    fn inode(&self) -> *mut bindings::inode {
        // SAFETY: A referenced dentry is valid. Those kept here are positive, and a dentry with a
        // reference does not become negative.
        unsafe { (*self.as_ptr()).d_inode }
    }

    fn mode(&self) -> u32 {
        // SAFETY: The inode of a referenced positive dentry is valid; its type never changes.
        u32::from(unsafe { (*self.inode()).i_mode })
    }

    /// The name; those of tracefs never change.
    fn name(&self) -> &CStr {
        // SAFETY: There is no rename in tracefs, so the name stays as it is while the dentry is
        // referenced; it ends in a NUL.
        unsafe { CStr::from_ptr(name_of(self.as_ptr()).cast()) }
    }

    /// The name of the directory that it is in.
    fn parent_name(&self) -> &CStr {
        // SAFETY: As above; a dentry holds a reference on its parent, which never changes here.
        unsafe { CStr::from_ptr(name_of((*self.as_ptr()).d_parent).cast()) }
    }
}

/// # Safety
///
/// `dentry` must be referenced.
unsafe fn name_of(dentry: *mut bindings::dentry) -> *const ffi::c_uchar {
    // SAFETY: By the contract; the fields of both names of the union are laid out alike.
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
struct Inode(ptr::NonNull<bindings::inode>);

impl Inode {
    fn as_ptr(&self) -> *mut bindings::inode {
        self.0.as_ptr()
    }

    /// A pointer with a reference of its own, for a dentry to keep.
    fn into_raw(self) -> *mut bindings::inode {
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

/// What an object of the mirror is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// A directory that mirrors `Node::real`.
    Dir(Dir),
    /// `Node::real`, a file of the kernel.
    Kernel,
    /// A file of ours, by its index in [`Overlay::files`], in the directory `Node::real`.
    Ours(Dir, usize),
}

/// An object of the mirror that somebody looked up.
///
/// It is at one address from [`Mirror::find_or_create`] until the tree lets it go, which is not
/// before its inode is out of everybody's reach, or has been revoked and a grace period is over.
#[repr(C)]
struct Node<T: Overlay> {
    /// The operations of a file of the kernel, with this module as the owner. First, so that
    /// `file->f_op` leads here.
    fops: bindings::file_operations,
    mirror: *const Mirror<T>,
    kind: Kind,
    real: Dentry,
    /// `None` only until [`Mirror::find_or_create`] has made it.
    inode: Option<Inode>,
}

// SAFETY: `mirror` outlives its nodes and is shared between threads anyway; the rest is `Send`.
unsafe impl<T: Overlay> Send for Node<T> {}

impl<T: Overlay> Node<T> {
    fn mirror(&self) -> &Mirror<T> {
        // SAFETY: The mirror is pinned and owns its nodes, so it outlives them.
        unsafe { &*self.mirror }
    }

    /// The event in whose directory a file of ours is.
    fn event(&self) -> Option<EventName<'_>> {
        match self.kind {
            Kind::Ours(Dir::Event, _) => Some(EventName {
                system: self.real.parent_name(),
                event: self.real.name(),
            }),
            _ => None,
        }
    }
}

/// Identifies an object: the kernel's dentry behind it and what it is of that.
type Key = (usize, Kind);

struct Nodes<T: Overlay> {
    /// The module is going: nothing is looked up any more.
    dead: bool,
    tree: RBTree<Key, KBox<Node<T>>>,
    len: usize,
    /// The length at which the tree is next searched for what nobody uses.
    sweep_at: usize,
}

/// Objects that are kept before the first search for unused ones: about 1 KiB each.
const SWEEP_MIN: usize = 512;

impl<T: Overlay> Nodes<T> {
    /// Takes out what nobody uses. The caller drops it without the lock.
    ///
    /// An inode gets its references under the lock of the nodes, or from somebody who has one. So
    /// if the tree has the only one, it stays so.
    fn sweep(&mut self) -> KVec<KBox<Node<T>>> {
        let mut unused = KVec::new();
        let mut cursor = self.tree.cursor_front_mut();
        while let Some(here) = cursor {
            let only_ours = match &here.current().1.inode {
                // SAFETY: The node holds a reference on the inode.
                Some(inode) => unsafe { bindings::rhist_inode_only_ours(inode.as_ptr()) },
                None => false,
            };
            // Without memory for the list the rest has to wait for the next time.
            if only_ours && unused.reserve(1, GFP_KERNEL).is_ok() {
                let (next, node) = here.remove_current();
                let _ = unused.push_within_capacity(node.to_key_value().1);
                cursor = next;
            } else {
                cursor = here.move_next();
            }
        }
        self.len -= unused.len();
        self.sweep_at = core::cmp::max(SWEEP_MIN, 2 * self.len);
        unused
    }
}

/// The directory in tracefs with everything below it; see the module's documentation.
///
/// Dropping it removes the directory. No file of it is open then, since each pins the module.
#[pin_data(PinnedDrop)]
pub(crate) struct Mirror<T: Overlay> {
    overlay: T,
    name: &'static CStr,
    module: *mut bindings::module,
    dir_iops: bindings::inode_operations,
    dir_fops: bindings::file_operations,
    file_fops: bindings::file_operations,
    #[pin]
    nodes: Mutex<Nodes<T>>,
    /// The directory; null until [`Mirror::new`] has made it.
    top: core::cell::Cell<*mut bindings::dentry>,
}

// SAFETY: `top` is written before and after the time that it is shared; the operations are
// constant; the rest is `Send` and `Sync`.
unsafe impl<T: Overlay> Send for Mirror<T> {}
// SAFETY: As above.
unsafe impl<T: Overlay> Sync for Mirror<T> {}

impl<T: Overlay> Mirror<T> {
    /// Makes the directory `name` in the root of tracefs.
    ///
    /// # Errors
    ///
    /// `EPERM` if the kernel is locked down, `EEXIST` if the name is taken, `ENOMEM`.
    pub(crate) fn new(
        module: &'static ThisModule,
        name: &'static CStr,
        overlay: T,
    ) -> Result<Pin<KBox<Self>>> {
        // SAFETY: No requirements.
        to_result(unsafe { bindings::rhist_locked_down() })?;
        let owner = module.as_ptr().cast();
        let mirror = KBox::pin_init(
            pin_init!(Self {
                overlay,
                name,
                module: owner,
                dir_iops: bindings::inode_operations {
                    lookup: Some(lookup::<T>),
                    mkdir: Some(mkdir::<T>),
                    rmdir: Some(rmdir::<T>),
                    ..Default::default()
                },
                dir_fops: bindings::file_operations {
                    owner,
                    open: Some(dir_open::<T>),
                    iterate_shared: Some(dir_iterate::<T>),
                    llseek: Some(dir_llseek),
                    read: Some(bindings::generic_read_dir),
                    release: Some(dir_release),
                    ..Default::default()
                },
                file_fops: bindings::file_operations {
                    owner,
                    open: Some(file_open::<T>),
                    read: Some(file_read::<T>),
                    write: Some(file_write::<T>),
                    llseek: Some(file_llseek),
                    release: Some(file_release::<T>),
                    ..Default::default()
                },
                nodes <- kernel::new_mutex!(Nodes {
                    dead: false,
                    tree: RBTree::new(),
                    len: 0,
                    sweep_at: SWEEP_MIN,
                }),
                top: core::cell::Cell::new(ptr::null_mut()),
            }),
            GFP_KERNEL,
        )?;

        // SAFETY: `name` ends in a NUL.
        let root = unsafe { bindings::rhist_tracefs_root(name.as_ptr().cast()) };
        // SAFETY: The root comes with a reference.
        let root = unsafe { Dentry::from_returned(root) }.map_err(|_| EEXIST)?;
        let inode = mirror.find_or_create(root.clone(), Kind::Dir(Dir::Root))?;
        // SAFETY: Both are referenced; the new directory takes a reference of its own.
        let top = kernel::error::from_err_ptr(unsafe {
            bindings::rhist_create_dir(root.as_ptr(), name.as_ptr().cast(), inode.as_ptr())
        })?;
        mirror.top.set(top);
        Ok(mirror)
    }

    /// The inode for `kind` of the kernel's `real`.
    fn find_or_create(&self, real: Dentry, kind: Kind) -> Result<Inode> {
        let key = (real.as_ptr() as usize, kind);
        let reservation = RBTreeNodeReservation::new(GFP_KERNEL)?;
        // Declared before the lock is taken, so dropped after it was released.
        let _unused;
        let mut nodes = self.nodes.lock();

        if nodes.dead {
            return Err(ENOENT);
        }
        if let Some(inode) = nodes.tree.get(&key).and_then(|node| node.inode.clone()) {
            return Ok(inode);
        }
        let (node, inode) = self.create(real, kind)?;
        nodes.tree.insert(reservation.into_node(key, node));
        nodes.len += 1;
        _unused = if nodes.len >= nodes.sweep_at {
            nodes.sweep()
        } else {
            KVec::new()
        };
        Ok(inode)
    }

    /// A new node and a reference on its inode.
    fn create(&self, real: Dentry, kind: Kind) -> Result<(KBox<Node<T>>, Inode)> {
        let like = real.inode();
        let mut node = KBox::new(
            Node {
                fops: Default::default(),
                mirror: self,
                kind,
                real,
                inode: None,
            },
            GFP_KERNEL,
        )?;
        let this: *mut ffi::c_void = ptr::from_mut(&mut *node).cast();
        let (mode, iops, fops, private) = match kind {
            Kind::Dir(_) => (0, &raw const self.dir_iops, &raw const self.dir_fops, this),
            Kind::Ours(dir, file) => {
                let mode = T::files(dir).get(file).ok_or(ENOENT)?.mode;
                let mode = bindings::S_IFREG as u16 | mode;
                (mode, ptr::null(), &raw const self.file_fops, this)
            }
            Kind::Kernel => {
                // SAFETY: `like` is the inode of a file of the kernel, which has operations.
                let fops = unsafe { bindings::rhist_inode_fop(like) };
                // SAFETY: As above; operations are valid as long as the file can be opened.
                let real_fops = unsafe { *fops };
                if real_fops.owner.is_null() {
                    node.fops = bindings::file_operations {
                        owner: self.module,
                        open: Some(kernel_open::<T>),
                        ..real_fops
                    };
                    (0, ptr::null(), &raw const node.fops, ptr::null_mut())
                } else {
                    // Another module's file: opening it has to pin that module.
                    (0, ptr::null(), fops, ptr::null_mut())
                }
            }
        };
        // SAFETY: `like` is valid while the node holds its dentry. The operations and `private`
        // are in the mirror, which is pinned, or in the node, which is boxed; both outlive the use
        // of the inode, as the documentation of `Node` says.
        let inode = unsafe { bindings::rhist_new_inode(like, mode, iops, fops, private) };
        let inode = Inode(ptr::NonNull::new(inode).ok_or(ENOMEM)?);
        node.inode = Some(inode.clone());
        Ok((node, inode))
    }

    /// Is `name` in the kernel's directory not to be shown?
    fn hides(&self, dir: Dir, name: &[u8]) -> bool {
        // A mirror inside the mirror would have no end.
        (dir == Dir::Root && name == self.name.to_bytes())
            || T::files(dir)
                .iter()
                .any(|file| file.name.to_bytes() == name)
    }

    /// Looks a name up in the directory `node`.
    fn lookup(&self, node: &Node<T>, dir: Dir, name: &[u8]) -> Result<Inode> {
        if let Some(index) = T::files(dir)
            .iter()
            .position(|file| file.name.to_bytes() == name)
        {
            if T::files(dir)[index].only_over {
                lookup_real(&node.real, name)?;
            }
            return self.find_or_create(node.real.clone(), Kind::Ours(dir, index));
        }
        if self.hides(dir, name) {
            return Err(ENOENT);
        }
        let real = lookup_real(&node.real, name)?;
        match real.mode() & bindings::S_IFMT {
            bindings::S_IFDIR => self.find_or_create(real, Kind::Dir(dir.child(name))),
            bindings::S_IFREG => self.find_or_create(real, Kind::Kernel),
            _ => Err(ENOENT),
        }
    }
}

#[pinned_drop]
impl<T: Overlay> PinnedDrop for Mirror<T> {
    fn drop(self: Pin<&mut Self>) {
        let tree = {
            let mut nodes = self.nodes.lock();
            nodes.dead = true;
            core::mem::replace(&mut nodes.tree, RBTree::new())
        };
        for inode in tree.values().filter_map(|node| node.inode.as_ref()) {
            // SAFETY: The node holds a reference; no lock is held.
            unsafe { bindings::rhist_inode_revoke(inode.as_ptr()) };
        }
        if !self.top.get().is_null() {
            // SAFETY: Made by `rhist_create_dir`, and its inode was the first of the nodes.
            unsafe { bindings::rhist_remove_dir(self.top.get()) };
        }
        // What reads `i_op` and `i_fop` without a lock does so without sleeping: in a walk under
        // RCU, or between two statements of a task, which RCU-tasks waits for.
        // SAFETY: Task context without locks.
        unsafe {
            bindings::synchronize_rcu();
            bindings::synchronize_rcu_tasks();
        }
        drop(tree);
    }
}

/// A name in a directory of the kernel.
fn lookup_real(dir: &Dentry, name: &[u8]) -> Result<Dentry> {
    // SAFETY: `dir` is referenced; the name is copied where it is kept.
    unsafe {
        Dentry::from_returned(bindings::rhist_lookup(
            dir.as_ptr(),
            name.as_ptr().cast(),
            name.len() as u32,
        ))
    }
}

/// The node of an inode of ours that is a directory or a file of the overlay.
///
/// # Safety
///
/// `inode` must be such an inode, in the hands of the caller while the result is used: locked, or
/// with an open file.
unsafe fn node_of<'a, T: Overlay>(inode: *mut bindings::inode) -> &'a Node<T> {
    // SAFETY: `i_private` of such inodes is the node, which is not let go of while the inode is in
    // somebody's hands.
    unsafe { &*bindings::rhist_inode_private(inode).cast::<Node<T>>() }
}

/// The name of a dentry that is being looked up or made.
///
/// # Safety
///
/// The directory of `dentry` must be locked while the result is used.
unsafe fn lookup_name<'a>(dentry: *mut bindings::dentry) -> &'a [u8] {
    // SAFETY: By the contract the name is stable; it has `len` bytes.
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

// The functions below are called by the VFS: in task context, directory operations with the
// directory locked, file operations with the file open.

/// # Safety
///
/// For `inode_operations` of directories of a mirror only.
unsafe extern "C" fn lookup<T: Overlay>(
    dir: *mut bindings::inode,
    dentry: *mut bindings::dentry,
    _flags: ffi::c_uint,
) -> *mut bindings::dentry {
    // SAFETY: The VFS has the directory locked.
    let (node, name) = unsafe { (node_of::<T>(dir), lookup_name(dentry)) };
    let Kind::Dir(kind) = node.kind else {
        return ENOTDIR.to_ptr();
    };
    let inode = match node.mirror().lookup(node, kind, name) {
        Ok(inode) => inode.into_raw(),
        Err(err) if err == ENOENT => ptr::null_mut(),
        Err(err) => return err.to_ptr(),
    };
    // SAFETY: `dentry` is the one to be looked up; the reference on the inode is handed over.
    unsafe { bindings::d_splice_alias(inode, dentry) }
}

/// # Safety
///
/// For `inode_operations` of directories of a mirror only.
unsafe extern "C" fn mkdir<T: Overlay>(
    idmap: *mut bindings::mnt_idmap,
    dir: *mut bindings::inode,
    dentry: *mut bindings::dentry,
    mode: bindings::umode_t,
) -> *mut bindings::dentry {
    // SAFETY: The VFS has the directory locked.
    let (node, name) = unsafe { (node_of::<T>(dir), lookup_name(dentry)) };
    // SAFETY: The node holds the kernel's directory; the name is copied where it is kept.
    let err = unsafe {
        let len = name.len() as u32;
        bindings::rhist_mkdir(idmap, node.real.as_ptr(), name.as_ptr().cast(), len, mode)
    };
    // As in tracefs itself, the dentry stays negative and the directory is found by a look-up.
    to_result(err).map_or_else(Error::to_ptr, |()| ptr::null_mut())
}

/// # Safety
///
/// For `inode_operations` of directories of a mirror only.
unsafe extern "C" fn rmdir<T: Overlay>(
    dir: *mut bindings::inode,
    dentry: *mut bindings::dentry,
) -> ffi::c_int {
    // SAFETY: The VFS has the directory locked.
    let (node, name) = unsafe { (node_of::<T>(dir), lookup_name(dentry)) };
    // SAFETY: The node holds the kernel's directory.
    unsafe { bindings::rhist_rmdir(node.real.as_ptr(), name.as_ptr().cast(), name.len() as u32) }
}

/// A directory that is read: the kernel's entries first, then those of ours.
///
/// # Safety
///
/// For `file_operations` of directories of a mirror only.
unsafe extern "C" fn dir_open<T: Overlay>(
    inode: *mut bindings::inode,
    file: *mut bindings::file,
) -> ffi::c_int {
    // SAFETY: The file is being opened, and keeps the inode.
    let node = unsafe { node_of::<T>(inode) };
    // SAFETY: `file` has its path; the node holds the kernel's directory.
    let real = unsafe { bindings::rhist_open_dir(file, node.real.as_ptr()) };
    kernel::error::from_result(|| {
        let real = kernel::error::from_err_ptr(real)?;
        // SAFETY: The file is ours while it is opened. `dir_release` gives the reference back.
        unsafe { (*file).private_data = real.cast() };
        Ok(0)
    })
}

/// # Safety
///
/// For files opened by [`dir_open`] only.
unsafe extern "C" fn dir_release(
    _inode: *mut bindings::inode,
    file: *mut bindings::file,
) -> ffi::c_int {
    // SAFETY: Put there by `dir_open`.
    unsafe { bindings::fput(real_dir(file)) };
    0
}

/// # Safety
///
/// `file` must have been opened by [`dir_open`].
unsafe fn real_dir(file: *mut bindings::file) -> *mut bindings::file {
    // SAFETY: By the contract.
    unsafe { (*file).private_data.cast() }
}

/// The position of the first entry of ours; those of the kernel's directories are small numbers.
const OURS: i64 = 1 << 40;

/// # Safety
///
/// For files opened by [`dir_open`] only.
unsafe extern "C" fn dir_llseek(
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
struct Filter<'a, T: Overlay> {
    /// First, so that the pointer to it leads here.
    ctx: bindings::dir_context,
    caller: *mut bindings::dir_context,
    node: &'a Node<T>,
    dir: Dir,
    full: bool,
}

/// # Safety
///
/// `ctx` must be that of a [`Filter`].
unsafe extern "C" fn filter_entry<T: Overlay>(
    ctx: *mut bindings::dir_context,
    name: *const ffi::c_char,
    len: ffi::c_int,
    pos: bindings::loff_t,
    ino: u64,
    kind: ffi::c_uint,
) -> bool {
    // SAFETY: By the contract, and nobody else has it while the directory is read.
    let filter = unsafe { &mut *ctx.cast::<Filter<'_, T>>() };
    // SAFETY: The name has `len` bytes.
    let bytes = unsafe { core::slice::from_raw_parts(name.cast::<u8>(), len as usize) };
    if filter.node.mirror().hides(filter.dir, bytes) {
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

/// # Safety
///
/// For files opened by [`dir_open`] only.
unsafe extern "C" fn dir_iterate<T: Overlay>(
    file: *mut bindings::file,
    ctx: *mut bindings::dir_context,
) -> ffi::c_int {
    // SAFETY: The directory is open and locked, the context valid.
    let (node, caller) = unsafe { (node_of::<T>((*file).f_inode), &mut *ctx) };
    let Kind::Dir(dir) = node.kind else {
        return ENOTDIR.to_errno();
    };
    if caller.pos < OURS {
        let mut filter = Filter {
            ctx: bindings::dir_context {
                actor: Some(filter_entry::<T>),
                ..*caller
            },
            caller: ctx,
            node,
            dir,
            full: false,
        };
        // SAFETY: The kernel's directory is open; the filter lives as long as the call.
        let err = unsafe { bindings::iterate_dir(real_dir(file), &mut filter.ctx) };
        caller.pos = filter.ctx.pos;
        // eventfs returns a positive number at the end of a directory.
        if err < 0 || filter.full {
            return err;
        }
        caller.pos = OURS;
    }
    for (index, ours) in T::files(dir).iter().enumerate() {
        if (index as i64) < caller.pos - OURS {
            continue;
        }
        let name = ours.name.to_bytes();
        let exists = !ours.only_over || lookup_real(&node.real, name).is_ok();
        // SAFETY: The context is valid. The number of an inode that nobody looked up yet is not
        // known: 1 says so, as eventfs does with its own constant.
        let room = !exists
            || unsafe {
                let len = name.len() as ffi::c_int;
                emit(
                    ctx,
                    name.as_ptr().cast(),
                    len,
                    caller.pos,
                    1,
                    bindings::DT_REG,
                )
            };
        if !room {
            break;
        }
        caller.pos += 1;
    }
    0
}

/// Opens a file with the kernel's operations.
///
/// # Safety
///
/// For `file_operations` in a [`Node`] of kind [`Kind::Kernel`] only.
unsafe extern "C" fn kernel_open<T: Overlay>(
    inode: *mut bindings::inode,
    file: *mut bindings::file,
) -> ffi::c_int {
    // SAFETY: The operations of the file are those in the node, at its very beginning.
    let node = unsafe { &*(*file).f_op.cast::<Node<T>>() };
    // The kernel removed the file, and what it works on may be gone, while somebody held ours.
    // SAFETY: The node holds the dentry.
    if unsafe { bindings::rhist_unhashed(node.real.as_ptr()) } {
        return ENODEV.to_errno();
    }
    // SAFETY: The inode of the dentry is a file of the kernel. Its `open` is given an inode that
    // differs in nothing that it looks at.
    unsafe {
        let real = bindings::rhist_inode_fop(node.real.inode());
        (*real).open.map_or(0, |open| open(inode, file))
    }
}

/// An open file of the overlay: the text that is being read.
#[pin_data]
struct OpenFile<T: Overlay> {
    /// Made by a read at the beginning of the file.
    #[pin]
    text: Mutex<Option<T::Text>>,
}

/// # Safety
///
/// `file` must have been opened by [`file_open`].
unsafe fn open_file<'a, T: Overlay>(file: *mut bindings::file) -> &'a OpenFile<T> {
    // SAFETY: By the contract; it is there until `file_release`.
    unsafe { &*(*file).private_data.cast() }
}

/// The node, the index of the file and the overlay of an open file.
///
/// # Safety
///
/// `inode` must be that of a file of the overlay that is open.
unsafe fn overlay_of<'a, T: Overlay>(inode: *mut bindings::inode) -> (&'a T, usize, &'a Node<T>) {
    // SAFETY: By the contract.
    let node = unsafe { node_of::<T>(inode) };
    let file = match node.kind {
        Kind::Ours(_, file) => file,
        _ => 0,
    };
    (&node.mirror().overlay, file, node)
}

/// # Safety
///
/// For `file_operations` of files of the overlay only.
unsafe extern "C" fn file_open<T: Overlay>(
    inode: *mut bindings::inode,
    file: *mut bindings::file,
) -> ffi::c_int {
    kernel::error::from_result(|| {
        // SAFETY: No requirements.
        to_result(unsafe { bindings::rhist_locked_down() })?;
        // SAFETY: The file is being opened.
        let (overlay, index, node) = unsafe { overlay_of::<T>(inode) };
        // SAFETY: As above.
        let (mode, flags) = unsafe { ((*file).f_mode, (*file).f_flags) };
        let write = mode & bindings::RHIST_FMODE_WRITE != 0;
        let open = KBox::pin_init(
            pin_init!(OpenFile::<T> { text <- kernel::new_mutex!(None) }),
            GFP_KERNEL,
        )?;
        let truncate = write && flags & bindings::O_TRUNC != 0;
        overlay.open(index, node.event(), truncate)?;
        // SAFETY: Nothing moves it out of the box until `file_release`.
        let open = KBox::into_raw(unsafe { Pin::into_inner_unchecked(open) });
        // SAFETY: The file is ours while it is opened.
        unsafe { (*file).private_data = open.cast() };
        Ok(0)
    })
}

/// # Safety
///
/// For files opened by [`file_open`] only.
unsafe extern "C" fn file_release<T: Overlay>(
    _inode: *mut bindings::inode,
    file: *mut bindings::file,
) -> ffi::c_int {
    // SAFETY: `file_open` put a box there, and this is the end of the file.
    drop(unsafe { KBox::from_raw((*file).private_data.cast::<OpenFile<T>>()) });
    0
}

/// # Safety
///
/// For files opened by [`file_open`] only.
unsafe extern "C" fn file_read<T: Overlay>(
    file: *mut bindings::file,
    buf: *mut ffi::c_char,
    count: usize,
    pos: *mut bindings::loff_t,
) -> isize {
    let read = || {
        // SAFETY: The file is open, and `pos` is valid.
        let (overlay, index, node) = unsafe { overlay_of::<T>((*file).f_inode) };
        // SAFETY: As above.
        let (open, at) = unsafe { (open_file::<T>(file), *pos) };
        let mut text = open.text.lock();
        if at == 0 || text.is_none() {
            *text = None;
            *text = Some(overlay.read(index, node.event())?);
        }
        let bytes: &[u8] = text.as_ref().map_or(&[], AsRef::as_ref);
        // SAFETY: `bytes` is valid for its length; the rest is what the VFS gave.
        let done = unsafe {
            bindings::simple_read_from_buffer(
                buf.cast(),
                count,
                pos,
                bytes.as_ptr().cast(),
                bytes.len(),
            )
        };
        Ok::<isize, Error>(done)
    };
    read().unwrap_or_else(|err| err.to_errno() as isize)
}

/// # Safety
///
/// For files opened by [`file_open`] only.
unsafe extern "C" fn file_write<T: Overlay>(
    file: *mut bindings::file,
    buf: *const ffi::c_char,
    count: usize,
    pos: *mut bindings::loff_t,
) -> isize {
    if count == 0 {
        return 0;
    }
    // SAFETY: The file is open.
    let (overlay, index, node) = unsafe { overlay_of::<T>((*file).f_inode) };
    let mut data = UserSlice::new(UserPtr::from_ptr(buf.cast_mut().cast()), count).reader();
    match overlay.write(index, node.event(), &mut data) {
        Ok(()) => {
            // SAFETY: `pos` is valid.
            unsafe { *pos = (*pos).wrapping_add(count as i64) };
            count as isize
        }
        Err(err) => err.to_errno() as isize,
    }
}

/// As a sequence file if it can be read; otherwise there is only one position.
///
/// # Safety
///
/// For files opened by [`file_open`] only.
unsafe extern "C" fn file_llseek(
    file: *mut bindings::file,
    offset: bindings::loff_t,
    whence: ffi::c_int,
) -> bindings::loff_t {
    // SAFETY: `llseek` is called with the position locked.
    unsafe {
        let target = if (*file).f_mode & bindings::RHIST_FMODE_READ == 0 {
            Some(0)
        } else {
            match whence as u32 {
                bindings::SEEK_SET => Some(offset),
                bindings::SEEK_CUR => (*file).f_pos.checked_add(offset),
                _ => None,
            }
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
