// SPDX-License-Identifier: GPL-2.0

//! Control groups of tasks, in cgroup v2.

use super::{
    bindings,
    task::{
        self,
        TaskArg, //
    },
};
use core::{
    ffi::{
        c_void,
        CStr, //
    },
    mem::MaybeUninit, //
};
use kernel::{
    error::to_result,
    prelude::*, //
};

/// The kernfs node of a group's directory, as a number.
pub(crate) type Node = usize;

fn pointer(node: Node) -> *mut bindings::kernfs_node {
    core::ptr::with_exposed_provenance_mut(node)
}

/// Returns the id of a task's group, as `group_of()` in C finds it, without a call.
///
/// # Safety
///
/// `task` must point to a task. Preemption must be off.
#[inline(always)]
unsafe fn id_of_task(task: *const c_void) -> u64 {
    #[cfg(CONFIG_CGROUPS)]
    // SAFETY: A task has these pointers. The task, its css_set, the group and the node stay while
    // preemption is off (`rust/cgroup.c`).
    unsafe {
        let set = task::load::<*const c_void>(task, bindings::RHIST_TASK_CGROUPS);
        let group = task::load::<*const c_void>(set, bindings::RHIST_CSS_SET_GROUP);
        let node = task::load::<*const c_void>(group, bindings::RHIST_CGROUP_NODE);
        task::load(node, bindings::RHIST_NODE_ID)
    }
    #[cfg(not(CONFIG_CGROUPS))]
    {
        let _ = task;
        1
    }
}

/// Returns the id of the running task's group. Any context, with preemption off.
#[inline(always)]
pub(crate) fn id() -> u64 {
    // SAFETY: This is a task, and preemption is off.
    unsafe { id_of_task(task::current()) }
}

/// Returns the id of the group of the task with this number in the first pid namespace, if that is
/// the tracepoint's or the running one. Any context, with preemption off.
#[inline(always)]
pub(crate) fn id_of_known(pid: u32, task: TaskArg<'_>) -> Option<u64> {
    // SAFETY: This is a task, and preemption is off.
    task.find(pid).map(|task| unsafe { id_of_task(task) })
}

/// As [`id_of_known`], of any task; 0 if no task has this number.
#[inline]
pub(crate) fn id_of(pid: u32, task: TaskArg<'_>) -> u64 {
    // SAFETY: Preemption is off, as this requires.
    id_of_known(pid, task).unwrap_or_else(|| unsafe { bindings::rhist_cgroup_id_of(pid) })
}

/// Returns id and node of the group of a task, or of the running one. `None`: no task has
/// this number. The node stays until preemption is on. Any context, with preemption off.
pub(crate) fn of(pid: Option<u32>, task: TaskArg<'_>) -> Option<(u64, Node)> {
    let mut group = MaybeUninit::<bindings::rhist_cgroup>::uninit();
    // SAFETY: Preemption is off, as both require. They fill in `group` if they return true. The
    // task stays.
    unsafe {
        let found = match pid {
            Some(pid) => bindings::rhist_cgroup_of(pid, task.as_ptr(), group.as_mut_ptr()),
            None => bindings::rhist_cgroup(group.as_mut_ptr()),
        };
        found.then(|| {
            let group = group.assume_init();
            (group.id, group.node.expose_provenance())
        })
    }
}

/// Returns whether the running task's group is the one with this id, which has `level` groups above
/// it, or is below that. Any context, with preemption off.
pub(crate) fn is_below(id: u64, level: u32) -> bool {
    // SAFETY: Preemption is off, as this requires.
    unsafe { bindings::rhist_cgroup_is_below(id, level as i32) }
}

/// Takes a reference to a node. Any context.
///
/// # Safety
///
/// The node exists: it was found with preemption off, which it still is, or somebody has a
/// reference.
pub(crate) unsafe fn get(node: Node) {
    // SAFETY: The caller guarantees that the node exists.
    unsafe { bindings::rhist_cgroup_get(pointer(node)) }
}

/// Puts a reference. Any context if it is not the last one, otherwise task context.
///
/// # Safety
///
/// The caller has the reference.
pub(crate) unsafe fn put(node: Node) {
    // SAFETY: The caller gives up its reference.
    unsafe { bindings::rhist_cgroup_put(pointer(node)) }
}

/// Returns the id of a group. Any context.
///
/// # Safety
///
/// Somebody has a reference to the node.
pub(crate) unsafe fn node_id(node: Node) -> u64 {
    // SAFETY: The caller guarantees that the node exists.
    unsafe { bindings::rhist_cgroup_node_id(pointer(node)) }
}

/// Writes the path of a group, which may have been removed, to `to`. Returns the length. Fails
/// with `E2BIG` if it does not fit. Task context.
///
/// # Safety
///
/// Somebody has a reference to the node.
pub(crate) unsafe fn path(node: Node, to: &mut [u8]) -> Result<usize> {
    // SAFETY: The caller guarantees that the node exists. `to` is valid for its length.
    let len =
        unsafe { bindings::rhist_cgroup_path(pointer(node), to.as_mut_ptr().cast(), to.len()) };
    to_result(len)?;
    Ok(len as usize)
}

/// Finds a group by its path, as the running task's cgroup namespace has it. Returns its id, and
/// how many groups are above it. `None`: no group has this path. Task context.
pub(crate) fn find(path: &CStr) -> Option<(u64, u32)> {
    let (mut id, mut level) = (0, 0);
    // SAFETY: `path` ends in a NUL, the others are valid to be written.
    let found =
        unsafe { bindings::rhist_cgroup_find(path.as_ptr().cast(), &raw mut id, &raw mut level) };
    (found == 0).then_some((id, level as u32))
}

/// Returns whether all tasks are in the root of cgroup v2, its only group.
pub(crate) fn has_only_root() -> bool {
    // SAFETY: The function reads a number.
    unsafe { bindings::rhist_cgroup_only_root() }
}
