// SPDX-License-Identifier: MIT OR Apache-2.0

//! Replays recordings.

use std::error::Error;

use super::Reader;
use crate::question::Interval;
use crate::question::Question;
use crate::question::Reading;
use crate::question::Source;
use crate::table::Table;

/// A recording as a source of intervals.
pub struct Replay {
    reader: Reader,
    /// All intervals so far.
    total: Reading,
}

impl Replay {
    /// Replays a recording that was just opened.
    pub fn new(reader: Reader) -> Self {
        let first = reader.first().cloned().unwrap_or_default();
        let total = Reading {
            table: Table {
                keys: first.delta.keys,
                values: first.delta.values,
                time: first.from,
                ..Table::default()
            },
            cost: first.cost,
            ..Reading::default()
        };
        Replay { reader, total }
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

    fn interval(&mut self) -> Result<Option<Interval>, Box<dyn Error + Send + Sync>> {
        let interval = self.reader.next().transpose()?;
        if let Some(interval) = &interval {
            self.total.append(interval.clone());
        }
        Ok(interval)
    }

    fn total(&mut self) -> &Reading {
        &self.total
    }
}
