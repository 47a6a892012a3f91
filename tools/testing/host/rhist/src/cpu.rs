// SPDX-License-Identifier: GPL-2.0

//! The CPUs of hits in tests.

use kernel::sync::rcu;

use crate::sync::PreemptOff;

/// A CPU that this thread is, as long as it exists. A test may have a thread be several, one after
/// the other, and an interrupt be the CPU that it interrupts.
pub struct Cpu {
    number: usize,
    _section: rcu::Guard,
}

impl Cpu {
    /// Becomes a CPU.
    pub fn enter(number: usize) -> Self {
        Self {
            number,
            _section: rcu::read_lock(),
        }
    }

    /// The token of hits on it.
    pub fn preempt(&self) -> PreemptOff<'_> {
        // SAFETY: No grace period ends as long as the section is not ended. Tests let one thread at
        // a time be a CPU.
        unsafe { PreemptOff::assume_on(self.number) }
    }
}
