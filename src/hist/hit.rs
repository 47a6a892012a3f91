// SPDX-License-Identifier: GPL-2.0

//! The executor: counts a hit in a histogram.
//!
//! In this order: the key is read; the variables of other histograms that it needs are read; the map finds the element
//! of the key, or inserts it; side data of the element is stored; its columns are updated; its variables are set; the
//! actions are done. If a variable of another histogram is not set, the hit counts for nothing but
//! [`Loss::Unresolved`].

use core::cmp::min;
use core::iter;

use kernel::sync::atomic::Relaxed;

use super::action::CondSnapshot;
use super::action::Target;
use super::action::Targets;
use super::action::Wide;
use super::comm;
use super::limits;
use super::program::recorded_number;
use super::program::Cell;
use super::program::CompiledAction;
use super::program::Content;
use super::program::Effect;
use super::program::Import;
use super::program::KeyShape;
use super::program::Program;
use super::program::Store;
use super::program::Track;
use super::program::When;
use super::program::FEW_REFS;
use super::program::WIDE_WORDS;
use super::Histogram;
use super::Plan;
use crate::event::hit::STACK_DEPTH;
use crate::event::pointed::read_text;
use crate::event::Hit;
use crate::event::Record;
use crate::map::text_to_words;
use crate::map::Elt;
use crate::map::Loss;
use crate::map::Map;
use crate::map::Read;
use crate::map::Replace;
use crate::map::WideCell;
use crate::text::until_nul;
use crate::trigger::VARS_MAX;

impl Histogram {
    /// Counts `hit`. If there is no place for a new entry, that is counted as a drop.
    ///
    /// `plan` is that of the event's trigger: it [matches](Plan::matches) the histogram's own, but its fields may
    /// be at other offsets of the record. `targets` are what it was compiled with.
    ///
    /// Any context, NMI included, with preemption off. Neither allocates nor waits.
    #[inline]
    pub fn hit(&self, plan: &Plan, targets: &Targets, hit: &Hit<'_>) {
        let program = &plan.program;
        match program.shape {
            KeyShape::Record if self.hit_fast(plan, hit.record, hit.cpu) => (),
            KeyShape::Number => self.hit_with_number(program, hit),
            KeyShape::RecordedFewRefs => {
                self.hit_number_with_variables::<FEW_REFS>(program, targets, hit)
            }
            KeyShape::RecordedVars => {
                self.hit_number_with_variables::<VARS_MAX>(program, targets, hit)
            }
            KeyShape::PartsVars => self.hit_with_variables(program, targets, hit),
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
        let key = program.read(&program.number, hit, &[]);
        self.count(program, hit, &[], self.map.insert_word(hit.cpu, key));
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
            self.count(program, hit, &[], self.map.insert(hit.cpu, key));
        }
    }

