// SPDX-License-Identifier: GPL-2.0

//! The executor: counts a hit in a histogram.
//!
//! In this order: the key is read; the variables of other histograms that it needs are read; the map finds the element
//! of the key, or inserts it; side data of the element is stored; its columns are updated; its variables are set; the
//! actions are done. If a variable of another histogram is not set, the hit counts for nothing but
//! [`Loss::Unresolved`].

use core::iter;
use core::ptr;

use kernel::sync::atomic::Relaxed;

use super::action::CondSnapshot;
use super::action::SynthEvent;
use super::comm;
use super::limits;
use super::program::Cell;
use super::program::Content;
use super::program::Effect;
use super::program::KeyShape;
use super::program::Program;
use super::program::When;
use super::program::FEW_VARS;
use super::program::WIDE_WORDS;
use super::Histogram;
use super::Plan;
use crate::event::hit::COMM_LEN;
use crate::event::hit::STACK_DEPTH;
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
    /// be at other offsets of the record.
    ///
    /// Any context, NMI included, with preemption off. Neither allocates nor waits.
    #[inline]
    pub fn hit(&self, plan: &Plan, hit: &Hit<'_>) {
        let program = &plan.program;
        match program.shape {
            KeyShape::Record if self.hit_fast(plan, hit.record, hit.cpu) => (),
            KeyShape::Number => self.hit_with_number(program, hit),
            KeyShape::NumberFewVars => self.hit_number_in_frame::<FEW_VARS>(program, hit),
            KeyShape::NumberVars => self.hit_number_in_frame::<FRAME_MAX>(program, hit),
            KeyShape::PartsVars => self.hit_with_variables(program, hit),
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
        vars: &[u64],
        elt: Option<Elt<'a>>,
    ) -> Option<Elt<'a>> {
        let elt = elt?;
        if let Some(pid) = program.pid {
            comm::store(elt.side(), program, pid, hit);
        }
        elt.update(hit.cpu, &program.values, |value| {
            program.read(value, hit, vars)
        });
        Some(elt)
    }

    /// Counts a hit of a trigger with variables, references or actions, whose key is assembled in a buffer.
    #[inline(never)]
    fn hit_with_variables(&self, program: &Program, hit: &Hit<'_>) {
        match program.key_used(hit) {
            used @ 0..=64 => self.hit_in_frame::<64>(program, hit, used),
            used => self.hit_in_frame::<{ limits::KEY_SIZE as usize }>(program, hit, used),
        }
    }

    /// The same, if the key is a number. There are at most `N` references and variables.
    #[inline(never)]
    fn hit_number_in_frame<const N: usize>(&self, program: &Program, hit: &Hit<'_>) {
        let mut vars = [0; N];
        let key = program.read_inline(&program.number, hit, &[]);
        if !self.import(program, hit, &mut vars, |map| map.lookup_word(key)) {
            return;
        }
        let elt = self.map.insert_word(hit.cpu, key);
        if let Some(elt) = self.count(program, hit, &vars, elt) {
            self.store(program, hit, &mut vars, elt);
            if !program.deeds.is_empty() {
                self.act(program, hit, &vars, elt, &key.to_ne_bytes());
            }
        }
    }

    #[inline(never)]
    fn hit_in_frame<const N: usize>(&self, program: &Program, hit: &Hit<'_>, used: usize) {
        let mut vars = [0; FRAME_MAX];
        let mut buffer = [0; N];
        let Some(key) = buffer.get_mut(..used) else {
            return;
        };
        program.put_key(key, hit);
        // A shorter key of another histogram is what this one begins with.
        if !self.import(program, hit, &mut vars, |map| {
            map.lookup(key.get(..map.key_size()).unwrap_or(key))
        }) {
            return;
        }
        let elt = self.map.insert(hit.cpu, key);
        if let Some(elt) = self.count(program, hit, &vars, elt) {
            self.store(program, hit, &mut vars, elt);
            if !program.deeds.is_empty() {
                self.act(program, hit, &vars, elt, key);
            }
        }
    }

    /// Reads the variables of other histograms to `vars`, by the slots of their references: numbers, or the index of the
    /// element that holds a string or stack (`resolve_var_refs()`). False: one is not set, which is counted. What was
    /// read once before is consumed then, as in C.
    #[inline(always)]
    fn import(
        &self,
        program: &Program,
        hit: &Hit<'_>,
        vars: &mut [u64],
        lookup: impl for<'b> Fn(&'b Map) -> Option<Elt<'b>>,
    ) -> bool {
        let mut last: Option<(&Self, Elt<'_>)> = None;
        for import in &program.imports {
            let home = &*import.home;
            let found = match last {
                Some((of, elt)) if ptr::eq(of, home) => Some(elt),
                _ if program.unreachable => None,
                _ => lookup(&home.map),
            };
            let value = found.and_then(|elt| match import.cell {
                Cell::Number(number) if import.once => elt.take_var(number),
                Cell::Number(number) => elt.var(number),
                Cell::Wide { number, .. } => match elt.wide(number)?.read(&mut []) {
                    Read::Unset => None,
                    Read::Done | Read::Busy => Some(elt.index().into()),
                },
            });
            let (Some(value), Some(place)) = (value, vars.get_mut(import.slot)) else {
                self.map.lose(hit.cpu, Loss::Unresolved);
                return false;
            };
            *place = value;
            last = found.map(|elt| (home, elt));
        }
        true
    }

    /// Sets the variables of the element, and stores the numbers among them in `vars`, after the references.
    #[inline(always)]
    fn store(&self, program: &Program, hit: &Hit<'_>, vars: &mut [u64], elt: Elt<'_>) {
        for store in &program.stores {
            let done = match (&store.cell, &store.content) {
                (&Cell::Number(number), Content::Number(value)) => {
                    let value = program.read_inline(value, hit, vars);
                    if let Some(place) = vars.get_mut(program.n_refs + number) {
                        *place = value;
                    }
                    elt.set_var(number, value)
                }
                (&Cell::Wide { number, words }, &content) => {
                    store_wide(program, hit, vars, content, words, elt.wide(number))
                }
                (Cell::Number(_), _) => false,
            };
            if !done {
                self.map.lose(hit.cpu, Loss::Missed);
            }
        }
    }

    /// Does the actions (`hist_trigger_actions()`).
    #[inline(never)]
    fn act(&self, program: &Program, hit: &Hit<'_>, vars: &[u64], elt: Elt<'_>, key: &[u8]) {
        for deed in &program.deeds {
            let done = match deed.when {
                When::Always => true,
                When::Tracked {
                    value,
                    larger,
                    cell,
                } => {
                    let value = program.read(&value, hit, vars);
                    let change = Change { value, larger };
                    let saved: &[_] = match deed.effect {
                        Effect::Save => &program.saved,
                        _ => &[],
                    };
                    let cell = elt.wide(cell);
                    if cell.is_some_and(|cell| cell.keeps(|last| change.is(last))) {
                        continue;
                    }
                    match cell.map(|cell| change.track(cell, program, hit, vars, saved)) {
                        Some(Replace::Done) => match &deed.effect {
                            Effect::Snapshot(snapshot) => {
                                self.take_snapshot(&**snapshot, hit, change, elt, key);
                                continue;
                            }
                            _ => true,
                        },
                        Some(Replace::Kept) => continue,
                        Some(Replace::Lost) | None => false,
                    }
                }
            };
            let done = done
                && match &deed.effect {
                    Effect::Trace {
                        event,
                        params,
                        wide,
                    } => trace(program, hit, vars, &**event, params, *wide),
                    Effect::Save | Effect::Snapshot(_) => true,
                };
            if !done {
                self.map.lose(hit.cpu, Loss::Missed);
            }
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

/// Most numbers of variables that a hit needs: those of references, and of the histogram's own variables.
const FRAME_MAX: usize = 2 * VARS_MAX;

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
    #[inline(always)]
    fn track(
        self,
        cell: WideCell<'_>,
        program: &Program,
        hit: &Hit<'_>,
        vars: &[u64],
        saved: &[(Content, usize)],
    ) -> Replace {
        match saved {
            [] => cell.replace_if(|last| self.is(last), iter::once(self.value)),
            _ => self.save(cell, program, hit, vars, saved),
        }
    }

    #[inline(never)]
    fn save(
        self,
        cell: WideCell<'_>,
        program: &Program,
        hit: &Hit<'_>,
        vars: &[u64],
        saved: &[(Content, usize)],
    ) -> Replace {
        let mut saved = saved.iter();
        let mut first = Some(self.value);
        let mut current = None;
        let mut left = 0;
        // One word after the other, as there is no room on the stack for all of them.
        let words = iter::from_fn(|| {
            if let Some(value) = first.take() {
                return Some(value);
            }
            while left == 0 {
                let &(content, words) = saved.next()?;
                current = Words::of(content, program, hit, vars, words);
                left = words;
            }
            left -= 1;
            Some(current.as_mut().and_then(Words::next).unwrap_or(0))
        });
        cell.replace_if(|last| self.is(last), words)
    }
}

/// Stores a string or a stack in a variable. False: it is lost.
#[inline(never)]
fn store_wide(
    program: &Program,
    hit: &Hit<'_>,
    vars: &[u64],
    content: Content,
    words: usize,
    cell: Option<WideCell<'_>>,
) -> bool {
    let content = Words::of(content, program, hit, vars, words);
    match (cell, content) {
        (Some(cell), Some(content)) => cell.write(content),
        _ => false,
    }
}

/// Makes a synthetic event happen. `wide` is how many of `params` are strings or stacks. False: it is lost.
#[inline(never)]
fn trace(
    program: &Program,
    hit: &Hit<'_>,
    vars: &[u64],
    event: &dyn SynthEvent,
    params: &[Content],
    wide: usize,
) -> bool {
    !event.listened()
        || event.emit(hit, wide, &mut |vals, places| {
            let mut places = places.iter_mut();
            for (val, &content) in vals.iter_mut().zip(params) {
                if let Content::Number(value) = content {
                    *val = program.read(&value, hit, vars);
                    continue;
                }
                let words = Words::of(content, program, hit, vars, WIDE_WORDS);
                let (Some(words), Some(place)) = (words, places.next()) else {
                    return false;
                };
                place
                    .iter_mut()
                    .zip(words)
                    .for_each(|(to, word)| *to = word);
            }
            true
        })
}

/// A number, string or stack, word by word: of a string the characters with at least one NUL; of a stack the number of
/// return addresses, and those.
struct Words<'a> {
    source: Source<'a>,
    at: usize,
}

#[expect(clippy::large_enum_variant, reason = "a hit allocates nothing")]
enum Source<'a> {
    Number(u64),
    Text(&'a [u8]),
    Comm([u8; COMM_LEN]),
    Words([u64; WIDE_WORDS]),
}

impl<'a> Words<'a> {
    /// What `content` is, in at most `words` words. `None`: it is being replaced.
    #[inline(never)]
    fn of(
        content: Content,
        program: &Program,
        hit: &Hit<'a>,
        vars: &[u64],
        words: usize,
    ) -> Option<Self> {
        let text = |bytes: &'a [u8], size: usize| {
            let size = size.min(words * size_of::<u64>());
            let text = until_nul(bytes);
            Source::Text(&text[..text.len().min(size - 1)])
        };
        let stack = |entries: &[u64]| {
            let mut words = [0; WIDE_WORDS];
            let (count, places) = words.split_at_mut(1);
            places
                .iter_mut()
                .zip(entries)
                .for_each(|(to, entry)| *to = *entry);
            count[0] = entries.len().min(places.len()) as u64;
            Source::Words(words)
        };
        let string = limits::STRING as usize;
        let source = match content {
            Content::Number(ref value) => Source::Number(program.read(value, hit, vars)),
            Content::Array { offset, len, .. } => text(
                hit.record.bytes(offset as usize, len as usize),
                (len as usize).max(1),
            ),
            Content::DataLoc(offset) => text(hit.record.data_loc(offset), string),
            Content::RelLoc(offset) => text(hit.record.rel_loc(offset), string),
            Content::Pointed(ref value) => {
                Source::Words(pointed(hit, program.read(value, hit, vars)))
            }
            Content::Comm => Source::Comm(comm::current(hit)),
            Content::Execname(ref pid) => Source::Comm(match program.read(pid, hit, vars) {
                0 => *comm::IDLE,
                _ => comm::current(hit),
            }),
            Content::Stack => {
                let mut entries = [0; STACK_DEPTH];
                let len = hit.context.stack(&mut entries);
                stack(&entries[..len.min(STACK_DEPTH)])
            }
            Content::StoredStack(offset) => {
                let mut entries = [0; STACK_DEPTH];
                let bytes = hit.record.stack(offset, STACK_DEPTH).chunks_exact(8);
                let len = bytes.len();
                entries.iter_mut().zip(bytes).for_each(|(to, bytes)| {
                    *to = bytes
                        .first_chunk()
                        .map_or(0, |chunk| u64::from_ne_bytes(*chunk));
                });
                stack(&entries[..len.min(STACK_DEPTH)])
            }
            Content::Other(slot) => {
                let import = program.imports.iter().find(|import| import.slot == slot)?;
                let Cell::Wide { number, .. } = import.cell else {
                    return None;
                };
                let index = *vars.get(slot)? as u32;
                let mut words = [0; WIDE_WORDS];
                match import.home.map.wide_at(index, number)?.read(&mut words) {
                    Read::Done => Source::Words(words),
                    Read::Busy | Read::Unset => return None,
                }
            }
        };
        Some(Self { source, at: 0 })
    }
}

