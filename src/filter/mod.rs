// SPDX-License-Identifier: GPL-2.0

//! Event filters: the conditions after `if` in a trigger.
//!
//! A filter is compiled when the trigger is written: each predicate knows what to read, what to
//! compare it with, and at which predicate to continue if it is true or false. A hit only
//! goes forward through the predicates, so it needs no stack, and its time is bounded by their
//! number.
//!
//! The language and its errors are those of `kernel/trace/trace_events_filter.c` of Linux 7.3. The
//! differences are:
//!
//! * A string ends at its first NUL, for all patterns. C matches `*x` at the end of the whole
//!   field, so never for a shorter string in an array of characters or for the name of the task,
//!   and matches `*x*` behind the NUL too.
//! * A dynamic string of length 0 is empty. C reads on up to a NUL.
//! * Strings behind pointers are copied to the stack. C has one buffer per CPU for them, which an
//!   NMI may overwrite.
//! * In `CPUS{first-last:used/group}` a group larger than the range still begins at `first`. In C
//!   it begins at CPU 0.

mod cpus;
mod error;
mod op;
mod parser;
mod pattern;
mod predicate;
mod program;
mod range;
mod term;
mod text;

use core::ops::Range;

use kernel::prelude::*;

use crate::event::{
    EventDesc,
    Hit, //
};

pub use error::{
    FilterError,
    FilterErrorText,
    LOCATION, //
};
pub use predicate::{
    FieldRange,
    Memory, //
};
use program::FilterProgram;
pub use term::Symbols;

/// A compiled filter of an event (`struct event_filter`).
pub struct Filter {
    program: FilterProgram,
}

impl Filter {
    /// Compiles `text`, up to its first NUL, for `event`. `cpus` is `nr_cpu_ids`. May sleep.
    ///
    /// # Errors
    ///
    /// The errors that C reports; `ENOMEM`.
    pub fn parse(
        text: &[u8],
        event: &EventDesc,
        cpus: usize,
        symbols: &dyn Symbols,
    ) -> Result<Self, FilterError> {
        let program = parser::parse(text, event, cpus, symbols)?;
        Ok(Self { program })
    }

    /// Returns whether a predicate reads a field at one of these offsets of the record.
    pub fn reads(&self, offsets: Range<u32>) -> bool {
        let mut places = self.program.predicates().filter_map(|p| p.access().0);
        places.any(|at| offsets.contains(&at))
    }

    /// Returns whether hits cannot nest: it follows no pointer in a record, and calls nothing else
    /// that can be traced.
    pub fn is_leaf(&self) -> bool {
        self.program.predicates().all(|p| p.access().1)
    }

    /// The only predicate, if that is a range of a number of the record: the most common filter.
    pub fn field_range(&self) -> Option<FieldRange> {
        self.program.only_plain()?.field_range()
    }

    /// Evaluates the filter for a hit.
    ///
    /// Any context, NMI included, with preemption disabled. Neither allocates nor waits. `memory`
    /// is only used for strings behind pointers.
    #[inline]
    pub fn matches(&self, hit: &Hit<'_>, memory: &impl Memory) -> bool {
        self.program.run(|predicate| predicate.holds(hit, memory))
    }
}
