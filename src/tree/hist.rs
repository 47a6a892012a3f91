// SPDX-License-Identifier: GPL-2.0

//! `hist` of an event: its histograms as text. Can be polled for hits.

use super::{
    contents::Shown,
    names::{
        view,
        KernelNames, //
    },
    OpenState,
    Tree, //
};
use crate::{
    engine::Engine,
    hist::show::HistFile,
    hook::poll::{
        Look,
        Poller, //
    },
    mirror::{
        FileOps,
        Opened,
        OverlayFile, //
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

pub(super) const FILE: OverlayFile<Tree> = OverlayFile {
    polls: true,
    ..OverlayFile::new(c"hist", 0o440, &HistOps)
};

struct HistOps;

impl FileOps<Tree> for HistOps {
    fn open(&self, tree: &Tree, file: &Opened<'_>, _truncate: bool) -> Result<OpenState> {
        let name = file.event()?;
        let event = tree.engine.find_id(name)?;
        Ok(Some(HistPollState {
            poller: tree.engine.poller(event),
            counted: KBox::pin_init(kernel::new_mutex!(None), GFP_KERNEL)?,
            last_read: Atomic::new(0),
            last_reported: Atomic::new(tree.engine.hits(name)?),
        }))
    }

    fn read(&self, tree: &Tree, file: &Opened<'_>, open: &OpenState) -> Result<Shown> {
        let name = file.event()?;
        // Fails if the event is gone, even if it never had triggers.
        tree.engine.find_id(name)?;
        let triggers = tree.engine.triggers(name)?;
        let names = KernelNames::default();
        let file = HistFile::new(triggers.iter().map(|trigger| view(trigger, &names)))?;
        tree.reads.add(1, Relaxed);
        if let Some(open) = open {
            open.read(file.hits());
        }
        Ok(Shown::Hist(file, names))
    }

    fn poll(
        &self,
        tree: &Tree,
        file: &Opened<'_>,
        open: &OpenState,
        table: &PollTable<'_>,
    ) -> Result<Mask> {
        let open = open.as_ref().ok_or(EINVAL)?;
        let hits = open.poll(&tree.engine, file.event()?, table)?;
        Ok(open.mask(hits))
    }
}

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
    /// Adds the caller to `table`, so that hits wake it. Returns the hits of the event so far.
    /// Counting visits all entries, so a count is reused unless hits may have come since.
    fn poll(&self, engine: &Engine, name: EventName<'_>, table: &PollTable<'_>) -> Result<u64> {
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

    fn read(&self, hits: u64) {
        self.last_read.store(hits, Relaxed);
        self.last_reported.store(hits, Relaxed);
    }

    fn mask(&self, hits: u64) -> Mask {
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
