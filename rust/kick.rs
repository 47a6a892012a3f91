// SPDX-License-Identifier: GPL-2.0

//! Kicks: a hit makes a task do something.
//!
//! A hit may come with the scheduler's locks held, or in an NMI, so it cannot queue work itself. It
//! queues an `irq_work`, whose interrupt does.
//!
//! C header: `include/linux/irq_work.h`.

use super::bindings;
use core::ptr;
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full,
            Release, //
        },
        Arc,
        ArcBorrow, //
    },
    types::Opaque, //
};

/// A target of kicks.
pub(crate) trait Kicked: Send + Sync + 'static {
    /// Called after each kick, or after several that come shortly after each other. Hard interrupt;
    /// a task with `PREEMPT_RT`.
    fn kicked(this: ArcBorrow<'_, Self>);
}

/// Kicks its target, if it has one, from any context: see [`Kicks`].
///
/// # Invariants
///
/// `irq` was initialised, with [`call`] for this type. `to` is null, or from [`Arc::as_ptr`] of a
/// [`Kicks`], which exists: it waits for the interrupt after it has made `to` null.
#[pin_data(PinnedDrop)]
#[repr(C)]
pub(crate) struct Kick<T: Kicked> {
    /// First, so that its address is this one's.
    #[pin]
    irq: Opaque<bindings::irq_work>,
    to: Atomic<*mut T>,
}

// SAFETY: Any task may create and free it, and `T` may be used by any.
unsafe impl<T: Kicked> Send for Kick<T> {}
// SAFETY: An irq_work may be queued concurrently from any context, and `T` may be used by any.
unsafe impl<T: Kicked> Sync for Kick<T> {}

impl<T: Kicked> Kick<T> {
    /// Creates one without a target. Fails with `ENOMEM`.
    pub(crate) fn new() -> Result<Arc<Self>> {
        // INVARIANT: `rhist_kick_init()` initialises the irq_work, and `to` is null.
        Arc::pin_init(
            pin_init!(Self {
                // SAFETY: `ffi_init` passes valid memory, which is pinned from now on.
                irq <- Opaque::ffi_init(|irq| unsafe {
                    bindings::rhist_kick_init(irq, Some(call::<T>));
                }),
                to: Atomic::new(ptr::null_mut()),
            }),
            GFP_KERNEL,
        )
    }

    /// Kicks, from an interrupt soon after. Any context, NMI included.
    pub(crate) fn kick(&self) {
        // SAFETY: The irq_work is initialised by the type invariant, and `drop` waits for it.
        unsafe { bindings::irq_work_queue(self.irq.get()) };
    }

    /// Waits until the interrupt of a kick does not run. Task context, sleeps.
    fn sync(&self) {
        // SAFETY: The irq_work is initialised by the type invariant.
        unsafe { bindings::irq_work_sync(self.irq.get()) };
    }
}

#[pinned_drop]
impl<T: Kicked> PinnedDrop for Kick<T> {
    /// Task context, sleeps.
    fn drop(self: Pin<&mut Self>) {
        self.sync();
    }
}

/// # Safety
///
/// Must be called by the kernel, for the irq_work of a `Kick<T>`.
unsafe extern "C" fn call<T: Kicked>(irq: *mut bindings::irq_work) {
    // SAFETY: The irq_work is the first field of the `Kick<T>`, which waits for this when it is
    // dropped.
    let kick = unsafe { &*irq.cast::<Kick<T>>() };
    let to = kick.to.load(Acquire);
    if !to.is_null() {
        // SAFETY: By the type invariant the pointer is an `Arc`'s, which is kept until this has
        // returned.
        T::kicked(unsafe { ArcBorrow::from_raw(to) });
    }
}

/// The time during which a [`Kick`] has a target: until [`Kicks::end`], or until this is dropped.
pub(crate) struct Kicks<T: Kicked> {
    kick: Arc<Kick<T>>,
    to: Arc<T>,
}

impl<T: Kicked> Kicks<T> {
    /// Makes `to` the target of `kick`, which lacks one so far.
    pub(crate) fn begin(kick: Arc<Kick<T>>, to: Arc<T>) -> Self {
        // INVARIANT: `self` keeps the reference.
        kick.to.store(Arc::as_ptr(&to).cast_mut(), Release);
        Self { kick, to }
    }

    /// Returns its target.
    pub(crate) fn to(&self) -> &Arc<T> {
        &self.to
    }

    /// Ends it. Waits for a kick that is at work. Task context, sleeps.
    pub(crate) fn end(&self) {
        // A full barrier: either the interrupt of a kick sees it, or it is waited for.
        self.kick.to.xchg(ptr::null_mut(), Full);
        self.kick.sync();
    }
}

impl<T: Kicked> Drop for Kicks<T> {
    /// Task context, sleeps.
    fn drop(&mut self) {
        self.end();
    }
}