/// The characters at `address`, as words. As in C those of `(fault)`, if they cannot be read.
#[inline(never)]
fn pointed(hit: &Hit<'_>, mut address: u64) -> [u64; WIDE_WORDS] {
    const BLOCK: usize = 16;
    let mut text = [0; limits::STRING as usize];
    let mut len = 0;
    // The last byte stays a NUL.
    while len < text.len() - 1 {
        let count = (BLOCK - address as usize % BLOCK).min(text.len() - 1 - len);
        let Some(block) = text.get_mut(len..len + count) else {
            break;
        };
        if !hit.context.read(block, address) {
            text = [0; limits::STRING as usize];
            text[..7].copy_from_slice(b"(fault)");
            break;
        }
        if block.contains(&0) {
            break;
        }
        len += count;
        address = address.wrapping_add(count as u64);
    }
    let mut words = [0; WIDE_WORDS];
    for (to, word) in words
        .iter_mut()
        .zip(text_to_words(until_nul(&text), WIDE_WORDS))
    {
        *to = word;
    }
    words
}

impl Iterator for Words<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let at = self.at;
        self.at += 1;
        let word = |text: &[u8]| {
            // The last word has a NUL.
            let rest = text.get(at * size_of::<u64>()..)?;
            let mut word = [0; size_of::<u64>()];
            word.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            Some(u64::from_ne_bytes(word))
        };
        match &self.source {
            Source::Number(number) => (at == 0).then_some(*number),
            Source::Text(text) => word(text),
            Source::Comm(comm) => word(comm),
            Source::Words(words) => words.get(at).copied(),
        }
    }
}
