// SPDX-License-Identifier: GPL-2.0

//! The executor: counts a hit in a histogram.
//!
//! Steps: read the key; read the variables of other histograms; find the element of the key in the
//! map, or insert it; store its side data; update its columns; set its variables; run the actions.
//! If a variable of another histogram is not set, the hit is only counted as [`Loss::Unresolved`].

mod action;
mod comm;
mod groups;
mod variables;

use super::{
    path::{
        Path,
        RecordFields,
        Tag, //
    },
    program::{
        content::Content,
        key::{
            KeyReader,
            LookupKey,
            FEW_REFS, //
        },
        number::{
            recorded_number,
            ColumnValue,
            DistributionCode,
            Value, //
        },
        place::WidePlace,
        reader::{
            long_stack,
            NESTED, //
        },
        Program, //
    },
    spec::target::{
        Targets,
        Wide, //
    },
    stacks::Stacks,
    Code,
    Histogram, //
};
use crate::{
    event::{
        Context,
        GroupTask,
        Hit,
        Number,
        Record,
        Stack, //
    },
    limits::{
        self,
        VARS_MAX, //
    },
    map::{
        Elt,
        Generation,
        Loss, //
    },
    sync::PreemptOff,
};

impl Histogram {
    /// Counts `hit`. If the map is full, a hit with a new key is counted as a drop.
    ///
    /// `code` belongs to the event's trigger: its spec [matches](super::Spec::matches) the
    /// histogram's own, but its fields may be at other offsets of the record. It was compiled with
    /// `targets`.
    ///
    /// Any context, NMI included. Neither allocates nor waits.
    #[inline(always)]
    pub fn hit(&self, code: &Code, targets: &Targets, hit: &Hit<'_>) {
        if !self.hit_fields(Tag::Fields, code, hit) {
            self.execute(code, targets, hit);
        }
    }

    /// Counts a hit of a leaf on its fast path, which has this tag: see [`Path::count`]. `clock`
    /// reads [`Clock::Global`](crate::event::Clock), in ns; `group` returns the id of a task's
    /// control group, unless that takes a search. Any context.
    #[inline(always)]
    pub fn hit_leaf(
        &self,
        tag: Tag,
        code: &Code,
        record: Record<'_>,
        preempt: PreemptOff<'_>,
        clock: impl Fn() -> u64,
        group: impl Fn(GroupTask) -> Option<u64>,
    ) -> bool {
        code.path
            .count(tag, &self.map, record, preempt, clock, group)
    }

    /// [`Histogram::hit_leaf`] for a path that needs only the record.
    #[inline(always)]
    fn hit_fields(&self, tag: Tag, code: &Code, hit: &Hit<'_>) -> bool {
        self.hit_leaf(tag, code, hit.record(), hit.preempt(), || 0, |_| None)
    }

    /// Counts a hit of an emitter, like [`Histogram::hit_leaf`]. `context` has the stack of the
    /// hit. Returns false, and has done nothing, if hits may nest in this one.
    #[inline(always)]
    pub fn hit_emitter(
        &self,
        code: &Code,
        targets: &Targets,
        record: Record<'_>,
        preempt: PreemptOff<'_>,
        clock: impl Fn() -> u64,
        context: &dyn Context,
    ) -> bool {
        let path = &code.path;
        path.trace(&self.map, targets, record, preempt, clock, context)
    }

    /// Counts a hit that did not take a fast path, or whose record is too short for it.
    #[inline(never)]
    pub fn execute(&self, code: &Code, targets: &Targets, hit: &Hit<'_>) {
        let program = &code.program;
        match code.path {
            Path::Columns(_) | Path::Distributions(_) => return self.hit_with_columns(code, hit),
            Path::Words(ref fields) => return self.hit_with_words(program, fields, hit),
            Path::Stack => return self.hit_with_stack(program, hit),
            Path::UserStack => return self.hit_with_user_stack(program, hit),
            Path::Stacks => return self.hit_with_stacks(program, hit),
            _ => (),
        }
        match program.key {
            KeyReader::Number(ref number) => self.hit_with_number(program, number, hit),
            KeyReader::Parts => self.hit_with_buffer(program, hit),
            KeyReader::NumberFewRefs(ref number) => {
                self.hit_number_with_refs::<FEW_REFS>(program, number, targets, hit)
            }
            KeyReader::NumberRefs(ref number) => {
                self.hit_number_with_refs::<VARS_MAX>(program, number, targets, hit)
            }
            KeyReader::PartsRefs | KeyReader::GroupPartsRefs => {
                self.hit_buffer_with_refs(program, targets, hit)
            }
            KeyReader::JoinedNumbers { key, on } => {
                self.hit_number_joined(program, key, on, targets, hit)
            }
            KeyReader::Group(task) => self.hit_with_group(program, task, hit),
            KeyReader::GroupParts => self.hit_with_groups(program, hit),
            KeyReader::GroupRefs => {
                self.hold_groups(program, hit);
                self.hit_buffer_with_refs(program, targets, hit)
            }
            KeyReader::Unreachable => self.lose(hit, Loss::Unresolved),
        }
    }

