// SPDX-License-Identifier: GPL-2.0

//! Objects: rhist's directories and files in tracefs, each for a dentry of the kernel, and their
//! lifetime.
//!
//! # Lifetime
//!
//! An [`Object`] holds a reference on its inode and on the kernel's dentry that it is for. The tree
//! of [`Objects`] keeps it while the inode has another reference. On unload, every inode in the
//! tree is revoked: an open file or directory pins the module, but a current directory, an `O_PATH`
//! descriptor or an inotify watch does not.
//!
//! # Locks
//!
//! `i_rwsem` of a directory of the kernel -> `i_rwsem` of a directory of rhist (`rename(2)`).
//! `i_rwsem` of a directory of rhist -> `Objects::tree`.
//!
//! So a task that holds `i_rwsem` of a directory of rhist only tries to lock a directory of the
//! kernel. Where the VFS permits that, it unlocks rhist's directory first: see [`dir`].
//!
//! C headers: `include/linux/fs.h`, `include/linux/dcache.h`, `include/linux/tracefs.h`.

use super::{
    attributes,
    dentry::{
        CreatedDentry,
        Dentry,
        Inode, //
    },
    dir,
    file::{
        self,
        KernelFops, //
    },
    gate,
    Access,
    KernelFile,
    SpecialFops,
    UserBuffer, //
};
use crate::rust::{
    bindings,
    poll::{
        Mask,
        PollTable, //
    },
    shrinker::{
        Shrink,
        Shrinker, //
    },
};
use core::{
    ffi::CStr,
    ptr, //
};
use kernel::{
    error::to_result,
    ffi,
    mm::virt::VmaNew,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNodeReservation, //
    },
    sync::{
        Arc,
        Mutex, //
    },
};

/// The contents of a file, which are read in pieces. Task context, may sleep.
pub(crate) trait Contents: Send + Unpin {
    /// A piece of the text.
    type Piece: AsRef<[u8]> + Send + Sync;

    /// Returns the next piece, which is not empty; `None` at the end. After an error, the next call
    /// returns the piece that this one should have returned.
    fn next_piece(&mut self) -> Result<Option<Arc<Self::Piece>>>;

    /// Starts again with the first piece.
    fn rewind(&mut self);
}

/// Callbacks of an object, implemented by `src/mirror/`.
///
/// Every function is called in task context and may sleep, without locks unless documented
/// otherwise. `real` is the kernel's dentry that the object is for: the directory that a directory
/// mirrors, the directory that a file of rhist is in, or the kernel's file. The callers check first
/// that the kernel has not removed it.
pub(crate) trait NodeOps: Send + Sync + Sized + 'static {
    /// Identifies an object among the objects for the same dentry of the kernel.
    type Id: Copy + Ord + Send + Unpin;

    /// The contents of a file, kept while it is read.
    type Contents: Contents;

    /// State of an open file.
    type OpenState: Send + Sync;

    /// Looks up a name in a directory; `ENOENT` if it does not exist. Called with `i_rwsem` of
    /// rhist's directory held: see [`Dentry::lookup_nested`].
    fn lookup(&self, real: &Dentry, name: &[u8]) -> Result<LookedUp>;

    /// Returns whether `readdir` leaves out this name of the kernel's directory. Called with
    /// `i_rwsem` of the kernel's directory held shared.
    fn hides(&self, name: &[u8]) -> bool;

    /// Lists rhist's names in a directory, each at a fixed index; `None` for a name that does not
    /// exist now.
    fn names(&self, real: &Dentry) -> impl Iterator<Item = Option<&'static CStr>>;

    /// Notifies of a subdirectory that `rmdir(2)` has removed.
    fn child_removed(&self);

    /// Looks up, in the kernel's directory, the file that a file of rhist replaces, or which is
    /// opened with it; `ENOENT` if it does not exist. May take `i_rwsem` of the kernel's directory.
    fn behind(&self, real: &Dentry) -> Result<Dentry>;

    /// Opens a file, and truncates it if `truncate` is set. An error is returned by `open(2)`.
    /// `kernel` is open already, and was not truncated; here and below it is `None` for a list of
    /// triggers that can only be read and is empty.
    fn open(
        &self,
        real: &Dentry,
        kernel: Option<&KernelFile>,
        truncate: bool,
    ) -> Result<Self::OpenState>;

    /// Returns the contents of a file as they are now.
    fn read(
        &self,
        real: &Dentry,
        kernel: Option<&KernelFile>,
        open: &Self::OpenState,
    ) -> Result<Self::Contents>;

    /// Handles one `write(2)`. Returns the number of bytes by which the position of the file moves.
    fn write(&self, real: &Dentry, kernel: Option<&KernelFile>, data: &UserBuffer)
        -> Result<usize>;

    /// Queues the caller of `poll(2)` with `table`, then returns the events that the file is ready
    /// for. An error is reported as [`poll::ERR`](crate::rust::poll::ERR). Not called if `kernel`
    /// reports that already.
    fn poll(
        &self,
        real: &Dentry,
        kernel: Option<&KernelFile>,
        open: &Self::OpenState,
        table: &PollTable<'_>,
    ) -> Result<Mask>;

    /// Handles one `mmap(2)`; `ENODEV` for a file that cannot be mapped. Called with mmap_lock held
    /// for writing. The mapping keeps the file open.
    fn map(&self, real: &Dentry, kernel: Option<&KernelFile>, vma: &VmaNew) -> Result;
}

