// SPDX-License-Identifier: GPL-2.0

//! Sources: they make the kernel call rhist for each hit of an event.
//!
//! Each of the four kinds has a file here. A hit enters Rust in their callbacks, which pass the
//! record to a [`Receiver`], with a [`PreemptOff`].

pub(crate) mod event_file;
pub(crate) mod handlers;
pub(crate) mod marker;
pub(crate) mod probe;
pub(crate) mod sample;
pub(crate) mod trigger;

use super::{
    bindings,
    stack::Frame,
    task::TaskArg, //
};
use crate::sync::PreemptOff;
use kernel::sync::rcu;

/// Passes each hit of an event to a [`Receiver`], from its creation until it is disconnected.
///
/// Hits in progress when it is disconnected end before [`synchronize`] returns, or
/// [`synchronize_all`] if they may fault ([`Event::may_fault`](super::event::Event::may_fault)).
/// Only then may it be dropped, and the reference to its event be put, unless the event is built
/// in.
pub(crate) trait Source: Send + Sync {
    /// Stops new hits from being passed on. Takes `event_mutex`.
    fn disconnect(&mut self);

    /// Asks the source to fill in `common_flags` and `common_preempt_count` of its records. Task
    /// context, may sleep.
    fn want_context(&self) {}

    /// Its name in `hist_stats`.
    fn name(&self) -> &'static str;
}

/// Receives the hits of an event: in any context, NMI included, so it neither sleeps nor takes a
/// lock. The record of a hit does not change meanwhile.
pub(crate) trait Receiver: Send + Sync + Sized + 'static {
    /// The trigger that counts hits on the fast path.
    type Leaf;

    /// The leaf; `None` if a hit has to take the slow path.
    fn leaf<'a>(&'a self, preempt: PreemptOff<'a>) -> Option<&'a Self::Leaf>;

    /// Fast path. Hits cannot nest in it, and of the common fields of the record it only reads
    /// `common_pid`.
    fn hit_leaf(
        &self,
        leaf: &Self::Leaf,
        preempt: PreemptOff<'_>,
        record: &[u8],
        task: TaskArg<'_>,
    );

    /// The trigger of another fast path, which emits a synthetic event; `None` if the event has a
    /// leaf or needs the slow path.
    fn emitter<'a>(&'a self, preempt: PreemptOff<'a>) -> Option<&'a Self::Leaf>;

    /// Fast path of the emitter. Only a hit of the synthetic event nests in it, which is on the
    /// fast path, too. Returns false, and has done nothing, if the hit has to take the slow path.
    fn hit_emitter(
        &self,
        emitter: &Self::Leaf,
        preempt: PreemptOff<'_>,
        record: &[u8],
        task: TaskArg<'_>,
    ) -> bool;

    /// Slow path, for a complete record. `frame` is the frame of the function of rhist that the
    /// kernel has called, or of a function called by that.
    fn hit_all(&self, preempt: PreemptOff<'_>, record: &[u8], task: TaskArg<'_>, frame: Frame<'_>);

    /// Counts a hit that is lost because the allocation of its record failed.
    fn lost(&self);
}

/// Waits until the hits of disconnected sources have returned, except hits that may fault. Task
/// context, sleeps.
pub(crate) fn synchronize() {
    // Probes run under tracepoint_srcu, kprobes, and on 6.12 all probes, with preemption off.
    // SAFETY: Task context, no locks that a probe could wait for.
    unsafe { bindings::rhist_synchronize_tracepoint_srcu() };
    rcu::synchronize_rcu();
}

/// Waits until the hits of all disconnected sources have returned. Task context; a program can make
/// it sleep for any time, so call it without locks.
pub(crate) fn synchronize_all() {
    // Hits that may fault run under RCU-tasks-trace.
    // SAFETY: Task context, no locks that a probe could wait for.
    unsafe { bindings::rhist_tracepoint_synchronize_unregister() };
    rcu::synchronize_rcu();
}
