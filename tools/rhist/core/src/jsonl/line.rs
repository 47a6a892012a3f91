// SPDX-License-Identifier: MIT OR Apache-2.0

//! Lines of `hist_jsonl` according to its schema. Ignores unknown members.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::Deserializer;
use serde::de::Error;
use serde::de::MapAccess;
use serde::de::Visitor;
use serde::de::value::MapAccessDeserializer;
use serde_json::value::RawValue;

use crate::table;
use crate::table::Ended;
use crate::table::Frame;
use crate::table::Key;
use crate::table::Place;
use crate::table::ProgramStack;
use crate::table::Span;
use crate::table::Text;

/// Type of a line.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    Header,
    Entry,
    Trailer,
    #[serde(other)]
    Other,
}

/// First line of a histogram. Sizes and times are as in [`crate::table::Histogram`].
#[derive(Deserialize)]
pub(super) struct Header {
    pub(super) trigger: Characters,
    pub(super) system: Characters,
    pub(super) event: Characters,
    pub(super) name: Option<Characters>,
    pub(super) filter: Option<Characters>,
    pub(super) paused: bool,
    pub(super) size: u64,
    /// With a size that grows.
    pub(super) size_max: Option<u64>,
    /// With `expire()` and a time.
    pub(super) expire_ns: Option<u64>,
    /// With `expire(taken)`.
    #[serde(default)]
    pub(super) expire_taken: bool,
    /// Arguments of `full()`.
    #[serde(default)]
    pub(super) full: Vec<String>,
    pub(super) clock: Option<String>,
    pub(super) boot_id: Option<String>,
    pub(super) realtime_ns: u64,
    pub(super) monotonic_ns: u64,
    /// When the histogram began to count. `None` from older modules.
    pub(super) begin: Option<Moment>,
    /// Only in `hist_delta_jsonl`.
    pub(super) interval: Option<Interval>,
    pub(super) keys: Vec<Column>,
    pub(super) values: Vec<Column>,
    pub(super) actions: Vec<Action>,
}

/// Times in the header.
#[derive(Clone, Copy, Deserialize)]
pub(super) struct Moment {
    boottime_ns: u64,
    realtime_ns: u64,
}

/// Interval in the header.
#[derive(Clone, Copy, Deserialize)]
pub(super) struct Interval {
    begin: Moment,
    end: Moment,
    ended: Option<End>,
    lost_histograms: u64,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum End {
    Cleared,
    Removed,
}

impl From<Moment> for table::Moment {
    fn from(moment: Moment) -> Self {
        Self {
            boottime_ns: moment.boottime_ns,
            realtime_ns: moment.realtime_ns,
        }
    }
}

impl From<Interval> for Span {
    fn from(interval: Interval) -> Self {
        Self {
            begin: interval.begin.into(),
            end: interval.end.into(),
            ended: interval.ended.map(|ended| match ended {
                End::Cleared => Ended::Cleared,
                End::Removed => Ended::Removed,
            }),
            lost_histograms: interval.lost_histograms,
        }
    }
}

/// Key or value in the header.
#[derive(Deserialize)]
pub(super) struct Column {
    pub(super) name: Characters,
    pub(super) modifier: Option<String>,
    pub(super) unit: Option<String>,
    pub(super) bucket_unit: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Action {
    pub(super) handler: String,
    pub(super) action: String,
    pub(super) saved: Vec<Characters>,
}

/// Last line of a histogram, after the entries.
#[derive(Deserialize)]
pub(super) struct Trailer<'a> {
    pub(super) hits: u64,
    pub(super) entries: u64,
    pub(super) shown: u64,
    pub(super) dropped: u64,
    pub(super) excess: u64,
    pub(super) no_bucket: Option<u64>,
    pub(super) unresolved: u64,
    pub(super) missed: u64,
    /// `None` from older modules.
    pub(super) rejected: Option<u64>,
    /// Counts of keys without a row, by the reasons: see [`table::Other::word()`].
    #[serde(borrow, default)]
    pub(super) other: BTreeMap<String, &'a RawValue>,
    pub(super) expired_set: Option<u64>,
}

impl Header {
    /// Which entries are taken out of the histogram.
    pub(super) fn forgets(&self) -> Option<table::Forgets> {
        let forgets = table::Forgets {
            idle_ns: self.expire_ns,
            taken: self.expire_taken,
        };
        let recycles = self.full.iter().any(|word| word == "recycle");
        (recycles || forgets != table::Forgets::default()).then_some(forgets)
    }
}

/// Parses a line. The error describes the fault.
pub(super) fn parse<'a, T: Deserialize<'a>>(line: &'a [u8]) -> Result<T, String> {
    parse_at(line, 0)
}

/// Parses a part of a line. `at` is the number of bytes before it.
pub(super) fn parse_at<'a, T: Deserialize<'a>>(part: &'a [u8], at: usize) -> Result<T, String> {
    serde_json::from_slice(part).map_err(|error| {
        // The parser sees each line alone and always reports "line 1", so keep only the column.
        let shown = error.to_string();
        let column = at + error.column();
        let what = shown.split(" at line ").next().unwrap_or_default();
        let what: String = what.chars().take(200).collect();
        match error.classify() {
            serde_json::error::Category::Data => format!("not in the format of hist_jsonl: {what} (column {column})"),
            _ => format!("not JSON: {what} (column {column})"),
        }
    })
}

/// Type and schema version of a line.
#[derive(Deserialize)]
pub(super) struct Tag {
    #[serde(rename = "type")]
    pub(super) kind: Kind,
    pub(super) schema: Option<u64>,
}

/// Reads the type of a line. The error describes the fault.
pub(super) fn tag(line: &[u8]) -> Result<Tag, String> {
    // Fast path for entries, which are nearly all lines; other lines are parsed whole.
    match line.starts_with(br#"{"type":"entry","#) {
        true => Ok(Tag {
            kind: Kind::Entry,
            schema: None,
        }),
        false => parse(line),
    }
}

/// Integer of 64 bits, signed or unsigned.
pub(super) struct Whole(pub(super) i128);

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;

