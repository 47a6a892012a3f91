// SPDX-License-Identifier: GPL-2.0

//! Actions of a hit, run last and in the order of the trigger.
//!
//! `onmax()` and `onchange()` replace the value that they track, together with the values that
//! `save()` saves, in one step. Most hits are not a new maximum, and only read it. An action that
//! cannot be run, since too many hits are at work on the same value, counts as missed.

use core::iter;

use kernel::sync::atomic::Relaxed;

use super::put_wide;
use crate::{
    event::{
        Hit,
        LongBuffer, //
    },
    hist::{
        program::{
            content::Content,
            ActionCode,
            Program,
            TrackCode, //
        },
        spec::target::{
            SnapshotTarget,
            Target,
            Targets,
            Wide, //
        },
        Histogram, //
    },
    limits::WIDE_WORDS,
    map::{
        text_to_words,
        Elt,
        Loss,
        Replace,
        WideCell, //
    },
};

impl Histogram {
    /// Runs the actions (`hist_trigger_actions()`).
    #[inline(always)]
    pub(super) fn act(
        &self,
        program: &Program,
        targets: &Targets,
        hit: &Hit<'_>,
        vals: &mut [u64],
        elt: Elt<'_>,
        key: &[u8],
    ) {
        for (action, target) in program.actions.iter().zip(&targets.0) {
            if let Some(track) = &action.track {
                // Most hits are not a new maximum.
                let change = track.change(vals);
                let cell = elt.wide(track.cell);
                if cell.is_some_and(|cell| cell.keeps(|last| change.is(last))) {
                    continue;
                }
            }
            if !self.perform((action, target), program, hit, vals, elt, key) {
                self.lose(hit, Loss::Missed);
            }
        }
    }

    /// Runs an action, if its tracked value changes or it tracks none. Returns false if the action
    /// is lost.
    #[inline(never)]
    fn perform(
        &self,
        (action, target): (&ActionCode, &Target),
        program: &Program,
        hit: &Hit<'_>,
        vals: &mut [u64],
        elt: Elt<'_>,
        key: &[u8],
    ) -> bool {
        if let Some(track) = &action.track {
            let Some(cell) = elt.wide(track.cell) else {
                return false;
            };
            let change = track.change(vals);
            let saved: &[_] = match target {
                Target::Save => &program.saved,
                Target::Trace(_) | Target::Snapshot(_) => &[],
            };
            match change.save(cell, program, hit, vals, saved) {
                Replace::Done => (),
                Replace::Kept => return true,
                Replace::Lost => return false,
            }
            if let Target::Snapshot(snapshot) = target {
                self.take_snapshot(&**snapshot, hit, change, elt, key);
            }
        }
        match target {
            Target::Trace(event) => {
                let trace = &action.trace;
                for (slot, value) in &trace.numbers {
                    if let Some(place) = vals.get_mut(*slot) {
                        *place = program.read_inline(value, hit, &[]);
                    }
                }
                let vals = &*vals;
                let context = hit.context();
                event.emit(context, hit.preempt(), vals, &trace.idx, &mut |val, to| {
                    trace_wide(program, hit, vals, &trace.wide, val, to)
                })
            }
            Target::Save | Target::Snapshot(_) => true,
        }
    }

    /// Takes a snapshot if the value also changes the value of the last snapshot, whatever the key,
    /// and stores the value with its key (`cond_snapshot_update()`).
    #[inline(never)]
    fn take_snapshot(
        &self,
        snapshot: &dyn SnapshotTarget,
        hit: &Hit<'_>,
        change: Change,
        elt: Elt<'_>,
        key: &[u8],
    ) {
        let Some(last) = self.last_snapshot() else {
            return;
        };
        snapshot.take(hit, &mut || {
            let key = text_to_words(key, elt.generation().key_size() / size_of::<u64>());
            let comm = elt.side().iter().map(|word| word.load(Relaxed));
            let words = Iterator::chain(iter::once(change.value), Iterator::chain(key, comm));
            last.replace_if(|last| change.is(last), words) == Replace::Done
        });
    }
}

impl TrackCode {
    /// Returns the new value of the variable from these values of references.
    #[inline(always)]
    fn change(&self, vals: &[u64]) -> Change {
        Change {
            value: vals.get(self.slot).copied().unwrap_or(0),
            larger: self.larger,
        }
    }
}

/// A new value of a tracked variable.
#[derive(Clone, Copy)]
struct Change {
    value: u64,
    /// Whether a change has to be larger than the last value.
    larger: bool,
}

impl Change {
    /// Returns whether it is a change from this last value, which is initially 0.
    fn is(self, last: Option<u64>) -> bool {
        let last = last.unwrap_or(0);
        match self.larger {
            true => self.value > last,
            false => self.value != last,
        }
    }

    /// Stores the value, and the saved fields, if it is a change.
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
        // Saves one field after the other: the stack is too small for all of them.
        let mut current = [0; WIDE_WORDS];
        current[0] = self.value;
        let mut words = 0..1;
        let mut long = None;
        let words = iter::from_fn(|| {
            while words.is_empty() {
                let &(content, n) = saved.next()?;
                long = match n > WIDE_WORDS {
                    true => long_content(content, program, hit, vals),
                    false => None,
                };
                if n > WIDE_WORDS || !put_wide(content, program, hit, vals, n, &mut current) {
                    current.fill(0);
                }
                words = 0..n;
            }
            let nth = words.next()?;
            Some(match &mut long {
                Some(long) => long.words().get(nth).copied().unwrap_or(0),
                None => current.get(nth).copied().unwrap_or(0),
            })
        });
        cell.replace_if(|last| self.is(last), words)
    }
}

/// A content of more than [`WIDE_WORDS`] words, in a buffer. `None`: it is lost.
#[inline(never)]
fn long_content<'a>(
    content: Content,
    program: &Program,
    hit: &Hit<'a>,
    vals: &[u64],
) -> Option<LongBuffer<'a>> {
    let mut buffer = hit.context().long_buffer(hit.preempt())?;
    let done = content.read_long(program, hit, vals, &mut buffer);
    done.then_some(buffer)
}

/// Writes the string or stack that is value `val` of a synthetic event, one of `wide`, to `to`.
/// Returns false if it is lost.
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
