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

/// Maximum number of enablers that are visited without unlocking [`Enablers::bits`].
const BATCH: usize = 64;

/// Identifies a bit: the mm, the address of the value, and the bit number.
type BitKey = (MmId, usize, u8);

/// The keys of an mm: all are between these.
fn keys_of(mm: MmId) -> [BitKey; 2] {
    [(mm, 0, 0), (mm, usize::MAX, u8::MAX)]
}

/// The key after `key`.
fn after((mm, addr, bit): BitKey) -> BitKey {
    (mm, addr, bit + 1)
}

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

    fn key(&self) -> BitKey {
        (self.memory.id(), self.place.addr(), self.place.bit())
    }

    /// Writes the current state of the event to the bit. Called with [`Enablers::bits`] locked. Takes
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
    /// [`Enablers::bits`] locked.
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
            let bits = enablers.bits.lock();
            if !bits.has(&this) || this.write() != Err(EFAULT) {
                return;
            }
        }
    }
}

/// An enabler with the nodes to insert it.
struct NewEnabler {
    enabler: Arc<Enabler>,
    by_mm: RBTreeNode<BitKey, Arc<Enabler>>,
    by_event: RBTreeNode<(EventKey, BitKey), Arc<Enabler>>,
}

impl NewEnabler {
    fn new(memory: Arc<UserMm>, place: UserBit, event: EventUse) -> Result<Self> {
        let enabler = Enabler::new(memory, place, event)?;
        let (key, event) = (enabler.key(), event_key(enabler.event.event()));
        Ok(Self {
            by_mm: RBTreeNode::new(key, enabler.clone(), GFP_KERNEL_ACCOUNT)?,
            by_event: RBTreeNode::new((event, key), enabler.clone(), GFP_KERNEL_ACCOUNT)?,
            enabler,
        })
    }
}

/// Identifies an event as long as it has enablers: its address.
type EventKey = usize;

fn event_key(event: &Arc<UserEvent>) -> EventKey {
    Arc::as_ptr(event) as usize
}

/// All enablers, by what they are looked up for.
struct Bits {
    by_mm: RBTree<BitKey, Arc<Enabler>>,
    by_event: RBTree<(EventKey, BitKey), Arc<Enabler>>,
}

impl Bits {
    fn first(&self, mm: MmId) -> Option<&Arc<Enabler>> {
        let cursor = self.by_mm.cursor_lower_bound(&keys_of(mm)[0])?;
        let key = *cursor.current().0;
        self.by_mm.get(&key).filter(|_| key.0 == mm)
    }

    fn has(&self, enabler: &Arc<Enabler>) -> bool {
        let registered = self.by_mm.get(&enabler.key());
        registered.is_some_and(|registered| Arc::ptr_eq(registered, enabler))
    }

    fn insert(&mut self, new: NewEnabler) {
        self.by_mm.insert(new.by_mm);
        self.by_event.insert(new.by_event);
    }

    /// Removes an enabler. The node that is returned has the last reference but those of running work.
    fn remove(&mut self, key: &BitKey) -> Option<RBTreeNode<BitKey, Arc<Enabler>>> {
        let event = event_key(self.by_mm.get(key)?.event.event());
        self.by_event.remove(&(event, *key));
        self.by_mm.remove_node(key)
    }
}

/// Calls `visit` for the enablers with the keys `from` to `to`, until it returns false, but for no more than
/// [`BATCH`]. Returns the key of the last one, `None` if there was none.
fn visit<K: Copy + Ord>(
    tree: &mut RBTree<K, Arc<Enabler>>,
    from: K,
    to: K,
    mut visit: impl FnMut(&Arc<Enabler>) -> bool,
) -> Option<K> {
    let mut last = None;
    let mut cursor = tree.cursor_lower_bound_mut(&from);
    for _ in 0..BATCH {
        let Some(here) = cursor else {
            break;
        };
        let (key, enabler) = here.current();
        if *key > to {
            break;
        }
        last = Some(*key);
        if !visit(enabler) {
            break;
        }
        cursor = here.move_next();
    }
    last
}

/// The enable bits of all processes.
#[pin_data]
pub(super) struct Enablers {
    /// Innermost lock of user events. Nests inside event_mutex, which is held when an event is enabled or
    /// disabled.
    #[pin]
    bits: Mutex<Bits>,
}

impl Enablers {
    pub(super) fn new() -> impl PinInit<Self> {
        let bits = Bits {
            by_mm: RBTree::new(),
            by_event: RBTree::new(),
        };
        pin_init!(Self { bits <- kernel::new_mutex!(bits) })
    }

    /// Whether the running process has registered this bit.
    pub(super) fn has(&self, addr: usize, bit: u8) -> bool {
        let bits = self.bits.lock();
        bits.by_mm.get(&(MmId::current(), addr, bit)).is_some()
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
        let new = NewEnabler::new(memory, place, event)?;
        let enabler = new.enabler.clone();
        for _ in 0..ATTEMPTS {
            {
                let mut bits = self.bits.lock();
                if bits.by_mm.get(&enabler.key()).is_some() {
                    return Err(EADDRINUSE);
                }
                if enabler.write().is_ok() {
                    bits.insert(new);
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
        let removed = self.bits.lock().remove(&key).ok_or(ENOENT)?;
        let (_, enabler) = removed.to_key_value();
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
        let event = event_key(event);
        let mut from = (event, keys_of(MmId::MIN)[0]);
        let to = (event, keys_of(MmId::MAX)[1]);
        loop {
            // Unlocked between batches for others. What they register meanwhile has the new state.
            let last = visit(&mut self.bits.lock().by_event, from, to, |enabler| {
                enabler.write_soon();
                true
            });
            match last {
                Some((_, last)) => from = (event, after(last)),
                None => break,
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
        let mut child = None;
        let mut originals = KVec::with_capacity(BATCH, GFP_KERNEL_ACCOUNT)?;
        let [mut from, to] = keys_of(parent);
        loop {
            let last = visit(&mut self.bits.lock().by_mm, from, to, |original| {
                originals.push_within_capacity(original.clone()).is_ok()
            });
            let Some(last) = last else {
                return Ok(());
            };
            from = after(last);
            for original in originals.drain_all() {
                let memory = match &child {
                    Some(memory) => memory,
                    None => child.insert(Arc::new(UserMm::current()?, GFP_KERNEL_ACCOUNT)?),
                };
                let new = NewEnabler::new(memory.clone(), original.place, original.event.clone())?;
                let enabler = new.enabler.clone();
                let mut bits = self.bits.lock();
                bits.insert(new);
                enabler.write_soon();
            }
        }
    }

    /// Removes the bits of an mm that no process uses any more. Called without locks; sleeps.
    pub(super) fn remove_all(&self, mm: MmId) {
        loop {
            let mut removed: RBTree<BitKey, Arc<Enabler>> = RBTree::new();
            let mut bits = self.bits.lock();
            for _ in 0..BATCH {
                let key = bits.first(mm).map(|first| first.key());
                if let Some(node) = key.and_then(|key| bits.remove(&key)) {
                    removed.insert(node);
                }
            }
            // Their uses of events are dropped without the lock.
            drop(bits);
            if removed.is_empty() {
                break;
            }
        }
    }
}
