// SPDX-License-Identifier: GPL-2.0

//! The tree of all objects, and their lifetime.
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
    folder,
    gate,
    node::{
        Access,
        NodeOps,
        ObjectType, //
    },
    object::Object, //
};
use crate::rust::{
    bindings,
    shrinker::{
        Shrink,
        Shrinker, //
    },
};
use core::ptr;
use kernel::{
    ffi,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNodeReservation, //
    },
    sync::Mutex, //
};

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
            if inode.is_some_and(|inode| inode.is_unused(object.removed()))
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
    /// Operations for [`ObjectType::Folder`].
    folder_iops: bindings::inode_operations,
    folder_fops: bindings::file_operations,
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
            folder_iops: folder::inode_operations::<N>(attributes::own()),
            folder_fops: folder::file_operations::<N>(),
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
            operations: None,
            inode: None,
        };
        let mut access = None;
        let mut size = None;
        let mut type_bits = bindings::S_IFREG;
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
            ObjectType::Folder { mode } => {
                access = Some(Access {
                    mode,
                    uid: Access::SAME,
                    gid: Access::SAME,
                });
                type_bits = bindings::S_IFDIR;
                iops = &raw const self.folder_iops;
                (Some(&raw const self.folder_fops), true)
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
                size: bytes,
            } => {
                access = Some(given);
                size = Some(bytes);
                object.fops = file::special_operations::<N>();
                object.operations = Some(operations);
                (None, false)
            }
            ObjectType::Kernel => {
                let real_fops = KernelFops::of(&object.real).ok_or(ENOENT)?;
                object.fops = real_fops.mirrored::<N>();
                object.real_fops = real_fops.as_ptr();
                iops = &raw const self.kernel_iops;
                (None, false)
            }
        };
        let mode = access.map_or(0, |access| type_bits as u16 | access.mode);
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
        if let Some(size) = size {
            // SAFETY: As above.
            unsafe { bindings::rhist_inode_size(inode.as_ptr(), size) };
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