        impl Visitor<'_> for Number {
            type Value = Whole;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number")
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Whole, E> {
                Ok(Whole(number.into()))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Whole, E> {
                Ok(Whole(number.into()))
            }
        }

        deserializer.deserialize_any(Number)
    }
}

/// String of any bytes.
pub(super) struct Characters(pub(super) Text);

impl<'de> Deserialize<'de> for Characters {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Cell::deserialize(deserializer)?.0 {
            Key::Text(text) => Ok(Characters(text)),
            _ => Err(D::Error::custom("expected a string")),
        }
    }
}

/// Key, or a field that was saved.
pub(super) struct Cell(pub(super) Key);

impl<'de> Deserialize<'de> for Cell {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Cells;

        impl<'de> Visitor<'de> for Cells {
            type Value = Cell;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number, a string or an object")
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Cell, E> {
                Ok(Cell(Key::Number(number.into())))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Cell, E> {
                Ok(Cell(Key::Number(number.into())))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Cell, E> {
                Ok(Cell(Key::Text(Text::from(text))))
            }

            fn visit_unit<E: Error>(self) -> Result<Cell, E> {
                Ok(Cell(Key::UNKNOWN))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Cell, A::Error> {
                Members::deserialize(MapAccessDeserializer::new(map))?.key().map(Cell)
            }
        }

        deserializer.deserialize_any(Cells)
    }
}

/// Members of a key that is an object. Which ones occur depends on the kind of key.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Members {
    bytes: Option<String>,
    value: Option<i64>,
    comm: Option<Characters>,
    #[serde(deserialize_with = "present")]
    syscall: Option<Option<Characters>>,
    #[serde(deserialize_with = "present")]
    cgroup: Option<Option<Characters>>,
    address: Option<String>,
    symbol: Option<Characters>,
    stack: Option<Vec<Symbol>>,
    ustack: Option<Vec<Word>>,
    end: Option<Characters>,
    first: Option<Whole>,
    last: Option<Whole>,
}

/// Distinguishes null from a missing member.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<Characters>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// Address in a stack.
#[derive(Deserialize)]
struct Symbol {
    address: String,
    symbol: Option<Characters>,
}

/// Place in a stack of a program.
#[derive(Deserialize)]
struct Word {
    object: Option<u32>,
    offset: Option<u64>,
    exact: bool,
}

impl Word {
    fn place(self) -> Option<Place> {
        Some(Place {
            object: self.object?,
            offset: self.offset?,
            is_exact: self.exact,
        })
    }
}

impl Members {
    fn key<E: Error>(self) -> Result<Key, E> {
        Ok(match self {
            Members {
                bytes: Some(digits), ..
            } => Key::Text(Text::from(&*bytes(&digits)?)),
            Members {
                value: Some(pid),
                comm: Some(comm),
                ..
            } => Key::Task { pid, comm: comm.0 },
            Members {
                value: Some(number),
                syscall: Some(name),
                ..
            } => {
                let name = name.map(|name| name.0.to_lossy());
                let name = name.map(|name| name.strip_prefix("sys_").map(str::to_owned).unwrap_or(name));
                Key::Syscall { number, name }
            }
            Members {
                value,
                cgroup: Some(path),
                ..
            } => match (path, value) {
                (Some(path), _) => Key::Text(path.0),
                (None, Some(id)) => Key::Number(id.into()),
                (None, None) => Key::UNKNOWN,
            },
            Members {
                address: Some(address),
                symbol,
                ..
            } => Key::Address(Symbol { address, symbol }.frame()?),
            Members {
                stack: Some(frames), ..
            } => {
                let frames: Result<_, E> = frames.into_iter().map(Symbol::frame).collect();
                Key::Stack(frames?)
            }
            Members {
                ustack: Some(words),
                end: Some(end),
                ..
            } => Key::Program(Box::new(ProgramStack {
                places: words.into_iter().map(Word::place).collect(),
                end: end.0,
            })),
            Members {
                first: Some(first),
                last: Some(last),
                ..
            } => Key::Range {
                first: first.0,
                last: last.0,
            },
            _ => return Err(E::custom("unknown kind of key")),
        })
    }
}

impl Symbol {
    fn frame<E: Error>(self) -> Result<Frame, E> {
        let digits = self.address.strip_prefix("0x");
        let address = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        if address.is_none() {
            return Err(E::custom("an address is not a hexadecimal number of 64 bits"));
        }
        Ok(Frame {
            address,
            symbol: self.symbol.map(|symbol| symbol.0.to_lossy()),
        })
    }
}

/// Decodes hexadecimal digits.
fn bytes<E: Error>(digits: &str) -> Result<Vec<u8>, E> {
    let value = |pair: &[u8]| match pair {
        &[high, low] => {
            let digit = |digit: u8| char::from(digit).to_digit(16);
            u8::try_from(digit(high)? << 4 | digit(low)?).ok()
        }
        _ => None,
    };
    let bytes: Option<Vec<u8>> = digits.as_bytes().chunks(2).map(value).collect();
    bytes.ok_or_else(|| E::custom("the bytes of a string are not pairs of hexadecimal digits"))
}
