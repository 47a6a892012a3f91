// SPDX-License-Identifier: GPL-2.0

//! rhist: histograms of trace events for kernels as distributions ship them.

#[path = "../rust/mod.rs"]
pub mod ftrace;

use kernel::prelude::*;

module! {
    type: Rhist,
    name: "rhist",
    authors: ["The rhist authors"],
    description: "Histograms of trace events",
    license: "GPL",
}

struct Rhist;

impl kernel::Module for Rhist {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        Ok(Self)
    }
}
