// SPDX-License-Identifier: MIT OR Apache-2.0

//! Prints counts for programs: a line of JSON for each interval, and one for the total at the end.
//!
//! ```json
//! {"schema":1,"type":"total","name":"runqlat","summary":"How long tasks wait for a CPU",
//!  "noun":"waits","backend":"rhist","host":"db1","kernel":"6.12.48","cpus":8,"boot_id":"ee0d…",
//!  "from":{"realtime_ns":1795621132746544322,"monotonic_ns":6282976384},"to":{…},"seconds":5.0,
//!  "keys":[{"name":"comm","unit":null}],"values":[{"name":"wait","unit":"ns","fold":"sum"}],
//!  "rows":[{"keys":["sed"],"hits":3,"values":[…],
//!  "worst":{"value":31800000,"saved":{"prev_pid":236},"text":"…"}}],
//!  "losses":{"dropped":0,"dropped_starts":0,"no_bucket":0,"unresolved":2,"missed":0,
//!  "missed_hits":0,"expired_starts":0},
//!  "cost":{"events":61725,"event_ns":62.0,"rejected":9,"rejected_ns":20.5,"cpus":0.0008},
//!  "fill":{"entries":12,"size":2048,"of":"results"},
//!  "notes":[],"triggers":["echo …"]}
//! ```
//!
//! * `type` is `interval` or `total`; an interval lacks `fill`, `notes` and `triggers`. Without
//!   `--by`, the only row has no keys, or `rows` is empty if nothing was counted. `seconds`, `from`
//!   and other numbers are null if unknown.
//! * **Keys** and saved fields are numbers or strings, or objects if more is known:
//!   `{"value":2,"name":"ENOENT"}` for a number with a name, `{"value":31,"name":"0x1f"}` with
//!   `.hex`, `{"value":17,"comm":"sed"}` for a task, `{"value":0,"syscall":"read"}`,
//!   `{"address":"0xffffffff810c2fd0","symbol":"do_idle+0x12/0x30"}`, `{"stack":[…]}` with the
//!   innermost function first, `{"first":8,"last":15}` for a range. A string that is not UTF-8 is
//!   `{"text":"caf\ufffd","bytes":"636166e9"}`.
//! * The last rows may stand for keys without a row. All their keys are `{"other":"folded"}` if the
//!   histogram was full, `{"other":"expired"}` if they were idle, or `{"other":"recycled"}` if
//!   their places were needed.
//! * **Values** are numbers, null if unknown, or for a distribution
//!   `{"count":6,"no_bucket":0,"sum":1,"min":-5000,"max":3000,"mean":0.2,"zero":2,"scale":3,
//!   "buckets":[[1,1,1],[2,2,1]],"quantiles":{"p50":{"value":0,"low":0,"high":0}}}`.
//!   A bucket consists of its smallest and its largest integer, and its count. The true quantile is
//!   between `low` and `high`. `max` of an interval is null unless it must have happened in it.
//! * **Losses** are null if the kernel does not report them. `cost` is the cost of the triggers, as
//!   a share of one CPU: of counted hits, and of hits rejected by filters. Numbers that were not
//!   measured are null.
//! * A total of samples has `"samples":{"frequency":99,"ticks":1980,"samples":1500,"filtered":470,
//!   "lost":0,"late":10,"off":0,"others":0,"more":0,"fewer":0,"adds_up":true}`: the ticks of all
//!   CPUs, by their fates; `others` are all the rest if `--children` leaves out tasks. Their sum is
//!   the ticks, or up to `more` higher or `fewer` lower, since ticks came while they were added up.
//!   If not, `adds_up` is false. They are read just before the rows, which may have some samples
//!   more.
//!
//! New members may appear without a change of `schema`. Numbers are exact up to 64 bits.

mod line;

use std::borrow::Cow;
use std::io;
use std::io::Write;

use rhist_core::table::Column;
use rhist_core::table::Dist;
use rhist_core::table::Fold;
use rhist_core::table::Frame;
use rhist_core::table::Key;
use rhist_core::table::Numbered;
use rhist_core::table::Row;
use rhist_core::table::Text;
use rhist_core::table::Time;
use rhist_core::table::Unit;
use rhist_core::table::Value;
use rhist_core::tracefs::Backend;
use serde::Serialize;
use serde_json::Serializer;

