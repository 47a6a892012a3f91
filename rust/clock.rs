// SPDX-License-Identifier: GPL-2.0

//! The trace clocks.
//!
//! C headers: `include/linux/trace_clock.h`, `include/linux/timekeeping.h`.

use super::bindings;
use crate::hist::Clock;
use kernel::sync::atomic::Atomic;
use kernel::sync::atomic::Relaxed;

/// The time that `clock` shows, in its own unit. Any context, NMI included.
pub(crate) fn read(clock: Clock) -> u64 {
    // The kernel's own counter is not exported, and no record is compared with ours.
    static COUNTER: Atomic<u64> = Atomic::new(0);

    // SAFETY: The clocks are made for being read by tracers: they have no requirements.
    unsafe {
        match clock {
            Clock::Local => bindings::trace_clock_local(),
            Clock::Global => bindings::trace_clock_global(),
            Clock::Counter => COUNTER.fetch_add(1, Relaxed) + 1,
            Clock::Uptime => bindings::trace_clock_jiffies(),
            Clock::Perf => bindings::trace_clock(),
            Clock::Mono => bindings::ktime_get_mono_fast_ns(),
            Clock::MonoRaw => bindings::ktime_get_raw_fast_ns(),
            Clock::Boot => bindings::ktime_get_boot_fast_ns(),
            Clock::Tai => bindings::ktime_get_tai_fast_ns(),
            #[cfg(CONFIG_X86)]
            Clock::Tsc => bindings::rhist_tsc(),
        }
    }
}
