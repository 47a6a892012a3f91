// SPDX-License-Identifier: GPL-2.0

//! The trace clocks, in any context, NMI included; and the wall clock.
//!
//! C headers: `include/linux/trace_clock.h`, `include/linux/timekeeping.h`.

use super::{
    bindings,
    function, //
};
use kernel::sync::atomic::{
    Atomic,
    Relaxed, //
};

/// The clock `counter`: returns one more each time. Separate from the kernel's counter, which is
/// not exported; nothing compares the two.
pub(crate) fn counter() -> u64 {
    static COUNTER: Atomic<u64> = Atomic::new(0);
    COUNTER.fetch_add(1, Relaxed) + 1
}

/// Reads the properties of the CPUs' clock. Task context.
pub(crate) fn of_cpus() -> bindings::rhist_cpu_clock {
    let mut known = bindings::rhist_cpu_clock::default();
    // SAFETY: `known` is valid for writes. Task context.
    unsafe { bindings::rhist_cpu_clock(&mut known) };
    known
}

/// Returns whether the kernel found the CPUs' clock stable when it booted (`sched_clock_stable()`).
/// `None`: unknown. Task context, sleeps.
pub(crate) fn found_stable() -> Option<bool> {
    let key = function::address(c"__sched_clock_stable")?;
    // SAFETY: By this name the kernel has a static key (`kernel/sched/clock.c`), which lives
    // forever.
    Some(unsafe { bindings::rhist_static_key_enabled(key) })
}

/// Makes the clock `global` readable without a lock, while the time stamp counter is not marked as
/// unstable. Task context, sleeps. Called once, before the clock is read.
pub(crate) fn use_lockless() {
    // SAFETY: Task context. The module calls it once, first of all.
    unsafe { bindings::rhist_clock_use_lockless() };
}

/// Returns whether the clock `global` is read without a lock. Any context.
pub(crate) fn is_lockless() -> bool {
    // SAFETY: The function only reads a flag.
    unsafe { bindings::rhist_clock_is_lockless() }
}

/// Nanoseconds since 1970 (`CLOCK_REALTIME`). Task context: waits for an update of the clock.
pub(crate) fn real() -> u64 {
    // SAFETY: The offset is a constant of the enum. In task context, no update of the clock is
    // interrupted, for whose end the function waits.
    let ns = unsafe { bindings::ktime_get_with_offset(bindings::tk_offsets_TK_OFFS_REAL) };
    ns as u64
}

macro_rules! clocks {
    ($($(#[$meta:meta])* $name:ident = $read:ident;)*) => {
        $(
            $(#[$meta])*
            pub(crate) fn $name() -> u64 {
                // SAFETY: These clocks take no arguments and may be read in any context, NMI
                // included.
                unsafe { bindings::$read() }
            }
        )*
    };
}

clocks! {
    /// Nanoseconds, per CPU.
    local = trace_clock_local;
    /// Nanoseconds, the same on all CPUs.
    global = rhist_global_clock;
    /// Clock ticks since boot (`USER_HZ` per second).
    uptime = trace_clock_jiffies;
    /// Nanoseconds of the clock that perf uses.
    perf = rhist_local_clock;
    /// Nanoseconds since boot, without time in suspend (`CLOCK_MONOTONIC`).
    mono = ktime_get_mono_fast_ns;
    /// Nanoseconds since boot, without time in suspend and without NTP adjustment
    /// (`CLOCK_MONOTONIC_RAW`).
    mono_raw = ktime_get_raw_fast_ns;
    /// Nanoseconds since boot, with time in suspend (`CLOCK_BOOTTIME`).
    boot = ktime_get_boot_fast_ns;
    /// Nanoseconds of international atomic time (`CLOCK_TAI`).
    tai = ktime_get_tai_fast_ns;
    /// Time stamp counter of x86, in cycles.
    #[cfg(CONFIG_X86)]
    tsc = rhist_tsc;
}
