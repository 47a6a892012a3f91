// SPDX-License-Identifier: GPL-2.0

//! Bits in the memory of programs that say whether anybody listens to an event.

use super::registry::Event;
use super::registry::Use;
use crate::ftrace::user_mm::Memory;
use crate::ftrace::user_mm::MemoryId;
use crate::ftrace::user_mm::Place;
use kernel::prelude::*;
use kernel::rbtree::RBTree;
use kernel::rbtree::RBTreeNode;
use kernel::sync::Arc;
use kernel::sync::Mutex;
use kernel::workqueue::impl_has_work;
use kernel::workqueue::new_work;
use kernel::workqueue::Work;
use kernel::workqueue::WorkItem;

/// How often a page is tried to be written to, and then to be had. A hostile process takes it away
/// again each time.
const ATTEMPTS: usize = 10;

/// Identifies a bit: whose memory, the address of the value, and the bit of it.
type Key = (MemoryId, usize, u8);

/// A bit that is to say whether anybody listens to an event.
#[pin_data]
pub(super) struct Enabler {
    memory: Arc<Memory>,
    place: Place,
    event: Use,
    /// Writes the bit once its page is there.
    #[pin]
    writing: Work<Enabler>,
}

impl_has_work! {
    impl HasWork<Self> for Enabler { self.writing }
}

impl Enabler {
    fn new(memory: Arc<Memory>, place: Place, event: Use) -> Result<Arc<Self>> {
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

    fn key(&self) -> Key {
        (self.memory.id(), self.place.addr, self.place.bit)
    }

    /// Writes the bit as it is to be now. To be called with the enablers locked.
    fn write(&self) -> Result {
        self.memory
            .write_bit(self.place, self.event.state().is_enabled())
    }

    /// Writes the bit now or, if its page is not there, soon. To be called with the enablers
    /// locked.
    fn write_soon(self: &Arc<Self>) {
        if self.write() == Err(EFAULT) {
            // If that is already to be done, it will see what we have seen.
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
                // Gone, or not to be had: the program unmapped it or made it read-only. The next
                // change tries again.
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
    /// Taken with event_mutex held by whoever tells that the listeners of an event are others.
    #[pin]
    tree: Mutex<RBTree<Key, Arc<Enabler>>>,
}

impl Enablers {
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self { tree <- kernel::new_mutex!(RBTree::new()) })
    }

    /// Does the running program have that bit written already?
    pub(super) fn has(&self, addr: usize, bit: u8) -> bool {
        let tree = self.tree.lock();
        tree.get(&(MemoryId::current(), addr, bit)).is_some()
    }

    /// Has a bit of the running program written from now on. To be called without locks, since the
    /// program may keep its page away as long as it likes.
    ///
    /// # Errors
    ///
    /// `EADDRINUSE` if the program has it written already. `ENOMEM`, also if there is no page there that may be written to, as the kernel's own user
    /// events have it.
    pub(super) fn add(&self, place: Place, event: Use) -> Result {
        let memory = Arc::new(Memory::current()?, GFP_KERNEL_ACCOUNT)?;
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

    /// Has a bit of the running program not written any more, and clears it.
    ///
    /// # Errors
    ///
    /// `ENOENT` if it was not, `EFAULT` if it cannot be cleared.
    pub(super) fn remove(&self, addr: usize, bit: u8) -> Result {
        let key = (MemoryId::current(), addr, bit);
        let enabler = self.tree.lock().remove(&key).ok_or(ENOENT)?;
        for _ in 0..ATTEMPTS {
            if enabler.memory.write_bit(enabler.place, false).is_ok() {
                return Ok(());
            }
            enabler.memory.fault_in(addr)?;
        }
        Err(EFAULT)
    }

    /// The listeners of an event are others: writes its bits. Called with event_mutex held.
    pub(super) fn update(&self, event: &Arc<Event>) {
        for enabler in self.tree.lock().values() {
            if Arc::ptr_eq(enabler.event.event(), event) {
                enabler.write_soon();
            }
        }
    }

    /// The running task has a copy of the memory `parent`: has the bits in it written as well.
    pub(super) fn copy(&self, parent: MemoryId) -> Result {
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
        let memory = Arc::new(Memory::current()?, GFP_KERNEL_ACCOUNT)?;
        for original in &originals {
            let enabler = Enabler::new(memory.clone(), original.place, original.event.clone())?;
            let node = RBTreeNode::new(enabler.key(), enabler.clone(), GFP_KERNEL_ACCOUNT)?;
            let mut tree = self.tree.lock();
            tree.insert(node);
            enabler.write_soon();
        }
        Ok(())
    }

    /// Forgets the bits in memory that no process has any more.
    pub(super) fn remove_gone(&self) {
        let mut tree = self.tree.lock();
        let mut gone: RBTree<Key, Arc<Enabler>> = RBTree::new();
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
