// SPDX-License-Identifier: GPL-2.0

//! The clocks of `common_timestamp`, and when that of all CPUs can be read without a lock.

/// A trace clock (`trace_clocks[]` of kernel/trace/trace.c, `ARCH_TRACE_CLOCKS`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Nanoseconds, per CPU.
    Local,
    /// Nanoseconds, the same on all CPUs.
    Global,
    /// The number of its reads.
    Counter,
    /// Clock ticks since boot (`USER_HZ`).
    Uptime,
    /// Nanoseconds, as perf has them.
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

    /// Its name.
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

    /// Whether it counts nanoseconds: only these are converted to microseconds by `.usecs`.
    pub const fn in_ns(self) -> bool {
        match self {
            Self::Counter | Self::Uptime => false,
            #[cfg(CONFIG_X86)]
            Self::Tsc => false,
            _ => true,
        }
    }
}

/// Who the processors belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hypervisor {
    /// This kernel.
    None,
    /// KVM.
    Kvm,
    /// Another one. How its clocks behave is not known here.
    Other,
}

/// What is known of the clock of the CPUs (`sched_clock()`).
#[derive(Clone, Copy, Debug)]
pub struct CpuClock {
    /// Who the processors belong to.
    pub hypervisor: Hypervisor,
    /// What CPUID says on KVM (`KVM_FEATURE_CLOCKSOURCE_STABLE_BIT`):
    /// [`CpuClock::PVCLOCK_TSC_STABLE_BIT`] means something. KVM always says so.
    pub stable_bit_valid: bool,
    /// The flags of the clock that the host keeps for CPU 0. `None`: the kernel does not use that
    /// clock.
    pub pvclock: Option<u8>,
    /// What the kernel found when it booted (`sched_clock_stable()`, which is not exported).
    /// `None`: it was not found.
    pub found_stable: Option<bool>,
}

impl CpuClock {
    /// The host's clocks of all CPUs are one (`asm/pvclock-abi.h`).
    pub const PVCLOCK_TSC_STABLE_BIT: u8 = 1;

    /// Whether it is one clock for all CPUs as long as the time stamp counter is not marked as
    /// unstable, which ends that on real processors (`mark_tsc_unstable()`), and so it does on KVM
    /// if the kernel does not use the host's clock. That one is what the host says that it is
    /// (`kvmclock_init()`). But the kernel asks once, when it boots, and this guest may have moved
    /// to another host since: what the kernel found has to be known, too.
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
