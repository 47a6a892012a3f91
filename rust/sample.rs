// SPDX-License-Identifier: GPL-2.0

//! The event `rhist:sample`: its source, its rate, and its ticks. `source/sample.rs` receives its
//! hits.

use super::{
    bindings,
    cpu, //
};
use kernel::{
    error::{
        to_result,
        Error, //
    },
    prelude::*, //
};

/// Where samples come from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SampleSource {
    /// A timer on each CPU.
    Clock,
    /// A counter of the cycles of each CPU.
    Cycles,
}

impl SampleSource {
    /// All of them.
    pub(crate) const ALL: [Self; 2] = [Self::Clock, Self::Cycles];

    /// Its name in files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Clock => "clock",
            Self::Cycles => "cycles",
        }
    }

    fn from_raw(raw: bindings::rhist_sample_source) -> Self {
        match raw {
            bindings::rhist_sample_source_RHIST_SAMPLE_CYCLES => Self::Cycles,
            _ => Self::Clock,
        }
    }

    fn raw(self) -> bindings::rhist_sample_source {
        match self {
            Self::Clock => bindings::rhist_sample_source_RHIST_SAMPLE_CLOCK,
            Self::Cycles => bindings::rhist_sample_source_RHIST_SAMPLE_CYCLES,
        }
    }

    /// The source that was chosen. Task context.
    pub(crate) fn chosen() -> Self {
        // SAFETY: Task context.
        Self::from_raw(unsafe { bindings::rhist_sample_chosen() })
    }

    /// The source of the samples that are taken. Task context, while the event is connected.
    pub(crate) fn connected() -> Self {
        // SAFETY: Task context, and the caller keeps the event connected.
        Self::from_raw(unsafe { bindings::rhist_sample_source() })
    }

    /// Chooses a source. Task context, may sleep.
    pub(crate) fn choose(self) -> Result<(), Refused> {
        let mut without = 0;
        // SAFETY: Task context. The function sets `without`.
        let result = to_result(unsafe { bindings::rhist_sample_choose(self.raw(), &mut without) });
        result.map_err(|errno| Refused {
            errno,
            cpu: Some(without).filter(|&cpu| (cpu as usize) < cpu::count()),
        })
    }
}

/// Why a source cannot be chosen.
pub(crate) struct Refused {
    /// `EBUSY` without a CPU if the event is connected, and another source is chosen. With a CPU:
    /// `EOPNOTSUPP` if that lacks a counter, `EBUSY` if others use all of them.
    pub(crate) errno: Error,
    /// The CPU without a counter.
    pub(crate) cpu: Option<u32>,
}

/// The cycles of a CPU since the event was connected.
#[repr(transparent)]
pub(crate) struct Cycles(bindings::rhist_cycles);

impl Cycles {
    /// Returns whether the CPU has, had or should have a counter.
    pub(crate) fn are_of_interest(&self) -> bool {
        self.0.counts || self.0.lacks || self.0.cycles != 0
    }

    /// Number of cycles. An unfinished period before the CPU went offline is left out.
    pub(crate) fn cycles(&self) -> u64 {
        self.0.cycles
    }

    /// Number of periods, by the counter.
    pub(crate) fn periods(&self) -> u64 {
        self.0.periods
    }

    /// Number of periods whose end was a hit.
    pub(crate) fn passed(&self) -> u64 {
        self.0.passed
    }

    /// Number of periods without a hit, because an earlier one came so late.
    pub(crate) fn late(&self) -> u64 {
        self.0.late
    }

    /// Returns whether the CPU is online without a counter.
    pub(crate) fn is_lacking(&self) -> bool {
        self.0.lacks
    }
}

/// The ticks, or periods, of all CPUs since the event was connected.
pub(crate) struct Ticks {
    all: bindings::rhist_ticks,
    /// For each possible number of a CPU, if the source is cycles.
    cycles: KVVec<Cycles>,
}

impl Ticks {
    /// Reads the counts: for each CPU at one moment, between two hits. Task context, may
    /// sleep. Fails with `ENOMEM`.
    pub(crate) fn now() -> Result<Self> {
        let mut cycles = KVVec::with_capacity(cpu::count(), GFP_KERNEL)?;
        for _ in 0..cpu::count() {
            cycles.push(Cycles(bindings::rhist_cycles::default()), GFP_KERNEL)?;
        }
        let mut all = bindings::rhist_ticks::default();
        // SAFETY: Task context. `cycles` has an element for each number of a CPU, and `Cycles` is a
        // transparent wrapper of that.
        unsafe { bindings::rhist_sample_ticks(&mut all, cycles.as_mut_ptr().cast()) };
        Ok(Self { all, cycles })
    }

    /// Returns whether the event is connected.
    pub(crate) fn are_counted(&self) -> bool {
        self.all.tgid != 0
    }

    /// Where they come from.
    pub(crate) fn source(&self) -> SampleSource {
        SampleSource::from_raw(self.all.source)
    }

    /// Number of ticks that were due, by the clock or the counters.
    pub(crate) fn due(&self) -> u64 {
        self.all.due
    }

    /// Number of ticks that were hits.
    pub(crate) fn passed(&self) -> u64 {
        self.all.passed
    }

    /// Number of ticks without a hit, because an earlier one came so late.
    pub(crate) fn late(&self) -> u64 {
        self.all.late
    }

    /// Number of ticks of CPUs that were offline, or are isolated.
    pub(crate) fn off(&self) -> u64 {
        self.all.off
    }

    /// Number of times that the kernel has stopped a counter until its next tick.
    pub(crate) fn throttled(&self) -> u64 {
        self.all.throttled
    }

    /// Ticks per second on each CPU, or cycles of a period.
    pub(crate) fn rate(&self) -> u32 {
        self.all.rate
    }

    /// If the clock stands in for cycles: the CPU that lacks a counter, and the errno for it.
    pub(crate) fn lacking(&self) -> Option<(u32, Error)> {
        let error = to_result(self.all.lacking).err()?;
        Some((self.all.lacking_cpu, error))
    }

    /// The cycles of each CPU, with its number; none with the clock.
    pub(crate) fn cycles(&self) -> impl Iterator<Item = (usize, &Cycles)> {
        let all = self.cycles.iter().enumerate();
        all.filter(|(_, cycles)| cycles.are_of_interest())
    }

    /// The program that connected the event: its name, and its process id.
    pub(crate) fn program(&self) -> (&[u8], i32) {
        let name = CStr::from_bytes_until_nul(&self.all.comm).unwrap_or_default();
        (name.to_bytes(), self.all.tgid)
    }
}

/// A number that cannot be changed while the event is connected.
#[derive(Clone, Copy)]
pub(crate) enum Setting {
    /// Ticks of the clock per second on each CPU.
    Frequency,
    /// Cycles of a period.
    Period,
}

impl Setting {
    /// Its present value. Task context.
    pub(crate) fn get(self) -> u32 {
        // SAFETY: Task context.
        unsafe {
            match self {
                Self::Frequency => bindings::rhist_sample_frequency(),
                Self::Period => bindings::rhist_sample_cycles(),
            }
        }
    }

    /// Changes it. Task context, may sleep.
    ///
    /// # Errors
    ///
    /// `EINVAL` if it is too low or too high; `EBUSY` if the event is connected, and it is another
    /// one.
    pub(crate) fn set(self, value: u32) -> Result {
        // SAFETY: Task context.
        to_result(unsafe {
            match self {
                Self::Frequency => bindings::rhist_sample_set_frequency(value),
                Self::Period => bindings::rhist_sample_set_cycles(value),
            }
        })
    }
}
