// SPDX-License-Identifier: GPL-2.0

//! Deferred freeing of lists and sources that new hits do not use any more, but running hits may.
//!
//! They are removed with the lock of the registry held, and freed after it was released, since a
//! grace period takes many milliseconds, and everything that reads or sets triggers needs the lock.

use super::{
    disconnected,
    site::Triggers,
    switch::Switches, //
};
use crate::{
    rust::{
        event::Event,
        queue::Queue,
        source::{
            self,
            Source, //
        },
    },
    sync::Retired,
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// A disconnected source. Dropping it waits for its hits. If these may fault and the event is built
/// in, the wait happens later, without the locks of the caller.
struct Detached {
    source: Option<KBox<dyn Source>>,
    /// The event that the source uses.
    event: Arc<Event>,
    queue: Arc<Queue>,
}

impl Detached {
    /// Returns whether its hits may fault, and have to be waited for before its event is put, by
    /// [`source::synchronize_all`]: a built-in event stays anyway.
    fn faults(&self) -> bool {
        self.event.may_fault() && !self.event.is_built_in()
    }

    /// Drops the source, after `wait()`.
    fn drop_waited(&mut self) {
        if let (Some(source), true) = (self.source.take(), self.event.may_fault()) {
            disconnected::drop_later(&self.queue, source);
        }
    }
}

/// Waits for the hits of disconnected sources.
fn wait(faults: bool) {
    match faults {
        true => source::synchronize_all(),
        false => source::synchronize(),
    }
}

impl Drop for Detached {
    fn drop(&mut self) {
        if self.source.is_some() {
            wait(self.faults());
            self.drop_waited();
        }
    }
}

/// Lists and sources that running hits may still use. Dropping it waits for these hits: once for
/// each of the three kinds, however many items it has. Task context, without the lock of the
/// registry.
#[derive(Default)]
pub(crate) struct Leftovers {
    sources: KVec<Detached>,
    triggers: KVec<Retired<Triggers>>,
    switches: KVec<Retired<Switches>>,
}

impl Leftovers {
    // If the allocation fails, the list or source is dropped at once, which waits for its hits.

    /// Keeps a list of triggers that was replaced.
    pub(super) fn keep_triggers(&mut self, list: Retired<Triggers>) {
        let _ = self.triggers.push(list, GFP_KERNEL);
    }

    /// Keeps a list of switches that was replaced.
    pub(super) fn keep_switches(&mut self, list: Retired<Switches>) {
        let _ = self.switches.push(list, GFP_KERNEL);
    }

    /// Keeps a disconnected source of `event`. If its hits may fault, it is dropped on `queue` in
    /// the end.
    pub(super) fn keep_source(
        &mut self,
        source: KBox<dyn Source>,
        event: &Arc<Event>,
        queue: &Arc<Queue>,
    ) {
        let detached = Detached {
            source: Some(source),
            event: event.clone(),
            queue: queue.clone(),
        };
        let _ = self.sources.push(detached, GFP_KERNEL);
    }
}

impl Drop for Leftovers {
    fn drop(&mut self) {
        if !self.sources.is_empty() {
            wait(self.sources.iter().any(Detached::faults));
            self.sources.iter_mut().for_each(Detached::drop_waited);
        }
        Retired::drop_all(core::mem::take(&mut self.triggers));
        Retired::drop_all(core::mem::take(&mut self.switches));
    }
}
