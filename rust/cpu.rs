// SPDX-License-Identifier: GPL-2.0

//! CPUs, and the task that runs on the current one.

use super::{
    bindings,
    task::TaskArg, //
};
use crate::limits::COMM_LEN;
use kernel::{
    alloc::NumaNode,
    prelude::*, //
};

/// Returns the number of the current CPU.
///
/// Any context, NMI included. Stays valid while preemption is off.
#[inline]
pub(crate) fn current() -> usize {
    // SAFETY: The function only reads the number of this CPU, in any context.
    unsafe { bindings::rhist_cpu() as usize }
}

/// Orders all accesses to memory before it against all after it, on all CPUs (`smp_mb()`). Any
/// context, NMI included.
pub(crate) fn smp_mb() {
    // SAFETY: The function is a barrier and accesses nothing.
    unsafe { bindings::rhist_smp_mb() }
}

/// One more than the highest number that a CPU can have (`nr_cpu_ids`).
pub(crate) fn count() -> usize {
    // SAFETY: The function reads a number that is constant after boot.
    unsafe { bindings::rhist_nr_cpu_ids() as usize }
}

/// One more than the highest number of a CPU that is online now.
pub(crate) fn online_end() -> usize {
    // SAFETY: The function only reads the mask of CPUs, which may change meanwhile.
    unsafe { bindings::rhist_online_end() as usize }
}

/// Returns the node whose memory is near a CPU, which may not be present yet.
pub(crate) fn node(cpu: usize) -> NumaNode {
    // SAFETY: The function only reads a table, and checks the number of the CPU.
    let node = unsafe { bindings::rhist_cpu_to_node(cpu as u32) };
    NumaNode::new(node).unwrap_or(NumaNode::NO_NODE)
}

/// Returns the name of the running task (`current->comm`); any context, NMI included. While another
/// task renames it, the result may be a mix of both names, and may lack a NUL.
pub(crate) fn current_comm() -> [u8; COMM_LEN] {
    let mut comm = [0; COMM_LEN];
    // SAFETY: `comm` has the size of a name.
    unsafe { bindings::rhist_current_comm(comm.as_mut_ptr().cast()) };
    comm
}

/// Returns the name of the task with this number in the first pid namespace, as [`current_comm`]
/// does; `None` if no task has it. Any context, with preemption off.
pub(crate) fn comm_of(pid: u32, task: TaskArg<'_>) -> Option<[u8; COMM_LEN]> {
    let mut comm = [0; COMM_LEN];
    // SAFETY: `comm` has the size of a name. Preemption is off, as this requires. The task stays.
    let found = unsafe { bindings::rhist_comm_of(pid, task.as_ptr(), comm.as_mut_ptr().cast()) };
    found.then_some(comm)
}

/// Returns the number of the running task's process. Any context.
pub(crate) fn current_tgid() -> u32 {
    // SAFETY: The function reads a number of the running task.
    unsafe { bindings::rhist_current_tgid() }
}

/// Returns the number of the process that the running task is a child of; 0 if none is. Any
/// context, with preemption off.
pub(crate) fn current_ppid() -> u32 {
    // SAFETY: The parent stays while preemption is off.
    unsafe { bindings::rhist_current_ppid() }
}

/// Yields the CPU. Fails with `EINTR` if this task has been killed, so that it stops its work. Task
/// context, may sleep.
pub(crate) fn yield_unless_killed() -> Result {
    // SAFETY: The caller is in task context and may sleep.
    match unsafe { bindings::rhist_yield_unless_killed() } {
        true => Ok(()),
        false => Err(EINTR),
    }
}

/// Sleeps for so many microseconds, or somewhat longer. Task context.
pub(crate) fn sleep_us(us: u32) {
    // SAFETY: The caller is in task context and may sleep.
    unsafe { bindings::rhist_sleep_us(us) }
}
