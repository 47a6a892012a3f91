// SPDX-License-Identifier: GPL-2.0

//! rhist: histograms of trace events for kernels as distributions ship them.
//!
//! A tracing directory of its own, `/sys/kernel/tracing/rhist`, with hist triggers that are
//! evaluated here. See `Documentation/`.

pub mod filter;
#[path = "../rust/mod.rs"]
mod ftrace;
pub mod hist;
pub mod hook;
pub mod map;
mod tree;
pub mod trigger;
pub mod user_events;

use crate::ftrace::instance::Instance;
use crate::ftrace::tracefs::Mirror;
use crate::hook::registry::Registry;
use crate::tree::Tree;
use kernel::prelude::*;

module! {
    type: Rhist,
    name: "rhist",
    authors: ["The rhist authors"],
    description: "Histograms of trace events",
    license: "GPL",
}

/// Dropping it takes the files away, then the hooks, then the instance.
struct Rhist {
    _mirror: Pin<KBox<Mirror<Tree>>>,
}

impl kernel::Module for Rhist {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let tree = Tree::new(Registry::new(Instance::new()?)?)?;
        Ok(Self {
            _mirror: Mirror::new(c"rhist", tree)?,
        })
    }
}
