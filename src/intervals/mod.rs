// SPDX-License-Identifier: GPL-2.0

//! Readers of the intervals of an event's histograms.
//!
//! `src/map/` cuts one map, and keeps the progress of its readers; `src/worker/` cuts all
//! histograms that readers have asked for together. A reader is an open file, with all histograms
//! that its event has, or has had since the last read. [`Readers`] is the list of them, which are
//! updated when triggers change.

mod reader;
mod readers;

pub(crate) use reader::{
    Reader,
    Taken, //
};
pub(crate) use readers::{
    Listed,
    Readers, //
};
