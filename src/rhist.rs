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
use crate::user_events::Service;
use kernel::prelude::*;
use kernel::sync::Arc;

module! {
    type: Rhist,
    name: "rhist",
    authors: ["The rhist authors"],
    description: "Histograms of trace events",
    license: "GPL",
}

/// Dropping it takes the files away, then the hooks, then what user events left, then the instance.
struct Rhist {
    _mirror: Pin<KBox<Mirror<Tree>>>,
    _user_events: Service,
}

impl kernel::Module for Rhist {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let instance = Arc::new(Instance::new()?, GFP_KERNEL)?;
        let user_events = Service::new(instance.clone())?;
        let tree = Tree::new(Registry::new(instance)?, user_events.events().clone())?;
        Ok(Self {
            _mirror: Mirror::new(c"rhist", tree)?,
            _user_events: user_events,
        })
    }
}
