// SPDX-License-Identifier: GPL-2.0

//! Histograms of events: described by a trigger, updated by hits, shown as text.
//!
//! Five folders, each of which imports only from those before it (`tools/testing/layers` checks
//! that):
//!
//! * `spec`: a trigger with its names resolved: keys, values, variables, actions;
//! * `program`: the code of a hit, compiled from the spec;
//! * `path`: fast paths, one of which is chosen for a program if it does all that this needs;
//! * `hit`: how the program is executed otherwise;
//! * `show`: readers: rows of typed cells, and their printers.
//!
//! `reader.rs` has the readers of intervals. A [`Histogram`] ties them together. One dependency
//! runs backwards: a reference to a variable holds the histogram that has it.

mod buckets;
mod compiled;
mod histogram;
mod hit;
mod path;
pub(crate) mod program;
mod reader;
pub mod show;
pub mod spec;
mod stacks;
mod tending;

pub use compiled::{
    Code,
    Compiled, //
};
pub use histogram::{
    Histogram,
    Setup,
    Tenancy, //
};
pub use path::Tag;
pub use program::Program;
pub use reader::{
    Begins,
    End,
    Ended,
    HistInterval,
    IntervalReader,
    Room, //
};
pub use spec::{
    target::Targets,
    AttachedHist,
    Draft,
    Scope,
    Spec, //
};
pub use tending::Tending;
