// SPDX-License-Identifier: GPL-2.0

//! rhist: histograms of trace events for kernels as distributions ship them.
//!
//! A tracing directory of its own, `/sys/kernel/tracing/rhist`, with hist triggers that are
//! evaluated here. See `Documentation/`.

pub mod engine;
pub mod errno;
pub mod event;
pub mod filter;
pub mod hist;
pub mod hook;
mod intervals;
pub mod limits;
pub mod map;
mod mirror;
#[path = "../rust/mod.rs"]
mod rust;
pub mod sync;
pub mod text;
mod tree;
pub mod trigger;
pub mod user_events;
pub mod user_stack;
pub mod worker;

use crate::{
    engine::Engine,
    hook::clock,
    mirror::Mirror,
    rust::{
        device::Device,
        instance::Instance,
        parameters::parameters,
        stack::Rules,
        tracefs::SpecialFops, //
    },
    tree::Tree,
    user_events::{
        DataFile,
        Service,
        Settings, //
    },
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

module! {
    type: Rhist,
    name: "rhist",
    authors: ["The rhist authors"],
    description: "Histograms of trace events",
    license: "GPL",
}

/// Dropping it removes the device and the files, then the hooks, then the remains of user events,
/// then the instance, and finally the rules by which hits walk stacks.
struct Rhist {
    _device: Device,
    _mirror: Mirror<Tree>,
    _user_events: Service,
    _rules: Rules,
}

impl kernel::Module for Rhist {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        clock::init();
        let rules = Rules::new();
        let instance = Instance::new()?;
        let root = instance.tracefs_root();
        let instance = Arc::new(instance, GFP_KERNEL)?;
        let parameters = parameters();
        let settings = Settings::new(&parameters)?;
        let user_events = Service::new(instance.clone(), settings)?;
        let data = SpecialFops::new(DataFile::new(user_events.events().clone())?)?;
        let engine = Engine::new(instance, parameters.probes)?;
        let tree = Tree::new(engine, user_events.events().clone(), data.clone())?;
        let mirror = Mirror::new(c"rhist", root, tree)?;
        Ok(Self {
            _device: Device::new(c"user_events", settings.data.mode, data)?,
            _mirror: mirror,
            _user_events: user_events,
            _rules: rules,
        })
    }
}
