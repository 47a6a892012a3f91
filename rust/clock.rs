// SPDX-License-Identifier: GPL-2.0

//! The trace clocks. Any context, NMI included.
//!
//! C headers: `include/linux/trace_clock.h`, `include/linux/timekeeping.h`.

use super::bindings;
use kernel::sync::atomic::Atomic;
use kernel::sync::atomic::Relaxed;

/// How often it was read. The kernel's own counter is not exported, and no record is compared with ours.
pub(crate) fn counter() -> u64 {
    static COUNTER: Atomic<u64> = Atomic::new(0);
    COUNTER.fetch_add(1, Relaxed) + 1
}

macro_rules! clocks {
    ($($(#[$meta:meta])* $name:ident = $read:ident;)*) => {
        $(
            $(#[$meta])*
            pub(crate) fn $name() -> u64 {
                // SAFETY: The clocks are made for being read by tracers: they have no requirements.
                unsafe { bindings::$read() }
            }
        )*
    };
}

clocks! {
    /// Nanoseconds, per CPU.
    local = trace_clock_local;
    /// Nanoseconds, the same on all CPUs.
    global = trace_clock_global;
    /// Jiffies since boot.
    uptime = trace_clock_jiffies;
    /// Nanoseconds, as perf has them.
    perf = trace_clock;
    /// Nanoseconds since boot, without suspension.
    mono = ktime_get_mono_fast_ns;
    /// The same, never adjusted.
    mono_raw = ktime_get_raw_fast_ns;
    /// Nanoseconds since boot.
    boot = ktime_get_boot_fast_ns;
    /// Nanoseconds of atomic time.
    tai = ktime_get_tai_fast_ns;
    /// Cycles.
    #[cfg(CONFIG_X86)]
    tsc = rhist_tsc;
}
