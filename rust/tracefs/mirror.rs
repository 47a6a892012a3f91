// SPDX-License-Identifier: GPL-2.0

//! The mirror, and the objects of it that somebody looked up.

use super::dentry::Dentry;
use super::dentry::Inode;
use super::dir;
use super::file;
use super::gate;
use super::Dir;
use super::EventName;
use super::Overlay;
use super::TracingDir;
use crate::ftrace::bindings;
use core::cell::Cell;
use core::ffi::CStr;
use core::ptr;
use kernel::error::from_err_ptr;
use kernel::error::to_result;
use kernel::ffi;
use kernel::prelude::*;
use kernel::rbtree::RBTree;
use kernel::rbtree::RBTreeNodeReservation;
use kernel::sync::Mutex;

/// What an object of the mirror is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
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
pub(super) struct Node<T: Overlay> {
    /// The operations of a file of the kernel, if it is one. First, so that `file->f_op` leads
    /// here.
    fops: bindings::file_operations,
    mirror: *const Mirror<T>,
    pub(super) kind: Kind,
    pub(super) real: Dentry,
    /// The tracing directory that a file of ours is in or below.
    tracing: Option<TracingDir>,
    /// `None` only until [`Mirror::find_or_create`] has made it.
    inode: Option<Inode>,
}

// SAFETY: `mirror` outlives its nodes and is shared between threads anyway; the rest is `Send`.
unsafe impl<T: Overlay> Send for Node<T> {}

impl<T: Overlay> Node<T> {
    pub(super) fn mirror(&self) -> &Mirror<T> {
        // SAFETY: The mirror is pinned and owns its nodes, so it outlives them.
        unsafe { &*self.mirror }
    }

    /// The tracing directory that a file of ours is in or below.
    pub(super) fn tracing(&self) -> Option<&TracingDir> {
        self.tracing.as_ref()
    }

