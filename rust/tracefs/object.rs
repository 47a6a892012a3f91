// SPDX-License-Identifier: GPL-2.0

//! rhist's directories and files in tracefs, each for one of the kernel's, and their lifetime.
//!
//! # Lifetime
//!
//! An [`Object`] holds a reference on its inode and on the kernel's dentry that it is for. A tree keeps
//! it until the tree has the last reference on the inode. When the module goes, every inode in the tree is
//! revoked: an open file or directory pins the module, but a current directory, an `O_PATH` descriptor or
//! an inotify watch does not.
//!
//! # Locks
//!
//! `i_rwsem` of rhist's directory, then `i_rwsem` of the kernel's directory that it is for; then, with
//! the latter released again, the tree.
//!
//! C headers: `include/linux/fs.h`, `include/linux/dcache.h`, `include/linux/tracefs.h`.

use super::dentry::CreatedDentry;
use super::dentry::Dentry;
use super::dentry::Inode;
use super::dir;
use super::file;
use super::gate;
use super::Access;
use super::KernelFile;
use super::SpecialFops;
use super::UserBuffer;
use crate::ftrace::bindings;
use crate::ftrace::poll::Mask;
use crate::ftrace::poll::PollTable;
use core::ffi::CStr;
use core::ptr;
use kernel::ffi;
use kernel::mm::virt::VmaNew;
use kernel::prelude::*;
use kernel::rbtree::RBTree;
use kernel::rbtree::RBTreeNodeReservation;
use kernel::sync::Arc;
use kernel::sync::Mutex;

/// Callbacks of an object, implemented by `src/mirror/`.
///
/// Every function is called in task context and may sleep, without locks unless it says otherwise.
/// `real` is the kernel's dentry that the object is for: the directory that a directory mirrors, the
/// directory that a file of rhist is in, or the kernel's file. When the kernel has removed that, no
/// function is called any more.
pub(crate) trait NodeOps: Send + Sync + Sized + 'static {
    /// Identifies an object among those for the same dentry of the kernel.
    type Id: Copy + Ord + Send + Unpin;

    /// The buffer with the contents of a file, kept while it is read.
    type ReadBuf: AsRef<[u8]> + Send + Unpin;

    /// State of an open file.
    type OpenState: Send + Sync;

    /// Looks a name up in a directory; `ENOENT` if there is none. rhist's directory is locked.
    fn lookup(&self, real: &Dentry, name: &[u8]) -> Result<Inode>;

    /// Whether a name of the kernel's directory is left out of this one.
    fn hides(&self, name: &[u8]) -> bool;

    /// The names in a directory that are rhist's; `None` in the place of one that does not exist now.
    fn names(&self, real: &Dentry) -> impl Iterator<Item = Option<&'static CStr>>;

    /// Notifies of a subdirectory that `rmdir(2)` has removed. rhist's directories are locked.
    fn child_removed(&self);

    /// The name of a file of rhist, which takes the place of the kernel's file of that name, if there is one.
    fn name(&self) -> &CStr;

    /// Opens a file, and empties it if `truncate`; an error is that of `open(2)`. The kernel's file is open
    /// already, and not emptied.
    fn open(
        &self,
        real: &Dentry,
        kernel: Option<&KernelFile>,
        truncate: bool,
    ) -> Result<Self::OpenState>;

    /// The whole text of a file, as it is now.
    fn read(
        &self,
        real: &Dentry,
        kernel: Option<&KernelFile>,
        open: &Self::OpenState,
    ) -> Result<Self::ReadBuf>;

    /// One `write(2)` of at least one byte.
    fn write(&self, real: &Dentry, kernel: Option<&KernelFile>, data: &UserBuffer) -> Result;

    /// Queues the caller of `poll(2)` in `table`, then returns what the file is ready for. An error is
    /// [`poll::ERR`](crate::ftrace::poll::ERR), which is also returned, without a call, when the kernel's
    /// file has it.
    fn poll(
        &self,
        real: &Dentry,
        kernel: Option<&KernelFile>,
        open: &Self::OpenState,
        table: &PollTable<'_>,
    ) -> Result<Mask>;

    /// One `mmap(2)`, with mmap_lock held; `ENODEV` for a file that cannot be mapped. The mapping keeps
    /// the file open.
    fn map(&self, real: &Dentry, kernel: Option<&KernelFile>, vma: &VmaNew) -> Result;
}

/// The kind of an object.
pub(crate) enum ObjectType {
    /// A directory, for one of the kernel's.
    Dir,
    /// A file of the kernel, with the kernel's operations and data.
    Kernel,
    /// A file of rhist. One without `polls` is always ready, and refused by epoll.
    File { access: Access, polls: bool },
    /// A file of rhist with operations of its own.
    Special {
        access: Access,
        operations: Arc<SpecialFops>,
    },
}

