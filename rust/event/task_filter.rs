// SPDX-License-Identifier: GPL-2.0

//! Tasks whose hits an event ignores.

use super::{
    list::for_each_locked,
    Event, //
};
use crate::{
    rust::{
        bindings,
        instance::Instance, //
    },
    sync::PreemptOff, //
};
use core::ptr::NonNull;
use kernel::prelude::*;

/// Tests whether an event ignores hits of the current task, because of `set_event_pid` and
/// `set_event_notrace_pid` of a tracing directory.
///
/// The kernel updates the answer at each task switch, per CPU (`trace_event_ignore_this_pid()`).
/// While either file lists tasks, the event's file in the instance has a flag.
///
/// # Invariants
///
/// `file`, if present, has a reference taken by `rhist_file_get()`, and `flags` points to its
/// flags. Otherwise `flags` points to [`NO_FLAGS`].
pub(crate) struct TaskFilter {
    flags: NonNull<usize>,
    file: Option<NonNull<bindings::trace_event_file>>,
}

/// Flags for a [`TaskFilter`] without a file.
static NO_FLAGS: usize = 0;

// SAFETY: Any task may drop the reference. The file is only read.
unsafe impl Send for TaskFilter {}
// SAFETY: The file is only read through a shared reference.
unsafe impl Sync for TaskFilter {}

impl TaskFilter {
    /// Takes a reference on the file of an event in its tracing directory. The marker needs no
    /// file: the kernel records it for all tasks. Takes `event_mutex`. Fails with `ENODEV` if the
    /// instance is gone.
    pub(crate) fn new(event: &Event, instance: &Instance) -> Result<Self> {
        let mut filter = Self {
            flags: NonNull::from(&NO_FLAGS),
            file: None,
        };
        if event.is_marker() {
            return Ok(filter);
        }
        instance.with_event_mutex(|| {
            // SAFETY: event_mutex is held in this closure, so the file stays until it has our
            // reference.
            unsafe {
                for_each_locked(event.dir().array()?, |listed| {
                    if listed.id == event.id() && filter.file.is_none() {
                        bindings::rhist_file_get(listed.file.as_ptr());
                        // INVARIANT: The file has our reference now.
                        filter.file = Some(listed.file);
                        filter.flags =
                            NonNull::new(&raw mut (*listed.file.as_ptr()).flags).ok_or(EINVAL)?;
                    }
                    Ok(())
                })
            }
        })?;
        match filter.file {
            Some(_) => Ok(filter),
            None => Err(ENODEV),
        }
    }

    /// The flags of the file. Any context.
    #[inline(always)]
    fn flags(&self) -> usize {
        // SAFETY: By the type invariant `flags` is valid. The kernel changes the flags atomically.
        unsafe { self.flags.read_volatile() }
    }

    /// Returns whether tasks are listed. Any context.
    #[inline(always)]
    pub(crate) fn is_set(&self) -> bool {
        self.flags() & bindings::EVENT_FILE_FL_PID_FILTER as usize != 0
    }

    /// Returns whether the event has a trigger of the kernel, in the tracing directory, that needs
    /// the record of a hit. Any context.
    pub(crate) fn needs_record(&self) -> bool {
        self.flags() & bindings::EVENT_FILE_FL_TRIGGER_COND as usize != 0
    }

    /// Returns whether hits of the current task are ignored. Any context.
    #[inline(always)]
    pub(crate) fn ignores(&self, preempt: PreemptOff<'_>) -> bool {
        self.is_set() && self.ignores_current(preempt)
    }

    /// Slow path of [`TaskFilter::ignores`], for the rare case that tasks are listed. Out of line.
    #[cold]
    #[inline(never)]
    fn ignores_current(&self, _preempt: PreemptOff<'_>) -> bool {
        self.file.is_some_and(|file| {
            // SAFETY: By the type invariant the file has our reference; and preemption is off.
            unsafe { bindings::rhist_file_ignores_task(file.as_ptr()) }
        })
    }
}

impl Drop for TaskFilter {
    fn drop(&mut self) {
        if let Some(file) = self.file {
            // SAFETY: By the type invariant the file has our reference, which is not used
            // afterwards.
            unsafe { bindings::rhist_file_put(file.as_ptr()) }
        }
    }
}
