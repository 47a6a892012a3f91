// SPDX-License-Identifier: MIT OR Apache-2.0

//! Reads `hist_jsonl` and `hist_delta_jsonl`, the files of rhist for programs.

use std::io::BufRead;

use crate::lines::Lines;
use crate::table::BucketUnit;
use crate::table::Column;
use crate::table::Fold;
use crate::table::Histogram;
use crate::table::Losses;
use crate::table::Other;
use crate::table::ReadError;
use crate::table::Row;
use crate::table::Span;
use crate::table::Table;
use crate::table::Time;
use crate::table::Unit;
use crate::table::Value;

mod cursor;
mod entry;
mod line;

use line::Header;
use line::Kind;
use line::Trailer;

/// Version of the schema that this parser knows.
const SCHEMA: u64 = 1;

/// Reads all histograms of one of these files. An empty file has none. Keeps only one line in
/// memory besides the result.
///
/// Averages (`.avg`) are [`Value::Unknown`]: they cannot be added, and a distribution contains
/// them.
pub fn read(reader: impl BufRead) -> Result<Vec<Histogram>, ReadError> {
    let mut lines = Lines::new(reader);
    let mut histograms = Vec::new();
    let mut open: Option<Open> = None;
    while let Some((number, line)) = lines.next()? {
        // A cut line is the end of a truncated file.
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
            (Kind::Entry, Some(open)) => open.entry(line).map_err(wrong)?,
            (Kind::Trailer, Some(_)) => {
                let trailer: Trailer<'_> = line::parse(line).map_err(wrong)?;
                if let Some(open) = open.take() {
                    histograms.push(open.close(trailer).map_err(wrong)?);
                }
            }
            (Kind::Other, _) => (),
            (_, None) => return Err(wrong("no header before this line".to_owned())),
        }
    }
    match open {
        None => Ok(histograms),
        Some(_) => Err(ReadError::Incomplete { line: lines.number() }),
    }
}

/// Time of the counts: of the read, or of the end of the interval, which was somewhat before.
fn time(header: &Header, span: Option<Span>) -> Time {
    let realtime_ns = span.map_or(header.realtime_ns, |span| span.end.realtime_ns);
    let later = header.realtime_ns.saturating_sub(realtime_ns);
    Time {
        realtime_ns,
        monotonic_ns: header.monotonic_ns.saturating_sub(later),
        boot_id: header.boot_id.clone(),
    }
}

/// A histogram whose trailer has not been read yet.
struct Open {
    histogram: Histogram,
    entries: entry::Reader,
    /// Unit of the distribution in each value.
    bucket_units: Vec<BucketUnit>,
    /// Whether each value is an average.
    averages: Vec<bool>,
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
        let span = header.interval.map(Span::from);
        let time = time(&header, span);
        let forgets = header.forgets();
        Open {
            entries: entry::Reader::new(&header),
            bucket_units: values.iter().map(bucket_unit).collect(),
            averages: values
                .iter()
                .map(|value| value.modifier.as_deref() == Some("avg"))
                .collect(),
            histogram: Histogram {
                trigger: header.trigger.0,
                system: header.system.0.to_lossy(),
                event: header.event.0.to_lossy(),
                name: header.name.map(|name| name.0),
                filter: header.filter.map(|filter| filter.0),
                paused: header.paused,
                size: header.size_max.unwrap_or(header.size),
                forgets,
                clock: header.clock,
                span,
                table: Table {
                    keys: header.keys.iter().map(column).collect(),
                    values: values.iter().map(column).collect(),
                    time,
                    ..Table::default()
                },
                ..Histogram::default()
            },
        }
    }

    /// Adds an entry. The error describes the fault.
    fn entry(&mut self, line: &[u8]) -> Result<(), String> {
        let row = self.entries.read(line)?;
        self.add(row);
        Ok(())
    }

    fn add(&mut self, mut row: Row) {
        for (n, value) in row.values.iter_mut().enumerate() {
            match value {
                Value::Dist(dist) => dist.bucket_unit = self.bucket_units.get(n).copied().unwrap_or_default(),
                Value::Number(_) if self.averages.get(n) == Some(&true) => *value = Value::Unknown,
                Value::Number(_) | Value::Unknown => (),
            }
        }
        self.histogram.table.rows.push(row);
    }

    /// Completes the histogram with its totals. The error describes the fault.
    fn close(mut self, trailer: Trailer<'_>) -> Result<Histogram, String> {
        let rows = self.histogram.table.rows.len();
        if trailer.shown != rows as u64 {
            let shown = trailer.shown;
            return Err(format!("entries before this line: expected {shown}, found {rows}"));
        }
        for (word, counts) in trailer.other {
            // It is null if the trigger lacks the clause.
            let counts = Some(counts.get()).filter(|counts| *counts != "null");
            if let Some((other, counts)) = Other::parse(&word).zip(counts) {
                let row = self.entries.other(counts.as_bytes(), other)?;
                // It is a row like others, and so only there if it has hits.
                if row.hits > 0 {
                    self.add(row);
                }
            }
        }
        if trailer.no_bucket == Some(0) {
            // Every value has a bucket, so a count beyond the buckets comes from hits during the
            // read.
            for value in self.histogram.table.rows.iter_mut().flat_map(|row| &mut row.values) {
                if let Value::Dist(dist) = value {
                    dist.count = dist.in_buckets();
                }
            }
        }
        // Results never include rows of starts.
        if self.histogram.forgets.is_some_and(|forgets| !forgets.taken) {
            self.histogram.table.take_out_former();
        }
        self.histogram.hits = trailer.hits;
        self.histogram.rejected = trailer.rejected;
        self.histogram.entries = trailer.entries;
        self.histogram.excess = Some(trailer.excess);
        self.histogram.expired_set = trailer.expired_set;
        self.histogram.table.losses = Losses {
            dropped: trailer.dropped,
            no_bucket: trailer.no_bucket,
            unresolved: Some(trailer.unresolved),
            missed: Some(trailer.missed),
            ..Losses::default()
        };
        Ok(self.histogram)
    }
}

#[cfg(test)]
mod tests;
