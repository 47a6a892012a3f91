// SPDX-License-Identifier: MIT OR Apache-2.0

//! Names of metrics and attributes, and words for the properties of a question.

use std::collections::BTreeSet;

use crate::table::BucketUnit;
use crate::table::Column;
use crate::table::Fold;
use crate::table::Unit;
use crate::tracefs::Backend;

/// `CLOCK_MONOTONIC` at the end of the interval, in nanoseconds.
pub const MONOTONIC: &str = "rhist.monotonic";
/// Length of the interval by that clock.
pub const DURATION: &str = "rhist.duration";
/// See [`crate::question::Interval::events`].
pub const EVENTS: &str = "rhist.events";
/// See [`crate::question::Interval::rejected`].
pub const REJECTED: &str = "rhist.rejected";
/// See [`crate::question::Cost`].
pub const EVENT_COST: &str = "rhist.event_cost";
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
/// See [`crate::table::Losses`].
pub const EXPIRED_STARTS: &str = "rhist.expired_starts";

/// Names of the metrics for the rows of a table. All differ, whatever the names of the columns.
pub struct Names {
    /// Metric of the hits.
    pub hits: String,
    /// Metric of each value.
    pub values: Vec<String>,
    /// Metric for each value: number of values of a distribution without a bucket.
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
                EVENT_COST,
                REJECTED_COST,
                DROPPED,
                DROPPED_STARTS,
                NO_BUCKET,
                UNRESOLVED,
                MISSED,
                MISSED_HITS,
                EXPIRED_STARTS,
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

/// Attribute names of key columns: for each column one for the keys, and one for their names if
/// these need a second attribute. All differ.
pub fn keys(columns: &[Column]) -> Vec<[String; 2]> {
    let mut taken = BTreeSet::new();
    let keys: Vec<_> = columns
        .iter()
        .map(|column| unique(column.name.clone(), &mut taken))
        .collect();
    keys.into_iter()
        .map(|name| {
            let second = unique(second(&name), &mut taken);
            [name, second]
        })
        .collect()
}

/// Name of the second attribute of a key or saved field.
pub fn second(name: &str) -> String {
    format!("{name}.name")
}

/// Appends a number to a name that is taken.
fn unique(name: String, taken: &mut BTreeSet<String>) -> String {
    let mut candidate = name.clone();
    let mut number = 1;
    while !taken.insert(candidate.clone()) {
        number += 1;
        candidate = format!("{name}#{number}");
    }
    candidate
}

/// Enum whose values have words in recordings.
pub trait Word: Copy + Sized + 'static {
    /// All values.
    const ALL: &'static [Self];

    /// Word for this value.
    fn word(self) -> &'static str;

    /// Looks up a word.
    fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|known| known.word() == word)
    }
}

/// Words of the Unified Code for Units of Measure, which OTLP recommends.
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

/// Unit of a metric instead of the unit of its column.
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

/// Number of decimals that a whole number gets when it is divided by this unit.
pub fn decimals(unit: BucketUnit) -> usize {
    match unit {
        BucketUnit::One => 0,
        BucketUnit::Us => 3,
        BucketUnit::Ms => 6,
        BucketUnit::S => 9,
    }
}
