// SPDX-License-Identifier: GPL-2.0

//! Bits in the memory of programs that are set while an event is enabled (`struct
//! user_event_enabler`).
//!
//! # Waiting for programs
//!
//! A program can hold its mmap_lock, and the lock of a page, for any time, and delay a page for any
//! time: its memory may be a file of its own FUSE server, for example. [`Enablers::bits`] nests
//! inside event_mutex, so nothing waits for a program with it held. A bit that cannot be written at
//! once is *late*. Work of its mm writes it, without locks:
//!
//! - [`UserEventMm::writing`] does not wait either. If a page is not ready, it skips the other bits
//!   in it, and tries again after a delay, which doubles each time: about as long as the page was
//!   not ready so far. So however many programs are not ready, a worker is always free for the
//!   others, and a program that is never ready costs next to nothing.
//! - [`UserEventMm::waiting`] waits for pages of files that a program may serve, as these cannot be
//!   read without waiting. It has a queue of its own: if programs keep all workers of that waiting,
//!   they delay only bits in the memory of such files. It waits for the file, not in a page fault:
//!   a program that has ended meanwhile gives its memory back.
//!
//! A page fault of a program that has reached its limit of memory waits for the OOM killer. Such
//! programs take turns, and the others of them are tried again, so that they occupy one worker.
//!
//! Task work of the program is no alternative: the thread that gets it may sleep in a system call
//! for days, while another thread polls the bit.

use super::{
    event::{
        EventUse,
        UserEvent, //
    },
    quota::{
        Charge,
        Quota, //
    },
};
use crate::{
    errno::eaddrinuse,
    rust::{
        queue::Queue,
        tracefs::ModulePin,
        user_mm::{
            wait_for_forks,
            MmId,
            UserBit,
            UserMm, //
        },
    },
};
use kernel::{
    page::PAGE_SIZE,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode, //
    },
    sync::{
        atomic::{
            Atomic,
            Full,
            Relaxed, //
        },
        Arc,
        Mutex, //
    },
    time::msecs_to_jiffies,
    workqueue::{
        impl_has_delayed_work,
        impl_has_work,
        new_delayed_work,
        new_work,
        DelayedWork,
        Work,
        WorkItem, //
    },
};

/// Attempts to fault in the page of a bit and write it. Bounded, because a hostile process can
/// remove the page again before each write.
const ATTEMPTS: usize = 10;

/// Delay in milliseconds before late bits are tried again for the first time. Then it doubles.
const RETRY: u32 = 1;

/// Maximum number of enablers that are visited without unlocking [`Enablers::bits`].
const BATCH: usize = 64;

/// Identifies a bit: the mm, the address of the value, and the bit number.
type BitKey = (MmId, usize, u8);

/// The range of keys of an mm.
fn keys_of(mm: MmId) -> [BitKey; 2] {
    [(mm, 0, 0), (mm, usize::MAX, u8::MAX)]
}

/// The key after `key`.
fn after((mm, addr, bit): BitKey) -> BitKey {
    (mm, addr, bit + 1)
}

/// An mm with enable bits (`struct user_event_mm`), shared by all bits of the mm. If two threads
/// register the first bits at the same time, an mm has two of these, which does no harm.
#[pin_data]
pub(super) struct UserEventMm {
    memory: UserMm,
    enablers: Arc<Enablers>,
    /// Writes late bits.
    #[pin]
    writing: DelayedWork<UserEventMm, WRITING>,
    /// Writes late bits whose page faults may have to be waited for.
    #[pin]
    waiting: Work<UserEventMm, WAITING>,
    /// The next delay of `writing` in milliseconds. It is [`RETRY`] only if the pending work waits
    /// no longer than that. Changed, and the work queued with it, with [`Enablers::bits`] locked,
    /// so that work with a long delay is always visible here.
    delay: Atomic<u32>,
    /// Needed since the work may outlive the bits. Dropped last.
    _module: ModulePin,
}

const WRITING: u64 = 0;
const WAITING: u64 = 1;

impl_has_delayed_work! {
    impl HasDelayedWork<Self, WRITING> for UserEventMm { self.writing }
}

impl_has_work! {
    impl HasWork<Self, WAITING> for UserEventMm { self.waiting }
}

