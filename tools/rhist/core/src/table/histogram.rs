// SPDX-License-Identifier: MIT OR Apache-2.0

//! A histogram from a file of the kernel.

use std::fmt;
use std::io;

use rustix::time::ClockId;

use super::Table;
use super::Text;
use super::fold;
use super::nanoseconds;

/// A histogram, read from `hist_jsonl` or `hist`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// Command that creates its trigger, or removes it if preceded by `!`.
    pub trigger: Text,
    /// System of the event. Empty if read from `hist`, which does not contain it.
    pub system: String,
    /// Name of the event. Empty if read from `hist`.
    pub event: String,
    /// Name of the histogram (`name=`).
    pub name: Option<Text>,
    /// Filter of the trigger (`if`).
    pub filter: Option<Text>,
    /// Whether it is paused.
    pub paused: bool,
    /// Maximum number of entries.
    pub size: u64,
    /// Clock of the times in it, if any.
    pub clock: Option<String>,
    /// Hits of all rows.
    pub hits: u64,
    /// Number of entries. With `limit()`, the table has fewer rows.
    pub entries: u64,
    /// Which entries are taken out of it, so that their keys may come again in new ones. `None` if
    /// all stay.
    pub forgets: Option<Forgets>,
    /// Number of entries that were taken out since they were idle, while one of their variables was
    /// set: starts without an end.
    pub expired_set: Option<u64>,
    /// Keys that were inserted while the last entry was taken; their hits are dropped. `None` if
    /// read from `hist`.
    pub excess: Option<u64>,
    /// Hits rejected by its filter. `None` if read from `hist`.
    pub rejected: Option<u64>,
    /// Entries of the histogram.
    pub table: Table,
    /// The interval in which all this was counted, if read from `hist_delta_jsonl`.
    pub span: Option<Span>,
}

/// Entries that are taken out of a histogram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forgets {
    /// Entries without hits for so long, in nanoseconds, more or less a quarter.
    pub idle_ns: Option<u64>,
    /// Entries whose variables were used up, at once: starts.
    pub taken: bool,
}

/// A moment by two clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    /// `CLOCK_BOOTTIME` in nanoseconds.
    pub boottime_ns: u64,
    /// `CLOCK_REALTIME` in nanoseconds.
    pub realtime_ns: u64,
}

/// When a row began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Begin {
    /// When its keys were first counted.
    pub at: Moment,
    /// When its histogram began, by `CLOCK_BOOTTIME` in nanoseconds. One that is cleared begins
    /// again, and so do its rows.
    pub histogram_ns: u64,
}

/// An interval of a histogram, as the kernel has cut it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Its begin: the end of the interval before, or the begin of the histogram.
    pub begin: Moment,
    /// Moment at which the kernel cut it.
    pub end: Moment,
    /// How the histogram ended with this interval, if it did.
    pub ended: Option<Ended>,
    /// Number of histograms that ended before this interval, and whose last interval the kernel
    /// did not keep.
    pub lost_histograms: u64,
}

/// End of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Somebody cleared it: it goes on from 0.
    Cleared,
    /// Somebody removed it.
    Removed,
}

impl Moment {
    /// Current time of this machine.
    pub fn now() -> Self {
        Self {
            boottime_ns: nanoseconds(ClockId::Boottime),
            realtime_ns: nanoseconds(ClockId::Realtime),
        }
    }

    /// Another moment by its `CLOCK_BOOTTIME`, as the clocks are set at this one.
    pub fn at(&self, boottime_ns: u64) -> Self {
        let apart = i128::from(boottime_ns) - i128::from(self.boottime_ns);
        Self {
            boottime_ns,
            realtime_ns: u64::try_from(i128::from(self.realtime_ns) + apart).unwrap_or(0),
        }
    }
}

impl Begin {
    /// Returns whether the row that began `before` was taken out of the histogram since, and its
    /// keys came again.
    pub fn is_after(&self, before: &Begin) -> bool {
        self.histogram_ns == before.histogram_ns && self.at.boottime_ns > before.at.boottime_ns
    }
}

impl Histogram {
    /// Returns whether both are counted by the same trigger.
    pub fn is_same(&self, other: &Histogram) -> bool {
        self.trigger == other.trigger && self.filter == other.filter
    }

    /// Describes the first difference from another reading of the same counts; `None` if they are
    /// equal.
    pub fn difference(&self, total: &Histogram) -> Option<String> {
        let unequal = |what: &str, ours: u64, theirs: u64| {
            (ours != theirs).then(|| format!("{what}: the intervals add up to {ours}, the histogram has {theirs}"))
        };
        let (ours, theirs) = (&self.table.losses, &total.table.losses);
        unequal("hits", self.hits, total.hits)
            .or_else(|| unequal("dropped hits", ours.dropped, theirs.dropped))
            .or_else(|| {
                let numbers = [ours.unresolved, theirs.unresolved].map(Option::unwrap_or_default);
                unequal("hits without a start", numbers[0], numbers[1])
            })
            .or_else(|| {
                let numbers = [self.rejected, total.rejected].map(Option::unwrap_or_default);
                unequal("rejected hits", numbers[0], numbers[1])
            })
            .or_else(|| self.table.difference(&total.table))
    }

    /// Adds the next interval of this histogram.
    pub fn append(&mut self, next: Histogram) {
        self.paused = next.paused;
        self.hits = self.hits.saturating_add(next.hits);
        self.rejected = fold::sum(self.rejected, next.rejected);
        self.excess = fold::sum(self.excess, next.excess);
        self.expired_set = fold::sum(self.expired_set, next.expired_set);
        if self.forgets.is_some() {
            self.table.take_out_reborn(&next.table);
        }
        self.table.append(next.table);
        if let Some(forgets) = self.forgets {
            let now_ns = next.span.map_or(0, |span| span.end.boottime_ns);
            self.table.take_out_old(forgets, now_ns, self.size);
        }
        self.entries = self.table.entries();
        self.span = match (self.span, next.span) {
            (Some(ours), Some(theirs)) => Some(Span {
                begin: ours.begin,
                ..theirs
            }),
            (ours, theirs) => theirs.or(ours),
        };
    }
}

/// Error of reading a file of histograms. Prints as a sentence without a full stop.
#[derive(Debug)]
pub enum ReadError {
    /// Reading the file failed.
    Io(io::Error),
    /// The file ends, or another histogram begins, before the totals of a histogram: the writer was
    /// interrupted.
    Incomplete {
        /// Last line.
        line: usize,
    },
    /// The schema has an unknown version.
    Version {
        /// Line with the version.
        line: usize,
        /// Version in the file.
        found: u64,
    },
    /// The file has another format.
    Format {
        /// Line, from 1.
        line: usize,
        /// Description of the fault.
        what: String,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Io(error) => write!(f, "reading failed: {error}"),
            ReadError::Incomplete { line } => {
                write!(f, "line {line}: the histogram has no totals: the file is incomplete")
            }
            ReadError::Version { line, found } => {
                write!(
                    f,
                    "line {line}: schema {found} is not known; rhist of a newer version may read it"
                )
            }
            ReadError::Format { line, what } => write!(f, "line {line}: {what}"),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ReadError::Io(error) => Some(error),
            _ => None,
        }
    }
}
