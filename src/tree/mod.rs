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
mod sample;
mod show_event_triggers;
mod state;
mod trigger;
mod user_events_data;
mod user_events_status;

use crate::mirror::{
    Dir,
    Overlay,
    OverlayFile, //
};
use contents::Shown;
use state::OpenState;
pub(crate) use state::Tree;

impl Overlay for Tree {
    type Contents = Shown;
    type OpenState = OpenState;

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
            _ => &[],
        }
    }

    fn instance_removed(&self) {
        self.engine.instance_removed();
    }
}
