// SPDX-License-Identifier: GPL-2.0

//! The path of a hit through a histogram.
//!
//! Most triggers need little: a few numbers of the record are the key and the values, or a latency
//! is computed. Their hits take a *fast path*, made for that shape, which calls nothing that can be
//! traced. It is chosen once, by [`Path::of`], when the trigger is compiled. The hits of all other
//! triggers [execute](super::hit) the program.

mod columns;
mod fields;
mod group;
mod record;
mod select;
mod text;
mod var_fields;
mod var_key;
mod vars;

use columns::{
    ColumnFields,
    DistributionFields, //
};
pub(super) use fields::RecordFields;
use group::GroupFields;
use var_fields::VarFields;

use super::spec::target::Targets;
use crate::{
    event::{
        Context,
        GroupTask,
        Record, //
    },
    map::Map,
    sync::PreemptOff, //
};

/// The path of the hits of a trigger, with all that they need.
// With `repr(u32)` the tag is a plain number. Otherwise it would be put into a variant, and testing
// it would take six instructions.
#[repr(u32)]
pub(in crate::hist) enum Path {
    /// Key and values are plain fields of the record, or the key is a string of it, and a hit only
    /// counts and sums.
    Fields(RecordFields),
    /// Like `Fields`, with columns of any kind.
    Columns(ColumnFields),
    /// Like `Columns`, and some values are counted in distributions.
    Distributions(DistributionFields),
    /// The key is the control group of a task, and a hit only counts and sums.
    Group(GroupFields),
    /// One variable is set, or one value computed, from the record and the time.
    Set(VarFields),
    /// Like `Set`, from a variable of another histogram, too.
    Latency(VarFields),
    /// Like `Latency`, and a synthetic event is emitted.
    Trace(VarFields),
    /// The key is plain fields of the record. The rest of the program is executed: values of any
    /// kind, such as expressions.
    Words(RecordFields),
    /// The key is the stack of the hit. The rest of the program is executed.
    Stack,
    /// The key is the stack of the program. The rest of the program is executed.
    UserStack,
    /// The key has the numbers of stacks. The rest of the program is executed.
    Stacks,
    /// The program is executed.
    Execute,
}

/// The kind of a [`Path`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[allow(missing_docs)]
pub enum Tag {
    Fields,
    Columns,
    Distributions,
    Set,
    Latency,
    Trace,
    Group,
    /// All paths on which (some of) the program is executed.
    Execute,
}

impl Tag {
    /// Converts the number of a tag; `None` for other numbers.
    #[inline(always)]
    pub const fn of(number: u32) -> Option<Self> {
        Some(match number {
            0 => Self::Fields,
            1 => Self::Columns,
            2 => Self::Distributions,
            3 => Self::Set,
            4 => Self::Latency,
            5 => Self::Trace,
            6 => Self::Group,
            7 => Self::Execute,
            _ => return None,
        })
    }
}

impl Path {
    pub(super) fn tag(&self) -> Tag {
        match self {
            Self::Fields(_) => Tag::Fields,
            Self::Columns(_) => Tag::Columns,
            Self::Distributions(_) => Tag::Distributions,
            Self::Set(_) => Tag::Set,
            Self::Latency(_) => Tag::Latency,
            Self::Trace(_) => Tag::Trace,
            Self::Group(_) => Tag::Group,
            Self::Words(_) | Self::Stack | Self::UserStack | Self::Stacks | Self::Execute => {
                Tag::Execute
            }
        }
    }

    /// Counts a hit on this path, which has this tag: a constant of the caller, so that only the
    /// code of one path is compiled there. `clock` reads [`Clock::Global`](crate::event::Clock), in
    /// ns; `group` returns the id of a task's control group, unless that takes a search. Returns
    /// false, and has done nothing, if the record is too short, or the hit needs more than that.
    /// Any context, NMI included.
    #[inline(always)]
    pub(super) fn count(
        &self,
        tag: Tag,
        map: &Map,
        record: Record<'_>,
        preempt: PreemptOff<'_>,
        clock: impl Fn() -> u64,
        group: impl Fn(GroupTask) -> Option<u64>,
    ) -> bool {
        match (tag, self) {
            (Tag::Fields, Self::Fields(fields)) => {
                return fields.count(map.read(preempt), record, preempt)
            }
            (Tag::Columns, Self::Columns(fields)) => {
                return fields.count(map.read(preempt), record, preempt)
            }
            (Tag::Distributions, Self::Distributions(fields)) => {
                return fields.count(map.read(preempt), record, preempt)
            }
            (Tag::Group, Self::Group(fields)) => {
                return fields.count(map.read(preempt), record, preempt, group)
            }
            (Tag::Set, Self::Set(fields)) => fields.set(map, record, preempt, clock),
            (Tag::Latency, Self::Latency(fields)) => fields.latency(map, record, preempt, clock),
            _ => return false,
        }
        true
    }

    /// Counts a hit on [`Path::Trace`]: see [`VarFields::trace`].
    #[inline(always)]
    pub(super) fn trace(
        &self,
        map: &Map,
        targets: &Targets,
        record: Record<'_>,
        preempt: PreemptOff<'_>,
        clock: impl Fn() -> u64,
        context: &dyn Context,
    ) -> bool {
        match self {
            Self::Trace(fields) => fields.trace(map, targets, record, preempt, clock, context),
            _ => false,
        }
    }
}
