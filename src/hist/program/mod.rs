// SPDX-License-Identifier: GPL-2.0

//! The code of a hit, compiled from the spec of a trigger.
//!
//! Flat lists of things to read and places to put them: a hit neither allocates nor looks anything
//! up by name.

mod code;
mod compile;
pub(in crate::hist) mod content;
pub(in crate::hist) mod key;
pub(in crate::hist) mod number;
pub(in crate::hist) mod place;
pub(in crate::hist) mod reader;

pub use code::Program;
pub(in crate::hist) use code::{
    ActionCode,
    Cell,
    Import,
    TrackCode,
    VarStore,
    WideStore, //
};