use super::Screen;
use super::View;
use super::label::Labels;
use super::quantiles::PARTS;
use super::rows;
pub(super) use line::*;

pub(super) const SCHEMA: u32 = 1;

/// Prints the line.
pub(super) fn print(screen: &Screen<'_>, out: &mut dyn Write, view: &View<'_>) -> io::Result<()> {
    let total = view.table.total();
    write(out, &line(screen, view, &total))
}

/// Writes a value as a line of JSON.
pub(super) fn write(out: &mut dyn Write, line: &impl Serialize) -> io::Result<()> {
    line.serialize(&mut Serializer::with_formatter(&mut *out, Ascii))?;
    writeln!(out)
}

pub(super) fn backend(backend: Backend) -> &'static str {
    match backend {
        Backend::Rhist => "rhist",
        Backend::C => "c",
    }
}

pub(super) fn unit(unit: Unit) -> Option<&'static str> {
    match unit {
        Unit::Plain => None,
        Unit::Nanoseconds => Some("ns"),
        Unit::Microseconds => Some("us"),
        Unit::Bytes => Some("bytes"),
    }
}

fn line<'a>(screen: &'a Screen<'_>, view: &'a View<'_>, total: &'a Row) -> LineJson<'a> {
    let question = screen.question;
    let table = view.table;
    let is_total = view.is_total();
    let labels = screen.labels();
    let rows = match screen.by {
        _ if table.rows.is_empty() => Vec::new(),
        true => rows::sorted(table, usize::MAX)
            .into_iter()
            .chain(rows::others(table))
            .map(|row| row_json(&labels, &table.keys, row))
            .collect(),
        false => vec![row_json(&labels, &[], total)],
    };
    LineJson {
        schema: SCHEMA,
        r#type: if is_total { "total" } else { "interval" },
        name: &question.name,
        summary: &question.summary,
        noun: &question.noun,
        backend: backend(question.backend),
        host: &question.host,
        kernel: &question.kernel,
        cpus: question.cpus,
        boot_id: view.to.boot_id.as_deref(),
        from: view.seconds.map(|seconds| match view.from {
            Some(from) => time(from, 0),
            None => time(view.to, (seconds * 1e9) as u64),
        }),
        to: time(view.to, 0),
        seconds: view.seconds,
        keys: if screen.by {
            table.keys.iter().map(key_column).collect()
        } else {
            Vec::new()
        },
        values: table.values.iter().map(value_column).collect(),
        rows,
        losses: LossesJson {
            dropped: table.losses.dropped,
            dropped_starts: table.losses.dropped_starts,
            no_bucket: table.losses.no_bucket,
            unresolved: table.losses.unresolved,
            missed: table.losses.missed,
            missed_hits: table.losses.missed_hits,
            expired_starts: table.losses.expired_starts,
        },
        cost: CostJson {
            events: view.events,
            event_ns: view.cost.event_ns,
            rejected: view.rejected,
            rejected_ns: view.cost.rejected_ns,
            cpus: view.cpus(),
        },
        fill: view.fill.map(|fill| FillJson {
            entries: fill.entries,
            size: fill.size,
            of: if fill.is_of_starts { "starts" } else { "results" },
        }),
        samples: view.samples.map(|samples| SamplesJson {
            frequency: samples.frequency,
            ticks: samples.ticks,
            samples: samples.samples,
            filtered: samples.filtered,
            lost: samples.lost,
            late: samples.late,
            off: samples.off,
            others: samples.others,
            more: samples.more,
            fewer: samples.fewer,
            adds_up: samples.adds_up(),
        }),
        notes: is_total.then_some(question.notes.as_slice()),
        triggers: is_total.then_some(question.triggers.as_slice()),
    }
}

/// A time, moved back by `before_ns`.
fn time(time: &Time, before_ns: u64) -> TimeJson {
    TimeJson {
        realtime_ns: time.realtime_ns.saturating_sub(before_ns),
        monotonic_ns: time.monotonic_ns.saturating_sub(before_ns),
    }
}

