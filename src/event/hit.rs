// SPDX-License-Identifier: GPL-2.0

//! One hit of an event, while it happens.

use super::{
    Clock,
    Group,
    GroupPlace,
    GroupTask,
    LongBuffer,
    Record,
    Stack,
    Tail, //
};
use crate::{
    limits::COMM_LEN,
    sync::PreemptOff, //
};

/// Context of the current hit: time, stack and comm, each determined on first use. Any context.
pub trait Context {
    /// The time on `clock`, the same for all triggers of one hit.
    fn time(&self, clock: Clock) -> u64;

    /// Writes the return addresses of the stack to `to`, which is empty, beginning with the one
    /// into the traced function.
    fn stack(&self, preempt: PreemptOff<'_>, to: &mut Stack);

    /// Writes the words of the running program's stack to `to`, which is empty: at most `most`, of
    /// which the last one may say how it ended.
    fn user_stack(&self, preempt: PreemptOff<'_>, most: usize, to: &mut Tail<'_>);

    /// A buffer for the words of a long stack. `None`: hits that this one has interrupted use all
    /// of the CPU; or stacks of programs are not taken.
    fn long_buffer<'a>(&'a self, preempt: PreemptOff<'a>) -> Option<LongBuffer<'a>>;

    /// The name of the current task. While another task renames it, the result may be a mix of both
    /// names, and may lack a NUL.
    fn comm(&self) -> [u8; COMM_LEN];

    /// The name of the task with this process id, as of the current one. `None`: it is gone.
    fn comm_of(&self, pid: u32) -> Option<[u8; COMM_LEN]>;

    /// The id of the current task's process.
    fn tgid(&self) -> u32;

    /// The id of the process whose child the current task is.
    fn ppid(&self) -> u32;

    /// The id of the current task's control group.
    fn cgroup(&self) -> u64;

    /// The id of the control group of the task with this process id,
    /// [`IDLE`](super::group::IDLE), or [`GONE`](super::group::GONE).
    fn cgroup_of(&self, pid: u32) -> u64;

    /// The control group of a task. `None`: the task is gone, or is an idle task that was given by
    /// its process id.
    fn cgroup_node<'a>(&self, preempt: PreemptOff<'a>, task: GroupTask) -> Option<Group<'a>>;

    /// Returns whether the current task's control group is this one, or is below it.
    fn is_in_cgroup(&self, group: GroupPlace) -> bool;

    /// Copies memory at `address` to `to`: of the current task, if it is an address in user space,
    /// else of the kernel. Returns false if not all of it can be read without a page fault.
    fn read(&self, to: &mut [u8], address: usize) -> bool;

    /// Copies memory of the kernel at `address` to `to`. Returns false if not all of it can be read
    /// without a page fault.
    fn read_kernel(&self, to: &mut [u8], address: usize) -> bool;
}

/// One hit of an event, on the CPU that it happens on.
pub struct Hit<'a> {
    record: Record<'a>,
    preempt: PreemptOff<'a>,
    context: &'a dyn Context,
}

impl<'a> Hit<'a> {
    /// Creates a hit with this record on the current CPU.
    #[inline(always)]
    pub fn new(record: Record<'a>, preempt: PreemptOff<'a>, context: &'a dyn Context) -> Self {
        Self {
            record,
            preempt,
            context,
        }
    }

    /// Its record.
    #[inline(always)]
    pub fn record(&self) -> Record<'a> {
        self.record
    }

    /// The number of the current CPU.
    #[inline(always)]
    pub fn cpu(&self) -> usize {
        self.preempt.cpu()
    }

    /// The token that preemption is off while the hit is counted.
    #[inline(always)]
    pub fn preempt(&self) -> PreemptOff<'a> {
        self.preempt
    }

    /// Time, stack and comm.
    #[inline(always)]
    pub fn context(&self) -> &'a dyn Context {
        self.context
    }
}
