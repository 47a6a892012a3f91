// SPDX-License-Identifier: GPL-2.0

//! Being called for each hit of an event.
//!
//! A [`Hook`] is an event with the histograms that count it. A [`Source`] calls the hook's
//! [`Sinks`] for each hit; where it gets the record from is its own affair.
//!
//! # Contexts
//!
//! A hit may come in any context, NMI included, always with preemption off. It reads the list of
//! histograms through one pointer. Whoever replaces the list waits for the hits that run before
//! it frees what they might see, so nothing is counted and nothing locked on the way of a hit.

pub(crate) mod event_file;
pub mod record;
pub(crate) mod registry;

use crate::ftrace::cpu;
use crate::ftrace::event::Event;
use crate::ftrace::instance::Instance;
use crate::hist::Histogram;
use crate::hist::Hit;
use core::ptr;
use kernel::prelude::*;
use kernel::sync::atomic::{
    Acquire,
    Atomic,
    Release, //
};
use kernel::sync::Arc;
use record::Comm;
use record::Record;

/// Something that calls [`Sinks::hit`] for each hit of an event, from its creation until it is
/// dropped. After the drop no call is running.
pub(crate) trait Source: Send + Sync {}

/// The histograms of an event, in the order in which they were added.
pub(crate) type Histograms = KVec<Arc<Histogram>>;

/// Where the hits of an event go.
pub(crate) struct Sinks {
    /// A boxed list that nobody changes.
    list: Atomic<*mut Histograms>,
}

impl Sinks {
    fn new(list: Histograms) -> Result<Arc<Self>> {
        let list = KBox::new(list, GFP_KERNEL)?;
        let sinks = Self {
            list: Atomic::new(KBox::into_raw(list)),
        };
        Ok(Arc::new(sinks, GFP_KERNEL)?)
    }

    /// Gives a record to the histograms. Any context; preemption must be off.
    #[inline]
    fn hit(&self, record: Record<'_>) {
        // SAFETY: The list is valid until a grace period after it was replaced, which does not
        // end before this returns: preemption is off.
        let list = unsafe { &*self.list.load(Acquire) };
        // SAFETY: `comm` of the running task is valid as long as it runs this.
        let comm = unsafe { Comm::from_raw(cpu::current_comm()) };
        let hit = Hit {
            record,
            cpu: cpu::current(),
            comm,
        };
        for histogram in list {
            histogram.hit(&hit);
        }
    }

    /// Replaces the list and waits until nobody uses the old one.
    fn replace(&self, list: KBox<Histograms>) {
        let old = self.list.xchg(KBox::into_raw(list), Release);
        cpu::synchronize_hits();
        // SAFETY: It was boxed, and the grace period is over.
        drop(unsafe { KBox::from_raw(old) });
    }
}

impl Drop for Sinks {
    fn drop(&mut self) {
        // SAFETY: Boxed by `new` or `replace`; nobody can reach it any more.
        drop(unsafe { KBox::from_raw(self.list.load(Acquire)) });
    }
}

/// An event that is counted.
///
/// Exists while the event has histograms. Changed by one task at a time.
pub(crate) struct Hook {
    // First, so that it is gone when the rest goes.
    _source: KBox<dyn Source>,
    sinks: Arc<Sinks>,
    event: Event,
}

impl Hook {
    /// Hooks an event for one histogram.
    pub(crate) fn new(instance: &Arc<Instance>, event: Event, first: Histogram) -> Result<Self> {
        let mut list = Histograms::new();
        list.push(Arc::new(first, GFP_KERNEL)?, GFP_KERNEL)?;
        let sinks = Sinks::new(list)?;
        let source = event_file::EventFile::attach(instance.clone(), &event, sinks.clone())?;
        Ok(Self {
            _source: source,
            sinks,
            event,
        })
    }

    /// Is this the hook of `event`?
    pub(crate) fn is_of(&self, event: &Event) -> bool {
        ptr::eq(self.event.call(), event.call())
    }

    /// The histograms, in the order in which they were added.
    pub(crate) fn histograms(&self) -> &[Arc<Histogram>] {
        // SAFETY: Only `add` and `remove` replace the list, and they are not called meanwhile.
        unsafe { &*self.sinks.list.load(Acquire) }
    }

    /// Adds a histogram. It misses no hit that begins after this returned.
    pub(crate) fn add(&self, histogram: Histogram) -> Result {
        let mut list = self.copy(1)?;
        list.push_within_capacity(Arc::new(histogram, GFP_KERNEL)?)
            .map_err(|_| ENOMEM)?;
        self.sinks.replace(KBox::new(list, GFP_KERNEL)?);
        Ok(())
    }

    /// Removes the histogram at `index`. No hit reaches it any more when this returned.
    pub(crate) fn remove(&self, index: usize) -> Result {
        let mut list = self.copy(0)?;
        list.remove(index).map_err(|_| EINVAL)?;
        self.sinks.replace(KBox::new(list, GFP_KERNEL)?);
        Ok(())
    }

    /// A copy of the list with room for some more.
    fn copy(&self, more: usize) -> Result<Histograms> {
        let mut list = Histograms::with_capacity(self.histograms().len() + more, GFP_KERNEL)?;
        for histogram in self.histograms() {
            list.push(histogram.clone(), GFP_KERNEL)?;
        }
        Ok(list)
    }
}
