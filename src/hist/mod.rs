// SPDX-License-Identifier: GPL-2.0

//! Histograms of events: described by a trigger, updated by hits, shown as text.
//!
//! Four folders, each of which imports only from those before it (`tools/testing/layers` checks
//! that):
//!
//! * `spec`: a trigger with its names resolved: keys, values, variables, actions;
//! * `program`: the code of a hit, compiled from the spec;
//! * `hit`: the executor;
//! * `show`: readers: rows of typed cells, and their printers.
//!
//! A [`Histogram`] ties them together. One dependency runs backwards: a reference to a variable
//! holds the histogram that has it.

mod buckets;
mod histogram;
mod hit;
pub(crate) mod program;
pub mod show;
pub mod spec;

pub use histogram::Histogram;
pub use program::{
    Compiled,
    Program, //
};
pub use spec::{
    target::Targets,
    AttachedHist,
    Draft,
    Scope,
    Spec, //
};
