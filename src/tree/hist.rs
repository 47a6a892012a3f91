// SPDX-License-Identifier: GPL-2.0

//! `hist` of an event: its histograms as text. Can be polled for hits.

use super::{
    contents::Shown,
    hist_poll::HistPollState,
    names::{
        view,
        KernelNames, //
    },
    state::{
        OpenState,
        Tree, //
    },
};
use crate::{
    hist::show::HistFile,
    mirror::{
        FileOps,
        Opened,
        OverlayFile, //
    },
    rust::poll::{
        Mask,
        PollTable, //
    },
};
use kernel::{
    prelude::*,
    sync::atomic::Relaxed, //
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
        let poller = tree.engine.poller(event);
        let state = HistPollState::new(poller, tree.engine.hits(name)?)?;
        Ok(OpenState::Hist(state))
    }

    fn read(&self, tree: &Tree, file: &Opened<'_>, open: &OpenState) -> Result<Shown> {
        let name = file.event()?;
        // Fails if the event is gone, even if it never had triggers.
        tree.engine.find_id(name)?;
        let triggers = tree.engine.triggers(name)?;
        let names = KernelNames::default();
        let file = HistFile::new(triggers.iter().map(|trigger| view(trigger, &names)))?;
        tree.reads.add(1, Relaxed);
        if let OpenState::Hist(open) = open {
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
        let OpenState::Hist(open) = open else {
            return Err(EINVAL);
        };
        let hits = open.poll(&tree.engine, file.event()?, table)?;
        Ok(open.mask(hits))
    }
}
