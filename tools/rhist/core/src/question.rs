// SPDX-License-Identifier: MIT OR Apache-2.0

//! The question and its readings: the interface between sources (running triggers, replayed
//! recordings) and consumers (pages, recordings, comparisons).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rustix::time::ClockId;
use rustix::time::clock_getres;

use crate::names::Names;
use crate::recipe::NameKind;
use crate::samples::Samples;
use crate::table::Column;
use crate::table::Key;
use crate::table::Table;
use crate::table::Time;
use crate::table::Unit;
use crate::table::fold;
use crate::tracefs::Backend;

/// A question with its context. Constant for all readings of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Question {
    /// Name of the recipe, or `count`, `between`.
    pub name: String,
    /// One line that describes the measurement.
    pub summary: String,
    /// Noun for the counted things, in the plural.
    pub noun: String,
    /// Unit of the distribution.
    pub unit: Unit,
    /// Sentence for the largest value: see [`crate::recipe::Measure::worst`].
    pub worst: String,
    /// Kinds of names for numbers in key columns and saved fields, if other than
    /// [usual](Names::usual).
    pub names: BTreeMap<String, NameKind>,
    /// Values that can be negative according to the types of their fields.
    pub signed: Vec<String>,
    /// Keys and saved fields of less than 64 bits, which therefore never contain addresses.
    pub narrow: Vec<String>,
    /// Shell commands that started the measurement.
    pub triggers: Vec<String>,
    /// Sentences that a reader of the numbers must know, such as limits of the kernel.
    pub notes: Vec<String>,
    /// Implementation of the histograms: rhist's or C's.
    pub backend: Backend,
    /// Name of the machine.
    pub host: String,
    /// Release of the kernel.
    pub kernel: String,
    /// Whether its intervals are the kernel's, cut at one moment, or else differences of totals.
    pub has_exact_intervals: bool,
    /// Number of CPUs online.
    pub cpus: u32,
    /// Resolution of the clock for times, in nanoseconds, if it is so coarse that shorter times
    /// read as 0.
    pub clock_step_ns: Option<u64>,
}

impl Question {
    /// Creates a question with the properties of this machine.
    pub fn of_this_machine() -> Self {
        Self {
            host: read_proc("sys/kernel/hostname"),
            kernel: read_proc("sys/kernel/osrelease"),
            cpus: std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32),
            clock_step_ns: clock_step(),
            ..Self::default()
        }
    }

    /// Kind of names for numbers in a column, which is a key or a saved field.
    pub fn name_kind(&self, column: &str) -> NameKind {
        let kind = self.names.get(column).copied();
        kind.unwrap_or_else(|| Names::usual(column))
    }

    /// Returns whether a key of this column, or a saved field, contains a kernel address.
    pub fn has_address(&self, column: &str, key: &Key) -> bool {
        let is_number = matches!(key, Key::Number(_) | Key::Range { .. });
        key.has_address() && !(is_number && self.narrow.iter().any(|narrow| narrow == column))
    }

    /// Returns whether a value can be negative, so that its sum can fall: see [`is_signed()`].
    pub fn is_signed(&self, value: &str) -> bool {
        is_signed(&self.signed, value)
    }
}

/// Returns whether a value can be negative: a difference, or an expression that contains one of the
/// fields `signed`.
pub fn is_signed(signed: &[String], value: &str) -> bool {
    let mut words = value.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    value.contains('-') || words.any(|word| signed.iter().any(|signed| signed == word))
}

/// Resolution of the clock of trace events, if it is the timer tick, as in user-mode Linux. `None`
/// with other clock sources, where the scheduler's clock uses the processor's counter between two
/// ticks.
fn clock_step() -> Option<u64> {
    let source = fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource").ok()?;
    let is_coarse = matches!(source.trim(), "timer" | "jiffies" | "refined-jiffies");
    let tick = clock_getres(ClockId::MonotonicCoarse);
    is_coarse.then_some(tick.tv_sec as u64 * 1_000_000_000 + tick.tv_nsec as u64)
}

/// Reads a one-line file of `/proc`; empty if it cannot be read.
fn read_proc(file: &str) -> String {
    fs::read_to_string(Path::new("/proc").join(file))
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// Numbers read at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// Totals since the start of the run.
    pub table: Table,
    /// Hits of all triggers of the run since its start, without hits rejected by a filter. Includes
    /// triggers without results, such as starts.
    pub events: u64,
    /// Hits that the filters have rejected. `None` if the kernel does not count them.
    pub rejected: Option<u64>,
    /// Cost of a hit on this machine.
    pub cost: Cost,
    /// Fill level of the fullest histogram.
    pub fill: Fill,
    /// For `rhist:sample`: the ticks since the start of the run, read just before the table.
    pub samples: Option<Samples>,
}

/// Cost of a hit, in nanoseconds of CPU time. `None` if not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Cost of a counted hit.
    pub event_ns: Option<f64>,
    /// Cost of a hit that a filter rejects.
    pub rejected_ns: Option<f64>,
}

impl Cost {
    /// Cost of all these hits in nanoseconds of CPU time, as far as measured.
    pub fn of(self, events: u64, rejected: Option<u64>) -> Option<f64> {
        let rejected = rejected.zip(self.rejected_ns);
        let rejected = rejected.map_or(0.0, |(hits, ns)| hits as f64 * ns);
        self.event_ns.map(|ns| events as f64 * ns + rejected)
    }
}

