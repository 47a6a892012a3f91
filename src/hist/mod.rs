// SPDX-License-Identifier: GPL-2.0

//! Histograms of events: built from a trigger, updated by hits, shown as text.
//!
//! A [`Histogram`] has a [`Plan`] (the trigger with its names resolved) and a map with the entries. The plan
//! has the fields, from which everything is shown, and the program compiled from them, which is all that
//! a hit reads.

pub mod action;
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
pub mod var;

use core::ops::Range;

use kernel::prelude::*;
use kernel::sync::atomic::Atomic;
use kernel::sync::Arc;

use crate::event::Clock;
use crate::map::Cpus;
use crate::map::Loss;
use crate::map::Map;
use crate::map::Shape;
use crate::map::WideCell;
use crate::trigger;
use crate::trigger::Trigger;

use action::Action;
pub use build::Draft;
use field::HistField;
use program::Cell;
use program::Program;
pub use render::Names;
pub use render::View;
pub use scope::Attached;
pub use scope::Scope;
use var::FieldVar;
use var::VarRef;

/// A field that entries are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortKey {
    /// Index in the fields of the histogram: values, then keys; 0 is the hitcount.
    pub field: usize,
    /// Whether the largest come first.
    pub descending: bool,
}

/// A reference to a variable.
struct Reference {
    var: Arc<VarRef>,
    /// Whether reading the variable unsets it.
    once: bool,
}

/// What a trigger asks for, resolved in its scope. Made by a [`Draft`].
pub struct Plan {
    /// Values, the hitcount first, then variables, then keys.
    fields: KVec<HistField>,
    /// Values and variables.
    n_vals: usize,
    /// Variables.
    n_vars: usize,
    /// The variables that are referred to.
    refs: KVec<Reference>,
    /// The histograms that are referred to one after the other from here, at most [`limits::CHAIN`].
    chain: usize,
    actions: KVec<Action>,
    /// Fields that actions read.
    field_vars: KVec<FieldVar>,
    /// Fields that `save()` saves.
    save_vars: KVec<FieldVar>,
    sort: KVec<SortKey>,
    /// log2 of the number of entries.
    bits: u32,
    nohitcount: bool,
    /// Whether a field is a time.
    timed: bool,
    /// The clock of the times.
    clock: Clock,
    program: Program,
}

impl Plan {
    /// Checks the name of the clock in `trigger`, from which this plan was made. C does that last.
    ///
    /// # Errors
    ///
    /// There is no such clock.
    pub fn check_clock(&self, trigger: &Trigger) -> Result<(), trigger::Error> {
        match trigger.clock {
            Some(clock) if self.timed && Clock::new(trigger.bytes(clock)).is_none() => {
                Err(trigger.error(trigger::ErrorText::SetClockFail, clock))
            }
            _ => Ok(()),
        }
    }

    /// The values, the hitcount first.
    pub fn vals(&self) -> &[HistField] {
        &self.fields[..self.n_vals - self.n_vars]
    }

    /// The variables.
    pub fn vars(&self) -> &[HistField] {
        &self.fields[self.n_vals - self.n_vars..self.n_vals]
    }

    /// The index of the variable `name` in the fields (`find_var_field()`).
    fn variable_at(&self, name: &[u8]) -> Option<usize> {
        let is = |field: &HistField| {
            let variable = field.variable.as_ref();
            variable.is_some_and(|variable| variable.name[..] == *name)
        };
        self.fields.iter().position(is)
    }

    /// What variable `index` is set to, which may be one that only actions use.
    fn own(&self, index: usize) -> Option<&HistField> {
        let hidden = || {
            let mut vars = self.field_vars.iter();
            let var = vars.find(|var| var.variable.index == index)?;
            Some(&var.value)
        };
        self.vars().get(index).or_else(hidden)
    }

    /// Whether an action takes snapshots.
    fn takes_snapshots(&self) -> bool {
        let mut actions = self.actions.iter();
        actions.any(|action| action.kind == action::Kind::Snapshot)
    }

    /// Whether it has variables, or refers to some (`has_hist_vars()`).
    pub fn has_vars(&self) -> bool {
        self.n_vars > 0 || !self.refs.is_empty()
    }

