// SPDX-License-Identifier: GPL-2.0

//! The comm for a process id in the key (`.execname`): that of the task when the entry was inserted, stored as
//! side data of its element.
//!
//! The process id is part of the key, so all hits of an entry are of one task. That runs on one CPU at a time,
//! and a context that interrupts it there stores the same comm. The idle tasks share one id and one comm.

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
pub(super) const IDLE: &[u8; COMM_LEN] = b"<idle>\0\0\0\0\0\0\0\0\0\0";

/// Words of a comm. Its last byte, which is a NUL, is 1 here once the comm is stored.
pub(super) const WORDS: usize = COMM_LEN / size_of::<u64>();

/// Stores the current comm in `side`, unless one is stored. `pid` is how `program` reads the process id. Any
/// context.
#[inline(never)]
pub(super) fn store(side: &[Atomic<u64>], program: &Program, pid: Value, hit: &Hit<'_>) {
    let [first, last] = side else {
        return;
    };
    // Whoever finds it stored may read all of it.
    if last.load(Acquire) != 0 {
        return;
    }
    let read;
    let name = if program.read(&pid, hit, &[]) == 0 {
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

/// The comm of the current task, with NULs behind it.
pub(super) fn current(hit: &Hit<'_>) -> [u8; COMM_LEN] {
    let mut comm = hit.context.comm();
    let len = until_nul(&comm).len().min(COMM_LEN - 1);
    comm[len..].fill(0);
    comm
}

/// Loads the comm in `side`; an empty one if none is stored.
pub(super) fn load(side: &[Atomic<u64>]) -> [u8; COMM_LEN] {
    let [first, last] = side else {
        return [0; COMM_LEN];
    };
    let high = last.load(Acquire);
    of_words([first.load(Relaxed), high])
}

/// The comm in these words of side data.
pub(super) fn of_words([low, high]: [u64; WORDS]) -> [u8; COMM_LEN] {
    let both = u128::from(low) | u128::from(high) << 64;
    let mut name = both.to_le_bytes();
    name[COMM_LEN - 1] = 0;
    name
}
