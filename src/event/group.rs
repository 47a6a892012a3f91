// SPDX-License-Identifier: GPL-2.0

//! Control groups of cgroup v2, and a table of the groups that a histogram has seen.
//!
//! A group has an id, the number of its directory's inode, which no other group ever gets: entries
//! are counted by that. Its path is looked up when it is shown, also after the group was removed.
//! So a hit that stores an id for the first time takes a reference to the node of the directory,
//! which keeps its name, and the nodes above it.

use core::marker::PhantomData;

use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
            Release, //
        },
        Mutex, //
    },
};

use crate::{
    limits::GROUPS_MAX,
    sync::PreemptOff,
    text::Text, //
};

/// The task whose control group is meant, by its process id; `None`: the running one.
pub type GroupTask = Option<u32>;

/// Stands for the id of the group of the idle tasks, which share one process id.
pub const IDLE: u64 = 0;

/// Stands for the id of the group of a task that is gone.
pub const GONE: u64 = u64::MAX;

/// A control group, as a hit finds it.
///
/// # Invariants
///
/// `node` is the node of the group's directory, and stays while preemption is off. It is a multiple
/// of 8, and not 0.
#[derive(Clone, Copy, Debug)]
pub struct Group<'a> {
    id: u64,
    node: usize,
    _preempt: PhantomData<PreemptOff<'a>>,
}

impl<'a> Group<'a> {
    /// The group with this id and this node.
    ///
    /// # Safety
    ///
    /// The node exists, and stays while preemption is off. It is a multiple of 8, and not 0.
    pub unsafe fn new(_preempt: PreemptOff<'a>, id: u64, node: usize) -> Self {
        // INVARIANT: The caller guarantees all of it.
        Self {
            id,
            node,
            _preempt: PhantomData,
        }
    }

    /// The number of its directory's inode.
    pub fn id(self) -> u64 {
        self.id
    }
}

/// A control group that a filter names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupPlace {
    /// Its id, as [`Group::id`].
    pub id: u64,
    /// Number of groups above it.
    pub level: u32,
}

/// The nodes of control groups.
pub trait GroupNodes: Sync {
    /// Takes a reference to a node. Any context.
    ///
    /// # Safety
    ///
    /// The node exists.
    unsafe fn get(&self, node: usize);

    /// Puts a reference. Any context if it is not the last one, otherwise task context.
    ///
    /// # Safety
    ///
    /// The caller has the reference, and gives it up.
    unsafe fn put(&self, node: usize);

    /// The id of a group. Any context.
    ///
    /// # Safety
    ///
    /// The node exists.
    unsafe fn id(&self, node: usize) -> u64;

    /// Appends the path of a group, which may have been removed. Returns false if it is too long.
    /// Fails with `ENOMEM`. Task context.
    ///
    /// # Safety
    ///
    /// The node exists.
    unsafe fn path(&self, out: &mut Text, node: usize) -> Result<bool>;
}

/// Number of slots, a power of two, of which at most a quarter is used.
const SLOTS: usize = 4 * GROUPS_MAX as usize;

/// Number of slots in which a group may be. All of them are looked at before a group is kept, as
/// one that was let go of leaves a hole. They are hardly ever all taken.
const WINDOW: usize = 24;

/// Set in a slot whose group is let go of, unless a hit stores its id anew.
const GOING: usize = 1;

/// The control groups whose paths a histogram can show: a table from ids to nodes.
///
/// # Invariants
///
/// A slot is 0, or a node with a reference that belongs to the slot, and with [`GOING`] or without.
/// Only [`Groups::let_go`] and `drop` take a node out of a slot.
pub struct Groups {
    slots: KVVec<Atomic<usize>>,
    /// Number of references, and of attempts to get one.
    held: Atomic<u32>,
    refused: Atomic<u64>,
    /// Locked while a node is used that was found in a slot, and while one is put that was in one.
    use_: Pin<KBox<Mutex<()>>>,
    nodes: &'static dyn GroupNodes,
}

impl Groups {
    /// Bytes of memory that it takes.
    pub const BYTES: usize = SLOTS * size_of::<usize>();

    /// Creates an empty table. Fails with `ENOMEM`.
    pub fn new(nodes: &'static dyn GroupNodes) -> Result<Self> {
        let mut slots = KVVec::with_capacity(SLOTS, GFP_KERNEL)?;
        for _ in 0..SLOTS {
            slots.push(Atomic::new(0), GFP_KERNEL)?;
        }
        // INVARIANT: All slots are 0.
        Ok(Self {
            slots,
            held: Atomic::new(0),
            refused: Atomic::new(0),
            use_: KBox::pin_init(new_mutex!(()), GFP_KERNEL)?,
            nodes,
        })
    }

