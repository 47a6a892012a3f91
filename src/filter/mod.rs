// SPDX-License-Identifier: GPL-2.0

//! Event filters: what follows `if` in a trigger.
//!
//! A filter is compiled when the trigger is written: for each predicate what to read and what to
//! compare it with, and where to go on if it is true and if it is false. A hit only ever goes
//! forward through the predicates, so it needs no stack and takes no more steps than there are
//! predicates.
//!
//! The language and its errors are those of `kernel/trace/trace_events_filter.c` of Linux 7.3. It
//! is not followed in these:
//!
//! * A string ends at its first NUL, for all patterns. C takes `*x` at the end of the whole field,
//!   so that it never fits a shorter string in an array of characters or the name of the task, and
//!   looks for `*x*` behind the NUL too.
//! * A dynamic string of length 0 is empty. C then reads on until some NUL.
//! * Strings behind pointers are copied to the stack. C has one buffer per CPU for them, which an
//!   NMI may overwrite.
//! * In `CPUS{first-last:used/group}` a group larger than the range is no reason to begin at CPU 0.

mod cpus;
mod ctype;
mod error;
mod parser;
mod pattern;
mod predicate;
mod program;
mod range;

use core::ops::Range;

use kernel::prelude::*;

use crate::event::EventDesc;
use crate::event::Hit;

pub use error::FilterError;
pub use error::FilterErrorText;
pub use error::LOCATION;
pub use predicate::BLOCK;
use program::FilterProgram;

/// Most bytes of a quoted string and its NUL (`MAX_FILTER_STR_VAL`).
pub const STRING_MAX: usize = 256;

/// Most bytes of a string behind a pointer and its NUL: what follows them is not looked at
/// (`USTRING_BUF_SIZE`).
pub const POINTED_MAX: usize = 1024;

/// What a filter has to know of the running kernel when it is compiled.
pub trait Symbols {
    /// The address of the function called `name`, which may be empty or anything else. Called in
    /// task context; may sleep.
    fn address(&self, name: &[u8]) -> Option<usize>;

    /// Where the function around `address` starts, and how many bytes it has. Called in task
    /// context; may sleep.
    fn function(&self, address: usize) -> Option<(usize, usize)>;
}

/// How strings behind pointers are read.
///
/// Called in any context, NMI included, with preemption off, with any address. The bytes that are
/// asked for at a time never cross a multiple of [`BLOCK`].
pub trait Memory {
    /// Fills `to` from the kernel's memory at `address`: completely and true, or false
    /// (`copy_from_kernel_nofault()`).
    fn read_kernel(&self, to: &mut [u8], address: usize) -> bool;

    /// Fills `to` from the memory of the running task at `address`: completely and true, or false
    /// (`copy_from_user_nofault()`).
    fn read_user(&self, to: &mut [u8], address: usize) -> bool;
}

/// A filter of an event.
pub struct Filter {
    program: FilterProgram,
}

impl Filter {
    /// Compiles `text`, which ends at its first NUL if there is one, for `event`, on a machine that
    /// can have `cpus` CPUs (`nr_cpu_ids`). May sleep.
    ///
    /// # Errors
    ///
    /// Those of C; `ENOMEM`.
    pub fn parse(
        text: &[u8],
        event: &EventDesc,
        cpus: usize,
        symbols: &dyn Symbols,
    ) -> Result<Self, FilterError> {
        let program = parser::parse(text, event, cpus, symbols)?;
        Ok(Self { program })
    }

    /// Whether it looks at what is at these offsets of records.
    pub fn reads(&self, offsets: Range<u32>) -> bool {
        let mut places = self.program.predicates().filter_map(|p| p.access().0);
        places.any(|at| offsets.contains(&at))
    }

    /// Whether hits cannot nest: it follows no pointer in a record, and calls nothing else that can be traced.
    pub fn is_leaf(&self) -> bool {
        self.program.predicates().all(|p| p.access().1)
    }

    /// Whether `hit` is one of those that the filter is for.
    ///
    /// May be called in any context, NMI included, with preemption disabled. It neither allocates
    /// nor waits. `memory` is used for strings behind pointers only.
    #[inline]
    pub fn matches(&self, hit: &Hit<'_>, memory: &impl Memory) -> bool {
        self.program.run(|predicate| predicate.holds(hit, memory))
    }
}