    /// Updates side data and columns of the element. Without one, the hit was counted as a drop.
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
        elt.update(hit.cpu, &program.values, |value| {
            program.read(value, hit, vals)
        });
        Some(elt)
    }

    /// Counts a hit of a trigger with variables, references or actions, whose key is assembled in a buffer.
    #[inline(never)]
    fn hit_with_variables(&self, program: &Program, targets: &Targets, hit: &Hit<'_>) {
        if program.unreachable {
            return self.map.lose(hit.cpu, Loss::Unresolved);
        }
        match program.key_used(hit) {
            used @ 0..=64 => self.hit_buffer_with_variables::<64>(program, targets, hit, used),
            used => {
                const LONGEST: usize = limits::KEY_SIZE as usize;
                self.hit_buffer_with_variables::<LONGEST>(program, targets, hit, used)
            }
        }
    }

    /// The same, if the key is a number of the record. There are at most `N` references.
    #[inline(never)]
    fn hit_number_with_variables<const N: usize>(
        &self,
        program: &Program,
        targets: &Targets,
        hit: &Hit<'_>,
    ) {
        let mut vals = [0; N];
        let key = recorded_number(program.recorded, hit);
        if !self.import(program, hit, &mut vals, |map| map.lookup_word(key)) {
            return;
        }
        let elt = self.map.insert_word(hit.cpu, key);
        if let Some(elt) = self.count(program, hit, &vals, elt) {
            self.store(program, hit, &mut vals, elt);
            if !program.actions.is_empty() {
                self.act(program, targets, hit, &mut vals, elt, &key.to_ne_bytes());
            }
        }
    }

    #[inline(never)]
    fn hit_buffer_with_variables<const N: usize>(
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
        program.put_key(key, hit);
        // A shorter key of another histogram is what this one begins with.
        if !self.import(program, hit, &mut vals, |map| {
            map.lookup(key.get(..map.key_size()).unwrap_or(key))
        }) {
            return;
        }
        let elt = self.map.insert(hit.cpu, key);
        if let Some(elt) = self.count(program, hit, &vals, elt) {
            self.store(program, hit, &mut vals, elt);
            self.act(program, targets, hit, &mut vals, elt, key);
        }
    }

    /// Reads the variables of other histograms to `vals`, by the slots of their references: numbers, or the index of
    /// the element that holds a string or stack (`resolve_var_refs()`). False: one is not set, which is counted. What
    /// was read once before is consumed then, as in C.
    #[inline(always)]
    fn import(
        &self,
        program: &Program,
        hit: &Hit<'_>,
        vals: &mut [u64],
        lookup: impl for<'b> Fn(&'b Map) -> Option<Elt<'b>>,
    ) -> bool {
        // As most refer to one variable: see `store()`.
        let Some((first, others)) = program.imports.split_first() else {
            return true;
        };
        let elt = lookup(&first.home.map);
        let mut found = first.read(elt, vals).is_some();
        if found && !others.is_empty() {
            found = read_others(others, elt, vals, lookup);
        }
        if !found {
            self.map.lose(hit.cpu, Loss::Unresolved);
        }
        found
    }

    /// Sets the variables of the element. Numbers that actions refer to are stored in `vals`, too.
    #[inline(always)]
    fn store(&self, program: &Program, hit: &Hit<'_>, vals: &mut [u64], elt: Elt<'_>) {
        // Most set one variable: for that, what the compiler prepares for a loop is not worth it.
        if let [first, others @ ..] = &program.stores[..] {
            self.store_number(program, hit, vals, elt, first);
            if !others.is_empty() {
                self.store_numbers(program, hit, vals, elt, others);
            }
        }
        if !program.wide_stores.is_empty() {
            self.store_wide(program, hit, vals, elt);
        }
    }

    #[inline(never)]
    fn store_numbers(
        &self,
        program: &Program,
        hit: &Hit<'_>,
        vals: &mut [u64],
        elt: Elt<'_>,
        stores: &[Store],
    ) {
        for store in stores {
            self.store_number(program, hit, vals, elt, store);
        }
    }

    #[inline(always)]
    fn store_number(
        &self,
        program: &Program,
        hit: &Hit<'_>,
        vals: &mut [u64],
        elt: Elt<'_>,
        store: &Store,
    ) {
        let value = program.read_inline(&store.value, hit, vals);
        if let Some(place) = vals.get_mut(store.slot) {
            *place = value;
        }
        if !elt.set_var(store.var, value) {
            self.map.lose(hit.cpu, Loss::Missed);
        }
    }

    #[inline(never)]
    fn store_wide(&self, program: &Program, hit: &Hit<'_>, vals: &[u64], elt: Elt<'_>) {
        let mut words = [0; WIDE_WORDS];
        for store in &program.wide_stores {
            let done = put_wide(store.content, program, hit, vals, store.words, &mut words)
                && elt
                    .wide(store.cell)
                    .is_some_and(|cell| cell.write(words.iter().copied()));
            if !done {
                self.map.lose(hit.cpu, Loss::Missed);
            }
        }
    }

    /// Does the actions (`hist_trigger_actions()`).
    #[inline(always)]
    fn act(
        &self,
        program: &Program,
        targets: &Targets,
        hit: &Hit<'_>,
        vals: &mut [u64],
        elt: Elt<'_>,
        key: &[u8],
    ) {
        for (action, target) in program.actions.iter().zip(&targets.0) {
            if let When::Tracked(track) = &action.when {
                // Most hits are no new maximum.
                let change = track.change(vals);
                let cell = elt.wide(track.cell);
                if cell.is_some_and(|cell| cell.keeps(|last| change.is(last))) {
                    continue;
                }
            }
            if !self.perform((action, target), program, hit, vals, elt, key) {
                self.map.lose(hit.cpu, Loss::Missed);
            }
        }
    }

    /// Does an action, if what it waits for happens. False: it is lost.
    #[inline(never)]
    fn perform(
        &self,
        (action, target): (&CompiledAction, &Target),
        program: &Program,
        hit: &Hit<'_>,
        vals: &mut [u64],
        elt: Elt<'_>,
        key: &[u8],
    ) -> bool {
        if let When::Tracked(track) = &action.when {
            let Some(cell) = elt.wide(track.cell) else {
                return false;
            };
            let change = track.change(vals);
            let saved: &[_] = match action.effect {
                Effect::Save => &program.saved,
                _ => &[],
            };
            match change.save(cell, program, hit, vals, saved) {
                Replace::Done => (),
                Replace::Kept => return true,
                Replace::Lost => return false,
            }
            if let Target::CondSnapshot(snapshot) = target {
                self.take_snapshot(&**snapshot, hit, change, elt, key);
            }
        }
        match (&action.effect, target) {
            (Effect::Trace { idx, fields, wide }, Target::SynthEvent(event)) => {
                for (slot, value) in fields {
                    if let Some(place) = vals.get_mut(*slot) {
                        *place = program.read_inline(value, hit, &[]);
                    }
                }
                let vals = &*vals;
                event.emit(hit, vals, idx, &mut |val, to| {
                    trace_wide(program, hit, vals, wide, val, to)
                })
            }
            _ => true,
        }
    }

    /// Takes a snapshot if the change is one beside those of all elements as well, and stores for which key
    /// (`cond_snapshot_update()`).
    #[inline(never)]
    fn take_snapshot(
        &self,
        snapshot: &dyn CondSnapshot,
        hit: &Hit<'_>,
        change: Change,
        elt: Elt<'_>,
        key: &[u8],
    ) {
        let Some(taken) = self.taken() else {
            return;
        };
        snapshot.take(hit, &mut || {
            let key = text_to_words(key, self.map.key_size() / size_of::<u64>());
            let comm = elt.side().iter().map(|word| word.load(Relaxed));
            let words = Iterator::chain(iter::once(change.value), Iterator::chain(key, comm));
            taken.replace_if(|last| change.is(last), words) == Replace::Done
        });
    }
}

