// SPDX-License-Identifier: GPL-2.0

//! The site of a trigger in the kernel: event and tracing directory.

use super::{
    placed::Placed,
    trigger::{
        self,
        Site, //
    },
};
use crate::{
    filter::Memory,
    rust::{
        event::TaskFilter,
        memory,
        tracefs::TracingDir, //
    },
    sync::PreemptOff,
    text::Text, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// A trigger of an event of the kernel.
pub(crate) type HistTrigger = trigger::HistTrigger<EventSite>;

/// The triggers of an event, in the order in which they were added.
pub(crate) type Triggers = KVec<Arc<HistTrigger>>;

/// The tracing directory of a trigger, and its task lists.
pub(crate) struct EventSite {
    /// The tracing directory.
    pub(crate) dir: TracingDir,
    /// The tasks whose hits do not count.
    pub(crate) tasks: TaskFilter,
}

/// Reads memory without page faults.
pub(crate) struct Nofault;

impl Memory for Nofault {
    fn read_kernel(&self, to: &mut [u8], address: usize) -> bool {
        memory::read_kernel(to, address)
    }

    fn read_user(&self, to: &mut [u8], address: usize) -> bool {
        memory::read_user(to, address)
    }
}

impl Site for EventSite {
    type Memory = Nofault;

    const MEMORY: Nofault = Nofault;

    #[inline(always)]
    fn lists_tasks(&self) -> bool {
        self.tasks.is_set()
    }

    #[inline(always)]
    fn ignores(&self, preempt: PreemptOff<'_>) -> bool {
        self.tasks.ignores(preempt)
    }

    fn is_beside(&self, other: &Self) -> bool {
        self.dir == other.dir
    }

    fn show_dir(&self, out: &mut Text) -> Result {
        if self.dir.is_top() {
            return Ok(());
        }
        out.bytes(b"instances/")?;
        out.bytes(self.dir.name().to_bytes())?;
        out.bytes(b" ")
    }
}

impl Placed for HistTrigger {
    fn dir(&self) -> &TracingDir {
        &self.site.dir
    }
}
