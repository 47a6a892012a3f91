// SPDX-License-Identifier: GPL-2.0

//! The files of rhist, each in a module, and the table of them.
//!
//! A new file needs a module with its [`OverlayFile`] and [`FileOps`](crate::mirror::FileOps), and
//! a line in [`Overlay::files`] below.

mod contents;
mod error_log;
mod error_logs;
mod hist;
mod hist_debug;
mod hist_delta;
mod hist_jsonl;
mod hist_poll;
mod hist_stats;
mod names;
mod object_image;
mod object_rules;
mod objects_list;
mod sample;
mod show_event_triggers;
mod state;
mod trigger;
mod upload;
mod user_events_data;
mod user_events_status;

use crate::mirror::{
    Dir,
    Numbered,
    Overlay,
    OverlayFile,
    OverlayFolder, //
};
use contents::Shown;
use kernel::prelude::*;
use state::OpenState;
pub(crate) use state::Tree;

impl Overlay for Tree {
    type Contents = Shown;
    type OpenState = OpenState;

    const FOLDER: OverlayFolder = OverlayFolder {
        name: c"user_objects",
        mode: 0o700,
    };

    fn numbered(&self, number: u32) -> Option<Numbered> {
        let (life, objects) = self.engine.user_objects().table()?;
        objects.has(number).then_some(Numbered { number, life })
    }

    fn lasts(&self, folder: Numbered) -> bool {
        self.engine.user_objects().is_latest(folder.life)
    }

    fn numbers(&self) -> Result<KVVec<u32>> {
        let mut numbers = KVVec::new();
        if let Some(objects) = self.engine.user_objects().objects() {
            objects.for_each(|object| Ok(numbers.push(object.number, GFP_KERNEL)?))?;
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    fn files(dir: Dir) -> &'static [OverlayFile<Self>] {
        match dir {
            Dir::Root => {
                const {
                    &[
                        error_log::FILE,
                        show_event_triggers::FILE,
                        user_events_status::FILE,
                        user_events_data::FILE,
                        hist_stats::FILE,
                    ]
                }
            }
            Dir::Instance => const { &[error_log::FILE, show_event_triggers::FILE] },
            Dir::Event => {
                const {
                    &[
                        trigger::FILE,
                        hist::FILE,
                        hist_debug::FILE,
                        hist_jsonl::FILE,
                        hist_delta::TEXT,
                        hist_delta::JSONL,
                        sample::SOURCE,
                        sample::FREQUENCY,
                        sample::PERIOD,
                    ]
                }
            }
            Dir::Folder => const { &[objects_list::FILE] },
            Dir::Numbered(_) => const { &[object_image::FILE, object_rules::FILE] },
            _ => &[],
        }
    }

    fn instance_removed(&self) {
        self.engine.instance_removed();
    }
}
