// SPDX-License-Identifier: GPL-2.0

//! Where the names in a trigger are looked up.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    field::HistField,
    target::{
        SnapshotTarget,
        SynthTarget, //
    },
};
use crate::{
    event::EventDesc,
    hist::Histogram,
    trigger::Error, //
};

/// What a trigger can name: the fields of its own event, other events of its tracing directory and their histograms,
/// and synthetic events. Nothing of this changes while the trigger is built.
pub trait Scope {
    /// The event of the trigger.
    fn event(&self) -> &EventDesc;

    /// Whether there is an event `system:name`. Fails with `ENODEV` if the instance is gone, and with `ENOMEM`.
    fn has_event(&self, system: &[u8], name: &[u8]) -> Result<bool>;

    /// The histograms of the event of the trigger, in the order in which they were added. Fails with `ENOMEM`.
    fn own_histograms(&self) -> Result<KVec<AttachedHist>>;

    /// The histograms of the event `system:name`; `None` if there is no such event, or it cannot be enabled. Fails
    /// with `ENODEV` if the instance is gone, and with `ENOMEM`.
    fn histograms(&self, system: &[u8], name: &[u8]) -> Result<Option<KVec<AttachedHist>>>;

    /// The histograms of all events of the tracing directory, each with a number that stands for its event. Fails
    /// with `ENOMEM`.
    fn all_histograms(&self) -> Result<KVec<(usize, Arc<Histogram>)>>;

    /// The synthetic event `name`, which is not deleted as long as it is referenced. Fails with `ENOMEM`.
    fn synth_event(&self, name: &[u8]) -> Result<Option<KBox<dyn SynthTarget>>>;

    /// The conditional snapshot of the tracing directory.
    ///
    /// # Errors
    ///
    /// `EBUSY` if it is used already, `ENODEV` if the kernel has no snapshots, `ENOMEM`.
    fn cond_snapshot(&self) -> Result<KBox<dyn SnapshotTarget>>;

    /// Adds a trigger with `params`, and removes it when nothing refers to its variables any more. Carets of its
    /// errors are for `command`.
    ///
    /// # Errors
    ///
    /// As for any trigger.
    fn add_helper(
        &self,
        system: &[u8],
        name: &[u8],
        params: &[u8],
        command: &[u8],
    ) -> Result<(), Error>;

    /// Logs an error after which the trigger is built on. Nothing is logged if it succeeds in the end.
    fn log(&self, error: Error);
}

/// The histogram of a trigger.
pub struct AttachedHist {
    /// The histogram.
    pub histogram: Arc<Histogram>,
    /// The text of the trigger's filter.
    pub filter: Option<KVec<u8>>,
}

/// A variable of a histogram.
pub(super) struct EventVar {
    pub(super) home: Arc<Histogram>,
    /// Its index.
    var: usize,
}

impl EventVar {
    pub(super) fn field(&self) -> &HistField {
        &self.home.spec().vars[self.var]
    }

    /// The variable `name` of one of `histograms`.
    pub(super) fn among(histograms: &[AttachedHist], name: &[u8]) -> Option<Self> {
        let mut histograms = histograms.iter();
        histograms.find_map(|attached| Self::of(&attached.histogram, name))
    }

    /// The variable `name` of `home`.
    pub(super) fn of(home: &Arc<Histogram>, name: &[u8]) -> Option<Self> {
        let var = home.spec().find_var(name)?;
        Some(Self {
            home: home.clone(),
            var,
        })
    }
}
