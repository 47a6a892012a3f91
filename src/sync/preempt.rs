// SPDX-License-Identifier: GPL-2.0

//! Preemption that is off, as a token.

use core::marker::PhantomData;

/// Proof that preemption is off for `'a`: the code stays on one CPU, and no RCU grace period ends.
///
/// Each callback of a hit creates one and passes it on. It is the number of the CPU, so it costs what that would.
///
/// # Invariants
///
/// Preemption is off for `'a`, and `cpu` is the current CPU.
#[derive(Clone, Copy)]
pub struct PreemptOff<'a> {
    cpu: usize,
    /// Bound to `'a`, and neither `Send` nor `Sync`.
    _here: PhantomData<(&'a (), *mut ())>,
}

impl PreemptOff<'_> {
    /// Creates the token, in a function that C calls for a hit.
    ///
    /// # Safety
    ///
    /// Preemption is off for the whole lifetime, and `cpu` runs this.
    #[inline(always)]
    pub unsafe fn assume_on(cpu: usize) -> Self {
        // INVARIANT: By the caller.
        Self {
            cpu,
            _here: PhantomData,
        }
    }

    /// The number of the CPU.
    #[inline(always)]
    pub fn cpu(self) -> usize {
        self.cpu
    }
}
