// SPDX-License-Identifier: MIT OR Apache-2.0

//! Reads `hist_jsonl`, the file of rhist for programs.

use std::io::BufRead;
use std::sync::Arc;

use crate::lines::Lines;
use crate::table::BucketUnit;
use crate::table::Column;
use crate::table::Fold;
use crate::table::Histogram;
use crate::table::Losses;
use crate::table::ReadError;
use crate::table::Row;
use crate::table::Table;
use crate::table::Time;
use crate::table::Unit;
use crate::table::Value;

mod line;

use line::Entry;
use line::Header;
use line::Kind;
use line::Shape;
use line::Trailer;

/// The version of the schema that is known.
const SCHEMA: u64 = 1;

/// Reads all histograms of a `hist_jsonl`. An empty file has none. Besides what is returned, a line is kept in memory.
///
/// Averages (`.avg`) are [`Value::Unknown`]: they cannot be added, and a distribution has them.
pub fn read(reader: impl BufRead) -> Result<Vec<Histogram>, ReadError> {
    let mut lines = Lines::new(reader);
    let mut histograms = Vec::new();
    let mut open: Option<Open> = None;
    while let Some((number, line)) = lines.next()? {
        // A line that was cut off is at the end of a file that is not complete.
        let is_cut = !line.ends_with(b"\n") && open.is_some();
        let wrong = |what| match is_cut {
            true => ReadError::Incomplete { line: number },
            false => ReadError::Format { line: number, what },
        };
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        let tag = line::tag(line).map_err(wrong)?;
        match (tag.kind, &mut open) {
            (Kind::Header, _) if tag.schema != Some(SCHEMA) => {
                return Err(match tag.schema {
                    Some(found) => ReadError::Version { line: number, found },
                    None => wrong("the header has no schema".to_owned()),
                });
            }
            (Kind::Header, Some(_)) => return Err(ReadError::Incomplete { line: number }),
            (Kind::Header, None) => open = Some(Open::new(line::parse(line).map_err(wrong)?)),
            (Kind::Entry, Some(open)) => open.entry(line::entry(line, open.shape()).map_err(wrong)?),
            (Kind::Trailer, Some(_)) => {
                let trailer: Trailer = line::parse(line).map_err(wrong)?;
                if let Some(open) = open.take() {
                    histograms.push(open.close(trailer).map_err(wrong)?);
                }
            }
            (Kind::Other, _) => (),
            (_, None) => return Err(wrong("there is no header before this line".to_owned())),
        }
    }
    match open {
        None => Ok(histograms),
        Some(_) => Err(ReadError::Incomplete { line: lines.number() }),
    }
}

/// A histogram whose trailer is still to come.
struct Open {
    histogram: Histogram,
    /// Of which action what it has stored is of interest.
    action: Option<usize>,
    /// Units of distributions, by value.
    bucket_units: Vec<BucketUnit>,
    /// Whether a value is an average.
    averages: Vec<bool>,
    /// Names of what is saved with the largest value.
    saved: Vec<Arc<str>>,
}

impl Open {
    fn new(header: Header) -> Self {
        let column = |column: &line::Column| Column {
            name: column.name.0.to_lossy(),
            unit: match column.unit.as_deref() {
                Some("us") => Unit::Microseconds,
                Some("ns") => Unit::Nanoseconds,
                _ => Unit::Plain,
            },
            fold: match column.modifier.as_deref() {
                Some("min") => Fold::Min,
                Some("max") => Fold::Max,
                _ => Fold::Sum,
            },
        };
        let values = header.values.get(1..).unwrap_or_default();
        let bucket_unit = |column: &line::Column| match column.bucket_unit.as_deref() {
            Some("us") => BucketUnit::Us,
            Some("ms") => BucketUnit::Ms,
            Some("s") => BucketUnit::S,
            _ => BucketUnit::One,
        };
        let actions = header.actions.iter().enumerate();
        let maxima = actions.filter(|(_, action)| action.handler == "onmax");
        // save() tells more than others; of equals, the first.
        let worst = maxima.min_by_key(|(_, action)| action.action != "save");
        Open {
            action: worst.map(|(n, _)| n),
            bucket_units: values.iter().map(bucket_unit).collect(),
            averages: values
                .iter()
                .map(|value| value.modifier.as_deref() == Some("avg"))
                .collect(),
            saved: worst.map_or(Vec::new(), |(_, action)| {
                action.saved.iter().map(|name| name.0.to_lossy().into()).collect()
            }),
            histogram: Histogram {
                trigger: header.trigger.0,
                system: header.system.0.to_lossy(),
                event: header.event.0.to_lossy(),
                name: header.name.map(|name| name.0),
                filter: header.filter.map(|filter| filter.0),
                paused: header.paused,
                size: header.size,
                clock: header.clock,
                table: Table {
                    keys: header.keys.iter().map(column).collect(),
                    values: values.iter().map(column).collect(),
                    time: Time {
                        realtime_ns: header.realtime_ns,
                        monotonic_ns: header.monotonic_ns,
                        boot_id: header.boot_id,
                    },
                    ..Table::default()
                },
                ..Histogram::default()
            },
        }
    }

    /// What an entry has to have.
    fn shape(&self) -> Shape<'_> {
        Shape {
            keys: self.histogram.table.keys.len(),
            values: self.histogram.table.values.len(),
            action: self.action.map(|place| (place, self.saved.as_slice())),
        }
    }

    /// Adds an entry.
    fn entry(&mut self, entry: Entry) {
        let mut values: Vec<Value> = entry.values.into_iter().map(|value| value.0).collect();
        for (n, value) in values.iter_mut().enumerate() {
            match value {
                Value::Dist(dist) => dist.bucket_unit = self.bucket_units.get(n).copied().unwrap_or_default(),
                Value::Number(_) if self.averages.get(n) == Some(&true) => *value = Value::Unknown,
                Value::Number(_) | Value::Unknown => (),
            }
        }
        self.histogram.table.rows.push(Row {
            keys: entry.keys.into_iter().map(|key| key.0).collect(),
            hits: entry.hits,
            values,
            worst: entry.worst,
        });
    }

    /// The histogram with its totals. Fails with what is wrong with them.
    fn close(mut self, trailer: Trailer) -> Result<Histogram, String> {
        let rows = self.histogram.table.rows.len();
        if trailer.shown != rows as u64 {
            let shown = trailer.shown;
            return Err(format!(
                "there should be {shown} entries before this line, but there are {rows}"
            ));
        }
        if trailer.no_bucket == Some(0) {
            // All values are in buckets, so what is counted beyond those happened while they were being read.
            for value in self.histogram.table.rows.iter_mut().flat_map(|row| &mut row.values) {
                if let Value::Dist(dist) = value {
                    dist.count = dist.in_buckets();
                }
            }
        }
        self.histogram.hits = trailer.hits;
        self.histogram.entries = trailer.entries;
        self.histogram.excess = Some(trailer.excess);
        self.histogram.table.losses = Losses {
            dropped: trailer.dropped,
            no_bucket: trailer.no_bucket,
            unresolved: Some(trailer.unresolved),
            missed: Some(trailer.missed),
        };
        Ok(self.histogram)
    }
}

#[cfg(test)]
mod tests;
