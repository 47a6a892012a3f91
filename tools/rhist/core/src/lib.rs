// SPDX-License-Identifier: MIT OR Apache-2.0

//! Histograms of trace events: the kernel's files, their contents, and what is made of them.

pub mod grammar;
pub mod jsonl;
mod lines;
pub mod names;
pub mod problem;
pub mod quantity;
pub mod question;
pub mod recipe;
pub mod recording;
pub mod stats;
pub mod suggest;
pub mod table;
pub mod tracefs;
