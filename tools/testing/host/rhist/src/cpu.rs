// SPDX-License-Identifier: GPL-2.0

//! The CPUs of hits in tests.

extern crate std;

use core::cell::Cell;

use kernel::sync::rcu;

use crate::sync::PreemptOff;

std::thread_local! {
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

/// The CPU that this thread is, or was last.
pub fn current() -> usize {
    CURRENT.get()
}

/// Makes this thread a CPU, until it is dropped. In a test, a thread may be several CPUs, one after
/// the other, and an interrupt may be the CPU that it interrupts.
pub struct Cpu {
    number: usize,
    _section: rcu::Guard,
}

impl Cpu {
    /// Becomes a CPU.
    pub fn enter(number: usize) -> Self {
        CURRENT.set(number);
        Self {
            number,
            _section: rcu::read_lock(),
        }
    }

    /// Token for hits on this CPU.
    pub fn preempt(&self) -> PreemptOff<'_> {
        // SAFETY: The RCU section of this value lasts as long as the token, so no grace period ends
        // before that. Tests make only one thread at a time a CPU.
        unsafe { PreemptOff::assume_on(self.number) }
    }
}
