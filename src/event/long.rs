// SPDX-License-Identifier: GPL-2.0

//! Buffers for contents that are too long for the stack of the kernel: stacks of programs of many
//! functions.

use core::{
    cell::UnsafeCell,
    mem::MaybeUninit,
    slice, //
};

use kernel::{
    prelude::*,
    sync::atomic::Atomic, //
};

use super::Tail;
use crate::{
    limits::USER_STACK_MAX,
    sync::{
        PreemptOff,
        Store, //
    },
};

/// Buffers of a CPU: a hit may be interrupted by others, in a softirq, an interrupt and an NMI.
const OF_CPU: usize = 4;

/// Words of a buffer: a stack, behind its number of words, as in a variable.
pub const LONG_WORDS: usize = 1 + USER_STACK_MAX;

type Place = UnsafeCell<MaybeUninit<u64>>;

/// The buffers of all CPUs: 4 KiB each.
pub struct LongBuffers {
    /// For each buffer, whether it is in use.
    busy: KVVec<Atomic<u64>>,
    places: KVVec<Place>,
}

// SAFETY: The places of a buffer are only used by the owner of its `LongBuffer`: one at a time.
unsafe impl Sync for LongBuffers {}

impl LongBuffers {
    /// Buffers for so many CPUs. May sleep. Fails with `ENOMEM`.
    pub fn new(cpus: usize) -> Result<Self> {
        let buffers = cpus * OF_CPU;
        let mut busy = KVVec::with_capacity(buffers, GFP_KERNEL)?;
        let mut places = KVVec::with_capacity(buffers * LONG_WORDS, GFP_KERNEL)?;
        for _ in 0..buffers {
            busy.push(Atomic::new(0), GFP_KERNEL)?;
            for _ in 0..LONG_WORDS {
                places.push(Place::new(MaybeUninit::uninit()), GFP_KERNEL)?;
            }
        }
        Ok(Self { busy, places })
    }

    /// An empty buffer. `None`: all of this CPU are in use, by hits that this one has interrupted.
    /// Any context.
    pub fn take<'a>(&'a self, preempt: PreemptOff<'a>) -> Option<LongBuffer<'a>> {
        let first = preempt.cpu() * OF_CPU;
        let of_cpu = self.busy.get(first..first + OF_CPU)?;
        let nth = of_cpu.iter().position(|busy| busy.exchange(1) == 0)?;
        let buffer = first + nth;
        let places = self.places.get(buffer * LONG_WORDS..)?.get(..LONG_WORDS)?;
        // SAFETY: The memory is valid for `'a`, and an `UnsafeCell` has the layout of its content.
        // The exchange has found the buffer free, and no other one does until this one is dropped,
        // so nobody else uses it.
        let places = unsafe {
            slice::from_raw_parts_mut(UnsafeCell::raw_get(places.as_ptr()), places.len())
        };
        // INVARIANT: `len` is 0.
        Some(LongBuffer {
            busy: of_cpu.get(nth)?,
            places,
            len: 0,
        })
    }
}

/// Up to [`LONG_WORDS`] words, until it is dropped.
///
/// # Invariants
///
/// `len` is at most the number of places, and the first `len` are initialized.
pub struct LongBuffer<'a> {
    busy: &'a Atomic<u64>,
    places: &'a mut [MaybeUninit<u64>],
    len: usize,
}

impl LongBuffer<'_> {
    /// All words so far.
    pub fn words(&mut self) -> &mut [u64] {
        // SAFETY: By the type invariant `len` words are initialized.
        unsafe { slice::from_raw_parts_mut(self.places.as_mut_ptr().cast(), self.len) }
    }

    /// Appends a word; does nothing if the buffer is full.
    pub fn push(&mut self, word: u64) {
        self.append(|tail| tail.push(word));
    }

    /// Appends the words that `write` pushes.
    pub fn append(&mut self, write: impl FnOnce(&mut Tail<'_>)) {
        let places = self.places.get_mut(self.len..).unwrap_or_default();
        // INVARIANT: So many more places are initialized.
        self.len += Tail::fill(places, write).1;
    }
}

impl Drop for LongBuffer<'_> {
    fn drop(&mut self) {
        self.busy.release(0);
    }
}
