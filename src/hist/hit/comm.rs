// SPDX-License-Identifier: GPL-2.0

//! The comm for a process id in the key (`.execname`): the task's comm when the entry was inserted,
//! stored as side data of its element.
//!
//! The process id is part of the key, so all hits of an entry are of one task. That runs on one CPU
//! at a time, and a context that interrupts it there stores the same comm. The idle tasks share one
//! id and one comm.

use kernel::sync::atomic::Atomic;

use crate::{
    event::Hit,
    hist::program::{
        number::Value,
        reader::IDLE,
        Program, //
    },
    map::OnceText, //
};

/// Stores the current comm in `side`, unless one is stored. `program` reads the process id from
/// `pid`. Any context.
#[inline(never)]
pub(super) fn store(side: &[Atomic<u64>], program: &Program, pid: Value, hit: &Hit<'_>) {
    match OnceText::of(side) {
        Some(comm) if !comm.is_stored() => match program.read(&pid, hit, &[]) {
            0 => comm.store(IDLE),
            _ => comm.store(&hit.context().comm()),
        },
        _ => (),
    }
}
