// SPDX-License-Identifier: GPL-2.0

//! The nodes of control groups in the kernel.

use crate::{
    event::GroupNodes,
    limits::PATH_MAX,
    rust::cgroup,
    text::Text, //
};
use kernel::prelude::*;

/// The kernel's nodes.
pub(crate) struct KernelGroups;

impl GroupNodes for KernelGroups {
    unsafe fn get(&self, node: usize) {
        // SAFETY: The node exists.
        unsafe { cgroup::get(node) }
    }

    unsafe fn put(&self, node: usize) {
        // SAFETY: The caller has the reference.
        unsafe { cgroup::put(node) }
    }

    unsafe fn id(&self, node: usize) -> u64 {
        // SAFETY: The node exists.
        unsafe { cgroup::node_id(node) }
    }

    unsafe fn path(&self, out: &mut Text, node: usize) -> Result<bool> {
        let mut path = KVec::from_elem(0, PATH_MAX, GFP_KERNEL)?;
        // SAFETY: The node exists.
        match unsafe { cgroup::path(node, &mut path) } {
            Ok(len) => out.bytes(&path[..len]).map(|()| true),
            Err(_) => Ok(false),
        }
    }
}