/// A directory or file of rhist that was looked up.
///
/// It is pinned in memory until it is removed from the tree: when the tree has the last reference on its
/// inode, or a grace period after the inode was revoked.
#[repr(C)]
pub(super) struct Object<N: NodeOps> {
    /// The operations of [`ObjectType::Kernel`]. First, so that `file->f_op` points to the object.
    fops: bindings::file_operations,
    pub(super) real: Dentry,
    pub(super) node: N,
    /// Keeps the operations of [`ObjectType::Special`].
    _operations: Option<Arc<SpecialFops>>,
    /// `None` only until [`Objects::find_or_create`] has made it.
    inode: Option<Inode>,
}

impl<N: NodeOps> Object<N> {
    /// The kernel's file whose place a file of rhist takes; `ENOENT` if there is none.
    pub(super) fn behind(&self) -> Result<Dentry> {
        let behind = self.real.lookup(self.node.name().to_bytes())?;
        // A file that is in the kernel's directory as well does not take its own place.
        let own = self.inode.as_ref().map(Inode::as_ptr);
        (own != Some(behind.inode()))
            .then_some(behind)
            .ok_or(ENOENT)
    }
}

/// Identifies an object: the address of the kernel's dentry, and the key of the node.
type ObjectId<N> = (usize, <N as NodeOps>::Id);

struct ObjectTree<N: NodeOps> {
    /// The module goes: lookups fail.
    dead: bool,
    objects: RBTree<ObjectId<N>, KBox<Object<N>>>,
    len: usize,
    /// The length at which the tree is searched for unused objects the next time.
    sweep_at: usize,
}

/// Objects in the tree before the first search for unused ones. Each takes about 1 KiB.
const SWEEP_MIN: usize = 512;

