// SPDX-License-Identifier: MIT OR Apache-2.0

//! Names of metrics and attributes, and words for what a question has.

use std::collections::BTreeSet;

use super::flat;
use crate::question::Backend;
use crate::table::BucketUnit;
use crate::table::Column;
use crate::table::Fold;
use crate::table::Unit;

/// `CLOCK_MONOTONIC` at the end of the interval, in nanoseconds.
pub const MONOTONIC: &str = "rhist.monotonic";
/// How long the interval lasted by that clock.
pub const DURATION: &str = "rhist.duration";
/// See [`crate::question::Interval::events`].
pub const EVENTS: &str = "rhist.events";
/// See [`crate::question::Interval::rejected`].
pub const REJECTED: &str = "rhist.rejected";
/// See [`crate::question::Cost`].
pub const COST: &str = "rhist.cost";
/// See [`crate::question::Cost`].
pub const REJECTED_COST: &str = "rhist.rejected_cost";
/// See [`crate::table::Losses`].
pub const DROPPED: &str = "rhist.dropped";
/// See [`crate::table::Losses`].
pub const DROPPED_STARTS: &str = "rhist.dropped_starts";
/// See [`crate::table::Losses`].
pub const NO_BUCKET: &str = "rhist.no_bucket";
/// See [`crate::table::Losses`].
pub const UNRESOLVED: &str = "rhist.unresolved";
/// See [`crate::table::Losses`].
pub const MISSED: &str = "rhist.missed";
/// See [`crate::table::Losses`].
pub const MISSED_HITS: &str = "rhist.missed_hits";

/// Names of the metrics that have the rows of a table. All are different, whatever its columns are called.
pub struct Names {
    /// Of the hits.
    pub hits: String,
    /// Of each value.
    pub values: Vec<String>,
    /// Of each value: of how many of a distribution are in no bucket.
    pub no_bucket: Vec<String>,
}

impl Names {
    /// Names for a question and the columns of its values.
    pub fn new(question: &str, values: &[Column]) -> Self {
        let mut taken = BTreeSet::from(
            [
                MONOTONIC,
                DURATION,
                EVENTS,
                REJECTED,
                COST,
                REJECTED_COST,
                DROPPED,
                DROPPED_STARTS,
                NO_BUCKET,
                UNRESOLVED,
                MISSED,
                MISSED_HITS,
            ]
            .map(str::to_owned),
        );
        let hits = unique(format!("{question}.hits"), &mut taken);
        let names: Vec<_> = values
            .iter()
            .map(|column| unique(format!("{question}.{}", column.name), &mut taken))
            .collect();
        let no_bucket = names
            .iter()
            .map(|name| unique(format!("{name}.no_bucket"), &mut taken))
            .collect();
        Names {
            hits,
            values: names,
            no_bucket,
        }
    }
}

/// Names of the attributes for key columns: of each column for its keys, and for what these are called, where that is not in
/// the same attribute. All are different.
pub fn keys(columns: &[Column]) -> Vec<[String; 2]> {
    let mut taken = BTreeSet::new();
    let keys: Vec<_> = columns
        .iter()
        .map(|column| unique(column.name.clone(), &mut taken))
        .collect();
    keys.into_iter()
        .map(|name| {
            let second = unique(flat::second(&name), &mut taken);
            [name, second]
        })
        .collect()
}

/// Adds a number to a name that is taken.
fn unique(name: String, taken: &mut BTreeSet<String>) -> String {
    let mut candidate = name.clone();
    let mut number = 1;
    while !taken.insert(candidate.clone()) {
        number += 1;
        candidate = format!("{name}#{number}");
    }
    candidate
}

/// Things that have a word in recordings.
pub trait Word: Copy + Sized + 'static {
    /// All of them.
    const ALL: &'static [Self];

    /// The word for this one.
    fn word(self) -> &'static str;

    /// What a word means.
    fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|known| known.word() == word)
    }
}

/// As in the Unified Code for Units of Measure, which OTLP recommends.
impl Word for Unit {
    const ALL: &'static [Self] = &[Unit::Plain, Unit::Nanoseconds, Unit::Microseconds, Unit::Bytes];

    fn word(self) -> &'static str {
        match self {
            Unit::Plain => "1",
            Unit::Nanoseconds => "ns",
            Unit::Microseconds => "us",
            Unit::Bytes => "By",
        }
    }
}

/// What a metric has instead of the unit of its column.
impl Word for BucketUnit {
    const ALL: &'static [Self] = &[BucketUnit::One, BucketUnit::Us, BucketUnit::Ms, BucketUnit::S];

    fn word(self) -> &'static str {
        BucketUnit::word(self)
    }
}

impl Word for Fold {
    const ALL: &'static [Self] = &[Fold::Sum, Fold::Min, Fold::Max];

    fn word(self) -> &'static str {
        match self {
            Fold::Sum => "sum",
            Fold::Min => "min",
            Fold::Max => "max",
        }
    }
}

impl Word for Backend {
    const ALL: &'static [Self] = &[Backend::Rhist, Backend::C];

    fn word(self) -> &'static str {
        match self {
            Backend::Rhist => "rhist",
            Backend::C => "C",
        }
    }
}

/// How many decimals a number has that was whole before it was divided by this.
pub fn decimals(unit: BucketUnit) -> usize {
    match unit {
        BucketUnit::One => 0,
        BucketUnit::Us => 3,
        BucketUnit::Ms => 6,
        BucketUnit::S => 9,
    }
}
