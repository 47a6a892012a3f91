// SPDX-License-Identifier: GPL-2.0

//! `show_event_triggers`: the triggers of all events of a tracing directory.

use super::{
    contents::Shown,
    state::{
        OpenState,
        Tree, //
    },
    trigger,
};
use crate::{
    hist::show,
    mirror::{
        FileOps,
        Opened,
        OverlayFile, //
    },
    rust::tracefs::EventName,
    text::Text, //
};
use kernel::prelude::*;

/// The file is in all directories with events, even if the kernel lacks it, as in 6.12: instances
/// of an earlier boot have neither. The kernel's file that is opened with it keeps the instance,
/// whichever it is.
pub(super) const FILE: OverlayFile<Tree> = OverlayFile {
    replaces_only: true,
    stand_in: Some(c"set_event"),
    ..OverlayFile::new(c"show_event_triggers", 0o440, &ShowEventTriggersOps)
};

struct ShowEventTriggersOps;

impl FileOps<Tree> for ShowEventTriggersOps {
    fn read(&self, tree: &Tree, file: &Opened<'_>, _open: &OpenState) -> Result<Shown> {
        let mut out = Text::new();
        let dir = file.dir;
        // Opening the kernel's `trigger` files takes an open file of tracefs, whichever.
        let open_file = file.kernel.ok_or(EINVAL)?;
        let names = tree.engine.triggered(dir)?;
        for [system, event] in &names {
            let name = EventName { dir, system, event };
            let path = [c"events", system, event, c"trigger"];
            let mut column = Text::new();
            show::event_column(&mut column, system.to_bytes(), event.to_bytes())?;
            let listed = open_file
                .open_other_for_reading(dir, &path)
                .and_then(|kernel| {
                    let listing = kernel.read()?;
                    trigger::list(&mut out, &tree.engine, column.as_bytes(), name, &listing)
                });
            match listed {
                // The event was removed meanwhile.
                Err(error) if error == ENOENT || error == ENODEV => (),
                listed => listed?,
            }
        }
        Shown::text(out)
    }
}
