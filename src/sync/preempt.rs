// SPDX-License-Identifier: GPL-2.0

//! A token that proves that preemption is off.

use core::marker::PhantomData;

/// Proof that preemption is off for `'a`: the code stays on one CPU, and no RCU grace period ends.
///
/// Each callback of a hit creates one and passes it on. It is the number of the CPU, so it costs
/// what that would.
///
/// # Invariants
///
/// Preemption is off for `'a`, and `cpu` is the current CPU.
#[derive(Clone, Copy)]
pub struct PreemptOff<'a> {
    cpu: usize,
    /// Bound to `'a`; neither `Send` nor `Sync`.
    _here: PhantomData<(&'a (), *mut ())>,
}

impl PreemptOff<'_> {
    /// Creates the token, in a function that C calls for a hit.
    ///
    /// # Safety
    ///
    /// Preemption is off for the whole lifetime, and the code runs on `cpu`.
    #[inline(always)]
    pub unsafe fn assume_on(cpu: usize) -> Self {
        // INVARIANT: The caller guarantees that preemption is off for the lifetime, on this CPU.
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