    /// Whether it refers to variables of `histogram`, another one than its own.
    pub fn refers_to(&self, histogram: &Arc<Histogram>) -> bool {
        let mut homes = self.refs.iter().flat_map(|reference| &reference.var.home);
        homes.any(|home| Arc::ptr_eq(home, histogram))
    }

    /// The keys.
    pub fn keys(&self) -> &[HistField] {
        &self.fields[self.n_vals..]
    }

    /// All fields that a hit reads: values, variables, keys, and those for actions.
    fn contents(&self) -> impl Iterator<Item = &HistField> {
        let field_vars = Iterator::chain(self.field_vars.iter(), &self.save_vars);
        Iterator::chain(self.fields.iter(), field_vars.map(|var| &var.value))
    }

    /// Bytes of the keys in C.
    fn c_key_size(&self) -> u32 {
        self.keys().last().map_or(0, |key| key.offset + key.size)
    }

    /// Whether it reads a field of the record at these offsets.
    pub fn reads(&self, offsets: Range<u32>) -> bool {
        self.contents().any(|field| field.reads(offsets.clone()))
    }

    /// Whether no hit can nest in one of this plan, since it calls no function that can be traced.
    pub fn is_leaf(&self) -> bool {
        self.program.is_leaf()
    }

    /// Whether the fields and sort keys of two triggers are the same (`hist_trigger_match()`). Size and
    /// `nohitcount` are not compared. The caller compares names and filters.
    pub fn matches(&self, other: &Self) -> bool {
        self.n_vals == other.n_vals
            && self.n_vars == other.n_vars
            && self.fields.len() == other.fields.len()
            && self.sort[..] == other.sort[..]
            && self.actions.len() == other.actions.len()
            && self
                .actions
                .iter()
                .zip(&other.actions)
                .all(|(a, b)| a.matches(b))
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
    /// The words of a wide cell for the last snapshot that was taken: the value, the key, the comm.
    taken: KVec<Atomic<u64>>,
}

impl Histogram {
    /// Creates an empty histogram with `plan`, for hits on `cpus`. `seed` is a random number that keeps the slots of
    /// keys in the map from being guessed. May sleep. Fails with `ENOMEM`, also if it would take more than `room`
    /// bytes.
    // Not inlined, as it needs much of the kernel's stack.
    #[inline(never)]
    pub fn from_plan(plan: Arc<Plan>, seed: u64, cpus: Cpus, room: usize) -> Result<Arc<Self>> {
        let shape = Shape {
            bits: plan.bits,
            key_size: plan.program.key_size,
            columns: &plan.program.columns,
            vars: plan.n_vars,
            wide: &plan.program.wide,
            side: plan.program.side(),
            cpus,
            seed,
        };
        if shape.size_bytes().is_none_or(|size| size > room) {
            return Err(ENOMEM);
        }
        let map = Map::new(shape)?;
        let mut taken = KVec::new();
        if plan.takes_snapshots() {
            let words = 1 + plan.program.key_size / size_of::<u64>() + plan.program.side();
            for _ in 0..WideCell::size(words).ok_or(ENOMEM)? {
                taken.push(Atomic::new(0), GFP_KERNEL)?;
            }
        }
        Ok(Arc::new(Self { plan, map, taken }, GFP_KERNEL)?)
    }

    /// What was stored when the last snapshot was taken. `None`: it takes none.
    fn taken(&self) -> Option<WideCell<'_>> {
        WideCell::new(&self.taken)
    }

    /// Hits that did not count, because a variable of another histogram was not set.
    pub fn unresolved(&self) -> u64 {
        self.map.losses(Loss::Unresolved)
    }

    /// Variables that were not set, and actions that were not done, because too many others were at work.
    pub fn missed(&self) -> u64 {
        self.map.losses(Loss::Missed)
    }

    /// Where its elements have variable `number`. `None`: it is one that no other histogram can refer to.
    fn cell_of(&self, number: usize) -> Option<Cell> {
        self.plan.program.cells.get(number).copied()
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
