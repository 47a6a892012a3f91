// SPDX-License-Identifier: MIT OR Apache-2.0

//! Histograms of trace events: reads the kernel's files, and computes and stores their contents.

pub mod compare;
pub mod cost;
pub mod grammar;
pub mod hist_file;
pub mod hist_text;
pub mod intervals;
pub mod journal;
pub mod jsonl;
mod lines;
pub mod lock;
pub mod machine;
#[cfg(test)]
mod measure;
pub mod missed;
pub mod names;
pub mod otlp;
pub mod picture;
pub mod plan;
pub mod problem;
pub mod quantity;
pub mod query;
pub mod question;
pub mod recipe;
pub mod recording;
pub mod room;
pub mod run;
pub mod samples;
pub mod sink;
pub mod stats;
pub mod suggest;
pub mod table;
pub mod threads;
pub mod tracefs;
