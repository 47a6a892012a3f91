// SPDX-License-Identifier: GPL-2.0

//! Lists and sources that are not used for new hits any more, but may be by hits that have not
//! returned.
//!
//! They are removed with the lock of the registry held, and waited for after it was released, since
//! a grace period takes many milliseconds, and everybody who reads or sets a trigger needs the
//! lock.

use super::{
    disconnected,
    Switches,
    Triggers, //
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

/// A source that was disconnected. Dropping it waits for its hits; for those that may fault, later
/// and without the locks of the caller, if the event is built in.
struct Detached {
    source: Option<KBox<dyn Source>>,
    /// The source needs it.
    event: Arc<Event>,
    queue: Arc<Queue>,
}

impl Detached {
    /// Returns whether its hits may fault, so that only [`source::synchronize_all`] waits for them.
    fn faults(&self) -> bool {
        self.event.may_fault() && !self.event.is_built_in()
    }

    /// Drops it after its hits were waited for.
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

/// Lists and sources that hits may still use. Dropping it waits for these hits: once for each of
/// the three kinds, however many there are. Task context, without the lock of the registry.
#[derive(Default)]
pub(crate) struct Leftovers {
    sources: KVec<Detached>,
    triggers: KVec<Retired<Triggers>>,
    switches: KVec<Retired<Switches>>,
}

impl Leftovers {
    // Without memory to keep it, a list or source is dropped at once, which waits for its hits.

    /// Keeps a list that was replaced.
    pub(super) fn keep_triggers(&mut self, list: Retired<Triggers>) {
        let _ = self.triggers.push(list, GFP_KERNEL);
    }

    /// Keeps a list that was replaced.
    pub(super) fn keep_switches(&mut self, list: Retired<Switches>) {
        let _ = self.switches.push(list, GFP_KERNEL);
    }

    /// Keeps a source of `event` that was disconnected. With hits that may fault, it is given to `queue` in the end.
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
