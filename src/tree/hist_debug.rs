// SPDX-License-Identifier: GPL-2.0

//! `hist_debug` of an event: the internals of its histograms.

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
    hist::show,
    mirror::{
        FileOps,
        Opened,
        OverlayFile, //
    },
    text::Text, //
};
use kernel::prelude::*;

pub(super) const FILE: OverlayFile<Tree> = OverlayFile::new(c"hist_debug", 0o440, &HistDebugOps);

struct HistDebugOps;

impl FileOps<Tree> for HistDebugOps {
    fn open(&self, tree: &Tree, file: &Opened<'_>, _truncate: bool) -> Result<OpenState> {
        tree.engine.find_id(file.event()?)?;
        Ok(OpenState::None)
    }

    fn read(&self, tree: &Tree, file: &Opened<'_>, _open: &OpenState) -> Result<Shown> {
        let mut out = Text::new();
        let triggers = tree.engine.triggers(file.event()?)?;
        let names = KernelNames::default();
        let views = triggers.iter().map(|trigger| view(trigger, &names));
        show::hist_debug_file(&mut out, views)?;
        Shown::text(out)
    }
}
