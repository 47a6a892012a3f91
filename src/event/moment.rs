// SPDX-License-Identifier: GPL-2.0

//! Moments: when a histogram or an interval began or ended.

/// A moment by two clocks, which were read one right after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Nanoseconds since boot, with time in suspend (`CLOCK_BOOTTIME`).
    pub boot_ns: u64,
    /// Nanoseconds since 1970 (`CLOCK_REALTIME`).
    pub real_ns: u64,
}

impl Moment {
    /// The later one of two moments.
    pub fn later(self, other: Self) -> Self {
        match self.boot_ns < other.boot_ns {
            true => other,
            false => self,
        }
    }
}

/// The clocks that moments are read from.
#[derive(Clone, Copy)]
pub struct Clocks {
    /// Reads [`Moment::boot_ns`]. Any context, NMI included.
    pub boot: fn() -> u64,
    /// Reads [`Moment::real_ns`]. Task context.
    pub real: fn() -> u64,
}

impl Clocks {
    /// Reads both clocks. Task context.
    pub fn now(self) -> Moment {
        Moment {
            boot_ns: (self.boot)(),
            real_ns: (self.real)(),
        }
    }
}