    /// The event in whose directory a file of ours is.
    pub(super) fn event(&self) -> Option<EventName<'_>> {
        match self.kind {
            Kind::Ours(Dir::Event, _) => Some(EventName {
                dir: self.tracing()?,
                system: self.real.parent_name(),
                event: self.real.name(),
            }),
            _ => None,
        }
    }

    /// The kernel's file in whose place a file of ours is; `ENOENT` if there is none.
    pub(super) fn behind(&self) -> Result<Dentry> {
        match self.kind {
            Kind::Ours(dir, file) => {
                let ours = T::files(dir).get(file).ok_or(ENOENT)?;
                let behind = self.real.lookup(ours.name.to_bytes())?;
                // One that is in the kernel's directory as well is not in its own place.
                let own = self.inode.as_ref().map(Inode::as_ptr);
                (own != Some(behind.inode()))
                    .then_some(behind)
                    .ok_or(ENOENT)
            }
            _ => Err(ENOENT),
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
    pub(super) overlay: T,
    name: &'static CStr,
    dir_iops: bindings::inode_operations,
    dir_fops: bindings::file_operations,
    file_fops: bindings::file_operations,
    polled_fops: bindings::file_operations,
    #[pin]
    nodes: Mutex<Nodes<T>>,
    /// A revoked inode, from which the others get the kernel's operations for such; null until
    /// [`Mirror::new`] has made it.
    bad: Cell<*mut bindings::inode>,
    /// The directory; null until [`Mirror::new`] has made it.
    top: Cell<*mut bindings::dentry>,
    /// The files beside it; null where there is none.
    beside: [Cell<*mut bindings::dentry>; MAX_BESIDE],
}

/// Files of ours in the kernel's directory at most.
const MAX_BESIDE: usize = 2;

// SAFETY: `top`, `beside` and `bad` are written before the mirror is shared; the operations are
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
    pub(crate) fn new(name: &'static CStr, overlay: T) -> Result<Pin<KBox<Self>>> {
        // SAFETY: No requirements.
        to_result(unsafe { bindings::rhist_locked_down() })?;
        let mirror = KBox::pin_init(
            pin_init!(Self {
                overlay,
                name,
                dir_iops: dir::inode_operations::<T>(),
                dir_fops: dir::file_operations::<T>(),
                file_fops: file::file_operations::<T>(false),
                polled_fops: file::file_operations::<T>(true),
                nodes <- kernel::new_mutex!(Nodes {
                    dead: false,
                    tree: RBTree::new(),
                    len: 0,
                    sweep_at: SWEEP_MIN,
                }),
                bad: Cell::new(ptr::null_mut()),
                top: Cell::new(ptr::null_mut()),
                beside: [const { Cell::new(ptr::null_mut()) }; MAX_BESIDE],
            }),
            GFP_KERNEL,
        )?;

        // SAFETY: `name` ends in a NUL.
        let root = unsafe { bindings::rhist_tracefs_root(name.as_char_ptr()) };
        // SAFETY: The root comes with a reference.
        let root = unsafe { Dentry::from_returned(root) }.map_err(|_| EEXIST)?;
        mirror.bad.set(Inode::revoked(root.inode())?.into_raw());
        let inode = mirror.find_or_create(root.clone(), Kind::Dir(Dir::Root))?;
        // SAFETY: Both are referenced; the new directory takes a reference of its own.
        let top = from_err_ptr(unsafe {
            bindings::rhist_create_dir(root.as_ptr(), name.as_char_ptr(), inode.as_ptr())
        })?;
        mirror.top.set(top);
        let files = T::files(Dir::Root).iter().enumerate();
        let beside =
            files.filter(|(_, file)| file.in_kernels && root.lookup(file.name.to_bytes()).is_err());
        for ((index, file), slot) in beside.zip(&mirror.beside) {
            let inode = mirror.find_or_create(root.clone(), Kind::Ours(Dir::Root, index))?;
            // SAFETY: As above.
            slot.set(from_err_ptr(unsafe {
                bindings::rhist_create_file(root.as_ptr(), file.name.as_char_ptr(), inode.as_ptr())
            })?);
        }
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
        let tracing = match kind {
            // `events/<system>/<event>`
            Kind::Ours(Dir::Event, _) => Some(real.parent().parent().parent()),
            Kind::Ours(..) => Some(real.clone()),
            _ => None,
        };
        let mut node = KBox::new(
            Node {
                fops: Default::default(),
                mirror: self,
                kind,
                real,
                tracing: tracing.map(TracingDir),
                inode: None,
            },
            GFP_KERNEL,
        )?;
        let this: *mut ffi::c_void = ptr::from_mut(&mut *node).cast();
        let mut access = None;
        let (mode, iops, fops, private) = match kind {
            Kind::Dir(_) => (0, &raw const self.dir_iops, &raw const self.dir_fops, this),
            Kind::Ours(dir, file) => {
                let ours = T::files(dir).get(file).ok_or(ENOENT)?;
                access = self.overlay.access(dir, ours.name);
                let mode = access.map_or(ours.mode, |access| access.mode);
                let mode = bindings::S_IFREG as u16 | mode;
                let (fops, private) = match self.overlay.special(dir, ours.name) {
                    Some(special) => (special.fops(), ptr::null_mut()),
                    None if ours.polls => (&raw const self.polled_fops, this),
                    None => (&raw const self.file_fops, this),
                };
                (mode, ptr::null(), fops, private)
            }
            Kind::Kernel => {
                // SAFETY: `like` is the inode of a file of the kernel, which has operations.
                let fops = unsafe { bindings::rhist_inode_fop(like) };
                // SAFETY: As above; operations are valid as long as the file can be opened.
                let real_fops = unsafe { *fops };
                if real_fops.owner.is_null() {
                    node.fops = file::kernel_operations::<T>(real_fops);
                    (0, ptr::null(), &raw const node.fops, ptr::null_mut())
                } else {
                    // Another module's file: opening it has to pin that module.
                    (0, ptr::null(), fops, ptr::null_mut())
                }
            }
        };
        // SAFETY: `like` is valid while the node holds its dentry. The operations and `private`
        // are in the mirror, which is pinned, or in the node, which is boxed, or belong to the
        // overlay; all outlive the use of the inode, as the documentation of `Node` says.
        let inode = unsafe {
            Inode::from_returned(bindings::rhist_new_inode(like, mode, iops, fops, private))?
        };
        if let Some(access) = access {
            // SAFETY: The inode is valid, and nobody else has it yet.
            unsafe { bindings::rhist_inode_own(inode.as_ptr(), access.uid, access.gid) };
        }
        node.inode = Some(inode.clone());
        Ok((node, inode))
    }

    /// Is `name` in the kernel's directory not to be shown?
    pub(super) fn hides(&self, dir: Dir, name: &[u8]) -> bool {
        // A mirror inside the mirror would have no end.
        (dir == Dir::Root && name == self.name.to_bytes())
            || T::files(dir)
                .iter()
                .any(|file| file.name.to_bytes() == name)
    }

    /// Looks a name up in the directory `node`.
    pub(super) fn lookup(&self, node: &Node<T>, dir: Dir, name: &[u8]) -> Result<Inode> {
        if let Some(index) = T::files(dir)
            .iter()
            .position(|file| file.name.to_bytes() == name)
        {
            if T::files(dir)[index].only_over {
                node.real.lookup(name)?;
            }
            return self.find_or_create(node.real.clone(), Kind::Ours(dir, index));
        }
        if self.hides(dir, name) {
            return Err(ENOENT);
        }
        let real = node.real.lookup(name)?;
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
        let inodes = || tree.values().filter_map(|node| node.inode.as_ref());
        // Files first: those which are being opened hold no lock of their inode.
        for inode in inodes() {
            // SAFETY: The node holds a reference; `bad` was made before the first node.
            unsafe { bindings::rhist_inode_close(inode.as_ptr(), self.bad.get()) };
        }
        gate::wait();
        for inode in inodes() {
            // SAFETY: The node holds a reference; no lock is held.
            unsafe { bindings::rhist_inode_revoke(inode.as_ptr()) };
        }
        for file in self.beside.iter().filter(|file| !file.get().is_null()) {
            // SAFETY: Made by `rhist_create_file`, and its inode is one of the nodes.
            unsafe { bindings::simple_recursive_removal(file.get(), None) };
        }
        if !self.top.get().is_null() {
            // SAFETY: Made by `rhist_create_dir`, and its inode was the first of the nodes.
            unsafe { bindings::rhist_remove_dir(self.top.get()) };
        }
        // What reads `i_op` without a lock does so without sleeping: in a walk under RCU, or
        // between two statements of a task, which RCU-tasks waits for. Nor does anybody sleep
        // who has just given back the gate, and may still report that.
        // SAFETY: Task context without locks.
        unsafe {
            bindings::synchronize_rcu();
            bindings::rhist_synchronize_rcu_tasks();
        }
        drop(tree);
        if !self.bad.get().is_null() {
            // SAFETY: The reference is ours to give back.
            unsafe { bindings::iput(self.bad.get()) };
        }
    }
}

/// The node of an inode of ours that is a directory or a file of the overlay.
///
/// # Safety
///
/// `inode` must be such an inode, in the hands of the caller while the result is used: locked, or
/// with an open file.
pub(super) unsafe fn node_of<'a, T: Overlay>(inode: *mut bindings::inode) -> &'a Node<T> {
    // SAFETY: `i_private` of such inodes is the node, which is not let go of while the inode is in
    // somebody's hands.
    unsafe { &*bindings::rhist_inode_private(inode).cast::<Node<T>>() }
}

/// Forgets the name `dentry` of ours, whose object the kernel has removed, and those of directories
/// above it that went with it: a new object may have the name. Somebody who has the old one open
/// keeps it in the dentry cache otherwise.
///
/// Returns what a look-up or `open` has to end with: `ESTALE`, which has the VFS begin again, or
/// `gone` if the names had been forgotten already, so that it is the old object that is meant.
///
/// # Safety
///
/// `dentry` must be referenced, and in a mirror of `T`.
pub(super) unsafe fn forget<T: Overlay>(dentry: *mut bindings::dentry, gone: Error) -> Error {
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
            if !node_of::<T>((*here).d_inode).real.removed() {
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
