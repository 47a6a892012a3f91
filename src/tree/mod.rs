// SPDX-License-Identifier: GPL-2.0

//! The files of rhist, each in a module, and the table of them.
//!
//! A new file needs a module with its [`OverlayFile`] and [`FileOps`](crate::mirror::FileOps), and
//! a line in [`Overlay::files`] below.

mod contents;
mod error_log;
mod hist;
mod hist_debug;
mod hist_jsonl;
mod hist_stats;
mod names;
mod show_event_triggers;
mod trigger;
mod user_events_data;
mod user_events_status;

use crate::{
    engine::Engine,
    mirror::{
        Dir,
        Overlay,
        OverlayFile, //
    },
    rust::{
        boot::{
            boot_id,
            BootId, //
        },
        tracefs::SpecialFops, //
    },
    user_events::UserEvents, //
};
use contents::Shown;
use error_log::ErrorLogs;
use hist::HistPollState;
use kernel::{
    prelude::*,
    sync::{
        atomic::Atomic,
        Arc, //
    },
};

/// State of an open file. Only `hist` has one.
type OpenState = Option<HistPollState>;

/// State shared by the files.
pub(crate) struct Tree {
    engine: Engine,
    error_logs: ErrorLogs,
    /// Number of times that a `hist` or `hist_jsonl` file was read.
    reads: Atomic<u64>,
    boot_id: Option<BootId>,
    user_events: Arc<UserEvents>,
    user_events_data: Arc<SpecialFops>,
}

impl Tree {
    pub(crate) fn new(
        engine: Engine,
        user_events: Arc<UserEvents>,
        user_events_data: Arc<SpecialFops>,
    ) -> Result<Self> {
        Ok(Self {
            engine,
            error_logs: ErrorLogs::new()?,
            reads: Atomic::new(0),
            boot_id: boot_id(),
            user_events,
            user_events_data,
        })
    }
}

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
