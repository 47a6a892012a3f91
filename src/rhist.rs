// SPDX-License-Identifier: GPL-2.0

//! rhist: histograms of trace events for kernels as distributions ship them.
//!
//! A tracing directory of its own, `/sys/kernel/tracing/rhist`, with hist triggers that are
//! evaluated here. See `Documentation/`.

mod engine;
pub mod event;
pub mod filter;
#[path = "../rust/mod.rs"]
mod ftrace;
pub mod hist;
pub mod hook;
pub mod map;
mod mirror;
pub mod text;
mod tree;
pub mod trigger;
pub mod user_events;

use crate::engine::Engine;
use crate::ftrace::device::Device;
use crate::ftrace::instance::Instance;
use crate::ftrace::tracefs::SpecialFops;
use crate::mirror::Mirror;
use crate::tree::Tree;
use crate::user_events::DataFile;
use crate::user_events::Service;
use crate::user_events::Settings;
use kernel::prelude::*;
use kernel::sync::Arc;

module! {
    type: Rhist,
    name: "rhist",
    authors: ["The rhist authors"],
    description: "Histograms of trace events",
    license: "GPL",
    params: {
        probes: bool {
            default: true,
            description: "Events have probes of rhist's, as far as there are some",
        },
        user_events_data_mode: u16 {
            default: 0o640,
            description: "Permission bits of user_events_data and /dev/user_events",
        },
        user_events_status_mode: u16 {
            default: 0o440,
            description: "Permission bits of user_events_status",
        },
        user_events_uid: u32 {
            default: u32::MAX,
            description: "Owner of both files (default: that of the tracing directory)",
        },
        user_events_gid: u32 {
            default: u32::MAX,
            description: "Group of both files (default: that of the tracing directory)",
        },
        user_events_lossy: bool {
            default: false,
            description: "Payloads that are too long are lost, as in the kernel, without an error",
        },
        user_events_status_bits: bool {
            default: true,
            description: "user_events_status tells the bit of each event, as the original one did",
        },
    },
}

/// Dropping it takes the device and the files away, then the hooks, then what user events left,
/// then the instance.
struct Rhist {
    _device: Device,
    _mirror: Mirror<Tree>,
    _user_events: Service,
}

impl kernel::Module for Rhist {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let instance = Arc::new(Instance::new()?, GFP_KERNEL)?;
        let settings = Settings::new()?;
        let user_events = Service::new(instance.clone(), settings)?;
        let data = SpecialFops::new(DataFile::new(user_events.events().clone())?)?;
        let engine = Engine::new(instance, module_parameters::probes.value())?;
        let tree = Tree::new(engine, user_events.events().clone(), data.clone())?;
        let mirror = Mirror::new(c"rhist", tree)?;
        Ok(Self {
            _device: Device::new(c"user_events", settings.data.mode, data)?,
            _mirror: mirror,
            _user_events: user_events,
        })
    }
}