fn key_column(column: &Column) -> ColumnJson<'_> {
    ColumnJson {
        name: &column.name,
        unit: unit(column.unit),
        fold: None,
    }
}

fn value_column(column: &Column) -> ColumnJson<'_> {
    ColumnJson {
        fold: Some(match column.fold {
            Fold::Sum => "sum",
            Fold::Min => "min",
            Fold::Max => "max",
        }),
        ..key_column(column)
    }
}

fn row_json<'a>(labels: &Labels<'_>, keys: &[Column], row: &'a Row) -> RowJson<'a> {
    let names = keys.iter().map(|column| column.name.as_str());
    RowJson {
        keys: names
            .zip(&row.keys)
            .map(|(name, value)| key(labels, name, value))
            .collect(),
        hits: row.hits,
        values: row.values.iter().map(value).collect(),
        worst: row.worst.as_ref().map(|worst| WorstJson {
            value: worst.value,
            saved: worst
                .saved
                .iter()
                .map(|(name, value)| (&**name, key(labels, name, value)))
                .collect(),
            text: labels.worst(worst),
        }),
    }
}

/// Converts a key or a saved field.
pub(super) fn key<'a>(labels: &Labels<'_>, column: &str, value: &'a Key) -> KeyJson<'a> {
    match value {
        Key::Number(number) => match labels.name(column, value) {
            Some(name) => KeyJson::Named { value: *number, name },
            None => KeyJson::Number(*number),
        },
        Key::Text(value) => KeyJson::Text(text(value)),
        Key::Task { pid, comm } => KeyJson::Task {
            value: *pid,
            comm: text(comm),
        },
        Key::Syscall { number, name } => KeyJson::Syscall {
            value: *number,
            syscall: name.as_deref(),
        },
        Key::Address(value) => KeyJson::Address(frame(value)),
        Key::Stack(frames) => KeyJson::Stack {
            stack: frames.iter().map(frame).collect(),
        },
        Key::Program(stack) => KeyJson::Stack {
            stack: stack
                .frames(&Numbered)
                .into_iter()
                .map(|unnamed| FrameJson {
                    symbol: unnamed.symbol.map(Cow::Owned),
                    address: None,
                })
                .collect(),
        },
        Key::Range { first, last } => KeyJson::Range {
            first: *first,
            last: *last,
        },
        Key::Other(other) => KeyJson::Other { other: other.word() },
    }
}

fn text(text: &Text) -> TextJson<'_> {
    match std::str::from_utf8(text) {
        Ok(text) => TextJson::Utf8(text),
        Err(_) => TextJson::Other {
            text: String::from_utf8_lossy(text).into_owned(),
            bytes: text.iter().map(|byte| format!("{byte:02x}")).collect(),
        },
    }
}

fn frame(frame: &Frame) -> FrameJson<'_> {
    FrameJson {
        address: frame.address.map(|address| format!("{address:#x}")),
        symbol: frame.symbol.as_deref().map(Cow::Borrowed),
    }
}

fn value(value: &Value) -> ValueJson {
    match value {
        Value::Number(number) => ValueJson::Number(*number),
        Value::Dist(value) => ValueJson::Dist(dist(value)),
        Value::Unknown => ValueJson::Unknown(()),
    }
}

fn dist(dist: &Dist) -> DistJson {
    let quantile = |q| {
        dist.quantile(q).map(|quantile| QuantileJson {
            value: quantile.value,
            low: quantile.low,
            high: quantile.high,
        })
    };
    DistJson {
        count: dist.count,
        no_bucket: dist.without_bucket(),
        sum: dist.sum,
        min: dist.min,
        max: dist.max,
        mean: dist.mean(),
        zero: dist.zero,
        scale: dist.scale,
        buckets: dist
            .buckets()
            .map(|bucket| (bucket.low, bucket.high, bucket.count))
            .collect(),
        quantiles: PARTS.into_iter().map(|(q, name)| (name, quantile(q))).collect(),
    }
}
