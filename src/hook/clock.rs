// SPDX-License-Identifier: GPL-2.0

//! Reading of the trace clocks in hits, and the clocks of moments.

use crate::{
    event::{
        clock::{
            Clock,
            CpuClock,
            Hypervisor, //
        },
        Clocks, //
    },
    rust::clock, //
};

pub(super) use clock::global;

/// The clocks of moments.
pub(crate) const CLOCKS: Clocks = Clocks {
    boot: clock::boot,
    real: clock::real,
};

/// Chooses how the clock `global` is read. Task context, sleeps. Called once, before the clock is
/// read.
pub(crate) fn init() {
    let known = clock::of_cpus();
    let of_cpus = CpuClock {
        hypervisor: match (known.native, known.kvm) {
            (true, _) => Hypervisor::None,
            (_, true) => Hypervisor::Kvm,
            _ => Hypervisor::Other,
        },
        stable_bit_valid: known.stable_bit_valid,
        pvclock: known.has_pvclock.then_some(known.pvclock_flags),
        found_stable: clock::found_stable(),
    };
    if of_cpus.is_one() {
        clock::use_lockless();
    }
}

/// The time that `clock` shows, in its own unit. Any context.
#[inline(always)]
pub(super) fn read(clock: Clock) -> u64 {
    match clock {
        // The default clock of triggers.
        Clock::Global => clock::global(),
        other => read_other(other),
    }
}

#[inline(never)]
fn read_other(clock: Clock) -> u64 {
    match clock {
        Clock::Local => clock::local(),
        Clock::Global => clock::global(),
        Clock::Counter => clock::counter(),
        Clock::Uptime => clock::uptime(),
        Clock::Perf => clock::perf(),
        Clock::Mono => clock::mono(),
        Clock::MonoRaw => clock::mono_raw(),
        Clock::Boot => clock::boot(),
        Clock::Tai => clock::tai(),
        #[cfg(CONFIG_X86)]
        Clock::Tsc => clock::tsc(),
    }
}