    #[inline(always)]
    fn generation<'a>(&'a self, hit: &Hit<'a>) -> &'a Generation {
        self.map.read(hit.preempt())
    }

    fn lose(&self, hit: &Hit<'_>, loss: Loss) {
        self.generation(hit).lose(hit.preempt(), loss);
    }

    /// Counts a hit whose key is a number.
    #[inline(never)]
    fn hit_with_number(&self, program: &Program, number: &Value, hit: &Hit<'_>) {
        let key = program.read(number, hit, &[]);
        self.count(
            program,
            hit,
            &[],
            self.generation(hit).insert_word(hit.preempt(), key),
        );
    }

    /// Counts a hit whose key and values are plain fields of the record, with columns of any kind.
    #[inline(never)]
    fn hit_with_columns(&self, code: &Code, hit: &Hit<'_>) {
        if !self.hit_fields(Tag::Columns, code, hit)
            && !self.hit_fields(Tag::Distributions, code, hit)
        {
            self.hit_with_buffer(&code.program, hit);
        }
    }

    /// Counts a hit whose key is plain fields of the record.
    #[inline(never)]
    fn hit_with_words(&self, program: &Program, fields: &RecordFields, hit: &Hit<'_>) {
        match fields.insert(self.generation(hit), hit.record(), hit.preempt()) {
            Some(elt) => _ = self.count(program, hit, &[], elt),
            None => self.hit_with_buffer(program, hit),
        }
    }

    /// Counts a hit whose key is its stack.
    #[inline(never)]
    fn hit_with_stack(&self, program: &Program, hit: &Hit<'_>) {
        self.hit_with_only_stack(program, hit, &Content::Stack);
    }

    /// Counts a hit whose key is the stack of the program.
    #[inline(never)]
    fn hit_with_user_stack(&self, program: &Program, hit: &Hit<'_>) {
        if let Some(part) = program.parts.first() {
            self.hit_with_only_stack(program, hit, &part.content);
        }
    }

    #[inline(always)]
    fn hit_with_only_stack(&self, program: &Program, hit: &Hit<'_>, content: &Content) {
        let mut stack = Stack::new();
        content.read_stack(hit, &mut stack);
        let key = match stack.entries() {
            [] => &[0],
            entries => entries,
        };
        self.count(
            program,
            hit,
            &[],
            self.generation(hit).insert_words(hit.preempt(), key),
        );
    }

    /// Counts a hit whose key has stacks, and something else.
    #[inline(never)]
    fn hit_with_stacks(&self, program: &Program, hit: &Hit<'_>) {
        let Some(stacks) = &self.stacks else {
            return match program.groups.is_empty() {
                true => self.hit_with_buffer(program, hit),
                false => self.hit_with_groups(program, hit),
            };
        };
        match program.interned_used(hit) {
            used @ 0..=16 => self.hit_interned::<16>(program, hit, stacks, used),
            used @ 17..=64 => self.hit_interned::<64>(program, hit, stacks, used),
            used => {
                const LONGEST: usize = limits::KEY_SIZE_MAX as usize;
                self.hit_interned::<LONGEST>(program, hit, stacks, used)
            }
        }
    }

    #[inline(always)]
    fn hit_interned<const N: usize>(
        &self,
        program: &Program,
        hit: &Hit<'_>,
        stacks: &Stacks,
        used: usize,
    ) {
        let mut buffer = [0; N];
        let Some(key) = buffer.get_mut(..used) else {
            return;
        };
        let generation = self.generation(hit);
        let number = |content: &Content| stack_number(content, hit, stacks, generation);
        let key = match program.put_interned(key, hit, number) {
            true => key,
            // Not a key of the map, which lacks a place for the hit, too.
            false => &mut [],
        };
        if !program.groups.is_empty() && generation.lookup(key).is_none() {
            self.hold_groups_of_key(&program.interned, hit, key);
        }
        let elt = generation.insert(hit.preempt(), key);
        self.count(program, hit, &[], elt);
    }

