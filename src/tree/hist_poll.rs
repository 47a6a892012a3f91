// SPDX-License-Identifier: GPL-2.0

//! State of an open `hist` file for `poll()`.

use crate::{
    engine::Engine,
    hook::poll::{
        Look,
        Poller, //
    },
    rust::{
        poll::{
            self,
            Mask,
            PollTable, //
        },
        tracefs::EventName, //
    },
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Mutex, //
    },
};

/// State of an open `hist` file for `poll()`: hits of the event's histograms at earlier calls.
pub(crate) struct HistPollState {
    poller: Poller,
    /// Result of the last `poll()`. Locked only briefly.
    counted: Pin<KBox<Mutex<Option<Counted>>>>,
    /// Hits when the file was last read.
    last_read: Atomic<u64>,
    /// Hits when the file was last read, or `POLLPRI` was last reported.
    last_reported: Atomic<u64>,
}

/// The hits at a call of `poll()`.
struct Counted {
    look: Look,
    /// [`Engine::changes`] before they were counted.
    changes: u64,
    hits: u64,
}

impl HistPollState {
    /// Creates the state of a file that was opened when the event had this number of hits. Fails
    /// with `ENOMEM`.
    pub(super) fn new(poller: Poller, hits: u64) -> Result<Self> {
        Ok(Self {
            poller,
            counted: KBox::pin_init(kernel::new_mutex!(None), GFP_KERNEL)?,
            last_read: Atomic::new(0),
            last_reported: Atomic::new(hits),
        })
    }

    /// Adds the caller to `table`, so that hits wake it. Returns the hits of the event so far.
    /// Counting visits all entries, so a count is reused unless hits may have come since.
    pub(super) fn poll(
        &self,
        engine: &Engine,
        name: EventName<'_>,
        table: &PollTable<'_>,
    ) -> Result<u64> {
        let look = self.poller.look_again(table);
        let changes = engine.changes();
        let known = self.counted.lock().as_ref().and_then(|last| {
            let same = last.changes == changes && look.is_quiet_since(&last.look);
            same.then_some(last.hits)
        });
        let hits = match known {
            Some(hits) => hits,
            None => engine.hits(name)?,
        };
        *self.counted.lock() = Some(Counted {
            look,
            changes,
            hits,
        });
        Ok(hits)
    }

    pub(super) fn read(&self, hits: u64) {
        self.last_read.store(hits, Relaxed);
        self.last_reported.store(hits, Relaxed);
    }

    pub(super) fn mask(&self, hits: u64) -> Mask {
        let mut mask = 0;
        if self.last_read.load(Relaxed) != hits {
            mask |= poll::IN;
        }
        if self.last_reported.xchg(hits, Relaxed) != hits {
            mask |= poll::PRI;
        }
        mask
    }
}
