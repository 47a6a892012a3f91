// SPDX-License-Identifier: GPL-2.0

//! `user_events_data`: the file that programs register and write user events with.

use super::state::Tree;
use crate::{
    mirror::{
        FileOps,
        Numbered,
        OverlayFile,
        OverlaySpecial, //
    },
    rust::tracefs::Access, //
};
use kernel::prelude::*;

/// Its mode is a setting.
pub(super) const FILE: OverlayFile<Tree> = OverlayFile {
    also_in_tracefs_root: true,
    ..OverlayFile::new(c"user_events_data", 0, &UserEventsDataOps)
};

struct UserEventsDataOps;

impl FileOps<Tree> for UserEventsDataOps {
    fn access(&self, tree: &Tree) -> Option<Access> {
        Some(tree.user_events.settings.data)
    }

    fn special(&self, tree: &Tree, _folder: Option<Numbered>) -> Result<Option<OverlaySpecial>> {
        Ok(Some(OverlaySpecial {
            operations: tree.user_events_data.clone(),
            size: 0,
        }))
    }
}
