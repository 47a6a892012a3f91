// SPDX-License-Identifier: MIT OR Apache-2.0

//! Commands: a file for each, with its function `run`, and its arguments if it has any. `words` and
//! `recipe` parse measurements for several commands, `planner` plans histograms of a configuration.

pub mod between;
pub mod check;
pub mod clean;
pub mod count;
pub mod diff;
pub mod doctor;
pub mod exec;
pub mod ls;
mod planner;
mod programs;
pub mod push;
pub mod recipe;
pub mod record;
pub mod report;
pub mod serve;
pub mod show;
pub mod status;
pub mod top;
pub mod unwind;
pub mod words;
