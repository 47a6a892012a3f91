// SPDX-License-Identifier: GPL-2.0

//! Synthetic events that actions make happen.
//!
//! Hits of such an event nest in the hit that makes it happen: its histograms may make further events happen, and so
//! on. So the number of those that happen within each other on a CPU is limited, and their strings and stacks are not on
//! the stack of the kernel but in memory of the CPU.

use crate::event::Hit;
use crate::ftrace::cpu;
use crate::ftrace::cpu::PreemptOff;
use crate::ftrace::synthetic;
use crate::hist::action;
use crate::hist::action::SynthField;
use crate::hist::action::Wide;
use crate::hist::var::Held;
use crate::text::copy;
use crate::trigger::PARAMS_MAX;
use core::cell::UnsafeCell;
use core::slice;
use kernel::prelude::*;
use kernel::sync::atomic::Atomic;
use kernel::sync::atomic::Relaxed;
use kernel::sync::Arc;

/// How many events may happen within each other on a CPU, in all contexts together. With the record of the first hit,
/// these are as many records as the kernel's ring buffer lets nest (`MAX_NEST`). C has 4 for all hits.
const DEPTH_MAX: usize = 4;

/// Words of a CPU: enough for two events with as many strings as there can be, or four with seven.
const WORDS: usize = 1024;

const WIDE: usize = size_of::<Wide>() / size_of::<u64>();

/// Memory for the events that happen on each CPU. It is used as a stack: a context that interrupts another one on the
/// same CPU gives back what it has taken before the other goes on.
pub(crate) struct Scratch {
    cpus: KVVec<CpuScratch>,
}

#[repr(align(64))]
struct CpuScratch {
    /// Events that happen now.
    depth: Atomic<usize>,
    /// Words that they use.
    used: Atomic<usize>,
    words: UnsafeCell<KVVec<u64>>,
}

// SAFETY: The words are only accessed in `with()`, by the CPU whose they are, and each only by the context that has
// taken it.
unsafe impl Sync for Scratch {}

impl Scratch {
    /// Allocates it. Fails with `ENOMEM`.
    pub(crate) fn new() -> Result<Self> {
        let mut cpus = KVVec::with_capacity(cpu::count(), GFP_KERNEL)?;
        for _ in 0..cpu::count() {
            cpus.push(
                CpuScratch {
                    depth: Atomic::new(0),
                    used: Atomic::new(0),
                    words: UnsafeCell::new(KVVec::from_elem(0, WORDS, GFP_KERNEL)?),
                },
                GFP_KERNEL,
            )?;
        }
        Ok(Self { cpus })
    }

    /// Calls `run` with `vals` words and `wide` places, all zero, that nobody else uses meanwhile. Returns its result, or
    /// false if there is not so much left.
    fn with(
        &self,
        hit: &Hit<'_>,
        vals: usize,
        wide: usize,
        run: impl FnOnce(&mut [u64], &mut [Wide]) -> bool,
    ) -> bool {
        let Some(cpu) = self.cpus.get(hit.cpu) else {
            return false;
        };
        let (depth, start) = (cpu.depth.load(Relaxed), cpu.used.load(Relaxed));
        let end = start + vals + wide * WIDE;
        if depth == DEPTH_MAX || end > WORDS {
            return false;
        }
        // Who interrupts this restores both, so they need not change together.
        cpu.used.store(end, Relaxed);
        cpu.depth.store(depth + 1, Relaxed);
        // SAFETY: There are `WORDS` words. As long as a `Hit` exists preemption is off, so no other task runs on this
        // CPU, and a context that interrupts this one takes words behind `end` only. So nobody else has these.
        // A place consists of words, and has their alignment.
        let done = unsafe {
            let words = (*cpu.words.get()).as_mut_ptr().add(start);
            let places = words.add(vals).cast::<Wide>();
            let (vals, places) = (
                slice::from_raw_parts_mut(words, vals),
                slice::from_raw_parts_mut(places, wide),
            );
            vals.fill(0);
            places.fill([0; WIDE]);
            run(vals, places)
        };
        cpu.depth.store(depth, Relaxed);
        cpu.used.store(start, Relaxed);
        done
    }
}

/// A synthetic event for actions.
pub(crate) struct SynthEvent {
    event: synthetic::SynthEvent,
    fields: KVec<SynthField>,
    scratch: Arc<Scratch>,
}

impl SynthEvent {
    /// The synthetic event `name`; `None` if there is none. Takes event_mutex. Fails with `ENOMEM`.
    pub(crate) fn find(name: &CStr, scratch: Arc<Scratch>) -> Result<Option<Self>> {
        let Some(event) = synthetic::SynthEvent::find(name)? else {
            return Ok(None);
        };
        let mut fields = KVec::new();
        event.for_each_field(|field| {
            let field = SynthField {
                type_: copy(field.type_.to_bytes())?,
                size: field.size,
                signed: field.signed,
                held: match (field.is_stack, field.is_string) {
                    (true, _) => Held::Stack,
                    (false, true) => Held::Text,
                    (false, false) => Held::Number,
                },
                dynamic: field.is_dynamic,
            };
            Ok(fields.push(field, GFP_KERNEL)?)
        })?;
        Ok(Some(Self {
            event,
            fields,
            scratch,
        }))
    }
}

/// The values of all fields, in their order.
const ALL: [u32; PARAMS_MAX] = {
    let mut all = [0; PARAMS_MAX];
    let mut n = 0;
    while n < PARAMS_MAX {
        all[n] = n as u32;
        n += 1;
    }
    all
};

impl action::SynthEvent for SynthEvent {
    fn fields(&self) -> &[SynthField] {
        &self.fields
    }

    fn listened(&self) -> bool {
        self.event.listened()
    }

    fn emit(
        &self,
        hit: &Hit<'_>,
        wide: usize,
        fill: &mut dyn FnMut(&mut [u64], &mut [Wide]) -> bool,
    ) -> bool {
        // SAFETY: As long as a `Hit` exists, preemption is off and it is on its CPU.
        if !synthetic::SynthEvent::has_stack(unsafe { PreemptOff::assume_on(hit.cpu) }) {
            return false;
        }
        let n = self.fields.len();
        self.scratch.with(hit, n, wide, |vals, places| {
            if !fill(vals, places) {
                return false;
            }
            let mut places = places.iter_mut();
            for (val, field) in vals.iter_mut().zip(&self.fields) {
                if field.held == Held::Number {
                    continue;
                }
                let Some(place) = places.next() else {
                    return false;
                };
                if let (Held::Text, Some(last)) = (field.held, place.last_mut()) {
                    let mut bytes = last.to_ne_bytes();
                    bytes[size_of::<u64>() - 1] = 0;
                    *last = u64::from_ne_bytes(bytes);
                }
                *val = place.as_ptr() as u64;
            }
            // SAFETY: There is a value for each field. Strings have at most 256 bytes, of which the last is a NUL.
            // Stacks have as many words as the kernel reads at most. All are in memory of this hit, which nobody
            // changes. As long as a `Hit` exists, preemption is off and it is on its CPU.
            unsafe {
                let preempt = PreemptOff::assume_on(hit.cpu);
                self.event.emit(preempt, vals, &ALL[..n]);
            }
            true
        })
    }
}
