// SPDX-License-Identifier: GPL-2.0

//! Hits whose key is the control group of a task, and whose values are plain fields of the record.

use kernel::prelude::*;

use crate::{
    event::{
        GroupTask,
        Number,
        Record, //
    },
    hist::program::number::recorded_number,
    map::Generation,
    sync::PreemptOff, //
};

/// The task whose control group is the key, and the fields that are added to the sums of its
/// element.
pub(in crate::hist) struct GroupFields {
    /// The process id in the record; `None`: the running task.
    task: Option<Number>,
    values: KVec<Number>,
    /// Minimum length of the record in bytes.
    end: usize,
}

impl GroupFields {
    /// Fields for the group of this task, and sums of `values`.
    pub(super) fn new(task: Option<Number>, values: KVec<Number>) -> Self {
        let ends = values.iter().map(|value| value.end());
        let end = ends.fold(task.map_or(0, |pid| pid.end()), usize::max);
        Self { task, values, end }
    }

    /// Counts a hit. `group` returns the id of a task's group. Returns false, and has done nothing,
    /// if the record is too short, or the group is not in the first slot of its path: perhaps it is
    /// new, and has to be kept. Any context, NMI included.
    #[inline(always)]
    pub(super) fn count(
        &self,
        generation: &Generation,
        record: Record<'_>,
        preempt: PreemptOff<'_>,
        group: impl Fn(GroupTask) -> u64,
    ) -> bool {
        if record.as_bytes().len() < self.end {
            return false;
        }
        let task = self.task.as_ref();
        let key = group(task.map(|pid| recorded_number(pid, record) as u32));
        let Some(elt) = generation.lookup_word_first_slot(key) else {
            return false;
        };
        elt.update_sums(preempt, &self.values, |value| {
            recorded_number(value, record)
        });
        true
    }
}
