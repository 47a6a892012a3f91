// SPDX-License-Identifier: GPL-2.0

//! Bits in the memory of programs that are set while an event is enabled (`struct user_event_enabler`).

use super::registry::EventUse;
use super::registry::UserEvent;
use crate::ftrace::user_mm::MmId;
use crate::ftrace::user_mm::UserBit;
use crate::ftrace::user_mm::UserMm;
use kernel::prelude::*;
use kernel::rbtree::RBTree;
use kernel::rbtree::RBTreeNode;
use kernel::sync::Arc;
use kernel::sync::Mutex;
use kernel::workqueue::impl_has_work;
use kernel::workqueue::new_work;
use kernel::workqueue::Work;
use kernel::workqueue::WorkItem;

/// Attempts to fault in the page of a bit and write it. Bounded, because a hostile process can remove the
/// page again before each write.
const ATTEMPTS: usize = 10;

/// Identifies a bit: the mm, the address of the value, and the bit number.
type EnablerKey = (MmId, usize, u8);

/// An enable bit that a process has registered: set while the event is enabled.
#[pin_data]
pub(super) struct Enabler {
    memory: Arc<UserMm>,
    place: UserBit,
    event: EventUse,
    /// Work that faults in the page and writes the bit.
    #[pin]
    writing: Work<Enabler>,
}

impl_has_work! {
    impl HasWork<Self> for Enabler { self.writing }
}

impl Enabler {
    fn new(memory: Arc<UserMm>, place: UserBit, event: EventUse) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                memory,
                place,
                event,
                writing <- new_work!("rhist::Enabler::writing"),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    fn key(&self) -> EnablerKey {
        (self.memory.id(), self.place.addr(), self.place.bit())
    }

    /// Writes the current state of the event to the bit. Called with [`Enablers::tree`] locked. Takes
    /// mmap_lock; never faults a page in.
    ///
    /// # Errors
    ///
    /// Those of [`UserMm::write_bit`].
    fn write(&self) -> Result {
        self.memory
            .write_bit(self.place, self.event.state().is_enabled())
    }

    /// Writes the bit, or queues work to do so if its page is not present and writable. Called with
    /// [`Enablers::tree`] locked.
    fn write_soon(self: &Arc<Self>) {
        if self.write() == Err(EFAULT) {
            // Fails if the work is pending, which then writes the current state.
            let queue = self.event.state().events().writing.get();
            let _ = queue.enqueue(self.clone());
        }
    }
}

impl WorkItem for Enabler {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let enablers = &this.event.state().events().enablers;
        for _ in 0..ATTEMPTS {
            match this.memory.fault_in(this.place.addr()) {
                Ok(()) => (),
                // The process has exited, unmapped the page or made it read-only. The next change of the
                // event tries again.
                Err(_) => return,
            }
            let tree = enablers.tree.lock();
            let registered = tree.get(&this.key());
            if !registered.is_some_and(|enabler| Arc::ptr_eq(enabler, &this)) {
                return;
            }
            if this.write() != Err(EFAULT) {
                return;
            }
        }
    }
}

/// The enable bits of all processes.
#[pin_data]
pub(super) struct Enablers {
    /// Nests inside event_mutex, which is held when an event is enabled or disabled.
    #[pin]
    tree: Mutex<RBTree<EnablerKey, Arc<Enabler>>>,
}

impl Enablers {
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self { tree <- kernel::new_mutex!(RBTree::new()) })
    }

    /// Whether the running process has registered this bit.
    pub(super) fn has(&self, addr: usize, bit: u8) -> bool {
        let tree = self.tree.lock();
        tree.get(&(MmId::current(), addr, bit)).is_some()
    }

    /// Registers a bit of the running process and writes it. Called without locks: faulting in the page may
    /// take as long as the process likes.
    ///
    /// # Errors
    ///
    /// `EADDRINUSE` if the process has registered the bit already; `ENOMEM`, which as in C is also returned
    /// if the page cannot be written to; `EINTR` if the task is being killed.
    pub(super) fn add(&self, place: UserBit, event: EventUse) -> Result {
        let memory = Arc::new(UserMm::current()?, GFP_KERNEL_ACCOUNT)?;
        let enabler = Enabler::new(memory, place, event)?;
        let node = RBTreeNode::new(enabler.key(), enabler.clone(), GFP_KERNEL_ACCOUNT)?;
        for _ in 0..ATTEMPTS {
            {
                let mut tree = self.tree.lock();
                if tree.get(&enabler.key()).is_some() {
                    return Err(EADDRINUSE);
                }
                if enabler.write().is_ok() {
                    tree.insert(node);
                    return Ok(());
                }
            }
            if enabler.memory.fault_in(place.addr()).is_err() {
                break;
            }
        }
        Err(ENOMEM)
    }

    /// Unregisters a bit of the running process and clears it. Called without locks: faulting in the page
    /// may take as long as the process likes.
    ///
    /// # Errors
    ///
    /// `ENOENT` if the bit is not registered; `EFAULT` if it cannot be cleared, or the errors of
    /// [`UserMm::fault_in`]: it is unregistered then too.
    pub(super) fn remove(&self, addr: usize, bit: u8) -> Result {
        let key = (MmId::current(), addr, bit);
        let enabler = self.tree.lock().remove(&key).ok_or(ENOENT)?;
        for _ in 0..ATTEMPTS {
            if enabler.memory.write_bit(enabler.place, false).is_ok() {
                return Ok(());
            }
            enabler.memory.fault_in(addr)?;
        }
        Err(EFAULT)
    }

    /// Updates the bits of an event that was enabled or disabled. Called with event_mutex held.
    pub(super) fn update(&self, event: &Arc<UserEvent>) {
        for enabler in self.tree.lock().values() {
            if Arc::ptr_eq(enabler.event.event(), event) {
                enabler.write_soon();
            }
        }
    }

    /// Registers the bits of `parent` for the running task, a forked child whose mm is a copy of it. Called
    /// without locks; may sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or `EINTR` if the task is being killed: some bits may be registered then.
    pub(super) fn copy(&self, parent: MmId) -> Result {
        let mut originals = KVVec::new();
        {
            let mut tree = self.tree.lock();
            let mut cursor = tree.cursor_lower_bound_mut(&(parent, 0, 0));
            while let Some(here) = cursor {
                let (key, enabler) = here.current();
                if key.0 != parent {
                    break;
                }
                originals.push(enabler.clone(), GFP_KERNEL_ACCOUNT)?;
                cursor = here.move_next();
            }
        }
        if originals.is_empty() {
            return Ok(());
        }
        let memory = Arc::new(UserMm::current()?, GFP_KERNEL_ACCOUNT)?;
        for original in &originals {
            let enabler = Enabler::new(memory.clone(), original.place, original.event.clone())?;
            let node = RBTreeNode::new(enabler.key(), enabler.clone(), GFP_KERNEL_ACCOUNT)?;
            let mut tree = self.tree.lock();
            tree.insert(node);
            enabler.write_soon();
        }
        Ok(())
    }

    /// Removes the bits in each mm that no process uses any more.
    pub(super) fn remove_gone(&self) {
        let mut tree = self.tree.lock();
        let mut gone: RBTree<EnablerKey, Arc<Enabler>> = RBTree::new();
        let mut cursor = tree.cursor_front_mut();
        while let Some(here) = cursor {
            cursor = if here.current().1.memory.is_alive() {
                here.move_next()
            } else {
                let (next, node) = here.remove_current();
                gone.insert(node);
                next
            };
        }
        // `gone` is dropped without the lock.
        drop(tree);
    }
}
