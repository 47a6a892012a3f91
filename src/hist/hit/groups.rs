// SPDX-License-Identifier: GPL-2.0

//! Control groups in keys, variables and saved fields: a hit that may store the id of a group for
//! the first time keeps the group before, so that readers can show its path.
//!
//! A key that the map has was stored by another hit, which has kept its groups. A variable or a
//! saved field stores ids at any hit.

use crate::{
    event::{
        GroupTask,
        Hit,
        Number, //
    },
    hist::{
        program::{
            key::KeyPart,
            number::{
                group_id,
                recorded_number, //
            },
            Program, //
        },
        Histogram, //
    },
    limits,
    map::Elt, //
};

impl Histogram {
    /// Counts a hit whose key is the id of a control group.
    #[inline(never)]
    pub(super) fn hit_with_group(&self, program: &Program, task: Option<Number>, hit: &Hit<'_>) {
        let generation = self.generation(hit);
        let key = group_id(task, hit);
        match generation.lookup_word_first_slot(key) {
            Some(elt) => self.count(program, hit, &[], Some(elt)),
            None => self.hit_with_group_slow(program, task, key, hit),
        };
    }

    /// Counts a hit with this key, which is new, or not in the first slot of its path.
    #[inline(never)]
    fn hit_with_group_slow<'a>(
        &'a self,
        program: &Program,
        task: Option<Number>,
        mut key: u64,
        hit: &Hit<'a>,
    ) -> Option<Elt<'a>> {
        let generation = self.generation(hit);
        if generation.lookup_word(key).is_none() {
            key = self.hold_group(task, hit).unwrap_or(key);
        }
        let elt = generation.insert_word(hit.preempt(), key);
        self.count(program, hit, &[], elt)
    }

    /// Counts a hit with ids of control groups in its key.
    #[inline(never)]
    pub(super) fn hit_with_groups(&self, program: &Program, hit: &Hit<'_>) {
        match program.key_used(hit) {
            used @ 0..=64 => self.hit_in_buffer_with_groups::<64>(program, hit, used),
            used => {
                const LONGEST: usize = limits::KEY_SIZE_MAX as usize;
                self.hit_in_buffer_with_groups::<LONGEST>(program, hit, used)
            }
        }
    }

    #[inline(always)]
    fn hit_in_buffer_with_groups<const N: usize>(
        &self,
        program: &Program,
        hit: &Hit<'_>,
        used: usize,
    ) {
        let mut buffer = [0; N];
        let Some(key) = buffer.get_mut(..used) else {
            return;
        };
        program.put_key(key, hit);
        let elt = self.insert_with_groups(program, hit, key);
        self.count(program, hit, &[], elt);
    }

    /// Finds the element of a key with ids of control groups, which are kept if the key is new, or
    /// inserts it.
    #[inline(always)]
    pub(super) fn insert_with_groups<'a>(
        &'a self,
        program: &Program,
        hit: &Hit<'a>,
        key: &mut [u8],
    ) -> Option<Elt<'a>> {
        let generation = self.generation(hit);
        let first = match words(key) {
            (Some([word]), _) => generation.lookup_word_first_slot(word),
            (_, Some(pair)) => generation.lookup_array_first_slot(pair),
            _ => None,
        };
        if first.is_some() {
            return first;
        }
        if generation.lookup(key).is_none() {
            self.hold_groups_of_key(&program.parts, hit, key);
        }
        generation.insert(hit.preempt(), key)
    }

    /// Keeps the groups in `key`, which has these parts, and puts their ids there: a task may have
    /// moved since the key was made.
    #[inline(never)]
    pub(super) fn hold_groups_of_key(&self, parts: &[KeyPart], hit: &Hit<'_>, key: &mut [u8]) {
        for &KeyPart { content, at, len } in parts {
            let Some(task) = content.group() else {
                continue;
            };
            if let (Some(id), Some(place)) = (self.hold_group(task, hit), key.get_mut(at..at + len))
            {
                place.copy_from_slice(&id.to_ne_bytes());
            }
        }
    }

    /// Keeps all groups whose ids a hit may store.
    #[inline(never)]
    pub(super) fn hold_groups(&self, program: &Program, hit: &Hit<'_>) {
        for &task in &program.groups {
            self.hold_group(task, hit);
        }
    }

    /// Keeps the group of the task with the process id in the record, or of the running one.
    /// Returns its id; `None`: the task is gone, or an idle one.
    fn hold_group(&self, task: Option<Number>, hit: &Hit<'_>) -> Option<u64> {
        let task: GroupTask = task.map(|pid| recorded_number(&pid, hit.record()) as u32);
        let group = hit.context().cgroup_node(hit.preempt(), task)?;
        if let Some(groups) = &self.groups {
            groups.hold(group);
        }
        Some(group.id())
    }
}

/// Returns the words of a key that has one, or two, such as victim and culprit: most of these are
/// in the first slot of their path.
#[inline(always)]
fn words(key: &[u8]) -> (Option<[u64; 1]>, Option<[u64; 2]>) {
    let word = |at: usize| key.get(at..at + 8)?.try_into().ok().map(u64::from_ne_bytes);
    match key.len() {
        8 => (word(0).map(|word| [word]), None),
        16 => (
            None,
            word(0).zip(word(8)).map(|(first, last)| [first, last]),
        ),
        _ => (None, None),
    }
}