    /// Counts a hit whose key is assembled in a buffer.
    #[inline(never)]
    fn hit_with_buffer(&self, program: &Program, hit: &Hit<'_>) {
        // Most keys are short, and zeroing a buffer for the longest would cost more than all the
        // rest.
        match program.key_used(hit) {
            used @ 0..=16 => self.hit_in_buffer::<16>(program, hit, used),
            used @ 17..=64 => self.hit_in_buffer::<64>(program, hit, used),
            used @ 65..=256 => self.hit_in_buffer::<256>(program, hit, used),
            used => self.hit_in_buffer::<{ limits::KEY_SIZE_MAX as usize }>(program, hit, used),
        }
    }

    #[inline(always)]
    fn hit_in_buffer<const N: usize>(&self, program: &Program, hit: &Hit<'_>, used: usize) {
        let mut buffer = [0; N];
        if let Some(key) = buffer.get_mut(..used) {
            program.put_key(key, hit);
            self.count(
                program,
                hit,
                &[],
                self.generation(hit).insert(hit.preempt(), key),
            );
        }
    }

    /// Updates side data and columns of the element. `None`: the hit was counted as a drop.
    #[inline(always)]
    fn count<'a>(
        &'a self,
        program: &Program,
        hit: &Hit<'_>,
        vals: &[u64],
        elt: Option<Elt<'a>>,
    ) -> Option<Elt<'a>> {
        let elt = elt?;
        if let Some(pid) = program.pid {
            comm::store(elt.side(), program, pid, hit);
        }
        match program.values[..] {
            [] => {
                elt.count(hit.preempt());
                return Some(elt);
            }
            [ref value] => {
                self.count_value(program, hit, vals, elt, value);
                return Some(elt);
            }
            _ => (),
        }
        elt.update(hit.preempt(), &program.values, |value| {
            let number = program.read_inline(&value.value, hit, vals);
            if let Some(distribution) = &value.distribution {
                count_slow(distribution, elt, hit.preempt(), number);
            }
            (number, value.columns)
        });
        Some(elt)
    }

    /// Updates the columns of the element with the only value, as for a latency. All in one
    /// function, since each call would add a tenth to its cost.
    #[inline(never)]
    fn count_value(
        &self,
        program: &Program,
        hit: &Hit<'_>,
        vals: &[u64],
        elt: Elt<'_>,
        value: &ColumnValue,
    ) {
        let number = program.read_pair_inline(&value.value, hit, vals);
        if let Some(distribution) = &value.distribution {
            distribution.count(elt.generation(), hit.preempt(), elt.number(), number);
        }
        elt.update_inline(hit.preempt(), &[number], |&number| (number, value.columns));
    }

    /// Reads the variables of other histograms by the key in `on(…)`.
    #[inline(never)]
    fn import_joined(
        &self,
        program: &Program,
        on: &LookupKey,
        hit: &Hit<'_>,
        vals: &mut [u64],
    ) -> bool {
        if let Some(number) = on.number {
            let key = recorded_number(&number, hit.record());
            return self.import(program, hit, vals, |generation| generation.lookup_word(key));
        }
        match on.size() {
            0..=64 => self.import_by_buffer::<64>(program, on, hit, vals),
            _ => {
                const LONGEST: usize = limits::KEY_SIZE_MAX as usize;
                self.import_by_buffer::<LONGEST>(program, on, hit, vals)
            }
        }
    }

    #[inline(never)]
    fn import_by_buffer<const N: usize>(
        &self,
        program: &Program,
        on: &LookupKey,
        hit: &Hit<'_>,
        vals: &mut [u64],
    ) -> bool {
        let mut buffer = [0; N];
        let key = on.put(program, &mut buffer, hit);
        self.import_by_key(program, hit, vals, key)
    }

    /// Reads the variables of other histograms by `key`. For a histogram with a shorter key, only
    /// the beginning of `key` counts.
    #[inline(always)]
    fn import_by_key(
        &self,
        program: &Program,
        hit: &Hit<'_>,
        vals: &mut [u64],
        key: &[u8],
    ) -> bool {
        self.import(program, hit, vals, |generation| {
            generation.lookup(key.get(..generation.key_size()).unwrap_or(key))
        })
    }

    /// Counts a hit of a trigger with variables, references or actions, whose key is assembled in a
    /// buffer.
    #[inline(never)]
    fn hit_buffer_with_refs(&self, program: &Program, targets: &Targets, hit: &Hit<'_>) {
        match program.key_used(hit) {
            used @ 0..=64 => self.hit_in_buffer_with_refs::<64>(program, targets, hit, used),
            used => {
                const LONGEST: usize = limits::KEY_SIZE_MAX as usize;
                self.hit_in_buffer_with_refs::<LONGEST>(program, targets, hit, used)
            }
        }
    }

    /// Counts a hit of a trigger with variables or actions, and at most `N` references, whose key
    /// is a number of the record.
    #[inline(never)]
    fn hit_number_with_refs<const N: usize>(
        &self,
        program: &Program,
        number: &Number,
        targets: &Targets,
        hit: &Hit<'_>,
    ) {
        let key = recorded_number(number, hit.record());
        self.count_number_with_refs::<N>(program, key, key, targets, hit);
    }

    /// Counts a hit whose references, at most [`FEW_REFS`], are looked up by a number of the record
    /// other than its key.
    #[inline(never)]
    fn hit_number_joined(
        &self,
        program: &Program,
        key: Number,
        on: Number,
        targets: &Targets,
        hit: &Hit<'_>,
    ) {
        let (key, on) = (
            recorded_number(&key, hit.record()),
            recorded_number(&on, hit.record()),
        );
        self.count_number_with_refs::<FEW_REFS>(program, key, on, targets, hit);
    }

    #[inline(always)]
    fn count_number_with_refs<const N: usize>(
        &self,
        program: &Program,
        key: u64,
        on: u64,
        targets: &Targets,
        hit: &Hit<'_>,
    ) {
        let mut vals = [0; N];
        if !self.import(program, hit, &mut vals, |generation| {
            generation.lookup_word(on)
        }) {
            return;
        }
        let elt = self.generation(hit).insert_word(hit.preempt(), key);
        if let Some(elt) = self.count(program, hit, &vals, elt) {
            self.store(program, hit, &mut vals, elt);
            if !program.actions.is_empty() {
                self.act(program, targets, hit, &mut vals, elt, &key.to_ne_bytes());
            }
        }
    }

    #[inline(never)]
    fn hit_in_buffer_with_refs<const N: usize>(
        &self,
        program: &Program,
        targets: &Targets,
        hit: &Hit<'_>,
        used: usize,
    ) {
        let mut vals = [0; VARS_MAX];
        let mut buffer = [0; N];
        let Some(key) = buffer.get_mut(..used) else {
            return;
        };
        // Many hits lack a start: the key is made only after it was found.
        let found = match &program.on {
            None => {
                program.put_key(key, hit);
                self.import_by_key(program, hit, &mut vals, key)
            }
            Some(on) => self.import_joined(program, on, hit, &mut vals),
        };
        if !found {
            return;
        }
        if program.on.is_some() {
            program.put_key(key, hit);
        }
        let elt = match program.key {
            KeyReader::GroupPartsRefs => self.insert_with_groups(program, hit, key),
            _ => self.generation(hit).insert(hit.preempt(), key),
        };
        if let Some(elt) = self.count(program, hit, &vals, elt) {
            self.store(program, hit, &mut vals, elt);
            self.act(program, targets, hit, &mut vals, elt, key);
        }
    }
}

