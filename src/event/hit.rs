// SPDX-License-Identifier: GPL-2.0

//! One hit of an event, while it happens.

use super::Clock;
use super::Record;

/// Bytes of a task's name with its NUL (`TASK_COMM_LEN`).
pub const COMM_LEN: usize = 16;

/// Return addresses of a stack that is stored (`HIST_STACKTRACE_DEPTH`).
pub const STACK_DEPTH: usize = 31;

/// Context of the current hit: time, stack and comm, each found out on first use. Any context.
pub trait Context {
    /// The time on `clock`, the same for all who ask during one hit.
    fn time(&self, clock: Clock) -> u64;

    /// Writes the return addresses of the stack to `to`, the one into the traced function first.
    /// Returns how many there are.
    fn stack(&self, to: &mut [u64; STACK_DEPTH]) -> usize;

    /// The name of the current task. While another task renames it that may be a mix of both
    /// names, and may lack a NUL.
    fn comm(&self) -> [u8; COMM_LEN];
}

/// One hit of an event.
pub struct Hit<'a> {
    /// Its record.
    pub record: Record<'a>,
    /// The CPU it happened on, which this runs on.
    pub cpu: usize,
    /// What takes time to find out.
    pub context: &'a dyn Context,
}

impl<'a> Hit<'a> {
    /// A hit with this record, on CPU `cpu`, which this runs on.
    #[inline(always)]
    pub fn new(record: Record<'a>, cpu: usize, context: &'a dyn Context) -> Self {
        Self {
            record,
            cpu,
            context,
        }
    }
}
