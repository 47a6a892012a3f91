// SPDX-License-Identifier: GPL-2.0

//! The memory of processes, and bits in it: see `rust/user_mm.c`.

use super::bindings;
use core::ptr::NonNull;
use kernel::error::from_err_ptr;
use kernel::error::to_result;
use kernel::ffi;
use kernel::prelude::*;
use kernel::sync::Arc;

/// Identifies an mm. Not reused as long as there is a [`UserMm`] of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MmId(usize);

impl MmId {
    /// That of the running task.
    pub(crate) fn current() -> Self {
        // SAFETY: Task context.
        Self(unsafe { bindings::rhist_current_mm() } as usize)
    }
}

/// A bit of a value in the memory of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UserBit {
    /// The address, aligned to the size.
    pub(crate) addr: usize,
    /// The bit of the value.
    pub(crate) bit: u8,
    /// Bytes of the value: 4 or 8.
    pub(crate) size: u8,
}

/// A reference on a `struct mm_struct` (`mm_count`). It does not keep the address space.
pub(crate) struct UserMm(NonNull<bindings::rhist_mm>);

// SAFETY: All functions that take it lock for themselves, and any task may give it back.
unsafe impl Send for UserMm {}
// SAFETY: As above.
unsafe impl Sync for UserMm {}

impl UserMm {
    /// The memory of the running task. Takes its mmap_lock.
    pub(crate) fn current() -> Result<Self> {
        // SAFETY: Task context; the caller has no mmap_lock.
        let memory = from_err_ptr(unsafe { bindings::rhist_mm_get() })?;
        NonNull::new(memory).map(Self).ok_or(ENOMEM)
    }

    pub(crate) fn id(&self) -> MmId {
        // SAFETY: The reference is valid.
        MmId(unsafe { bindings::rhist_mm_of(self.0.as_ptr()) } as usize)
    }

    /// Whether a process still uses it (`mm_users`).
    pub(crate) fn is_alive(&self) -> bool {
        // SAFETY: The reference is valid.
        unsafe { bindings::rhist_mm_alive(self.0.as_ptr()) }
    }

    /// Sets or clears a bit, if that is possible without waiting for the page. Takes mmap_lock.
    ///
    /// # Errors
    ///
    /// `EFAULT` if it is not, `ENOENT` if the memory is gone.
    pub(crate) fn write_bit(&self, place: UserBit, on: bool) -> Result {
        let (bit, size) = (place.bit.into(), place.size.into());
        // SAFETY: The reference is valid; any address will do.
        to_result(unsafe {
            bindings::rhist_mm_write_bit(self.0.as_ptr(), place.addr, bit, size, on)
        })
    }

    /// Makes the page at an address writable. Takes mmap_lock and sleeps, maybe as long as the
    /// process likes.
    ///
    /// # Errors
    ///
    /// `EFAULT` if it cannot be, `ENOENT` if the memory is gone, `ENOMEM`.
    pub(crate) fn fault_in(&self, addr: usize) -> Result {
        // SAFETY: The reference is valid; any address will do.
        to_result(unsafe { bindings::rhist_mm_fault_in(self.0.as_ptr(), addr) })
    }
}

impl Drop for UserMm {
    fn drop(&mut self) {
        // SAFETY: The reference is ours to give back.
        unsafe { bindings::rhist_mm_put(self.0.as_ptr()) }
    }
}

/// Callbacks for exit and fork of processes.
pub(crate) trait Watcher: Send + Sync + 'static {
    /// Memory that somebody has a [`UserMm`] of lost its last process. Must not sleep.
    fn exited(self: &Arc<Self>);

    /// The running task has a copy of memory that there may be a [`UserMm`] of. Called before it
    /// is in user space for the first time; the other memory is kept until this returns.
    fn forked(self: &Arc<Self>, parent: MmId);
}

/// Registration of a [`Watcher`], until this is dropped. There is only one.
pub(crate) struct Watch<W: Watcher>(#[expect(dead_code)] Arc<W>);

/// # Safety
///
/// `owner` must be the watcher of a [`Watch`]. The reference is only borrowed.
unsafe fn borrowed<W: Watcher>(owner: *const ffi::c_void) -> core::mem::ManuallyDrop<Arc<W>> {
    // SAFETY: `owner` came from `Arc::into_raw`, and its reference stays where it is: this one is never dropped.
    core::mem::ManuallyDrop::new(unsafe { Arc::from_raw(owner.cast()) })
}

/// # Safety
///
/// For [`Watch`] only.
unsafe extern "C" fn exited<W: Watcher>(owner: *const ffi::c_void) {
    // SAFETY: C calls with the owner that it was given, which has a reference until C is told to forget it.
    unsafe { borrowed::<W>(owner) }.exited();
}

/// # Safety
///
/// For [`Watch`] only.
unsafe extern "C" fn forked<W: Watcher>(
    owner: *const ffi::c_void,
    parent: *mut bindings::mm_struct,
) {
    // SAFETY: As in `exited`.
    unsafe { borrowed::<W>(owner) }.forked(MmId(parent as usize));
}

impl<W: Watcher> Watch<W> {
    /// Registers `watcher`. No other `Watch` may exist, and no [`UserMm`].
    ///
    /// # Errors
    ///
    /// `ENOENT` if the kernel tells nobody of forks, `ENOMEM`.
    pub(crate) fn new(watcher: Arc<W>) -> Result<Self> {
        let with = bindings::rhist_mm_watcher {
            owner: Arc::as_ptr(&watcher).cast(),
            exited: Some(exited::<W>),
            forked: Some(forked::<W>),
        };
        // SAFETY: The watcher stays until `drop`.
        to_result(unsafe { bindings::rhist_mm_watch(&with) })?;
        Ok(Self(watcher))
    }
}

impl<W: Watcher> Drop for Watch<W> {
    /// To be dropped when the module goes, after each [`UserMm`]. Sleeps.
    fn drop(&mut self) {
        // SAFETY: Registered by `new`. A fork that is under way keeps the module.
        unsafe { bindings::rhist_mm_unwatch() }
    }
}