/// Fill level of a histogram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fill {
    /// Number of entries in use.
    pub entries: u64,
    /// Maximum number of entries.
    pub size: u64,
    /// Whether the entries are starts rather than results.
    pub is_of_starts: bool,
}

impl Fill {
    /// The fuller of two; the later one if they are equal.
    pub fn max(self, later: Self) -> Self {
        // a/b >= c/d, without division.
        let part = |entries: u64, size: u64| u128::from(entries) * u128::from(size);
        match part(later.entries, self.size) >= part(self.entries, later.size) {
            true => later,
            false => self,
        }
    }
}

/// Counts of an interval: cut by the kernel, or the difference of two readings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Interval {
    /// Its begin. If the kernel has measured its length, `monotonic_ns` is that long before `to`:
    /// in boot time, in which a suspended machine goes on.
    pub from: Time,
    /// Its end.
    pub to: Time,
    /// Hits, sums and buckets of this interval. So are minima and maxima if the kernel has cut it.
    /// Two readings do not determine them: then they are `None` unless they must have happened in
    /// it. Without rows that did not change.
    pub delta: Table,
    /// See [`Reading::events`].
    pub events: u64,
    /// See [`Reading::rejected`].
    pub rejected: Option<u64>,
    /// See [`Reading::cost`].
    pub cost: Cost,
    /// Fill level of the fullest histogram at its end.
    pub fill: Fill,
    /// Sentences about what other programs did to the histograms in it, and about its numbers.
    pub notes: Vec<String>,
}

/// Source of intervals: a run, or a recording that is replayed.
pub trait Source {
    /// The question that the intervals answer.
    fn question(&self) -> &Question;

    /// Asks for the end of the interval, without waiting for it. If the kernel cuts intervals,
    /// sources that are asked together share a cut.
    fn ask(&mut self) {}

    /// Lets go of the kernel's files of intervals, so that the module can be unloaded. The next
    /// intervals are differences of totals. Nothing is lost or counted twice.
    fn release(&mut self) {}

    /// Lets the kernel cut the intervals again, from the end of the next one on, if it can.
    fn resume(&mut self) {}

    /// Ends the interval that began with the end of the one before. `None` at the end of a
    /// recording.
    fn interval(&mut self) -> Result<Option<Interval>, Box<dyn std::error::Error + Send + Sync>>;

    /// The totals at the end of the last interval; before the first one, an empty reading at its
    /// begin.
    fn total(&mut self) -> &Reading;
}

impl Reading {
    /// Increase since `earlier`, an older reading of the same run.
    pub fn since(&self, earlier: Reading) -> Interval {
        Interval {
            from: earlier.table.time.clone(),
            to: self.table.time.clone(),
            delta: self.table.since(earlier.table),
            events: self.events.saturating_sub(earlier.events),
            rejected: fold::less(self.rejected, earlier.rejected),
            cost: self.cost,
            fill: self.fill,
            notes: Vec::new(),
        }
    }

    /// Returns whether a number that cannot fall is lower in `later`: somebody has cleared a
    /// histogram in between. `question` tells which sums can fall.
    pub fn exceeds(&self, later: &Reading, question: &Question) -> bool {
        let can_fall = |column: &Column| question.is_signed(&column.name);
        self.events > later.events || self.rejected > later.rejected || self.table.exceeds(&later.table, can_fall)
    }

    /// Like [`Self::since()`], for OTLP receivers, which cannot use the part of a sum whose values
    /// are still missing: moves that part from this reading to the next interval.
    pub fn whole_since(&mut self, earlier: Reading) -> Interval {
        let mut interval = self.since(earlier);
        self.table.hold_back(&mut interval.delta);
        interval
    }
}

impl Reading {
    /// Adds the next interval to the total of those before.
    pub fn append(&mut self, next: Interval) {
        self.table.append(next.delta);
        self.table.time = next.to;
        self.events = self.events.saturating_add(next.events);
        self.rejected = fold::sum(self.rejected, next.rejected);
        self.fill = next.fill;
        if next.cost != Cost::default() {
            self.cost = next.cost;
        }
    }

    /// Returns all that was counted from this time on.
    pub fn into_interval(self, from: Time) -> Interval {
        Interval {
            from,
            to: self.table.time.clone(),
            delta: self.table,
            events: self.events,
            rejected: self.rejected,
            cost: self.cost,
            fill: self.fill,
            notes: Vec::new(),
        }
    }
}

impl Interval {
    /// Returns the totals at its end, if nothing was counted before its beginning.
    pub fn into_reading(self) -> Reading {
        Reading {
            table: Table {
                time: self.to,
                ..self.delta
            },
            events: self.events,
            rejected: self.rejected,
            cost: self.cost,
            fill: self.fill,
            samples: None,
        }
    }

    /// Length in seconds.
    pub fn seconds(&self) -> f64 {
        self.to.monotonic_ns.saturating_sub(self.from.monotonic_ns) as f64 / 1e9
    }

    /// Share of one CPU that its hits cost: 0.01 is one per cent.
    pub fn cpus(&self) -> Option<f64> {
        let seconds = self.seconds();
        let ns = self.cost.of(self.events, self.rejected);
        ns.filter(|_| seconds > 0.0).map(|ns| ns / 1e9 / seconds)
    }
}
