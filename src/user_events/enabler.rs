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

/// How often a bit is written, each time after its page was faulted in. A hostile process can take the
/// page away again each time.
const ATTEMPTS: usize = 10;

/// Identifies a bit: the memory, the address of the value in it, and the number of the bit.
type EnablerKey = (MmId, usize, u8);

/// A bit that is set while an event is enabled.
#[pin_data]
pub(super) struct Enabler {
    memory: Arc<UserMm>,
    place: UserBit,
    event: EventUse,
    /// Faults the page in and writes the bit.
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
        (self.memory.id(), self.place.addr, self.place.bit)
    }

    /// Writes the bit as the event is now. Called with the enablers locked.
    fn write(&self) -> Result {
        self.memory
            .write_bit(self.place, self.event.state().is_enabled())
    }

    /// Writes the bit now, or from a work item if its page is not present. Called with the enablers
    /// locked.
    fn write_soon(self: &Arc<Self>) {
        if self.write() == Err(EFAULT) {
            // If the work is pending already, it will see the event as it is now.
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
            match this.memory.fault_in(this.place.addr) {
                Ok(()) => (),
                // The program has gone, has unmapped the page, or has made it read-only. The next change
                // tries again.
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

/// All bits of all programs.
#[pin_data]
pub(super) struct Enablers {
    /// Also taken with event_mutex held, when an event is enabled or disabled.
    #[pin]
    tree: Mutex<RBTree<EnablerKey, Arc<Enabler>>>,
}

impl Enablers {
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self { tree <- kernel::new_mutex!(RBTree::new()) })
    }

    /// Whether the running program has registered that bit.
    pub(super) fn has(&self, addr: usize, bit: u8) -> bool {
        let tree = self.tree.lock();
        tree.get(&(MmId::current(), addr, bit)).is_some()
    }

    /// Adds a bit of the running program. Called without locks, since the program may keep its page away
    /// for as long as it likes.
    ///
    /// # Errors
    ///
    /// `EADDRINUSE` if the program has registered it already; `ENOMEM`, also for a page that cannot be written
    /// to, as in C.
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
            if enabler.memory.fault_in(place.addr).is_err() {
                break;
            }
        }
        Err(ENOMEM)
    }

    /// Removes a bit of the running program, and clears it.
    ///
    /// # Errors
    ///
    /// `ENOENT` if it is not registered, `EFAULT` if it cannot be cleared.
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

    /// Writes the bits of an event that was enabled or disabled. Called with event_mutex held.
    pub(super) fn update(&self, event: &Arc<UserEvent>) {
        for enabler in self.tree.lock().values() {
            if Arc::ptr_eq(enabler.event.event(), event) {
                enabler.write_soon();
            }
        }
    }

    /// Adds the bits of `parent` for the running task, whose memory is a copy of that.
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

    /// Removes the bits in memory that no process has any more.
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
        // Dropped without the lock.
        drop(tree);
    }
}
