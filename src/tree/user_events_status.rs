// SPDX-License-Identifier: GPL-2.0

//! `user_events_status`: lists the user events. Programs that use the original interface map its
//! page of enable bits.

use super::{
    contents::Shown,
    state::{
        OpenState,
        Tree, //
    },
};
use crate::{
    mirror::{
        FileOps,
        Opened,
        OverlayFile, //
    },
    rust::tracefs::Access, //
};
use kernel::{
    mm::virt::VmaNew,
    prelude::*, //
};

/// Its mode is a setting. As in C, lockdown does not apply: names of user events are not secrets of
/// the kernel.
pub(super) const FILE: OverlayFile<Tree> = OverlayFile {
    also_in_tracefs_root: true,
    ignores_lockdown: true,
    ..OverlayFile::new(c"user_events_status", 0, &UserEventsStatusOps)
};

struct UserEventsStatusOps;

impl FileOps<Tree> for UserEventsStatusOps {
    fn access(&self, tree: &Tree) -> Option<Access> {
        Some(tree.user_events.settings.status)
    }

    fn read(&self, tree: &Tree, _file: &Opened<'_>, _open: &OpenState) -> Result<Shown> {
        Shown::text(tree.user_events.status()?)
    }

    fn map(&self, tree: &Tree, _file: &Opened<'_>, vma: &VmaNew) -> Result {
        tree.user_events.map(vma)
    }
}