/// Reads the variables of `imports`, which follow one that was read of `elt`.
#[inline(never)]
fn read_others<'a>(
    imports: &'a [Import],
    mut elt: Option<Elt<'a>>,
    vals: &mut [u64],
    lookup: impl Fn(&'a Map) -> Option<Elt<'a>>,
) -> bool {
    imports.iter().all(|import| {
        if !import.again {
            elt = lookup(&import.home.map);
        }
        import.read(elt, vals).is_some()
    })
}

impl Import {
    /// Reads the variable of `elt` to its place in `vals`. `None`: it is not set.
    #[inline(always)]
    fn read(&self, elt: Option<Elt<'_>>, vals: &mut [u64]) -> Option<()> {
        let elt = elt?;
        let value = match self.cell {
            Cell::Once(number) => elt.take_var(number)?,
            Cell::Number(number) => elt.var(number)?,
            Cell::Wide(number) => match elt.wide(number)?.read(&mut []) {
                Read::Unset => return None,
                Read::Done | Read::Busy => elt.index().into(),
            },
        };
        *vals.get_mut(self.slot)? = value;
        Some(())
    }
}

impl Track {
    /// What it waits for, with these values of references.
    #[inline(always)]
    fn change(&self, vals: &[u64]) -> Change {
        Change {
            value: vals.get(self.slot).copied().unwrap_or(0),
            larger: self.larger,
        }
    }
}

/// What `onmax()` or `onchange()` waits for.
#[derive(Clone, Copy)]
struct Change {
    value: u64,
    /// Whether it has to be larger than the last value.
    larger: bool,
}

impl Change {
    /// Whether it happens if this was the last value. At first that is 0.
    fn is(self, last: Option<u64>) -> bool {
        let last = last.unwrap_or(0);
        match self.larger {
            true => self.value > last,
            false => self.value != last,
        }
    }