/// Result of the lookup of a name in a directory of rhist.
pub(crate) struct LookedUp {
    pub(crate) inode: Inode,
    /// The kernel's file or directory with whose removal the name becomes stale. If that is below
    /// `events/`, the name stays in the dentry cache until then.
    pub(crate) lasts_as: Dentry,
}

/// The kind of an object.
pub(crate) enum ObjectType {
    /// A directory that mirrors one of the kernel's.
    Dir,
    /// A file of the kernel, with the kernel's operations and data.
    Kernel,
    /// A file of rhist. Without `polls` it is always ready, and `epoll_ctl(2)` fails with `EPERM`.
    /// Without `writes`, `write(2)` fails with `EINVAL`.
    File {
        access: Access,
        polls: bool,
        writes: bool,
    },
    /// A file of rhist with its own file operations.
    Special {
        access: Access,
        operations: Arc<SpecialFops>,
    },
}

/// A directory or file of rhist that was looked up.
///
/// # Invariants
///
/// - The object does not move, and is dropped only when the tree has the last reference on its
///   inode, or a grace period after the inode was revoked. Until then the inode may point to it and
///   to objects that it owns.
/// - `i_private` of the inode of an [`ObjectType::Dir`] or [`ObjectType::File`] points to the
///   object.
/// - `i_fop` of the inode of an [`ObjectType::Kernel`] points to `fops`.
#[repr(C)]
pub(super) struct Object<N: NodeOps> {
    /// The operations of [`ObjectType::Kernel`]. First, so that `file->f_op` points to the object.
    fops: bindings::file_operations,
    /// The operations of the kernel's file, from which `fops` was copied. Valid while a file is
    /// open with `fops`: see [`KernelFops`].
    pub(super) real_fops: *const bindings::file_operations,
    pub(super) real: Dentry,
    pub(super) node: N,
    /// Keeps the operations of [`ObjectType::Special`] valid.
    _operations: Option<Arc<SpecialFops>>,
    /// `None` only during [`Objects::create`].
    inode: Option<Inode>,
}

