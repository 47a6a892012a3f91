// SPDX-License-Identifier: GPL-2.0

//! The comms that are shown for the process ids in keys (`.execname`).

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

/// The comm of the task with process id 0.
const IDLE: &[u8; COMM_LEN] = b"<idle>\0\0\0\0\0\0\0\0\0\0";

/// The comm that each entry's task had when the entry was inserted.
///
/// The process id is part of the key, so all hits of an entry are of one task. That is on one CPU at a
/// time, and what interrupts it there writes the same comm; so do the idle tasks, which share an id.
pub(super) struct Comms {
    /// Two words for each element of the map. The last byte of a comm is a NUL: here it is 1 once the comm is
    /// stored.
    words: KVVec<[Atomic<u64>; 2]>,
}

impl Comms {
    /// Room for the comms of `elements`. Fails with `ENOMEM`.
    pub(super) fn new(elements: usize) -> Result<Self> {
        let mut words = KVVec::with_capacity(elements, GFP_KERNEL)?;
        for _ in 0..elements {
            words.push([Atomic::new(0), Atomic::new(0)], GFP_KERNEL)?;
        }
        Ok(Self { words })
    }

    /// Stores the current comm for element `index`, unless there is one. `program` reads the process id as
    /// `pid`. Any context.
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

    /// The comm stored for element `index`; an empty one if there is none.
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
