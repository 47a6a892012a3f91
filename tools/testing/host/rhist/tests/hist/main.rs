// SPDX-License-Identifier: GPL-2.0

//! Tests of the histogram: from a trigger and records to the text of its files.

#![cfg(not(loom))]

mod actions;
mod build;
mod concurrent;
mod contents;
mod debug;
mod engine;
mod errors;
mod events;
mod exercise;
#[path = "../exponential/naive.rs"]
mod exponential;
mod group_tree;
mod groups;
mod hit;
mod intervals;
mod joins;
mod jsonl;
mod memory;
mod model;
mod naive;
#[path = "../oracle/mod.rs"]
mod oracle;
mod others;
mod racing;
mod record;
mod references;
mod render;
mod scenario;
mod scenarios;
mod sort;
mod stacks;
#[path = "../table/mod.rs"]
mod table;
mod triggers;
mod user_stacks;
mod vars;
mod world;
