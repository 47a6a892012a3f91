// SPDX-License-Identifier: MIT OR Apache-2.0

//! Contents of a histogram: rows of keys and values, whichever kernel file they were read from.
//!
//! A [`Table`] knows nothing of files, triggers or terminals. Readers make it, recordings keep it, printers show it.

use std::sync::Arc;

mod bucket;
mod counts;
mod dist;
pub(crate) mod fold;
mod histogram;
mod key;
mod quantile;

use rustix::time::ClockId;
use rustix::time::clock_gettime;
use smallvec::SmallVec;

pub use bucket::Bucket;
pub use counts::Counts;
pub use dist::BucketUnit;
pub use dist::Dist;
pub use histogram::Histogram;
pub use histogram::ReadError;
pub use key::Frame;
pub use key::Key;
pub use key::Text;
pub use key::is_kernel_address;
pub use quantile::Quantile;

/// Contents of a histogram at one time, or what was added between two times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// A column for each key; may be empty, for one row that has all hits.
    pub keys: Vec<Column>,
    /// A column for each value beside the hits.
    pub values: Vec<Column>,
    /// Sorted by nothing in particular; no two have the same keys.
    pub rows: Vec<Row>,
    /// What is not in the rows.
    pub losses: Losses,
    /// When the rows were read.
    pub time: Time,
}

/// Name and meaning of a column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column {
    /// For people: the field, or what the recipe calls it.
    pub name: String,
    /// Unit of its numbers.
    pub unit: Unit,
    /// How two values become one. Of no importance for keys.
    pub fold: Fold,
}

/// Unit of the numbers in a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// A number of things.
    #[default]
    Plain,
    /// Nanoseconds.
    Nanoseconds,
    /// Microseconds.
    Microseconds,
    /// Bytes.
    Bytes,
}

/// How two values of a column become one when rows are merged.
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

/// Keys of a row. Most have one, which needs no memory of its own.
pub type Keys = SmallVec<[Key; 1]>;

/// An entry.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Parallel to [`Table::keys`].
    pub keys: Keys,
    /// How many events were counted here.
    pub hits: u64,
    /// Parallel to [`Table::values`].
    pub values: Vec<Value>,
    /// The largest value, and what was saved with it.
    pub worst: Option<Worst>,
}

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A sum, minimum or maximum. Holds any `u64` and any `i64`.
    Number(i128),
    /// A distribution.
    Dist(Dist),
    /// It is not known: a minimum or maximum of an interval that did not change, or what C's text does not show.
    Unknown,
}

/// The largest value of an entry: what `onmax()` has stored. Of equal values always the same is the larger one, whichever comes
/// first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Worst {
    /// The value, in the unit of the first distribution of the table.
    pub value: i128,
    /// What `save()` has kept of that event: names and values. Shared, as it goes from a reading into its interval.
    pub saved: Arc<[(Arc<str>, Key)]>,
}

/// What was not counted. `None` where the kernel does not tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Hits for whose keys there was no entry.
    pub dropped: u64,
    /// Dropped hits that are starts, or ends that look for one: their entries are not those of the
    /// rows.
    pub dropped_starts: u64,
    /// Values that are in no bucket of a distribution; they are in its count, sum, minimum and maximum.
    pub no_bucket: Option<u64>,
    /// Hits of an end without a start.
    pub unresolved: Option<u64>,
    /// Starts and maxima that were not stored, since too many hits were at work.
    pub missed: Option<u64>,
    /// Hits for which the kernel has not called, or of which the module had no room for a record.
    pub missed_hits: Option<u64>,
}

/// A time by two clocks. Zero: not known.
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
    /// The time of this machine.
    pub fn now() -> Self {
        let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
        Self {
            boot_id: boot_id.map(|id| id.trim_end().to_owned()),
            ..Self::clocks()
        }
    }

    /// What the clocks say now, without `boot_id`, which is read from a file.
    pub fn clocks() -> Self {
        let ns = |clock| {
            let time = clock_gettime(clock);
            u64::try_from(i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)).unwrap_or(0)
        };
        Self {
            realtime_ns: ns(ClockId::Realtime),
            monotonic_ns: ns(ClockId::Monotonic),
            boot_id: None,
        }
    }

    /// This time in nanoseconds of `CLOCK_REALTIME`, never after `later`: if the clock was set back in between, it is as long
    /// before `later` as `CLOCK_MONOTONIC` says.
    pub fn realtime_before(&self, later: &Time) -> u64 {
        if self.realtime_ns <= later.realtime_ns {
            return self.realtime_ns;
        }
        let ago = later.monotonic_ns.saturating_sub(self.monotonic_ns);
        later.realtime_ns.saturating_sub(ago)
    }
}