impl<N: NodeOps> ObjectTree<N> {
    /// Removes unused objects, and returns them to be dropped without the lock.
    ///
    /// A reference on an inode is taken with the tree locked, or by who has one already. So once the tree has
    /// the last one, it keeps that.
    fn sweep(&mut self) -> KVec<KBox<Object<N>>> {
        let mut unused = KVec::new();
        let mut cursor = self.objects.cursor_front_mut();
        while let Some(here) = cursor {
            let inode = here.current().1.inode.as_ref();
            // Without memory for the list the rest has to wait for the next time.
            if inode.is_some_and(Inode::is_only_ours) && unused.reserve(1, GFP_KERNEL).is_ok() {
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

/// All objects. To be [closed](Objects::close) before it is dropped.
#[pin_data]
pub(crate) struct Objects<N: NodeOps> {
    dir_iops: bindings::inode_operations,
    dir_fops: bindings::file_operations,
    file_fops: bindings::file_operations,
    polled_fops: bindings::file_operations,
    #[pin]
    tree: Mutex<ObjectTree<N>>,
    /// A revoked inode, from which the others get the kernel's operations for such.
    bad: Inode,
}

// SAFETY: The operations are constant, and the rest is `Send`.
unsafe impl<N: NodeOps> Send for Objects<N> {}
// SAFETY: As above; the tree is locked, and the inode only compared with.
unsafe impl<N: NodeOps> Sync for Objects<N> {}

impl<N: NodeOps> Objects<N> {
    /// For the file system of `root`. Fails with `ENOMEM`.
    pub(crate) fn new(root: &Dentry) -> Result<impl PinInit<Self>> {
        let bad = Inode::revoked(root.inode())?;
        Ok(pin_init!(Self {
            dir_iops: dir::inode_operations::<N>(),
            dir_fops: dir::file_operations::<N>(),
            file_fops: file::file_operations::<N>(false),
            polled_fops: file::file_operations::<N>(true),
            tree <- kernel::new_mutex!(ObjectTree {
                dead: false,
                objects: RBTree::new(),
                len: 0,
                sweep_at: SWEEP_MIN,
            }),
            bad,
        }))
    }

    /// The inode of the object with this key for the kernel's `real`. If there is none, `new` says what to
    /// make; it is called with the tree locked.
    pub(crate) fn find_or_create(
        &self,
        real: Dentry,
        key: N::Id,
        new: impl FnOnce(&Dentry) -> Result<(N, ObjectType)>,
    ) -> Result<Inode> {
        let key = (real.as_ptr() as usize, key);
        let reservation = RBTreeNodeReservation::new(GFP_KERNEL)?;
        // Declared before the lock is taken, so dropped after it was released.
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

    /// A new object and a reference on its inode.
    fn create(&self, real: Dentry, node: N, type_: ObjectType) -> Result<(KBox<Object<N>>, Inode)> {
        let like = real.inode();
        let mut object = KBox::new(
            Object {
                fops: Default::default(),
                real,
                node,
                _operations: None,
                inode: None,
            },
            GFP_KERNEL,
        )?;
        let this: *mut ffi::c_void = ptr::from_mut(&mut *object).cast();
        let mut iops = ptr::null();
        let (access, fops, private) = match type_ {
            ObjectType::Dir => {
                iops = &raw const self.dir_iops;
                (None, &raw const self.dir_fops, this)
            }
            ObjectType::File { access, polls } => match polls {
                true => (Some(access), &raw const self.polled_fops, this),
                false => (Some(access), &raw const self.file_fops, this),
            },
            ObjectType::Special { access, operations } => {
                let fops = operations.fops();
                object._operations = Some(operations);
                (Some(access), fops, ptr::null_mut())
            }
            ObjectType::Kernel => {
                // SAFETY: `like` is the inode of a file of the kernel, which has operations.
                let fops = unsafe { bindings::rhist_inode_fop(like) };
                // SAFETY: As above; operations are valid as long as the file can be opened.
                let real_fops = unsafe { *fops };
                if real_fops.owner.is_null() {
                    object.fops = file::kernel_operations::<N>(real_fops);
                    (None, &raw const object.fops, ptr::null_mut())
                } else {
                    // Another module's file: opening it has to pin that module.
                    (None, fops, ptr::null_mut())
                }
            }
        };
        let mode = access.map_or(0, |access| bindings::S_IFREG as u16 | access.mode);
        // SAFETY: `like` is valid while the object holds its dentry. The operations and `private` are in
        // `self`, which is pinned, or in the object, which is boxed, or kept by that; all outlive the use
        // of the inode, as the documentation of `Object` says.
        let inode = unsafe {
            Inode::from_returned(bindings::rhist_new_inode(like, mode, iops, fops, private))?
        };
        if let Some(access) = access {
            // SAFETY: The inode is valid, and nobody else has it yet.
            unsafe { bindings::rhist_inode_own(inode.as_ptr(), access.uid, access.gid) };
        }
        object.inode = Some(inode.clone());
        Ok((object, inode))
    }

    /// Revokes all inodes, removes the names that were entered, and drops the objects. Called when the module
    /// goes: no file of rhist is open then, since each pins it. Sleeps.
    pub(crate) fn close(&self, entered: KVec<CreatedDentry>) {
        let objects = {
            let mut tree = self.tree.lock();
            tree.dead = true;
            core::mem::replace(&mut tree.objects, RBTree::new())
        };
        let inodes = || objects.values().filter_map(|object| object.inode.as_ref());
        // Files first: those which are being opened hold no lock of their inode.
        for inode in inodes() {
            // SAFETY: The object holds a reference; `bad` is a revoked inode.
            unsafe { bindings::rhist_inode_close(inode.as_ptr(), self.bad.as_ptr()) };
        }
        gate::wait();
        for inode in inodes() {
            // SAFETY: The object holds a reference; no lock is held.
            unsafe { bindings::rhist_inode_revoke(inode.as_ptr()) };
        }
        drop(entered);
        // What reads `i_op` without a lock does so without sleeping: in a walk under RCU, or
        // between two statements of a task, which RCU-tasks waits for. Nor does anybody sleep
        // who has just given back the gate, and may still report that.
        // SAFETY: Task context without locks.
        unsafe {
            bindings::synchronize_rcu();
            bindings::rhist_synchronize_rcu_tasks();
        }
    }
}

/// The object of an inode that is a directory ([`ObjectType::Dir`]) or a file ([`ObjectType::File`]) of rhist.
///
/// # Safety
///
/// `inode` must be such an inode, in the hands of the caller while the result is used: locked, or with
/// an open file.
pub(super) unsafe fn object_of<'a, N: NodeOps>(inode: *mut bindings::inode) -> &'a Object<N> {
    // SAFETY: `i_private` of such inodes is the object, which is not removed from the tree while the caller
    // keeps the inode.
    unsafe { &*bindings::rhist_inode_private(inode).cast::<Object<N>>() }
}

/// Drops rhist's `dentry` from the dentry cache after the kernel has removed what it is for, and so the
/// directories above it that were removed too: a new object may have the name. While the old one is open,
/// it would stay in the cache otherwise.
///
/// Returns what a look-up or `open` has to end with: `ESTALE`, which has the VFS begin again, or
/// `gone` if it was dropped already, so that the caller has the old object.
///
/// # Safety
///
/// `dentry` must be referenced, and that of an object with a node `N`.
pub(super) unsafe fn forget<N: NodeOps>(dentry: *mut bindings::dentry, gone: Error) -> Error {
    let mut here = dentry;
    let mut err = gone;
    loop {
        // SAFETY: The caller has a reference on the dentry, and that on its parent, which never changes in tracefs. The
        // directories above are ours, up to the top one, which stands for the root of tracefs.
        unsafe {
            if bindings::rhist_forget(here) {
                err = ESTALE;
            }
            here = (*here).d_parent;
            if !object_of::<N>((*here).d_inode).real.removed() {
                return err;
            }
        }
    }
}

/// The name that a file was opened by.
///
/// # Safety
///
/// `file` must be open, or being opened.
pub(super) unsafe fn dentry_of(file: *mut bindings::file) -> *mut bindings::dentry {
    // SAFETY: The file is valid; both names of the union are the same path.
    unsafe { (*file).__bindgen_anon_1.f_path.dentry }
}
