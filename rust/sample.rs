// SPDX-License-Identifier: GPL-2.0

//! The event `rhist:sample`: its rate, and its ticks. `source/sample.rs` receives its hits.

use super::bindings;
use core::mem::MaybeUninit;
use kernel::{
    error::to_result,
    prelude::*, //
};

/// The ticks of all CPUs since the event was connected.
pub(crate) struct Ticks(bindings::rhist_ticks);

impl Ticks {
    /// Reads the counts: for each CPU at one moment, between two hits. Task context, may
    /// sleep.
    pub(crate) fn now() -> Self {
        let mut ticks = MaybeUninit::uninit();
        // SAFETY: Task context. The function fills `ticks`.
        Self(unsafe {
            bindings::rhist_sample_ticks(ticks.as_mut_ptr());
            ticks.assume_init()
        })
    }

    /// Returns whether the event is connected.
    pub(crate) fn are_counted(&self) -> bool {
        self.0.tgid != 0
    }

    /// Number of ticks that were due, by the clock.
    pub(crate) fn due(&self) -> u64 {
        self.0.due
    }

    /// Number of ticks that were hits.
    pub(crate) fn passed(&self) -> u64 {
        self.0.passed
    }

    /// Number of ticks without a hit, because an earlier one came so late.
    pub(crate) fn late(&self) -> u64 {
        self.0.late
    }

    /// Number of ticks of CPUs that were offline, or are isolated.
    pub(crate) fn off(&self) -> u64 {
        self.0.off
    }

    /// Ticks per second on each CPU.
    pub(crate) fn frequency(&self) -> u32 {
        self.0.frequency
    }

    /// The program that connected the event: its name, and its process id.
    pub(crate) fn program(&self) -> (&[u8], i32) {
        let name = CStr::from_bytes_until_nul(&self.0.comm).unwrap_or_default();
        (name.to_bytes(), self.0.tgid)
    }
}

/// Ticks per second on each CPU. Task context.
pub(crate) fn frequency() -> u32 {
    // SAFETY: Task context.
    unsafe { bindings::rhist_sample_frequency() }
}

/// Sets the number of ticks per second. Task context, may sleep.
///
/// # Errors
///
/// `EINVAL` if it is too low or too high; `EBUSY` if the event is connected, and has another one.
pub(crate) fn set_frequency(frequency: u32) -> Result {
    // SAFETY: Task context.
    to_result(unsafe { bindings::rhist_sample_set_frequency(frequency) })
}
