// SPDX-License-Identifier: MIT OR Apache-2.0

//! Members of a line, in their order.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::io::Write;

use serde::Serialize;
use serde_json::ser::Formatter;

#[derive(Serialize)]
pub(in crate::screen) struct LineJson<'a> {
    pub schema: u32,
    pub r#type: &'static str,
    pub name: &'a str,
    pub summary: &'a str,
    pub noun: &'a str,
    pub backend: &'static str,
    pub host: &'a str,
    pub kernel: &'a str,
    pub cpus: u32,
    pub boot_id: Option<&'a str>,
    pub from: Option<TimeJson>,
    pub to: TimeJson,
    pub seconds: Option<f64>,
    pub keys: Vec<ColumnJson<'a>>,
    pub values: Vec<ColumnJson<'a>>,
    pub rows: Vec<RowJson<'a>>,
    pub losses: LossesJson,
    pub cost: CostJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fill: Option<FillJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<SamplesJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub triggers: Option<&'a [String]>,
}

#[derive(Serialize)]
pub(in crate::screen) struct TimeJson {
    pub realtime_ns: u64,
    pub monotonic_ns: u64,
}

#[derive(Serialize)]
pub(in crate::screen) struct ColumnJson<'a> {
    pub name: &'a str,
    pub unit: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fold: Option<&'static str>,
}

#[derive(Serialize)]
pub(in crate::screen) struct RowJson<'a> {
    pub keys: Vec<KeyJson<'a>>,
    pub hits: u64,
    pub values: Vec<ValueJson>,
    pub worst: Option<WorstJson<'a>>,
}

#[derive(Serialize)]
pub(in crate::screen) struct WorstJson<'a> {
    pub value: i128,
    pub saved: BTreeMap<&'a str, KeyJson<'a>>,
    pub text: String,
}

#[derive(Serialize)]
pub(in crate::screen) struct LossesJson {
    pub dropped: u64,
    pub dropped_starts: u64,
    pub no_bucket: Option<u64>,
    pub unresolved: Option<u64>,
    pub missed: Option<u64>,
    pub missed_hits: Option<u64>,
    pub expired_starts: Option<u64>,
}

#[derive(Serialize)]
pub(in crate::screen) struct CostJson {
    pub events: u64,
    pub event_ns: Option<f64>,
    pub rejected: Option<u64>,
    pub rejected_ns: Option<f64>,
    pub cpus: Option<f64>,
}

#[derive(Serialize)]
pub(in crate::screen) struct FillJson {
    pub entries: u64,
    pub size: u64,
    pub of: &'static str,
}

#[derive(Serialize)]
pub(in crate::screen) struct SamplesJson {
    pub frequency: u64,
    pub ticks: u64,
    pub samples: u64,
    pub filtered: u64,
    pub lost: u64,
    pub late: u64,
    pub off: u64,
    pub others: u64,
    pub more: u64,
    pub fewer: u64,
    pub adds_up: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
pub(in crate::screen) enum KeyJson<'a> {
    Number(i128),
    Named { value: i128, name: String },
    Text(TextJson<'a>),
    Task { value: i64, comm: TextJson<'a> },
    Syscall { value: i64, syscall: Option<&'a str> },
    Address(FrameJson<'a>),
    Stack { stack: Vec<FrameJson<'a>> },
    Range { first: i128, last: i128 },
    Other { other: &'static str },
}

#[derive(Serialize)]
#[serde(untagged)]
pub(in crate::screen) enum TextJson<'a> {
    Utf8(&'a str),
    Other { text: String, bytes: String },
}

#[derive(Serialize)]
pub(in crate::screen) struct FrameJson<'a> {
    pub address: Option<String>,
    pub symbol: Option<Cow<'a, str>>,
}

#[derive(Serialize)]
#[serde(untagged)]
pub(in crate::screen) enum ValueJson {
    Number(i128),
    Dist(DistJson),
    Unknown(()),
}

#[derive(Serialize)]
pub(in crate::screen) struct DistJson {
    pub count: u64,
    pub no_bucket: u64,
    pub sum: Option<i128>,
    pub min: Option<i128>,
    pub max: Option<i128>,
    pub mean: Option<f64>,
    pub zero: u64,
    pub scale: u8,
    pub buckets: Vec<(i128, i128, u64)>,
    pub quantiles: BTreeMap<&'static str, Option<QuantileJson>>,
}

#[derive(Serialize)]
pub(in crate::screen) struct QuantileJson {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

/// Escapes everything but ASCII, so that names are safe for a terminal.
pub(in crate::screen) struct Ascii;

impl Formatter for Ascii {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut units = [0; 2];
        for character in fragment.chars() {
            match character {
                ' '..='~' => write!(writer, "{character}")?,
                _ => {
                    for unit in character.encode_utf16(&mut units) {
                        write!(writer, "\\u{unit:04x}")?;
                    }
                }
            }
        }
        Ok(())
    }
}
