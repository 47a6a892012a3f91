// SPDX-License-Identifier: GPL-2.0

//! What makes the kernel call us for each hit of an event.
//!
//! There are three kinds of sources, each with a file here. A hit enters Rust in their callbacks, which
//! pass the record to a [`Receiver`], with a [`PreemptOff`].

pub(crate) mod event_file;
pub(crate) mod marker;
pub(crate) mod probe;

use super::bindings;
use super::cpu;
use super::cpu::PreemptOff;
use super::stack::Frame;
use core::slice;
use kernel::ffi;
use kernel::sync::atomic::Atomic;

/// Passes each hit of an event to a [`Receiver`], from its creation until it is disconnected.
///
/// Hits that run while it is disconnected end before [`synchronize`] returns. Only then may it be
/// dropped, and the reference on its event be given back.
pub(crate) trait Source: Send + Sync {
    /// Stops new hits from being passed on. Takes `event_mutex`.
    fn disconnect(&mut self);

    /// Asks the source to fill in `common_flags` and `common_preempt_count` of its records. Task context,
    /// may sleep.
    fn want_context(&self) {}

    /// Its name in `hist_stats`.
    fn name(&self) -> &'static str;
}

/// Receives the hits of an event: in any context, NMI included, so that it neither sleeps nor takes a
/// lock. Nobody writes to the record of a hit meanwhile.
///
/// # Safety
///
/// A leaf is kept for a grace period after [`Receiver::leaf`] has pointed to it.
pub(crate) unsafe trait Receiver: Send + Sync + Sized + 'static {
    /// What hits on the fast path are counted by. They cannot nest there.
    type Leaf: Sync;

    /// The leaf, or null if hits take the slow path.
    fn leaf(&self) -> &Atomic<*mut Self::Leaf>;

    /// How many files are polled. If there are any, hits take the slow path.
    fn watchers(&self) -> &Atomic<u32>;

    /// Counts a hit, by whichever path.
    fn hit(&self, preempt: PreemptOff<'_>, record: &[u8]);

    /// Counts a hit on the fast path.
    fn hit_leaf(&self, leaf: &Self::Leaf, preempt: PreemptOff<'_>, record: &[u8]);

    /// Counts a hit on the slow path. The frame is that of the probe.
    fn hit_slow(&self, preempt: PreemptOff<'_>, record: &[u8], frame: Frame<'_>);

    /// Counts a hit that no record could be made of.
    fn lost(&self);
}

/// Waits for the hits of all sources that were disconnected before to return. Task context, sleeps.
pub(crate) fn synchronize() {
    // Probes run under tracepoint_srcu or RCU-tasks-trace; kprobes with preemption off.
    // SAFETY: Task context, no locks that a probe could wait for.
    unsafe { bindings::rhist_tracepoint_synchronize_unregister() };
    cpu::synchronize_hits();
}

/// A hit for whose record the kernel has reserved room. Without a record there is nothing to count.
///
/// # Safety
///
/// Preemption is off, and the record, if there is one, complete and not yet committed. `len` says how
/// many bytes it has.
#[inline(always)]
unsafe fn reserved<R: Receiver>(
    receiver: &R,
    record: *const ffi::c_void,
    event: *mut bindings::ring_buffer_event,
    len: unsafe fn(*mut bindings::ring_buffer_event) -> usize,
) {
    if record.is_null() || event.is_null() {
        return;
    }
    // SAFETY: The caller has preemption off. A record belongs to the CPU that reserved it until it is
    // committed or discarded.
    unsafe {
        let record = slice::from_raw_parts(record.cast(), len(event));
        receiver.hit(PreemptOff::assume_on(cpu::current()), record);
    }
}
