// SPDX-License-Identifier: GPL-2.0

//! The trace clocks of `common_timestamp`, and when the clock of all CPUs can be read without a
//! lock.

/// A trace clock (`trace_clocks[]` of kernel/trace/trace.c, `ARCH_TRACE_CLOCKS`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Nanoseconds, per CPU.
    Local,
    /// Nanoseconds, the same on all CPUs.
    Global,
    /// Number of times that this clock was read.
    Counter,
    /// Clock ticks since boot (`USER_HZ`).
    Uptime,
    /// Nanoseconds of perf's clock.
    Perf,
    /// Nanoseconds since boot, without suspension.
    Mono,
    /// As `Mono`, but never adjusted.
    MonoRaw,
    /// Nanoseconds since boot.
    Boot,
    /// Nanoseconds of atomic time.
    Tai,
    /// Cycles.
    #[cfg(CONFIG_X86)]
    Tsc,
}

impl Clock {
    /// All clocks.
    const ALL: &'static [Self] = &[
        Self::Local,
        Self::Global,
        Self::Counter,
        Self::Uptime,
        Self::Perf,
        Self::Mono,
        Self::MonoRaw,
        Self::Boot,
        Self::Tai,
        #[cfg(CONFIG_X86)]
        Self::Tsc,
    ];

    /// The clock called `name`.
    pub fn new(name: &[u8]) -> Option<Self> {
        let mut clocks = Self::ALL.iter().copied();
        clocks.find(|clock| clock.name().as_bytes() == name)
    }

    /// The name in the kernel's `trace_clock` file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Global => "global",
            Self::Counter => "counter",
            Self::Uptime => "uptime",
            Self::Perf => "perf",
            Self::Mono => "mono",
            Self::MonoRaw => "mono_raw",
            Self::Boot => "boot",
            Self::Tai => "tai",
            #[cfg(CONFIG_X86)]
            Self::Tsc => "x86-tsc",
        }
    }

    /// Returns whether it counts nanoseconds: only these are converted to microseconds by `.usecs`.
    pub const fn in_ns(self) -> bool {
        match self {
            Self::Counter | Self::Uptime => false,
            #[cfg(CONFIG_X86)]
            Self::Tsc => false,
            _ => true,
        }
    }
}

/// The owner of the processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hypervisor {
    /// This kernel: no hypervisor.
    None,
    /// KVM, whose clocks `asm/pvclock-abi.h` describes.
    Kvm,
    /// Another hypervisor. The behaviour of its clocks is unknown.
    Other,
}

/// Properties of the clock of the CPUs (`sched_clock()`).
#[derive(Clone, Copy, Debug)]
pub struct CpuClock {
    /// The owner of the processors.
    pub hypervisor: Hypervisor,
    /// CPUID's answer on KVM (`KVM_FEATURE_CLOCKSOURCE_STABLE_BIT`): whether
    /// [`CpuClock::PVCLOCK_TSC_STABLE_BIT`] is valid. KVM always sets it.
    pub stable_bit_valid: bool,
    /// The flags of the host's clock for CPU 0. `None`: the kernel does not use that clock.
    pub pvclock: Option<u8>,
    /// The kernel's decision at boot (`sched_clock_stable()`, which is not exported). `None`:
    /// unknown.
    pub found_stable: Option<bool>,
}

impl CpuClock {
    /// The flag that the host's clocks of all CPUs are one (`asm/pvclock-abi.h`).
    pub const PVCLOCK_TSC_STABLE_BIT: u8 = 1;

    /// Returns whether all CPUs share one clock. On real processors, that holds while the time
    /// stamp counter is not marked as unstable (`mark_tsc_unstable()`), and also on KVM if the
    /// kernel does not use the host's clock. The host's clock has the properties that the host
    /// states (`kvmclock_init()`). But the kernel asks only when it boots, and the guest may have
    /// moved to another host since: so the kernel's decision at boot has to be known, too.
    pub fn is_one(&self) -> bool {
        let says_so = match (self.hypervisor, self.pvclock) {
            (Hypervisor::None, _) | (Hypervisor::Kvm, None) => true,
            (Hypervisor::Kvm, Some(flags)) => {
                self.stable_bit_valid && flags & Self::PVCLOCK_TSC_STABLE_BIT != 0
            }
            (Hypervisor::Other, _) => false,
        };
        says_so && self.found_stable.unwrap_or(self.pvclock.is_none())
    }
}
