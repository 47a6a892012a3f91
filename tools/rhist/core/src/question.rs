// SPDX-License-Identifier: MIT OR Apache-2.0

//! What was asked, and where the answers come from: the interface between what runs triggers or replays recordings, and
//! what shows, records or compares them.

use std::collections::BTreeMap;

use crate::names::Names;
use crate::recipe::NameKind;
use crate::table::Key;
use crate::table::Table;
use crate::table::Time;
use crate::table::Unit;
use crate::table::fold;

/// What was asked. The same for all readings of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Question {
    /// Name of the recipe, or `count`, `between`.
    pub name: String,
    /// One line: what is measured.
    pub summary: String,
    /// What is counted, in the plural.
    pub noun: String,
    /// Unit of the distribution.
    pub unit: Unit,
    /// Sentence for the largest value: see [`crate::recipe::Measure::worst`].
    pub worst: String,
    /// How numbers of key columns and saved fields are named where that is not [usual](Names::usual).
    pub names: BTreeMap<String, NameKind>,
    /// Values that can be below zero, by the types of their fields.
    pub signed: Vec<String>,
    /// Keys and saved fields that have less than 64 bits: no number in these is an address.
    pub narrow: Vec<String>,
    /// The commands that started it, as a shell takes them.
    pub triggers: Vec<String>,
    /// Sentences that a reader of the numbers has to know, such as what the kernel cannot tell.
    pub notes: Vec<String>,
    /// Whose histograms: rhist's or C's.
    pub backend: Backend,
    /// Name of the machine.
    pub host: String,
    /// Release of its kernel.
    pub kernel: String,
    /// CPUs that are online.
    pub cpus: u32,
    /// The step of the clock of times, in nanoseconds, where it is so long that shorter times are
    /// shown as 0.
    pub clock_step_ns: Option<u64>,
}

impl Question {
    /// How numbers are named in a column, which is a key or a saved field.
    pub fn name_kind(&self, column: &str) -> NameKind {
        let kind = self.names.get(column).copied();
        kind.unwrap_or_else(|| Names::usual(column))
    }

    /// Whether there are addresses in a key of this column, or in a saved field.
    pub fn has_address(&self, column: &str, key: &Key) -> bool {
        let is_number = matches!(key, Key::Number(_) | Key::Range { .. });
        key.has_address() && !(is_number && self.narrow.iter().any(|narrow| narrow == column))
    }

    /// Whether a value can be below zero, so that its sum can fall: see [`is_signed()`].
    pub fn is_signed(&self, value: &str) -> bool {
        is_signed(&self.signed, value)
    }
}

/// Whether a value can be below zero if those of `signed` can: a difference, or what one of these is in. A value may be an
/// expression of fields.
pub fn is_signed(signed: &[String], value: &str) -> bool {
    let mut words = value.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    value.contains('-') || words.any(|word| signed.iter().any(|signed| signed == word))
}

/// Whose histograms are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// Those of the module rhist.
    #[default]
    Rhist,
    /// The kernel's own.
    C,
}

/// What was read at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// Totals since the start of the run.
    pub table: Table,
    /// Hits of all triggers of the run since its start that no filter has rejected, also those that
    /// show nothing, such as starts.
    pub events: u64,
    /// Hits that the filters of the triggers have rejected. `None` where the kernel does not tell.
    pub rejected: Option<u64>,
    /// What a hit costs on this machine.
    pub cost: Cost,
    /// How full the fullest histogram is.
    pub fill: Fill,
}

/// What a hit costs, in nanoseconds of a CPU. `None`: it was not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// One that is counted.
    pub event_ns: Option<f64>,
    /// One that a filter rejects.
    pub rejected_ns: Option<f64>,
}

impl Cost {
    /// What so many hits cost in all, in nanoseconds of a CPU, as far as that was measured.
    pub fn of(self, events: u64, rejected: Option<u64>) -> Option<f64> {
        let rejected = rejected.zip(self.rejected_ns);
        let rejected = rejected.map_or(0.0, |(hits, ns)| hits as f64 * ns);
        self.event_ns.map(|ns| events as f64 * ns + rejected)
    }
}

/// How full a histogram is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fill {
    /// How many entries it has.
    pub entries: u64,
    /// For how many there is room.
    pub size: u64,
    /// Whether they are those of starts, and not of results.
    pub is_of_starts: bool,
}

impl Fill {
    /// The fuller one of two; of equal ones the later.
    pub fn max(self, later: Self) -> Self {
        // a/b >= c/d, without division.
        let part = |entries: u64, size: u64| u128::from(entries) * u128::from(size);
        match part(later.entries, self.size) >= part(self.entries, later.size) {
            true => later,
            false => self,
        }
    }
}

/// What was added between two readings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Interval {
    /// Time of the reading before.
    pub from: Time,
    /// Time of this reading.
    pub to: Time,
    /// What was added: hits, sums and buckets are exact differences of totals. Largest and smallest values of the interval are
    /// not known from those; they are `None` unless they must have happened in it.
    pub delta: Table,
    /// See [`Reading::events`].
    pub events: u64,
    /// See [`Reading::rejected`].
    pub rejected: Option<u64>,
    /// See [`Reading::cost`].
    pub cost: Cost,
}

/// Where readings come from: a run, or a recording that is replayed.
pub trait Source {
    /// What was asked.
    fn question(&self) -> &Question;

    /// Reads once more. `None` at the end of a recording.
    fn read(&mut self) -> Result<Option<Reading>, Box<dyn std::error::Error + Send + Sync>>;
}

impl Reading {
    /// What was added since `earlier`, an older reading of the same run.
    pub fn since(&self, earlier: Reading) -> Interval {
        Interval {
            from: earlier.table.time.clone(),
            to: self.table.time.clone(),
            delta: self.table.since(earlier.table),
            events: self.events.saturating_sub(earlier.events),
            rejected: fold::less(self.rejected, earlier.rejected),
            cost: self.cost,
        }
    }

    /// As [`Self::since()`], for receivers to whom a sum without values means nothing, as OTLP has it: such a part of a sum is
    /// taken from this reading, and is in the next interval.
    pub fn whole_since(&mut self, earlier: Reading) -> Interval {
        let mut interval = self.since(earlier);
        self.table.hold_back(&mut interval.delta);
        interval
    }
}

impl Interval {
    /// Seconds that it lasted.
    pub fn seconds(&self) -> f64 {
        self.to.monotonic_ns.saturating_sub(self.from.monotonic_ns) as f64 / 1e9
    }

    /// The part of one CPU that its hits cost: 0.01 is one per cent.
    pub fn cpus(&self) -> Option<f64> {
        let seconds = self.seconds();
        let ns = self.cost.of(self.events, self.rejected);
        ns.filter(|_| seconds > 0.0).map(|ns| ns / 1e9 / seconds)
    }
}
