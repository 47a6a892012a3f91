// SPDX-License-Identifier: GPL-2.0

//! Counting an event.

use super::limits::COMM_LEN;
use super::limits::STACK_DEPTH;
use super::program::Program;
use super::Clock;
use super::Histogram;
use super::Plan;
use crate::hook::record::Record;
use crate::hook::words::KeyForm;
use crate::hook::words::Within;
use crate::hook::words::Words;
use crate::map::Elt;

/// What can be asked about a hit while it happens. Any context.
pub trait Moment {
    /// The time on `clock`, the same for all who ask during one hit.
    fn time(&self, clock: Clock) -> u64;

    /// Writes the return addresses of the stack to `to`, the one into the traced function first.
    /// Returns how many there are.
    fn stack(&self, to: &mut [u64; STACK_DEPTH]) -> usize;

    /// The name of the task that runs. While another task renames it that may be a mix of both
    /// names, and may lack a NUL.
    fn comm(&self) -> [u8; COMM_LEN];
}

/// An event that happened, seen from where it happened.
pub struct Hit<'a> {
    /// Its record.
    pub record: Record<'a>,
    /// The CPU it happened on, which this runs on.
    pub cpu: usize,
    /// What takes time to find out.
    pub moment: &'a dyn Moment,
}

impl<'a> Hit<'a> {
    /// One with this record, on CPU `cpu`, which this runs on.
    #[inline(always)]
    pub fn new(record: Record<'a>, cpu: usize, moment: &'a dyn Moment) -> Self {
        Self {
            record,
            cpu,
            moment,
        }
    }
}

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
        if self.hit_words(plan, hit.record, hit.cpu) {
            return;
        }
        if let Some(number) = program.number {
            let entry = self.map.insert_word(hit.cpu, program.read(number, hit));
            return self.count(program, hit, entry);
        }
        self.hit_with_key(program, hit);
    }

    /// Counts a hit of which there is this record, on CPU `cpu`, if words of it are all that `plan` needs:
    /// else returns false, and has done nothing. Any context, with preemption disabled.
    #[inline(always)]
    pub fn hit_words(&self, plan: &Plan, record: Record<'_>, cpu: usize) -> bool {
        let Some(words) = plan.program.words.within(record) else {
            return false;
        };
        match words.number().and_then(|key| self.map.lookup_word(key)) {
            Some(entry) => words.count(entry, cpu),
            None => return self.hit_elsewhere(words, cpu),
        }
        true
    }

    /// The slow path of [`Histogram::hit_words`]: its key is not in the first slot, or not a single word.
    /// Always returns true, which leaves its caller nothing to do afterwards.
    ///
    /// Each form has a function of its own: none saves registers, or clears stack, that only another needs.
    #[inline(never)]
    fn hit_elsewhere(&self, words: Within<'_>, cpu: usize) -> bool {
        match words.form() {
            KeyForm::Single => self.hit_single(words, cpu),
            KeyForm::Plain => self.hit_plain(words, cpu),
            KeyForm::Scaled => self.hit_scaled(words, cpu),
        }
        true
    }

    #[inline(never)]
    fn hit_single(&self, words: Within<'_>, cpu: usize) {
        let key = words.number().unwrap_or_default();
        if let Some(entry) = self.map.insert_word(cpu, key) {
            words.count(entry, cpu);
        }
    }

    #[inline(never)]
    fn hit_plain(&self, words: Within<'_>, cpu: usize) {
        let entry = match *words.key(&mut [0; Words::KEY_MAX]) {
            [a, b] => self.map.insert_array(cpu, [a, b]),
            [a, b, c] => self.map.insert_array(cpu, [a, b, c]),
            ref key => self.map.insert_words(cpu, key),
        };
        if let Some(entry) = entry {
            words.count(entry, cpu);
        }
    }

    #[inline(never)]
    fn hit_scaled(&self, words: Within<'_>, cpu: usize) {
        let entry = match *words.scaled_key(&mut [0; Words::KEY_MAX]) {
            [key] => self.map.insert_word(cpu, key),
            [a, b] => self.map.insert_array(cpu, [a, b]),
            ref key => self.map.insert_words(cpu, key),
        };
        if let Some(entry) = entry {
            words.count(entry, cpu);
        }
    }

    #[inline(never)]
    fn hit_with_key(&self, program: &Program, hit: &Hit<'_>) {
        // Most keys are far smaller than the largest possible, whose zeroing would cost more than
        // all the rest.
        match program.key_used(hit) {
            used @ 0..=16 => self.hit_in_buffer::<16>(program, hit, used),
            used @ 17..=64 => self.hit_in_buffer::<64>(program, hit, used),
            used @ 65..=256 => self.hit_in_buffer::<256>(program, hit, used),
            used => self.hit_in_buffer::<{ super::limits::KEY_SIZE as usize }>(program, hit, used),
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
