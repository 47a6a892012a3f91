// SPDX-License-Identifier: GPL-2.0

//! Hits whose key is the control group of a task, and whose values are plain fields of the record.

use kernel::prelude::*;

use super::fields::Unchecked;
use crate::{
    event::{
        number::Numbers,
        GroupTask,
        Number,
        Record, //
    },
    map::Generation,
    sync::PreemptOff, //
};

/// The task whose control group is the key, and the fields that are added to the sums of its
/// element.
///
/// # Invariants
///
/// No field reaches beyond `end`.
pub(in crate::hist) struct GroupFields {
    /// The offset of the process id in the record; `None`: the running task.
    pid: Option<u32>,
    values: KVec<Number>,
    /// Minimum length of the record in bytes.
    end: usize,
}

impl GroupFields {
    /// Fields for the group of this task, or of the running one, and sums of `values`. `None`: the
    /// process id has not 32 bits.
    pub(super) fn new(task: Option<Number>, values: KVec<Number>) -> Option<Self> {
        let ends = values.iter().map(|value| value.end());
        let end = ends.fold(task.map_or(0, |pid| pid.end()), usize::max);
        if task.is_some_and(|pid| pid.type_().size() != size_of::<u32>()) {
            return None;
        }
        // INVARIANT: `end` is the largest end of all fields.
        Some(Self {
            pid: task.map(|pid| pid.offset()),
            values,
            end,
        })
    }

    /// Counts a hit. `group` returns the id of a task's group, unless that takes a search: then
    /// this returns false, and has done nothing. So it does if the record is too short, or the
    /// group is not in the first slot of its path: perhaps it is new, and has to be kept. Any
    /// context, NMI included.
    #[inline(always)]
    pub(super) fn count(
        &self,
        generation: &Generation,
        record: Record<'_>,
        preempt: PreemptOff<'_>,
        group: impl Fn(GroupTask) -> Option<u64>,
    ) -> bool {
        if record.as_bytes().len() < self.end {
            return false;
        }
        // SAFETY: Only fields are read, which the record has: it has `end` bytes.
        let fields = unsafe { Unchecked::of(record) };
        let key = group(self.pid.map(|pid| fields.u32(pid)));
        let Some(elt) = key.and_then(|key| generation.lookup_word_first_slot(key)) else {
            return false;
        };
        elt.update_sums(preempt, &self.values, move |value| value.read(&fields));
        true
    }
}
