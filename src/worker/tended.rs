// SPDX-License-Identifier: GPL-2.0

//! Histograms that grow or lose entries, which the worker tends.

use crate::{
    hist::{
        Histogram,
        Tending, //
    },
    map::Beat,
};
use kernel::{
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
};

/// A histogram that is tended.
#[pin_data]
pub(super) struct Tended {
    /// Its number: histograms that were added later have higher ones.
    id: u64,
    histogram: Arc<Histogram>,
    /// Locked by the worker alone, while it is at work there.
    #[pin]
    tending: Mutex<Tending>,
}

impl Tended {
    /// Its number on the list.
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// The next step: see [`Map::beat`](crate::map::Map::beat).
    pub(super) fn beat(&self, now_ns: u64, between: impl Fn()) -> Beat {
        self.histogram
            .beat(&mut self.tending.lock(), now_ns, between)
    }
}

/// All histograms that are tended, in the order of their numbers.
#[derive(Default)]
pub(super) struct TendedList {
    all: KVec<Arc<Tended>>,
    /// The number of the next one.
    next_id: u64,
}

impl TendedList {
    fn position(&self, id: u64) -> usize {
        self.all.partition_point(|tended| tended.id < id)
    }

    /// The first one with a number from `id` on.
    pub(super) fn from(&self, id: u64) -> Option<Arc<Tended>> {
        self.all.get(self.position(id)).cloned()
    }

    /// Adds a histogram, and returns its number. Fails with `ENOMEM`.
    pub(super) fn add(&mut self, histogram: &Arc<Histogram>, tending: Tending) -> Result<u64> {
        let id = self.next_id;
        let tended = Arc::pin_init(
            pin_init!(Tended {
                id,
                histogram: histogram.clone(),
                tending <- kernel::new_mutex!(tending),
            }),
            GFP_KERNEL,
        )?;
        self.all.push(tended, GFP_KERNEL)?;
        self.next_id += 1;
        Ok(id)
    }

    /// Removes the one with number `id`, for the caller to free without the lock.
    pub(super) fn remove(&mut self, id: u64) -> Option<Arc<Tended>> {
        self.all.remove(self.position(id)).ok()
    }
}
