// SPDX-License-Identifier: GPL-2.0

//! Histograms of events: built from a trigger, updated by hits, shown as text.
//!
//! A [`Histogram`] has a [`Plan`] (the trigger with its names resolved) and a map with the entries. The plan
//! has the fields, from which everything is shown, and the program compiled from them, which is all that
//! a hit reads.

mod build;
mod comm;
pub mod debug;
pub mod field;
mod hit;
pub mod limits;
mod program;
pub mod render;
mod row;
mod scope;
mod snapshot;
pub mod sort;

use core::ops::Range;

use kernel::prelude::*;
use kernel::sync::Arc;

use crate::event::Clock;
use crate::map::Cpus;
use crate::map::Map;
use crate::map::Shape;
use crate::trigger;
use crate::trigger::Trigger;

use field::HistField;
use program::Program;
pub use render::Names;
pub use render::View;
pub use scope::Scope;

/// A field that entries are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortKey {
    /// Index in the fields of the histogram: values, then keys; 0 is the hitcount.
    pub field: usize,
    /// Whether the largest come first.
    pub descending: bool,
}

/// What a trigger asks for, resolved in its scope.
pub struct Plan {
    /// Values, the hitcount first, then keys.
    fields: KVec<HistField>,
    n_vals: usize,
    sort: KVec<SortKey>,
    /// log2 of the number of entries.
    bits: u32,
    nohitcount: bool,
    /// The clock, if a field is a time.
    clock: Option<Clock>,
    program: Program,
}

impl Plan {
    /// Resolves the names of `trigger` in `scope`.
    ///
    /// # Errors
    ///
    /// Those of C, in C's order; then [`trigger::ErrorText::Unsupported`] for what C supports and this does not
    /// yet; `ENOMEM`; the errors of `scope`.
    pub fn new(scope: &dyn Scope, trigger: &Trigger) -> Result<Self, trigger::Error> {
        build::plan(scope, trigger)
    }

    /// Checks the name of the clock in `trigger`, from which this plan was made. C does that last.
    ///
    /// # Errors
    ///
    /// There is no such clock.
    pub fn check_clock(&self, trigger: &Trigger) -> Result<(), trigger::Error> {
        match trigger.clock {
            Some(clock) if self.clock.is_some() && Clock::new(trigger.bytes(clock)).is_none() => {
                Err(trigger.error(trigger::ErrorText::SetClockFail, clock))
            }
            _ => Ok(()),
        }
    }

    /// The values, the hitcount first.
    pub fn vals(&self) -> &[HistField] {
        &self.fields[..self.n_vals]
    }

    /// The keys.
    pub fn keys(&self) -> &[HistField] {
        &self.fields[self.n_vals..]
    }

    /// Whether it reads a field of the record at these offsets.
    pub fn reads(&self, offsets: Range<u32>) -> bool {
        self.fields.iter().any(|field| field.reads(offsets.clone()))
    }

    /// Whether no hit can nest in one of this plan, since it calls no function that can be traced.
    pub fn is_leaf(&self) -> bool {
        self.program.is_leaf()
    }

    /// Whether the fields and sort keys of two triggers are the same (`hist_trigger_match()`). Size and
    /// `nohitcount` are not compared. The caller compares names and filters.
    pub fn matches(&self, other: &Self) -> bool {
        self.n_vals == other.n_vals
            && self.fields.len() == other.fields.len()
            && self.sort[..] == other.sort[..]
            && self
                .fields
                .iter()
                .zip(&other.fields)
                .all(|(a, b)| a.matches(b))
    }
}

/// A histogram of an event.
#[repr(C)]
pub struct Histogram {
    /// Comes first, so that a hit has its address and needs no register for another.
    map: Map,
    plan: Arc<Plan>,
}

impl Histogram {
    /// Creates an empty histogram with `plan`, for hits on `cpus`. `seed` is a random number that keeps the slots of
    /// keys in the map from being guessed. May sleep. Fails with `ENOMEM`, also if it would take more than `room`
    /// bytes.
    pub fn from_plan(plan: Arc<Plan>, seed: u64, cpus: Cpus, room: usize) -> Result<Self> {
        let shape = Shape {
            bits: plan.bits,
            key_size: plan.program.key_size,
            columns: &plan.program.columns,
            vars: 0,
            wide: &[],
            side: plan.program.side(),
            cpus,
            seed,
        };
        if shape.size_bytes().is_none_or(|size| size > room) {
            return Err(ENOMEM);
        }
        let map = Map::new(shape)?;
        Ok(Self { plan, map })
    }

    /// Its plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// A reference to its plan, for another histogram of the same trigger.
    pub fn shared_plan(&self) -> Arc<Plan> {
        self.plan.clone()
    }

    /// As [`Plan::matches`].
    pub fn matches(&self, other: &Self) -> bool {
        self.plan.matches(&other.plan)
    }

    /// Hits counted so far.
    pub fn hits(&self) -> u64 {
        self.map.hits()
    }

    /// Hits dropped so far because the map was full.
    pub fn drops(&self) -> u64 {
        self.map.drops()
    }

    /// Bytes of memory of the map.
    pub fn size_bytes(&self) -> usize {
        self.map.size_bytes()
    }
}
