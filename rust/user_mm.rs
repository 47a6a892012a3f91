// SPDX-License-Identifier: GPL-2.0

//! Sets bits in the memory of processes, and watches processes exit and fork: see `rust/user_mm.c`.

use super::bindings;
use core::ptr::NonNull;
use kernel::{
    error::{
        from_err_ptr,
        to_result, //
    },
    ffi,
    prelude::*,
    sync::Arc, //
};

/// Identifies an mm. Not reused while a [`UserMm`] refers to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MmId(usize);

impl MmId {
    /// Not greater than any other.
    pub(crate) const MIN: Self = Self(0);
    /// Not less than any other.
    pub(crate) const MAX: Self = Self(usize::MAX);

    /// The mm of the running task. Task context.
    pub(crate) fn current() -> Self {
        // SAFETY: Only reads `current->mm`, which may be null.
        Self(unsafe { bindings::rhist_current_mm() } as usize)
    }
}

/// A bit of a value in the memory of a process.
///
/// # Invariants
///
/// The value has 4 bytes, or 8 if that is not more than a `usize`. It is aligned to its size, and
/// has the bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UserBit {
    addr: usize,
    bit: u8,
    size: u8,
}

impl UserBit {
    /// The bit `bit` of the value of `size` bytes at `addr`, which may be any address.
    ///
    /// # Errors
    ///
    /// `EINVAL` for an invalid size, an address that is not aligned to it, or a bit outside of the
    /// value.
    pub(crate) fn new(addr: usize, bit: u8, size: u8) -> Result<Self> {
        let bytes = usize::from(size);
        if !matches!(size, 4 | 8)
            || bytes > size_of::<usize>()
            || addr % bytes != 0
            || usize::from(bit) >= 8 * bytes
        {
            return Err(EINVAL);
        }
        // INVARIANT: Size, alignment and bit were checked.
        Ok(Self { addr, bit, size })
    }

    /// The address of the value.
    pub(crate) fn addr(self) -> usize {
        self.addr
    }

    /// The bit of the value.
    pub(crate) fn bit(self) -> u8 {
        self.bit
    }

    /// Pins the page of the bit in the memory of the running task. Called without locks: waits for
    /// mmap_lock and a page fault, both of which the process can delay for any time, or until the
    /// task is killed.
    ///
    /// # Errors
    ///
    /// `EFAULT` or another one if the page cannot be made writable, `ESRCH` if the task has no
    /// memory.
    pub(crate) fn pin(self) -> Result<PinnedBit> {
        let mut page = core::ptr::null_mut();
        // SAFETY: `page` is valid for the call, and C checks the address.
        to_result(unsafe { bindings::rhist_user_pin(self.addr, &mut page) })?;
        // INVARIANT: `rhist_user_pin()` has pinned the page, so it is not null.
        NonNull::new(page)
            .map(|page| PinnedBit { place: self, page })
            .ok_or(EFAULT)
    }
}

/// A bit in pinned memory. Dropped without locks: waits for the lock of the page, or until the task
/// is killed.
///
/// # Invariants
///
/// `page` is the page of `place`, as pinned by `rhist_user_pin()`; `self` owns the reference.
pub(crate) struct PinnedBit {
    place: UserBit,
    page: NonNull<bindings::page>,
}

impl PinnedBit {
    /// Sets or clears the bit. Any context.
    pub(crate) fn write(&self, on: bool) {
        let UserBit { addr, bit, size } = self.place;
        // SAFETY: By the invariants the page is pinned, and has the whole value with the bit.
        unsafe {
            bindings::rhist_user_write_bit(self.page.as_ptr(), addr, bit.into(), size.into(), on);
        }
    }
}

impl Drop for PinnedBit {
    fn drop(&mut self) {
        // SAFETY: By the invariants `self` owns the reference, and puts it only here.
        unsafe { bindings::rhist_user_unpin(self.page.as_ptr()) }
    }
}

/// Waits until each child that the running process has forked before the call has been reported to
/// [`Watcher::forked`], which is when it first runs. Called without locks.
///
/// # Errors
///
/// `ERESTARTSYS` if the task is being killed.
pub(crate) fn wait_for_forks() -> Result {
    // SAFETY: Takes no arguments; the caller may sleep.
    to_result(unsafe { bindings::rhist_mm_wait_for_forks() })
}

/// A reference on a `struct mm_struct` (`mm_count`). It does not keep the address space.
pub(crate) struct UserMm(NonNull<bindings::rhist_mm>);

// SAFETY: The reference is not bound to a task: any task may use it and put it.
unsafe impl Send for UserMm {}
// SAFETY: The C functions take the locks that they need, and change nothing of the `struct
// rhist_mm`.
unsafe impl Sync for UserMm {}

impl UserMm {
    /// Takes a reference on the mm of the running task. Task context, without mmap_lock held; waits
    /// for that and for page faults of the process, until the task is killed.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, `ESRCH` if the task has no mm, `EINTR` if it is being killed.
    pub(crate) fn current() -> Result<Self> {
        // SAFETY: Takes no arguments. It is called in system calls and by task work, where
        // mmap_lock is not held.
        let memory = from_err_ptr(unsafe { bindings::rhist_mm_get() })?;
        NonNull::new(memory).map(Self).ok_or(ENOMEM)
    }

    /// The identity of the mm.
    pub(crate) fn id(&self) -> MmId {
        // SAFETY: `self` holds a reference.
        MmId(unsafe { bindings::rhist_mm_of(self.0.as_ptr()) } as usize)
    }

