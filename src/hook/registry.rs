// SPDX-License-Identifier: GPL-2.0

//! The events that have histograms.
//!
//! # Locks
//!
//! The lock of the registry is taken in task context with no other lock held, and is the outermost
//! one of the module: inside it event_mutex is taken and grace periods are waited for. Nothing
//! that the kernel calls with event_mutex held takes it.

use super::Histograms;
use super::Hook;
use crate::ftrace::event::Event;
use crate::ftrace::instance::Instance;
use crate::hist::Histogram;
use kernel::prelude::*;
use kernel::sync::lock::mutex::MutexGuard;
use kernel::sync::Arc;
use kernel::sync::Mutex;

/// All hooks. Dropping it unhooks every event.
#[pin_data]
pub(crate) struct Registry {
    #[pin]
    hooks: Mutex<KVec<Hook>>,
    instance: Arc<Instance>,
}

impl Registry {
    pub(crate) fn new(instance: Instance) -> Result<Pin<KBox<Self>>> {
        let instance = Arc::new(instance, GFP_KERNEL)?;
        KBox::pin_init(
            pin_init!(Self {
                hooks <- kernel::new_mutex!(KVec::new()),
                instance,
            }),
            GFP_KERNEL,
        )
    }

    /// Locks it, for reading and changing what an event has.
    pub(crate) fn lock(&self) -> Hooks<'_> {
        Hooks {
            hooks: self.hooks.lock(),
            instance: &self.instance,
        }
    }
}

/// The registry, locked.
pub(crate) struct Hooks<'a> {
    hooks: MutexGuard<'a, KVec<Hook>>,
    instance: &'a Arc<Instance>,
}

impl Hooks<'_> {
    fn position(&self, event: &Event) -> Option<usize> {
        self.hooks.iter().position(|hook| hook.is_of(event))
    }

    /// The histograms of an event, in the order in which they were added.
    pub(crate) fn histograms(&self, event: &Event) -> &[Arc<Histogram>] {
        self.position(event)
            .map_or(&[], |index| self.hooks[index].histograms())
    }

    /// The same, to be used without the lock.
    pub(crate) fn copy(&self, event: &Event) -> Result<Histograms> {
        let mut copy = Histograms::new();
        for histogram in self.histograms(event) {
            copy.push(histogram.clone(), GFP_KERNEL)?;
        }
        Ok(copy)
    }

    /// Adds a histogram to an event.
    pub(crate) fn add(&mut self, event: Event, histogram: Histogram) -> Result {
        if let Some(index) = self.position(&event) {
            return self.hooks[index].add(histogram);
        }
        self.hooks.reserve(1, GFP_KERNEL)?;
        let hook = Hook::new(self.instance, event, histogram)?;
        self.hooks.push_within_capacity(hook).map_err(|_| ENOMEM)
    }

    /// Removes the histogram at `index` of those of an event.
    pub(crate) fn remove(&mut self, event: &Event, index: usize) -> Result {
        let Some(hook) = self.position(event) else {
            return Err(EINVAL);
        };
        match self.hooks[hook].histograms().len() {
            0 | 1 => self.remove_all(event),
            _ => self.hooks[hook].remove(index)?,
        }
        Ok(())
    }

    /// Removes all histograms of an event. Cannot fail.
    pub(crate) fn remove_all(&mut self, event: &Event) {
        if let Some(hook) = self.position(event).and_then(|i| self.hooks.remove(i).ok()) {
            drop(hook);
        }
    }
}
