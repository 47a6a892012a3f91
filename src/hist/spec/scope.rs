// SPDX-License-Identifier: GPL-2.0

//! The environment in which the names of a trigger are looked up.

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
    variable::VarRef,
};
use crate::{
    event::EventDesc,
    hist::Histogram,
    trigger::Error, //
};

/// The things that a trigger can name: the fields of its own event, other events of its tracing
/// directory and their histograms, and synthetic events. None of these changes while the trigger is
/// built.
pub trait Scope {
    /// The event of the trigger.
    fn event(&self) -> &EventDesc;

    /// Returns whether the event `system:name` exists. Fails with `ENODEV` if the instance is gone,
    /// and with `ENOMEM`.
    fn has_event(&self, system: &[u8], name: &[u8]) -> Result<bool>;

    /// The histograms of the event of the trigger, in the order in which they were added. Fails
    /// with `ENOMEM`.
    fn own_histograms(&self) -> Result<KVec<AttachedHist>>;

    /// The histograms of the event `system:name`; `None` if it does not exist, or cannot be
    /// enabled. Fails with `ENODEV` if the instance is gone, and with `ENOMEM`.
    fn histograms(&self, system: &[u8], name: &[u8]) -> Result<Option<KVec<AttachedHist>>>;

    /// The histograms of all events of the tracing directory, each with a number that identifies
    /// its event. Fails with `ENOMEM`.
    fn all_histograms(&self) -> Result<KVec<(usize, Arc<Histogram>)>>;

    /// The synthetic event `name`, which cannot be deleted while the result exists. Fails with
    /// `ENOMEM`.
    fn synth_event(&self, name: &[u8]) -> Result<Option<KBox<dyn SynthTarget>>>;

    /// The conditional snapshot of the tracing directory.
    ///
    /// # Errors
    ///
    /// `EBUSY` if it is in use, `ENODEV` if the kernel lacks snapshots, `ENOMEM`.
    fn cond_snapshot(&self) -> Result<KBox<dyn SnapshotTarget>>;

    /// Adds a trigger with `params`, which is removed when nothing refers to its variables any
    /// more. Carets of its errors refer to `command`.
    ///
    /// # Errors
    ///
    /// The same as for any trigger.
    fn add_helper(
        &self,
        system: &[u8],
        name: &[u8],
        params: &[u8],
        command: &[u8],
    ) -> Result<(), Error>;

    /// Logs an error that does not end the resolution. Nothing is logged if the trigger succeeds in
    /// the end.
    fn log(&self, error: Error);
}

/// The histogram of a trigger.
pub struct AttachedHist {
    /// The histogram at the time of the lookup.
    pub histogram: Arc<Histogram>,
    /// The text of the trigger's filter.
    pub filter: Option<KVec<u8>>,
}

/// A variable of a histogram.
pub(super) struct EventVar {
    pub(super) home: Arc<Histogram>,
    /// Its index in the histogram's spec.
    var: usize,
}

impl EventVar {
    pub(super) fn field(&self) -> &HistField {
        &self.home.spec().vars[self.var]
    }

    /// A reference to it, as it is written in a trigger. Fails with `ENOMEM`.
    pub(super) fn reference(&self, qualifier: Option<[&[u8]; 2]>) -> Result<VarRef> {
        Ok(VarRef {
            home: Some(self.home.clone()),
            ..VarRef::new(self.field(), qualifier)?
        })
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
