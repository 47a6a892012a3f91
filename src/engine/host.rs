// SPDX-License-Identifier: GPL-2.0

//! The interface of `hist` commands to the kernel.

use super::triggers::Triggers;
use crate::{
    event::{
        Clocks,
        EventDesc,
        GroupNodes, //
    },
    filter::Symbols,
    hist::{
        spec::target::{
            SnapshotTarget,
            SynthTarget, //
        },
        Compiled,
        Histogram,
        Tenancy, //
    },
    hook::trigger::{
        AttachFlags,
        Condition,
        HistData,
        HistTrigger,
        Site, //
    },
    map::{
        Cpus,
        Wake, //
    },
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// A tracing directory during a command. Other `hist` commands have to wait meanwhile.
///
/// The module implements it with the kernel (`super::kernel_host`), host tests with a small model
/// of it.
pub trait Host {
    /// The site of a trigger.
    type Site: Site;

    /// An event in the tracing directory.
    type Event;

    /// All triggers, locked.
    type Locked<'a>: Triggers<Site = Self::Site>
    where
        Self: 'a;

    /// Locks all triggers. While they are locked, the caller does nothing that may wait for another
    /// task's memory.
    fn lock(&self) -> Self::Locked<'_>;

    /// Finds the event `system:name`. `None` if it does not exist, or cannot be enabled. Fails with
    /// `ENOMEM`.
    fn find(&self, system: &[u8], name: &[u8]) -> Result<Option<Self::Event>>;

    /// Returns whether the event `system:name` exists, even if it cannot be enabled. Fails with
    /// `ENODEV` if the instance is gone, and with `ENOMEM`.
    fn has_event(&self, system: &[u8], name: &[u8]) -> Result<bool>;

    /// Describes an event. Fails with `ENOMEM`.
    fn describe(&self, event: &Self::Event) -> Result<Arc<EventDesc>>;

    /// The triggers of an event in the tracing directory, in the order in which they were added.
    /// Fails with `ENOMEM`.
    fn triggers(&self, event: &Self::Event) -> Result<KVec<Arc<HistTrigger<Self::Site>>>>;

    /// Returns whether this site is in the tracing directory.
    fn is_here(&self, site: &Self::Site) -> bool;

    /// Adds a trigger to an event.
    ///
    /// # Errors
    ///
    /// `ENODEV` if the instance is gone, `ENOMEM`, and the errors of connecting the event.
    fn add(&self, event: Self::Event, new: NewTrigger) -> Result;

    /// Removes a trigger, and helper triggers that are not needed any more. Fails with `ENOMEM`.
    fn remove(&self, event: &Self::Event, trigger: &HistTrigger<Self::Site>) -> Result;

    /// The synthetic event `name`: see [`Scope::synth_event`](crate::hist::Scope::synth_event).
    fn synth_event(&self, name: &[u8]) -> Result<Option<KBox<dyn SynthTarget>>>;

    /// The conditional snapshot: see [`Scope::cond_snapshot`](crate::hist::Scope::cond_snapshot).
    fn cond_snapshot(&self) -> Result<KBox<dyn SnapshotTarget>>;

    /// The functions of the kernel, for filters.
    fn symbols(&self) -> &dyn Symbols;

    /// The CPUs that hits come on.
    fn cpus(&self) -> Cpus;

    /// The clocks of the begin of a histogram.
    fn clocks(&self) -> Clocks;

    /// A random number.
    fn random(&self) -> u64;

    /// Maximum number of bytes that a new map may take, or one that grows may take in addition.
    fn max_map_bytes() -> usize;

    /// The nodes of control groups.
    fn group_nodes(&self) -> &'static dyn GroupNodes;

    /// Makes something that wakes the worker of histograms. Fails with `ENOMEM`.
    fn waker(&self) -> Result<KBox<dyn Wake>>;

    /// Has the worker tend a histogram until the result is dropped. `None`: it neither grows nor
    /// loses entries. Fails with `ENOMEM`.
    fn tend(&self, histogram: &Arc<Histogram>) -> Result<Option<Tenancy>>;
}

/// A trigger to be added.
pub struct NewTrigger {
    /// Its histogram, which may be shared.
    pub data: Arc<HistData>,
    /// Its spec and its program.
    pub compiled: Compiled,
    /// The filter, if the trigger has one.
    pub filter: Option<Condition>,
    /// Its initial flags.
    pub flags: AttachFlags,
}
