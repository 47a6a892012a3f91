// SPDX-License-Identifier: GPL-2.0

//! The names of the tasks that the entries of a histogram belong to (`.execname`).

use kernel::prelude::*;
use kernel::sync::atomic::Acquire;
use kernel::sync::atomic::Atomic;
use kernel::sync::atomic::Relaxed;
use kernel::sync::atomic::Release;

use super::program::Program;
use super::program::Value;
use crate::event::hit::COMM_LEN;
use crate::event::Hit;
use crate::text::until_nul;

/// What the task with process id 0 is called.
const IDLE: &[u8; COMM_LEN] = b"<idle>\0\0\0\0\0\0\0\0\0\0";

/// The name that each entry's task had when the entry was made.
///
/// The process id is part of the key, so an entry is counted for by one task alone. It is on one
/// CPU at a time, and what interrupts it there writes the same name; so do the idle tasks, which
/// share an id.
pub(super) struct Comms {
    /// Two words for each element of the map. The last byte of a name is a NUL: here it says that
    /// there is a name.
    words: KVVec<[Atomic<u64>; 2]>,
}

impl Comms {
    /// No names yet, room for those of `elements`. Fails with `ENOMEM`.
    pub(super) fn new(elements: usize) -> Result<Self> {
        let mut words = KVVec::with_capacity(elements, GFP_KERNEL)?;
        for _ in 0..elements {
            words.push([Atomic::new(0), Atomic::new(0)], GFP_KERNEL)?;
        }
        Ok(Self { words })
    }

    /// Notes the name of the task that runs at `hit`, whose process id `program` reads as `pid`, for
    /// element `index`, unless it has one. Any context.
    #[inline(never)]
    pub(super) fn note(&self, index: usize, program: &Program, pid: Value, hit: &Hit<'_>) {
        let Some([first, last]) = self.words.get(index) else {
            return;
        };
        if last.load(Relaxed) != 0 {
            return;
        }
        let read;
        let name = if program.read(pid, hit) == 0 {
            IDLE
        } else {
            read = hit.context.comm();
            &read
        };
        // What follows the NUL is not part of the name.
        let mut bytes = [0; COMM_LEN];
        for (to, from) in bytes.iter_mut().zip(until_nul(name)) {
            *to = *from;
        }
        bytes[COMM_LEN - 1] = 1;
        let both = u128::from_le_bytes(bytes);
        first.store(both as u64, Relaxed);
        last.store((both >> 64) as u64, Release);
    }

    /// The name noted for element `index`; an empty one if there is none.
    pub(super) fn get(&self, index: usize) -> [u8; COMM_LEN] {
        let Some([first, last]) = self.words.get(index) else {
            return [0; COMM_LEN];
        };
        let high = last.load(Acquire);
        let both = u128::from(first.load(Relaxed)) | u128::from(high) << 64;
        let mut name = both.to_le_bytes();
        name[COMM_LEN - 1] = 0;
        name
    }

    /// Bytes of memory.
    pub(super) fn size_bytes(&self) -> usize {
        size_of_val(&self.words[..])
    }
}
