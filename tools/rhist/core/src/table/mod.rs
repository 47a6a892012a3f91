// SPDX-License-Identifier: MIT OR Apache-2.0

//! Contents of a histogram: rows of keys and values, independent of the kernel file that they came
//! from.
//!
//! A [`Table`] knows nothing of files, triggers or terminals. Readers create it, recordings store
//! it, printers show it.

use std::sync::Arc;

mod bucket;
mod counts;
mod dist;
pub mod fold;
mod histogram;
mod key;
mod program;
mod quantile;

use rustix::time::ClockId;
use rustix::time::clock_gettime;
use smallvec::SmallVec;

pub use bucket::Bucket;
pub use bucket::BucketUnit;
pub use counts::Counts;
pub use dist::Dist;
pub use histogram::Begin;
pub use histogram::Ended;
pub use histogram::Forgets;
pub use histogram::Histogram;
pub use histogram::Moment;
pub use histogram::ReadError;
pub use histogram::Span;
pub use key::Frame;
pub use key::Key;
pub use key::Other;
pub use key::Text;
pub use key::is_kernel_address;
pub use key::shown;
pub use program::Numbered;
pub use program::Place;
pub use program::ProgramNames;
pub use program::ProgramStack;
pub use quantile::Quantile;

/// Contents of a histogram at one time, or the increase between two times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Columns of the keys. Without any, a single row has all hits.
    pub keys: Vec<Column>,
    /// Columns of the values besides the hits.
    pub values: Vec<Column>,
    /// Rows in no particular order; all have different keys. Up to three of them stand for keys
    /// without a row: see [`Key::Other`].
    pub rows: Vec<Row>,
    /// Hits and values missing in the rows.
    pub losses: Losses,
    /// Time of the read.
    pub time: Time,
}

/// Name and meaning of a column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column {
    /// Name for people: the field, or the name from the recipe.
    pub name: String,
    /// Unit of its numbers.
    pub unit: Unit,
    /// Way to merge two values. Unused for keys.
    pub fold: Fold,
}

/// Unit of the numbers in a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// Plain number.
    #[default]
    Plain,
    /// Times in ns.
    Nanoseconds,
    /// Times in µs.
    Microseconds,
    /// Sizes or amounts of memory.
    Bytes,
}

/// Way to merge two values of a column when rows are merged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fold {
    /// Their sum; distributions are merged.
    #[default]
    Sum,
    /// The smaller one.
    Min,
    /// The larger one.
    Max,
}

/// Keys of a row. The most common case, a single key, is stored inline.
pub type Keys = SmallVec<[Key; 1]>;

/// An entry of a histogram.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Parallel to [`Table::keys`].
    pub keys: Keys,
    /// Number of events counted.
    pub hits: u64,
    /// Parallel to [`Table::values`].
    pub values: Vec<Value>,
    /// Largest value, with the fields saved along with it.
    pub worst: Option<Worst>,
    /// When its keys were first counted. `None` if unknown.
    pub begin: Option<Begin>,
    /// When an interval with hits of it ended: `CLOCK_BOOTTIME` in nanoseconds. `None` if unknown.
    pub last_ns: Option<u64>,
}

/// Value of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Sum, minimum or maximum. Covers any `u64` and any `i64`.
    Number(i128),
    /// Distribution of values, from `.dist` or made of ranges.
    Dist(Dist),
    /// Unknown: an extreme of an interval that did not change, or a value that C's text does not
    /// show.
    Unknown,
}

/// Largest value of an entry, as stored by `onmax()`. The order of equal values is fixed, so that
/// merging does not depend on its order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Worst {
    /// The value, in the unit of the first distribution of the table.
    pub value: i128,
    /// Fields that `save()` has stored at that event: names and values. Shared between a reading
    /// and its interval.
    pub saved: Arc<[(Arc<str>, Key)]>,
}

/// Hits and values that were not counted. `None` if the kernel does not report the number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Hits whose keys got no entry.
    pub dropped: u64,
    /// Part of `dropped`: hits of starts, or of ends that look up starts. Their entries are not
    /// rows of the table.
    pub dropped_starts: u64,
    /// Values without a bucket in a distribution; its count, sum, minimum and maximum include them.
    pub no_bucket: Option<u64>,
    /// Hits of an end without a start.
    pub unresolved: Option<u64>,
    /// Starts and maxima that were not stored, because too many hits ran at once.
    pub missed: Option<u64>,
    /// Hits for which the kernel did not call the trigger, or the module had no buffer for the
    /// record.
    pub missed_hits: Option<u64>,
    /// Starts that were taken out before their end, since they were idle for so long.
    pub expired_starts: Option<u64>,
}

/// A time by two clocks. 0 if unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time {
    /// `CLOCK_REALTIME` in nanoseconds.
    pub realtime_ns: u64,
    /// `CLOCK_MONOTONIC` in nanoseconds.
    pub monotonic_ns: u64,
    /// `/proc/sys/kernel/random/boot_id`.
    pub boot_id: Option<String>,
}

impl Time {
    /// Current time of this machine.
    pub fn now() -> Self {
        let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
        Self {
            boot_id: boot_id.map(|id| id.trim_end().to_owned()),
            ..Self::clocks()
        }
    }

    /// Current clocks, without `boot_id`, which would need a read of a file.
    pub fn clocks() -> Self {
        Self {
            realtime_ns: nanoseconds(ClockId::Realtime),
            monotonic_ns: nanoseconds(ClockId::Monotonic),
            boot_id: None,
        }
    }

    /// This time in nanoseconds of `CLOCK_REALTIME`, never after `later`. If the clock was set back
    /// in between, computes it from `later` and the difference in `CLOCK_MONOTONIC`.
    pub fn realtime_before(&self, later: &Time) -> u64 {
        if self.realtime_ns <= later.realtime_ns {
            return self.realtime_ns;
        }
        let ago = later.monotonic_ns.saturating_sub(self.monotonic_ns);
        later.realtime_ns.saturating_sub(ago)
    }
}

/// Reads a clock.
fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    u64::try_from(i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)).unwrap_or(0)
}