/// The number of the stack that a content is: see [`Stacks::number`].
#[inline(never)]
fn stack_number(
    content: &Content,
    hit: &Hit<'_>,
    stacks: &Stacks,
    keys: &Generation,
) -> Option<u64> {
    if let Content::LongUserStack(most) = *content {
        return long_stack_number(most, hit, stacks, keys);
    }
    let mut stack = Stack::new();
    content.read_stack(hit, &mut stack);
    stacks.number(hit.preempt(), keys, stack.entries())
}

/// The number of the program's stack, of at most `most` words: see [`Stacks::number`].
#[inline(never)]
fn long_stack_number(most: u32, hit: &Hit<'_>, stacks: &Stacks, keys: &Generation) -> Option<u64> {
    match long_stack(hit, most) {
        Some(mut stack) => stacks.number_of_long(hit.preempt(), keys, stack.words()),
        None => stacks.number_of_long(hit.preempt(), keys, &mut { NESTED }),
    }
}

/// Out-of-line [`DistributionCode::count`], for callers that do much else.
#[inline(never)]
fn count_slow(distribution: &DistributionCode, elt: Elt<'_>, preempt: PreemptOff<'_>, value: u64) {
    distribution.count(elt.generation(), preempt, elt.number(), value);
}

/// Writes the content of a variable or a field of a synthetic event to `to`, in up to `words`
/// words, padded with zeros. Returns false if it is lost.
#[inline(never)]
fn put_wide(
    content: Content,
    program: &Program,
    hit: &Hit<'_>,
    vals: &[u64],
    words: usize,
    to: &mut Wide,
) -> bool {
    content.read(program, hit, vals, &mut WidePlace::new(to, words))
}