    /// The slots in which a group may be, in the order in which they are used.
    fn window(&self, id: u64) -> impl Iterator<Item = &Atomic<usize>> {
        // The upper bits of a product depend on all bits of the id.
        let first = (id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize;
        (0..WINDOW).filter_map(move |n| self.slots.get((first + n) % SLOTS))
    }

    /// Keeps a group whose id the hit stores next. If it keeps too many, or its window is full,
    /// only the id will be shown. Any context.
    #[inline(never)]
    pub fn hold(&self, group: Group<'_>) {
        let is_there = |found: usize| found & !GOING == group.node;
        for slot in self.window(group.id) {
            let found = slot.load(Relaxed);
            // The group may be in a later slot, if this one was let go of: then it is in both.
            if found == 0 {
                break;
            }
            if is_there(found) {
                let stays = found & GOING == 0
                    || match slot.cmpxchg(found, group.node, Relaxed) {
                        Ok(_) => true,
                        Err(now) => is_there(now),
                    };
                match stays {
                    true => return,
                    // It was let go of at this moment.
                    false => break,
                }
            }
        }
        if self.held.fetch_add(1, Relaxed) >= GROUPS_MAX {
            return self.refuse();
        }
        // SAFETY: By the invariants of `Group` the node exists.
        unsafe { self.nodes.get(group.node) };
        for slot in self.window(group.id) {
            // INVARIANT: The reference belongs to the slot.
            match slot.cmpxchg(0, group.node, Release) {
                Ok(_) => return,
                // Another hit was faster.
                Err(found) if is_there(found) => {
                    self.held.fetch_sub(1, Relaxed);
                    // SAFETY: The reference is the one from above.
                    return unsafe { self.nodes.put(group.node) };
                }
                Err(_) => (),
            }
        }
        // SAFETY: The reference is the one from above.
        unsafe { self.nodes.put(group.node) };
        self.refuse();
    }

    #[cold]
    fn refuse(&self) {
        self.held.fetch_sub(1, Relaxed);
        self.refused.add(1, Relaxed);
    }

    /// Number of groups that it keeps.
    pub fn held(&self) -> u32 {
        self.held.load(Relaxed)
    }

    /// Number of times that a hit stored an id whose group could not be kept.
    pub fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    /// Appends the path of the group with this id. Returns false if it is not kept, or its path is
    /// too long. Fails with `ENOMEM`. Task context.
    pub fn path(&self, out: &mut Text, id: u64) -> Result<bool> {
        let _use = self.use_.lock();
        for slot in self.window(id) {
            let node = slot.load(Acquire) & !GOING;
            // SAFETY: A node that was in a slot is put with the lock held only.
            if node != 0 && unsafe { self.nodes.id(node) } == id {
                // SAFETY: As above.
                return unsafe { self.nodes.path(out, node) };
            }
        }
        Ok(false)
    }

    /// Prepares to let go of all groups. After a grace period, all hits that have stored the id of
    /// one that is still [going](GOING) have ended.
    pub fn begin_to_let_go(&self) {
        for slot in &self.slots {
            let found = slot.load(Relaxed);
            if found != 0 {
                // Fails if it is going, or a hit has stored its id at this moment.
                let _ = slot.cmpxchg(found, found | GOING, Relaxed);
            }
        }
    }

    /// Keeps the group with this id after all, which an entry has. For the caller of
    /// [`Groups::let_go`].
    pub fn keep(&self, id: u64) {
        for slot in self.window(id) {
            let found = slot.load(Acquire);
            // SAFETY: The caller alone takes nodes out of slots.
            let is_it = found & GOING != 0 && unsafe { self.nodes.id(found & !GOING) } == id;
            if is_it {
                let _ = slot.cmpxchg(found, found & !GOING, Relaxed);
            }
        }
    }

    /// Lets go of all groups that are going. For one caller at a time.
    pub fn let_go(&self) {
        for slot in &self.slots {
            let found = slot.load(Acquire);
            if found & GOING != 0 && slot.cmpxchg(found, 0, Relaxed).is_ok() {
                self.put(found & !GOING);
            }
        }
    }

    /// Puts the reference of a slot that had this node.
    fn put(&self, node: usize) {
        let _use = self.use_.lock();
        self.held.fetch_sub(1, Relaxed);
        // SAFETY: The reference belonged to a slot that the caller has cleared.
        unsafe { self.nodes.put(node) };
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        for slot in &self.slots {
            match slot.load(Relaxed) {
                0 => (),
                // INVARIANT: No slot is used any more.
                node => self.put(node & !GOING),
            }
        }
    }
}
