// SPDX-License-Identifier: GPL-2.0

//! Counting a hit.

use super::limits;
use super::program::Program;
use super::Histogram;
use super::Plan;
use crate::event::Hit;
use crate::event::Record;
use crate::map::Elt;

impl Histogram {
    /// Counts `hit`: finds or makes the entry of its key and adds to the entry's sums. If there is
    /// no room for a new entry the hit is counted as dropped.
    ///
    /// May be called in any context, NMI included, with preemption disabled. It neither allocates
    /// nor waits.
    #[inline]
    pub fn hit(&self, hit: &Hit<'_>) {
        self.hit_as(&self.plan, hit);
    }

    /// The same for a hit of an event whose record may be laid out differently: that of `plan`,
    /// which [matches](Plan::matches) the histogram's own.
    #[inline]
    pub fn hit_as(&self, plan: &Plan, hit: &Hit<'_>) {
        let program = &plan.program;
        if self.hit_fast(plan, hit.record, hit.cpu) {
            return;
        }
        if let Some(number) = program.number {
            let entry = self.map.insert_word(hit.cpu, program.read(number, hit));
            return self.count(program, hit, entry);
        }
        self.hit_with_key(program, hit);
    }

    /// Fast path: counts a hit for a histogram that only reads plain fields of the record. Returns false,
    /// and has done nothing, if `plan` needs more than that. Any context, with preemption disabled. The
    /// hit is on CPU `cpu`, which this runs on.
    #[inline(always)]
    pub fn hit_fast(&self, plan: &Plan, record: Record<'_>, cpu: usize) -> bool {
        self.map.count_record(&plan.program.fields, record, cpu)
    }

    #[inline(never)]
    fn hit_with_key(&self, program: &Program, hit: &Hit<'_>) {
        // Most keys are far smaller than the largest possible, whose zeroing would cost more than
        // all the rest.
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

    #[inline(always)]
    fn count(&self, program: &Program, hit: &Hit<'_>, entry: Option<Elt<'_>>) {
        let Some(entry) = entry else {
            return;
        };
        if let (Some(comms), Some(pid)) = (&self.comms, program.pid) {
            comms.note(entry.index(), program, pid, hit);
        }
        entry.count(hit.cpu, &program.values, |&value| program.read(value, hit));
    }
}