impl<N: NodeOps> Object<N> {
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

/// Identifies an object: the address of the kernel's dentry, and the key of the node.
type ObjectId<N> = (usize, <N as NodeOps>::Id);

struct ObjectTree<N: NodeOps> {
    /// Whether the module is unloading: lookups fail then.
    dead: bool,
    objects: RBTree<ObjectId<N>, KBox<Object<N>>>,
    len: usize,
    /// The next sweep runs when `len` reaches this.
    sweep_at: usize,
}

/// The smallest number of objects at which the tree is swept. Each takes about 1 KiB.
const SWEEP_MIN: usize = 512;

impl<N: NodeOps> ObjectTree<N> {
    /// Removes unused objects, and returns them for the caller to drop after it has released the
    /// lock.
    ///
    /// A new reference on an inode needs the tree locked or an existing reference. So if the tree's
    /// reference is the last one, it remains so while the tree is locked.
    fn sweep(&mut self) -> KVec<KBox<Object<N>>> {
        let mut unused = KVec::new();
        let mut cursor = self.objects.cursor_front_mut();
        while let Some(here) = cursor {
            let object = here.current().1;
            let inode = object.inode.as_ref();
            // If the list cannot grow, the next sweep removes the rest.
            if inode.is_some_and(|inode| inode.is_unused(object.real.removed()))
                && unused.reserve(1, GFP_KERNEL).is_ok()
            {
                let (next, object) = here.remove_current();
                let _ = unused.push_within_capacity(object.to_key_value().1);
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

/// All objects. Must be [closed](Objects::close) before it is dropped.
#[pin_data]
pub(crate) struct Objects<N: NodeOps> {
    /// Names stay in the dentry cache, and so do their objects. Once the kernel has freed the
    /// names, this frees the objects. `None` when closed: freed objects may hold references on
    /// `self`.
    #[pin]
    shrinker: Mutex<Option<Shrinker<Self>>>,
    /// Inode operations of the directory that mirrors the root, which has a mode and owner of its
    /// own.
    top_iops: bindings::inode_operations,
    dir_iops: bindings::inode_operations,
    dir_fops: bindings::file_operations,
    file_iops: bindings::inode_operations,
    read_fops: bindings::file_operations,
    write_fops: bindings::file_operations,
    polled_fops: bindings::file_operations,
    /// Inode operations for [`ObjectType::Kernel`].
    kernel_iops: bindings::inode_operations,
    #[pin]
    tree: Mutex<ObjectTree<N>>,
    /// A revoked inode. [`Objects::close`] copies its `i_fop`, which are the kernel's.
    bad: Inode,
}

// SAFETY: The operations are constant: addresses of functions and of a static. The rest is `Send`,
// including the contents of the tree: `Dentry`, `Inode`, `Arc<SpecialFops>` and the nodes
// (`NodeOps: Send`).
unsafe impl<N: NodeOps> Send for Objects<N> {}
// SAFETY: The operations are constant, the tree is in a mutex, and the rest is `Sync`.
unsafe impl<N: NodeOps> Sync for Objects<N> {}

impl<N: NodeOps> Objects<N> {
    /// Creates an empty tree for the file system of `root`. Fails with `ENOMEM`.
    pub(crate) fn new(root: &Dentry) -> Result<impl PinInit<Self>> {
        let bad = Inode::revoked(root)?;
        let shrinker = Shrinker::new(c"rhist")?;
        let objects = pin_init!(Self {
            shrinker <- kernel::new_mutex!(Some(shrinker)),
            top_iops: dir::inode_operations::<N>(attributes::own()),
            dir_iops: dir::inode_operations::<N>(attributes::mirrored::<N>()),
            dir_fops: dir::file_operations::<N>(),
            file_iops: attributes::own(),
            read_fops: file::file_operations::<N>(false, false),
            write_fops: file::file_operations::<N>(false, true),
            polled_fops: file::file_operations::<N>(true, false),
            kernel_iops: attributes::mirrored::<N>(),
            tree <- kernel::new_mutex!(ObjectTree {
                dead: false,
                objects: RBTree::new(),
                len: 0,
                sweep_at: SWEEP_MIN,
            }),
            bad,
        });
        Ok(objects.pin_chain(|this| {
            if let Some(shrinker) = &*this.shrinker.lock() {
                // SAFETY: The objects do not move. They are closed before they are dropped, which
                // drops the shrinker.
                unsafe { shrinker.register(&raw const *this) };
            }
            Ok(())
        }))
    }

    /// Returns the inode of the object with this key for the kernel's `real`. Creates the object if
    /// needed, with the node and type that `new` returns. `new` is called with the tree locked. May
    /// sleep.
    ///
    /// # Errors
    ///
    /// `ENOENT` if the module is unloading, `ENOMEM`, and the errors of `new`.
    pub(crate) fn find_or_create(
        &self,
        real: Dentry,
        key: N::Id,
        new: impl FnOnce(&Dentry) -> Result<(N, ObjectType)>,
    ) -> Result<Inode> {
        let key = (real.as_ptr() as usize, key);
        let reservation = RBTreeNodeReservation::new(GFP_KERNEL)?;
        // Declared before `tree`, so dropped after the lock is released.
        let _unused;
        let mut tree = self.tree.lock();

        if tree.dead {
            return Err(ENOENT);
        }
        if let Some(inode) = tree
            .objects
            .get(&key)
            .and_then(|object| object.inode.clone())
        {
            return Ok(inode);
        }
        let (node, type_) = new(&real)?;
        let (object, inode) = self.create(real, node, type_)?;
        tree.objects.insert(reservation.into_node(key, object));
        tree.len += 1;
        _unused = if tree.len >= tree.sweep_at {
            tree.sweep()
        } else {
            KVec::new()
        };
        Ok(inode)
    }

    /// Creates an object and its inode. Returns the object and a second reference on the inode.
    fn create(&self, real: Dentry, node: N, type_: ObjectType) -> Result<(KBox<Object<N>>, Inode)> {
        let like = real.inode();
        let mut object = Object {
            fops: Default::default(),
            real_fops: ptr::null(),
            real,
            node,
            _operations: None,
            inode: None,
        };
        let mut access = None;
        let mut iops = &raw const self.file_iops;
        // The operations of the inode, `None` for the object's own; and whether `i_private` is the
        // object.
        let (fops, is_private) = match type_ {
            ObjectType::Dir => {
                iops = match object.real.is_root() {
                    true => &raw const self.top_iops,
                    false => &raw const self.dir_iops,
                };
                (Some(&raw const self.dir_fops), true)
            }
            ObjectType::File {
                access: given,
                polls,
                writes,
            } => {
                access = Some(given);
                let fops = match (polls, writes) {
                    (true, _) => &raw const self.polled_fops,
                    (false, true) => &raw const self.write_fops,
                    (false, false) => &raw const self.read_fops,
                };
                (Some(fops), true)
            }
            ObjectType::Special {
                access: given,
                operations,
            } => {
                access = Some(given);
                let fops = operations.fops();
                object._operations = Some(operations);
                (Some(fops), false)
            }
            ObjectType::Kernel => {
                let real_fops = KernelFops::of(&object.real).ok_or(ENOENT)?;
                object.fops = real_fops.mirrored::<N>();
                object.real_fops = real_fops.as_ptr();
                iops = &raw const self.kernel_iops;
                (None, false)
            }
        };
        let mode = access.map_or(0, |access| bindings::S_IFREG as u16 | access.mode);
        // The inode keeps pointers to the object, so they are made from the box's own pointer: a
        // mutable reference to the object would invalidate pointers made from another one.
        let this = KBox::into_raw(KBox::new(object, GFP_KERNEL)?);
        let private = match is_private {
            true => this.cast::<ffi::c_void>(),
            false => ptr::null_mut(),
        };
        // SAFETY: `this` is the object that was just boxed.
        let fops = fops.unwrap_or(unsafe { &raw const (*this).fops });
        // INVARIANT: The object is boxed, and `i_private` or `i_fop` point to it according to its
        // type.
        // SAFETY: The object holds a reference on the dentry of `like`. The operations are in
        // `self`, which is pinned, in the object, or in an `Arc` that it holds. By the invariant of
        // `Object` they stay valid until the inode is unused or revoked.
        let inode = unsafe { bindings::rhist_new_inode(like, mode, iops, fops, private) };
        // SAFETY: `this` comes from `into_raw`, and `rhist_new_inode` only stores it.
        let mut object = unsafe { KBox::from_raw(this) };
        // SAFETY: `rhist_new_inode` returns null or an inode with a reference.
        let inode = unsafe { Inode::from_returned(inode) }?;
        if let Some(access) = access {
            // SAFETY: `inode` holds a reference, and the inode is not published yet.
            unsafe { bindings::rhist_inode_own(inode.as_ptr(), access.uid, access.gid) };
        }
        object.inode = Some(inode.clone());
        Ok((object, inode))
    }

    /// Revokes all inodes, removes the dentries in `entered`, and drops the objects. Called during
    /// unload, when no file of rhist is open, since an open file pins the module. Takes `i_rwsem`
    /// of each inode; sleeps.
    pub(crate) fn close(&self, entered: KVec<CreatedDentry>) {
        // Dropped without the lock; waits for callbacks that are freeing objects.
        let shrinker = self.shrinker.lock().take();
        drop(shrinker);
        let objects = {
            let mut tree = self.tree.lock();
            tree.dead = true;
            core::mem::replace(&mut tree.objects, RBTree::new())
        };
        let inodes = || objects.values().filter_map(|object| object.inode.as_ref());
        // First stop opens: `open` runs without `i_rwsem`, so revoking alone would not wait for it.
        for inode in inodes() {
            // SAFETY: `inode` and `bad` hold references, and `bad` is revoked.
            unsafe { bindings::rhist_inode_close(inode.as_ptr(), self.bad.as_ptr()) };
        }
        gate::wait();
        for inode in inodes() {
            // SAFETY: `inode` holds a reference, and no `i_rwsem` is held.
            unsafe { bindings::rhist_inode_revoke(inode.as_ptr()) };
        }
        drop(entered);
        // Lockless readers of `i_op` do not sleep: they are in an RCU path walk, or between two
        // statements of a task, which RCU-tasks waits for. The same holds for a task in
        // `module_put()` of the gate: after the decrement it may still read the gate, in the
        // tracepoint.
        // SAFETY: The caller is in task context, may sleep, and holds no lock that a reader takes.
        unsafe {
            bindings::synchronize_rcu();
            bindings::rhist_synchronize_rcu_tasks();
        }
    }
}

impl<N: NodeOps> Shrink for Objects<N> {
    fn count(&self) -> usize {
        self.tree.try_lock().map_or(0, |tree| tree.len)
    }

    fn shrink(&self) -> Option<usize> {
        let mut tree = self.tree.try_lock()?;
        let unused = tree.sweep();
        // Dropped without the lock.
        drop(tree);
        Some(unused.len())
    }
}

/// Returns the object of a directory ([`ObjectType::Dir`]) or file ([`ObjectType::File`]) of rhist.
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

/// Unhashes rhist's `dentry` after the kernel has removed the file or directory that it mirrors,
/// and likewise its parents. A dentry in use would otherwise stay in the dentry cache, and hide a
/// new object of that name.
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
            if !object_of::<N>((*here).d_inode).real.removed() {
                return err;
            }
        }
    }
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