impl UserEventMm {
    /// Creates the state for the mm of the running task, without bits. Called without locks; fails
    /// as [`UserMm::current`].
    fn current(enablers: &Arc<Enablers>) -> Result<Arc<Self>> {
        let module = ModulePin::new()?;
        let memory = UserMm::current()?;
        Arc::pin_init(
            pin_init!(Self {
                memory,
                enablers: enablers.clone(),
                writing <- new_delayed_work!("rhist::UserEventMm::writing"),
                waiting <- new_work!("rhist::UserEventMm::waiting"),
                delay: Atomic::new(RETRY),
                _module: module,
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Queues the work that writes late bits. Called with [`Enablers::bits`] locked.
    fn write_soon(self: &Arc<Self>) {
        let writing = &self.enablers.writing;
        match self.delay.xchg(RETRY, Relaxed) {
            // Pending work writes all late bits, and is due soon.
            RETRY => drop(writing.get().enqueue::<Arc<Self>, WRITING>(self.clone())),
            _ => writing.enqueue_now::<Self, WRITING>(self.clone()),
        }
    }

    /// Makes work with a long delay run now, after all bits were written or removed. Called with
    /// [`Enablers::bits`] locked.
    fn end_soon(self: &Arc<Self>) {
        if self.delay.load(Relaxed) != RETRY {
            self.write_soon();
        }
    }

    /// Queues the work that writes late bits again, after a delay that gets longer each time.
    /// Called without locks.
    fn write_later(self: &Arc<Self>) {
        let _bits = self.enablers.bits.lock();
        let delay = self.delay.load(Relaxed);
        self.delay.store(delay.saturating_mul(2), Relaxed);
        let queue = self.enablers.writing.get();
        // Fails if the work is pending, which then writes all late bits.
        let _ = queue.enqueue_delayed::<Arc<Self>, WRITING>(self.clone(), msecs_to_jiffies(delay));
    }
}

impl WorkItem<WRITING> for UserEventMm {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let enablers = &this.enablers;
        let [mut from, to] = keys_of(this.memory.id());
        // The page of the last bit that could not be written, and the error. Bits come in the order
        // of their addresses.
        let mut failed = None;
        let (mut again, mut waits) = (false, false);
        while let Some(enabler) = enablers.next(&mut from, to, |enabler| &enabler.late) {
            let page = enabler.place.addr() / PAGE_SIZE;
            let written = match failed {
                Some((other, error)) if other == page => Err(error),
                _ => enablers.write_late(&enabler, UserMm::try_fault_in),
            };
            match written {
                Err(EAGAIN) => {
                    enabler.late.store(true, Relaxed);
                    again = true;
                }
                Err(EXDEV) => {
                    enabler.waits.store(true, Relaxed);
                    waits = true;
                    let queue = enablers.waiting.get();
                    let _ = queue.enqueue::<Arc<Self>, WAITING>(this.clone());
                }
                // On other errors the process has exited, unmapped the page or made it read-only.
                // The next change of the event tries again.
                _ => (),
            }
            failed = written.err().map(|error| (page, error));
        }
        match (again, waits) {
            (true, _) => this.write_later(),
            // The other work queues this one again, after a longer delay, if it cannot write them.
            (false, true) => (),
            (false, false) => {
                // The other work may have queued it just now.
                let _bits = enablers.bits.lock();
                this.end_soon();
            }
        }
    }
}

impl WorkItem<WAITING> for UserEventMm {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let enablers = &this.enablers;
        let [mut from, to] = keys_of(this.memory.id());
        while let Some(enabler) = enablers.next(&mut from, to, |enabler| &enabler.waits) {
            if enablers.write_late(&enabler, UserMm::fault_in) == Err(EAGAIN) {
                enabler.late.store(true, Relaxed);
                this.write_later();
            }
        }
    }
}

/// An enable bit that a process has registered: set while the event is enabled.
pub(super) struct Enabler {
    mm: Arc<UserEventMm>,
    place: UserBit,
    event: EventUse,
    _charge: Charge,
    /// To be written by [`UserEventMm::writing`].
    late: Atomic<bool>,
    /// To be written by [`UserEventMm::waiting`].
    waits: Atomic<bool>,
}

impl Enabler {
    fn key(&self) -> BitKey {
        (self.mm.memory.id(), self.place.addr(), self.place.bit())
    }

    /// Writes the current state of the event to the bit. Called with [`Enablers::bits`] locked.
    /// Fails as [`UserMm::try_write_bit`].
    fn try_write(&self) -> Result {
        let enabled = self.event.state().is_enabled();
        self.mm.memory.try_write_bit(self.place, enabled)
    }

    /// Writes the current state of the event to the bit, or makes it late. Called with
    /// [`Enablers::bits`] locked.
    fn write_or_delay(&self) {
        if let Err(EFAULT | EAGAIN) = self.try_write() {
            self.late.store(true, Relaxed);
            self.mm.write_soon();
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
    fn new(mm: Arc<UserEventMm>, place: UserBit, event: EventUse, charge: Charge) -> Result<Self> {
        let enabler = Enabler {
            mm,
            place,
            event,
            _charge: charge,
            late: Atomic::new(false),
            waits: Atomic::new(false),
        };
        let (key, event) = (enabler.key(), event_key(enabler.event.event()));
        let enabler = Arc::new(enabler, GFP_KERNEL_ACCOUNT)?;
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

/// All enablers, by mm and by event.
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

    /// Removes an enabler. The returned node holds the last reference, unless work that is running
    /// has one.
    fn remove(&mut self, key: &BitKey) -> Option<RBTreeNode<BitKey, Arc<Enabler>>> {
        let event = event_key(self.by_mm.get(key)?.event.event());
        self.by_event.remove(&(event, *key));
        self.by_mm.remove_node(key)
    }
}

/// Calls `visit` for at most [`BATCH`] enablers with keys from `from` to `to`, until it returns
/// false. Returns the key of the last one, `None` if the range is empty.
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
    /// Queue for work that does not wait for programs.
    writing: Queue,
    /// Queue for work that a program can delay for any time, by a page fault.
    waiting: Queue,
    quota: Arc<Quota>,
    /// Innermost lock of user events. Nests inside event_mutex, which is held when an event is
    /// enabled or disabled.
    #[pin]
    bits: Mutex<Bits>,
}

impl Enablers {
    /// Fails with `ENOMEM`.
    pub(super) fn new(quota: &Arc<Quota>) -> Result<Arc<Self>> {
        let bits = Bits {
            by_mm: RBTree::new(),
            by_event: RBTree::new(),
        };
        Arc::pin_init(
            try_pin_init!(Self {
                writing: Queue::new()?,
                waiting: Queue::new()?,
                quota: quota.clone(),
                bits <- kernel::new_mutex!(bits),
            }? Error),
            GFP_KERNEL,
        )
    }

    /// Waits until no work is queued or running. Sleeps.
    pub(super) fn drain(&self) {
        self.writing.drain();
        self.waiting.drain();
    }

    /// Returns whether the running process has registered this bit.
    pub(super) fn has(&self, addr: usize, bit: u8) -> bool {
        let bits = self.bits.lock();
        bits.by_mm.get(&(MmId::current(), addr, bit)).is_some()
    }

    /// Registers a bit of the running process and writes it. Called without locks: waits for the
    /// process.
    ///
    /// # Errors
    ///
    /// `EADDRINUSE` if the process has registered the bit already; `ENOMEM`, which as in C is also
    /// returned if the page cannot be written to; `EINTR` or `ERESTARTSYS` if the task is being
    /// killed.
    pub(super) fn add(self: &Arc<Self>, place: UserBit, event: EventUse, charge: Charge) -> Result {
        // Wait until forks have copied the bits: children get those that exist at the fork.
        wait_for_forks()?;
        let known = self
            .bits
            .lock()
            .first(MmId::current())
            .map(|first| first.mm.clone());
        let mm = match known {
            Some(mm) => mm,
            None => UserEventMm::current(self)?,
        };
        let new = NewEnabler::new(mm, place, event, charge)?;
        let pinned = place.pin().map_err(|_| ENOMEM)?;
        // Unlocked before the values declared earlier are dropped.
        let mut bits = self.bits.lock();
        if bits.by_mm.get(&new.enabler.key()).is_some() {
            return Err(eaddrinuse());
        }
        pinned.write(new.enabler.event.state().is_enabled());
        bits.insert(new);
        Ok(())
    }

    /// Unregisters a bit of the running process and clears it. Called without locks: waits for the
    /// process.
    ///
    /// # Errors
    ///
    /// `ENOENT` if the bit is not registered; the errors of [`UserBit::pin`] if it cannot be
    /// cleared: it is unregistered then too; `ERESTARTSYS` if the task is being killed.
    pub(super) fn remove(&self, addr: usize, bit: u8) -> Result {
        // Wait until forks have copied the bits: children get those that exist at the fork.
        wait_for_forks()?;
        let key = (MmId::current(), addr, bit);
        let place = self.bits.lock().by_mm.get(&key).ok_or(ENOENT)?.place;
        let pinned = place.pin();
        let _removed = {
            let mut bits = self.bits.lock();
            let mm = bits.by_mm.get(&key).ok_or(ENOENT)?.mm.clone();
            let removed = bits.remove(&key).ok_or(ENOENT)?;
            if let Ok(pinned) = &pinned {
                pinned.write(false);
            }
            // No bit is late any more, but the work would pin the module while it waits.
            if bits.first(key.0).is_none() {
                mm.end_soon();
            }
            removed
        };
        pinned.map(drop)
    }

    /// Updates the bits of an event that was enabled or disabled. Called with event_mutex held.
    /// Does not wait for any process.
    pub(super) fn update(&self, event: &Arc<UserEvent>) {
        let event = event_key(event);
        let mut from = (event, keys_of(MmId::MIN)[0]);
        let to = (event, keys_of(MmId::MAX)[1]);
        loop {
            // Unlocked between batches, for other tasks. Bits that they register meanwhile have the
            // new state.
            let last = visit(&mut self.bits.lock().by_event, from, to, |enabler| {
                enabler.write_or_delay();
                true
            });
            match last {
                Some((_, last)) => from = (event, after(last)),
                None => break,
            }
        }
    }

    /// Finds the next enabler with a flag from the key `from` to `to`, and clears the flag.
    /// Advances `from`.
    fn next(
        &self,
        from: &mut BitKey,
        to: BitKey,
        flag: fn(&Enabler) -> &Atomic<bool>,
    ) -> Option<Arc<Enabler>> {
        let mut found = None;
        while found.is_none() {
            let last = visit(&mut self.bits.lock().by_mm, *from, to, |enabler| {
                if flag(enabler).xchg(false, Full) {
                    found = Some(enabler.clone());
                }
                found.is_none()
            });
            *from = after(last?);
        }
        found
    }

    /// Writes the current state of the event to a late bit, whose page `fault_in` faults in if it
    /// is missing. Called without locks.
    ///
    /// # Errors
    ///
    /// The errors of `fault_in`, and of [`UserMm::try_write_bit`].
    fn write_late(
        &self,
        enabler: &Arc<Enabler>,
        fault_in: fn(&UserMm, UserBit) -> Result,
    ) -> Result {
        for _ in 0..ATTEMPTS {
            let written = {
                let bits = self.bits.lock();
                if !bits.has(enabler) {
                    return Ok(());
                }
                enabler.try_write()
            };
            if written != Err(EFAULT) {
                return written;
            }
            fault_in(&enabler.mm.memory, enabler.place)?;
        }
        Err(EFAULT)
    }

    /// Registers the bits of `parent` for the running task, a forked child whose mm is a copy of
    /// it. Called without locks; may sleep.
    ///
    /// # Errors
    ///
    /// The errors of [`Charge::new`]; `ENOMEM`, or `EINTR` if the task is being killed. No bit is
    /// registered then.
    pub(super) fn copy(self: &Arc<Self>, parent: MmId) -> Result {
        let copied = self.copy_some(parent);
        if copied.is_err() {
            self.remove_all(MmId::current());
        }
        copied
    }

    /// As [`Enablers::copy`], but on failure some bits may be registered.
    fn copy_some(self: &Arc<Self>, parent: MmId) -> Result {
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
                let mm = match &child {
                    Some(mm) => mm,
                    None => child.insert(UserEventMm::current(self)?),
                };
                let event = original.event.clone();
                let charge = Charge::bit(&self.quota)?;
                let new = NewEnabler::new(mm.clone(), original.place, event, charge)?;
                let enabler = new.enabler.clone();
                let mut bits = self.bits.lock();
                bits.insert(new);
                enabler.write_or_delay();
            }
        }
    }

    /// Removes all bits of an mm, and leaves its memory as it is. Called without locks; sleeps.
    pub(super) fn remove_all(&self, mm: MmId) {
        loop {
            let mut removed: RBTree<BitKey, Arc<Enabler>> = RBTree::new();
            let mut bits = self.bits.lock();
            for _ in 0..BATCH {
                let Some(first) = bits.first(mm) else { break };
                first.mm.end_soon();
                let key = first.key();
                if let Some(node) = bits.remove(&key) {
                    removed.insert(node);
                }
            }
            // Drops the uses of events without the lock.
            drop(bits);
            if removed.is_empty() {
                break;
            }
        }
    }
}
