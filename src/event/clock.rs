// SPDX-License-Identifier: GPL-2.0

//! The clocks of `common_timestamp`.

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
