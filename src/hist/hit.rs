// SPDX-License-Identifier: GPL-2.0

//! The executor: counts a hit in a histogram.
//!
//! In this order: the key is read; the map finds the element of the key, or inserts it; side data of the element
//! is stored; its columns are updated.

use super::comm;
use super::limits;
use super::program::KeyShape;
use super::program::Program;
use super::Histogram;
use super::Plan;
use crate::event::Hit;
use crate::event::Record;
use crate::map::Elt;

impl Histogram {
    /// Counts `hit`. If there is no place for a new entry, that is counted as a drop.
    ///
    /// `plan` is that of the event's trigger: it [matches](Plan::matches) the histogram's own, but its fields may
    /// be at other offsets of the record.
    ///
    /// Any context, NMI included, with preemption off. Neither allocates nor waits.
    #[inline]
    pub fn hit(&self, plan: &Plan, hit: &Hit<'_>) {
        let program = &plan.program;
        match program.shape {
            KeyShape::Record if self.hit_fast(plan, hit.record, hit.cpu) => (),
            KeyShape::Number => self.hit_with_number(program, hit),
            _ => self.hit_with_buffer(program, hit),
        }
    }

    /// Fast path: counts a hit for a histogram that only reads plain fields of the record. Returns false,
    /// and has done nothing, if `plan` needs more than that, or the record is too short. Any context, on CPU
    /// `cpu` with preemption off.
    #[inline(always)]
    pub fn hit_fast(&self, plan: &Plan, record: Record<'_>, cpu: usize) -> bool {
        self.map.count_record(&plan.program.fields, record, cpu)
    }

    /// Counts a hit whose key is a number.
    #[inline(never)]
    fn hit_with_number(&self, program: &Program, hit: &Hit<'_>) {
        let key = program.read(program.number, hit);
        self.count(program, hit, self.map.insert_word(hit.cpu, key));
    }

    /// Counts a hit whose key is assembled in a buffer.
    #[inline(never)]
    fn hit_with_buffer(&self, program: &Program, hit: &Hit<'_>) {
        // Most keys are short, and zeroing a buffer for the longest would cost more than all the rest.
        match program.key_used(hit) {
            used @ 0..=16 => self.hit_in_buffer::<16>(program, hit, used),
            used @ 17..=64 => self.hit_in_buffer::<64>(program, hit, used),
            used @ 65..=256 => self.hit_in_buffer::<256>(program, hit, used),
            used => self.hit_in_buffer::<{ limits::KEY_SIZE as usize }>(program, hit, used),
        }
    }

    #[inline(always)]
    fn hit_in_buffer<const N: usize>(&self, program: &Program, hit: &Hit<'_>, used: usize) {
        let mut buffer = [0; N];
        if let Some(key) = buffer.get_mut(..used) {
            program.put_key(key, hit);
            self.count(program, hit, self.map.insert(hit.cpu, key));
        }
    }

    /// Executes all that follows the insertion. Without an element, the hit was counted as a drop.
    #[inline(always)]
    fn count(&self, program: &Program, hit: &Hit<'_>, elt: Option<Elt<'_>>) {
        let Some(elt) = elt else {
            return;
        };
        if let Some(pid) = program.pid {
            comm::store(elt.side(), program, pid, hit);
        }
        elt.update(hit.cpu, &program.values, |&value| program.read(value, hit));
    }
}
