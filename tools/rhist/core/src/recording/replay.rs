// SPDX-License-Identifier: MIT OR Apache-2.0

//! Replays recordings.

use std::collections::HashMap;
use std::error::Error;

use super::Reader;
use crate::question::Cost;
use crate::question::Interval;
use crate::question::Question;
use crate::question::Reading;
use crate::question::Source;
use crate::table::Fold;
use crate::table::Table;
use crate::table::Value;
use crate::table::fold;

/// A recording as a source of readings: the totals at the beginning, which are empty, and at the
/// end of each interval.
pub struct Replay {
    reader: Reader,
    /// The interval after `total`.
    next: Option<Interval>,
    /// All intervals up to the last reading.
    total: Option<Interval>,
}

impl Replay {
    /// Replays the rest of a recording.
    pub fn new(reader: Reader) -> Self {
        Replay {
            reader,
            next: None,
            total: None,
        }
    }

    /// See [`Reader::note`].
    pub fn note(&self) -> Option<&str> {
        self.reader.note()
    }
}

impl Source for Replay {
    fn question(&self) -> &Question {
        self.reader.question()
    }

    fn read(&mut self) -> Result<Option<Reading>, Box<dyn Error + Send + Sync>> {
        let interval = match self.next.take() {
            Some(interval) => Some(interval),
            None => self.reader.next().transpose()?,
        };
        let Some(interval) = interval else {
            return Ok(None);
        };
        let total = match self.total.take() {
            None => {
                let empty = Interval {
                    from: interval.from.clone(),
                    to: interval.from.clone(),
                    delta: Table {
                        keys: interval.delta.keys.clone(),
                        values: interval.delta.values.clone(),
                        ..Table::default()
                    },
                    cost: interval.cost,
                    ..Interval::default()
                };
                self.next = Some(interval);
                empty
            }
            Some(mut total) => {
                append_interval(&mut total, interval);
                total
            }
        };
        let reading = total.clone().into_reading();
        self.total = Some(total);
        Ok(Some(reading))
    }
}

/// Adds the next interval to those before.
pub fn append_interval(total: &mut Interval, interval: Interval) {
    append(&mut total.delta, interval.delta);
    total.to = interval.to;
    total.events = total.events.saturating_add(interval.events);
    total.rejected = fold::sum(total.rejected, interval.rejected);
    if interval.cost != Cost::default() {
        total.cost = interval.cost;
    }
}

/// Adds the counts of the next interval.
///
/// An unknown maximum of an interval was not larger than the maximum of the run before it. So if
/// only one of the two is known, it stands for both. The same holds for minima.
pub fn append(total: &mut Table, mut delta: Table) {
    let folds: Vec<_> = delta.values.iter().map(|column| column.fold).collect();
    let numbered = total.rows.iter_mut().map(|row| (&row.keys, &mut row.values));
    let mut rows: HashMap<_, _> = numbered.collect();
    for row in &mut delta.rows {
        let Some(values) = rows.get_mut(&row.keys) else {
            continue;
        };
        for ((ours, theirs), fold) in values.iter_mut().zip(&mut row.values).zip(&folds) {
            share_extremes(ours, theirs, *fold);
        }
    }
    total.merge(delta);
}

fn share_extremes(a: &mut Value, b: &mut Value, fold: Fold) {
    match (a, b) {
        (Value::Dist(a), Value::Dist(b)) => {
            (a.min, b.min) = (a.min.or(b.min), b.min.or(a.min));
            (a.max, b.max) = (a.max.or(b.max), b.max.or(a.max));
        }
        (unknown @ Value::Unknown, known @ Value::Number(_)) | (known @ Value::Number(_), unknown @ Value::Unknown)
            if fold != Fold::Sum =>
        {
            unknown.clone_from(known);
        }
        _ => (),
    }
}