    /// Sets or clears a bit, if that needs no waiting. Task context; locks may be held.
    ///
    /// # Errors
    ///
    /// `EAGAIN` if mmap_lock or the lock of the page is taken, `EFAULT` if the page is not present
    /// or not writable, `ENOENT` if no process uses the mm.
    pub(crate) fn try_write_bit(&self, place: UserBit, on: bool) -> Result {
        let UserBit { addr, bit, size } = place;
        // SAFETY: `self` holds a reference, and C checks the address. By the invariants of `place`
        // the bit is in an aligned value of 4 or 8 bytes, and so in the page.
        to_result(unsafe {
            bindings::rhist_mm_try_write_bit(self.0.as_ptr(), addr, bit.into(), size.into(), on)
        })
    }

    /// Faults in the page of a bit for writing. Called without locks; sleeps, but does not wait for
    /// the process.
    ///
    /// # Errors
    ///
    /// `EAGAIN` if mmap_lock is taken, or the page takes time to come; `EXDEV` if only
    /// [`UserMm::fault_in`] can do it; `ENOENT` if no process uses the mm; `EFAULT` or another one
    /// if the page cannot be made writable.
    pub(crate) fn try_fault_in(&self, place: UserBit) -> Result {
        // SAFETY: `self` holds a reference, and C checks the address.
        to_result(unsafe { bindings::rhist_mm_try_fault_in(self.0.as_ptr(), place.addr) })
    }

    /// Faults in the page of a bit like [`UserMm::try_fault_in`], but waits for the file system,
    /// for as long as a FUSE server may take. Does not pin the address space (`mm_users`) while it
    /// waits.
    ///
    /// # Errors
    ///
    /// `EAGAIN` if mmap_lock is taken, or the page takes more time; `ENOENT` if no process uses the
    /// mm; `EFAULT` or another one if the page cannot be read or made writable.
    pub(crate) fn fault_in(&self, place: UserBit) -> Result {
        // SAFETY: `self` holds a reference, and C checks the address.
        to_result(unsafe { bindings::rhist_mm_fault_in(self.0.as_ptr(), place.addr) })
    }
}

impl Drop for UserMm {
    fn drop(&mut self) {
        // SAFETY: `self` holds the reference that `rhist_mm_get` has taken, and puts it only here.
        unsafe { bindings::rhist_mm_put(self.0.as_ptr()) }
    }
}

/// Callbacks for exit and fork of processes.
pub(crate) trait Watcher: Send + Sync + 'static {
    /// Notifies that the last process has left an mm that has a [`UserMm`]. Task context without
    /// locks; may sleep, and drop each `UserMm`.
    fn exited(self: &Arc<Self>, mm: MmId);

    /// Notifies of a fork: the mm of the running task, the child, is a copy of `parent`, which may
    /// have a [`UserMm`]. Called before the child first returns to user space; may sleep. `parent`
    /// is referenced (`mm_users`) until this returns.
    fn forked(self: &Arc<Self>, parent: MmId);
}

/// Registration of a [`Watcher`], until this is dropped. At most one exists.
pub(crate) struct Watch<W: Watcher>(#[expect(dead_code)] Arc<W>);

/// Borrows the reference of a [`Watch`] to its watcher.
///
/// # Safety
///
/// `owner` must be the watcher of a [`Watch<W>`] that is not dropped while the result is used.
unsafe fn borrowed<W: Watcher>(owner: *const ffi::c_void) -> core::mem::ManuallyDrop<Arc<W>> {
    // SAFETY: `owner` comes from `Arc::as_ptr`, and the `Watch` holds a reference. This `Arc` is
    // never dropped, so the count stays as it is.
    core::mem::ManuallyDrop::new(unsafe { Arc::from_raw(owner.cast()) })
}

/// # Safety
///
/// Must be called by C with the owner that a [`Watch<W>`] has registered and not unregistered.
unsafe extern "C" fn exited<W: Watcher>(owner: *const ffi::c_void, mm: *mut bindings::mm_struct) {
    // SAFETY: The caller guarantees that `owner` belongs to a registered `Watch<W>`. Its `drop`
    // waits for callbacks before it drops the watcher.
    unsafe { borrowed::<W>(owner) }.exited(MmId(mm as usize));
}

/// # Safety
///
/// As for [`exited`].
unsafe extern "C" fn forked<W: Watcher>(
    owner: *const ffi::c_void,
    parent: *mut bindings::mm_struct,
) {
    // SAFETY: The caller guarantees that `owner` belongs to a registered `Watch<W>`. The callback
    // pins the module, which drops the `Watch` only when it is unloaded.
    unsafe { borrowed::<W>(owner) }.forked(MmId(parent as usize));
}

impl<W: Watcher> Watch<W> {
    /// Registers `watcher`. No [`UserMm`] may exist.
    ///
    /// # Errors
    ///
    /// `EBUSY` if another `Watch` exists, `ENOENT` if the kernel lacks the tracepoint
    /// `task_newtask`, `ENOMEM`.
    pub(crate) fn new(watcher: Arc<W>) -> Result<Self> {
        let with = bindings::rhist_mm_watcher {
            owner: Arc::as_ptr(&watcher).cast(),
            exited: Some(exited::<W>),
            forked: Some(forked::<W>),
        };
        // SAFETY: `with` is copied. Its owner is moved into the result, and so valid until `drop`
        // unregisters it.
        to_result(unsafe { bindings::rhist_mm_watch(&with) })?;
        Ok(Self(watcher))
    }
}

impl<W: Watcher> Drop for Watch<W> {
    /// Unregisters the watcher. Only dropped while the module is unloaded, after each [`UserMm`].
    /// Sleeps until no callback runs.
    fn drop(&mut self) {
        // SAFETY: `new` has registered it. All forks have been handled, as each pins the module
        // meanwhile.
        unsafe { bindings::rhist_mm_unwatch() }
    }
}
