// SPDX-License-Identifier: GPL-2.0

//! State that the files share, and state of an open file.

use super::{
    error_logs::ErrorLogs,
    hist_poll::HistPollState,
    upload::OpenUpload, //
};
use crate::{
    engine::Engine,
    intervals::Listed,
    rust::{
        boot::{
            boot_id,
            BootId, //
        },
        tracefs::SpecialFops, //
    },
    user_events::UserEvents, //
};
use kernel::{
    prelude::*,
    str::CString,
    sync::{
        atomic::Atomic,
        Arc, //
    },
};

/// A reader of the list of objects.
pub(crate) struct OpenList {
    /// The version of the list that it has seen.
    pub(super) seen: Atomic<u64>,
    /// Whether it may see where memory is in a process.
    pub(super) sees_begins: bool,
}

/// State of an open file.
#[derive(Default)]
pub(crate) enum OpenState {
    /// No state: all other files.
    #[default]
    None,
    /// The hits that a reader of `hist` has seen.
    Hist(HistPollState),
    /// The reader of `hist_delta` or `hist_delta_jsonl`.
    Delta(OpenDelta),
    /// A reader of `list` of the objects.
    Objects(OpenList),
    /// The rules that are written to `rules` of an object.
    Rules(OpenUpload),
}

/// State of an open file of intervals, which may outlive its event.
pub(crate) struct OpenDelta {
    pub(super) reader: Listed,
    /// The system of its event.
    pub(super) system: CString,
    /// The name of its event.
    pub(super) event: CString,
}

/// State shared by the files.
pub(crate) struct Tree {
    pub(super) engine: Engine,
    pub(super) error_logs: ErrorLogs,
    /// Number of times that a `hist` or `hist_jsonl` file was read.
    pub(super) reads: Atomic<u64>,
    pub(super) boot_id: Option<BootId>,
    pub(super) user_events: Arc<UserEvents>,
    pub(super) user_events_data: Arc<SpecialFops>,
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
