// SPDX-License-Identifier: GPL-2.0

//! `hist_jsonl` of an event: its histograms for programs, as lines of JSON. Unlike `hist` it cannot
//! be polled.

use super::{
    contents::Shown,
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
    hist::show::{
        HistFile,
        Now,
        Origin, //
    },
    mirror::{
        FileOps,
        Opened,
        OverlayFile, //
    },
    rust::clock,
};
use kernel::{
    prelude::*,
    sync::atomic::Relaxed, //
};

pub(super) const FILE: OverlayFile<Tree> = OverlayFile::new(c"hist_jsonl", 0o440, &HistJsonlOps);

struct HistJsonlOps;

impl FileOps<Tree> for HistJsonlOps {
    fn open(&self, tree: &Tree, file: &Opened<'_>, _truncate: bool) -> Result<OpenState> {
        tree.engine.find_id(file.event()?)?;
        Ok(OpenState::None)
    }

    fn read(&self, tree: &Tree, file: &Opened<'_>, _open: &OpenState) -> Result<Shown> {
        let name = file.event()?;
        // Fails if the event is gone, even if it never had triggers.
        tree.engine.find_id(name)?;
        let triggers = tree.engine.triggers(name)?;
        let names = KernelNames::default();
        let views = triggers.iter().map(|trigger| view(trigger, &names));
        let origin = Origin {
            system: name.system.to_bytes(),
            event: name.event.to_bytes(),
            boot_id: tree.boot_id.as_ref().map(|id| &id[..]),
            now: || Now {
                realtime_ns: clock::real(),
                monotonic_ns: clock::mono(),
            },
        };
        let file = HistFile::jsonl(views, &origin)?;
        tree.reads.add(1, Relaxed);
        Ok(Shown::Hist(file, names))
    }
}