    /// Stores the value, and what is saved with it, if it happens.
    #[inline(never)]
    fn save(
        self,
        cell: WideCell<'_>,
        program: &Program,
        hit: &Hit<'_>,
        vals: &[u64],
        saved: &[(Content, usize)],
    ) -> Replace {
        let mut saved = saved.iter();
        // One after the other, as there is no room on the stack for all of them.
        let mut current = [0; WIDE_WORDS];
        current[0] = self.value;
        let mut words = 0..1;
        let words = iter::from_fn(|| {
            while words.is_empty() {
                let &(content, n) = saved.next()?;
                if !put_wide(content, program, hit, vals, n, &mut current) {
                    current.fill(0);
                }
                words = 0..n;
            }
            current.get(words.next()?).copied()
        });
        cell.replace_if(|last| self.is(last), words)
    }
}

/// Writes value `val` of a synthetic event, which is one of `wide`, to `to`. False: it is lost.
#[inline(never)]
fn trace_wide(
    program: &Program,
    hit: &Hit<'_>,
    vals: &[u64],
    wide: &[(usize, Content)],
    val: usize,
    to: &mut Wide,
) -> bool {
    let content = wide.iter().find(|(number, _)| *number == val);
    content.is_some_and(|(_, content)| put_wide(*content, program, hit, vals, WIDE_WORDS, to))
}

/// Writes a number, string or stack to `to`, with zeros behind it: of a string the characters with at least one NUL, in
/// up to `words` words; of a stack the number of return addresses, and those. False: it is being replaced.
///
/// Not by way of the stack of the kernel, which synthetic events nest on.
#[inline(never)]
fn put_wide(
    content: Content,
    program: &Program,
    hit: &Hit<'_>,
    vals: &[u64],
    words: usize,
    to: &mut Wide,
) -> bool {
    let size = min(words, WIDE_WORDS) * size_of::<u64>();
    to.fill(0);
    match content {
        Content::Number(ref value) => to[0] = program.read(value, hit, vals),
        Content::Array { offset, len, .. } => {
            let text = hit.record.bytes(offset as usize, len as usize);
            put_text(text, min(len as usize, size), to);
        }
        Content::DataLoc(offset) => put_text(hit.record.data_loc(offset), size, to),
        Content::RelLoc(offset) => put_text(hit.record.rel_loc(offset), size, to),
        Content::Pointed(slot) => match vals.get(slot) {
            Some(&address) => put_pointed(hit, address, to),
            None => return false,
        },
        Content::Comm => put_text(&comm::current(hit), size, to),
        Content::Execname(ref pid) => match program.read(pid, hit, vals) {
            0 => put_text(comm::IDLE, size, to),
            _ => put_text(&comm::current(hit), size, to),
        },
        Content::Stack => {
            let [count, entries @ ..] = to;
            *count = min(hit.context.stack(entries), entries.len()) as u64;
        }
        Content::StoredStack(offset) => {
            let [count, entries @ ..] = to;
            let bytes = hit.record.stack(offset, entries.len());
            for (to, word) in entries.iter_mut().zip(text_to_words(bytes, STACK_DEPTH)) {
                *to = word;
            }
            *count = (bytes.len() / size_of::<u64>()) as u64;
        }
        Content::Other(slot) => {
            let import = program.imports.iter().find(|import| import.slot == slot);
            let cell = import.zip(vals.get(slot)).and_then(|(import, index)| {
                let Cell::Wide(number) = import.cell else {
                    return None;
                };
                import.home.map.wide_at(*index as u32, number)
            });
            return cell.is_some_and(|cell| cell.read(to) == Read::Done);
        }
    }
    true
}

/// Writes a text to `to`, which is zero: what fits into `size` bytes with a NUL.
fn put_text(text: &[u8], size: usize, to: &mut Wide) {
    let text = until_nul(text);
    let text = &text[..min(text.len(), size.saturating_sub(1))];
    for (to, word) in to.iter_mut().zip(text_to_words(text, WIDE_WORDS)) {
        *to = word;
    }
}

/// Writes the characters at `address`. As in C those of `(fault)`, if they cannot be read.
#[inline(never)]
fn put_pointed(hit: &Hit<'_>, address: u64, to: &mut Wide) {
    // Room for all characters but the NUL.
    let mut text = [0; limits::STRING as usize - 1];
    let text = match read_text(&mut text, address as usize, |to, address| {
        hit.context.read(to, address)
    }) {
        true => &text[..],
        false => b"(fault)",
    };
    put_text(text, limits::STRING as usize, to);
}
