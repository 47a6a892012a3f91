// SPDX-License-Identifier: GPL-2.0

//! A small tree of control groups, whose references are counted: the kernel of the tests.

#![allow(dead_code, reason = "each test uses some of it")]

use std::collections::BTreeMap;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::Mutex;

use kernel::prelude::Result as KernelResult;
use rhist::event::group;
use rhist::event::Group;
use rhist::event::GroupNodes;
use rhist::event::GroupPlace;
use rhist::sync::PreemptOff;
use rhist::text::Text;

/// The node of a group.
#[repr(align(8))]
struct Node {
    id: u64,
    /// References of histograms.
    held: AtomicI64,
}

/// All nodes ever made, by their ids. They are never freed, so their references can be read.
static NODES: Mutex<BTreeMap<u64, &'static Node>> = Mutex::new(BTreeMap::new());

fn node_of(id: u64) -> &'static Node {
    let held = AtomicI64::new(0);
    let mut nodes = NODES.lock().unwrap();
    nodes
        .entry(id)
        .or_insert_with(|| Box::leak(Box::new(Node { id, held })))
}

/// The references to the group with this id.
pub(crate) fn held(id: u64) -> i64 {
    node_of(id).held.load(SeqCst)
}

/// The group with this id.
pub(crate) fn node(preempt: PreemptOff<'_>, id: u64) -> Option<Group<'_>> {
    if matches!(id, group::IDLE | group::GONE) {
        return None;
    }
    let node: *const Node = node_of(id);
    // SAFETY: Nodes are never freed, and aligned.
    Some(unsafe { Group::new(preempt, id, node.expose_provenance()) })
}

/// The kernel of the tests.
pub(crate) struct Nodes;

fn at(node: usize) -> &'static Node {
    // SAFETY: Nodes are never freed.
    unsafe { &*std::ptr::with_exposed_provenance::<Node>(node) }
}

impl GroupNodes for Nodes {
    unsafe fn get(&self, node: usize) {
        at(node).held.fetch_add(1, SeqCst);
    }

    unsafe fn put(&self, node: usize) {
        assert!(at(node).held.fetch_sub(1, SeqCst) > 0);
    }

    unsafe fn id(&self, node: usize) -> u64 {
        assert!(at(node).held.load(SeqCst) > 0);
        at(node).id
    }

    unsafe fn path(&self, out: &mut Text, node: usize) -> KernelResult<bool> {
        assert!(at(node).held.load(SeqCst) > 0);
        match at(node).id {
            1 => out.bytes(b"/")?,
            13 => return Ok(false),
            id => out.format(format_args!("/group-{id}"))?,
        }
        Ok(true)
    }
}

/// The group of a task. That with process id 999 is gone.
pub(crate) fn of(pid: u32) -> u64 {
    match pid {
        0 => group::IDLE,
        999 => group::GONE,
        pid => u64::from(pid) + 1000,
    }
}

/// The comm of a task.
pub(crate) fn comm_of(pid: u32) -> Option<[u8; 16]> {
    let mut comm = *b"task-\0**********";
    comm[5] = b'0' + (pid % 10) as u8;
    comm[6] = 0;
    (pid != 999).then_some(comm)
}

/// `/a` has the groups from 20 to 29 below it.
const A: GroupPlace = GroupPlace { id: 20, level: 1 };

/// Finds a group by its path.
pub(crate) fn find(path: &[u8]) -> Option<GroupPlace> {
    (path == b"/a").then_some(A)
}

pub(crate) fn is_in(id: u64, group: GroupPlace) -> bool {
    group == A && (20..30).contains(&id)
}
