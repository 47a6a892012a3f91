// SPDX-License-Identifier: MIT OR Apache-2.0

//! Lines of `hist_jsonl`, as its schema has them. Members that are not known are ignored.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::Deserialize;
use serde::Deserializer;
use serde::de::DeserializeSeed;
use serde::de::Error;
use serde::de::IgnoredAny;
use serde::de::MapAccess;
use serde::de::SeqAccess;
use serde::de::Visitor;
use serde::de::value::MapAccessDeserializer;

use crate::table::Counts;
use crate::table::Dist;
use crate::table::Frame;
use crate::table::Key;
use crate::table::Text;
use crate::table::Value;
use crate::table::Worst;

/// Which line it is.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    Header,
    Entry,
    Trailer,
    #[serde(other)]
    Other,
}

/// The line before the entries. Sizes and times are as in [`crate::table::Histogram`].
#[derive(Deserialize)]
pub(super) struct Header {
    pub(super) trigger: Characters,
    pub(super) system: Characters,
    pub(super) event: Characters,
    pub(super) name: Option<Characters>,
    pub(super) filter: Option<Characters>,
    pub(super) paused: bool,
    pub(super) size: u64,
    pub(super) clock: Option<String>,
    pub(super) boot_id: Option<String>,
    pub(super) realtime_ns: u64,
    pub(super) monotonic_ns: u64,
    pub(super) keys: Vec<Column>,
    pub(super) values: Vec<Column>,
    pub(super) actions: Vec<Action>,
}

/// A key or a value.
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

/// An entry.
pub(super) struct Entry {
    pub(super) keys: Vec<Cell>,
    pub(super) hits: u64,
    /// Without the hits.
    pub(super) values: Vec<ValueCell>,
    /// What the action of [`Shape::action`] has stored.
    pub(super) worst: Option<Worst>,
}

/// The line behind the entries.
#[derive(Deserialize)]
pub(super) struct Trailer {
    pub(super) hits: u64,
    pub(super) entries: u64,
    pub(super) shown: u64,
    pub(super) dropped: u64,
    pub(super) excess: u64,
    pub(super) no_bucket: Option<u64>,
    pub(super) unresolved: u64,
    pub(super) missed: u64,
}

/// Reads a line. Fails with what is wrong with it.
pub(super) fn parse<'a, T: Deserialize<'a>>(line: &'a [u8]) -> Result<T, String> {
    parse_as(line, PhantomData)
}

/// Reads an entry. Fails with what is wrong with it.
pub(super) fn entry(line: &[u8], shape: Shape<'_>) -> Result<Entry, String> {
    parse_as(line, shape)
}

fn parse_as<'a, S: DeserializeSeed<'a>>(line: &'a [u8], seed: S) -> Result<S::Value, String> {
    // Looking at the whole line once takes less time than at each string in it.
    let line = str::from_utf8(line).map_err(|_| "it is not JSON: it is not UTF-8".to_owned())?;
    let mut parser = serde_json::Deserializer::from_str(line);
    let read = seed
        .deserialize(&mut parser)
        .and_then(|value| parser.end().map(|()| value));
    read.map_err(|error| {
        // Each line is one of its own for the parser: it says "line 1".
        let shown = error.to_string();
        let column = error.column();
        let what = shown.split(" at line ").next().unwrap_or_default();
        let what: String = what.chars().take(200).collect();
        match error.classify() {
            serde_json::error::Category::Data => format!("it is not as hist_jsonl has it: {what} (column {column})"),
            _ => format!("it is not JSON: {what} (column {column})"),
        }
    })
}

/// Which line it is, and of which version.
#[derive(Deserialize)]
pub(super) struct Tag {
    #[serde(rename = "type")]
    pub(super) kind: Kind,
    pub(super) schema: Option<u64>,
}

/// Says which line it is. Fails with what is wrong with it.
pub(super) fn tag(line: &[u8]) -> Result<Tag, String> {
    // Nearly all lines: for others it takes a look at the whole line.
    match line.starts_with(br#"{"type":"entry","#) {
        true => Ok(Tag {
            kind: Kind::Entry,
            schema: None,
        }),
        false => parse(line),
    }
}

/// How many keys, and values without the hits, an entry has. So memory is taken once, and not more than is needed: there may
/// be a hundred thousand entries.
#[derive(Clone, Copy)]
pub(super) struct Shape<'a> {
    pub(super) keys: usize,
    pub(super) values: usize,
    /// Of which action what it has stored is of interest, and the names of what is saved with it.
    pub(super) action: Option<(usize, &'a [Arc<str>])>,
}

impl<'de> DeserializeSeed<'de> for Shape<'_> {
    type Value = Entry;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Entry, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Shape<'_> {
    type Value = Entry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an entry")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entry, A::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "lowercase")]
        enum Member {
            Keys,
            Values,
            Actions,
            #[serde(other)]
            Other,
        }
        let (mut keys, mut values, mut worst) = (None, None, None);
        while let Some(member) = map.next_key()? {
            match member {
                Member::Keys => keys = Some(map.next_value_seed(Keys(self.keys))?),
                Member::Values => values = Some(map.next_value_seed(Values(self.values))?),
                Member::Actions => worst = map.next_value_seed(Tracked(self.action))?,
                Member::Other => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        let (Some(keys), Some((hits, values))) = (keys, values) else {
            return Err(A::Error::custom("the entry has no keys or no values"));
        };
        Ok(Entry {
            keys,
            hits,
            values,
            worst,
        })
    }
}

/// So many keys.
struct Keys(usize);

/// The hits, and so many values.
struct Values(usize);

/// What this one of all actions has stored, with these names.
struct Tracked<'a>(Option<(usize, &'a [Arc<str>])>);

/// What an action has stored, if it has.
struct Stored<'a>(&'a [Arc<str>]);

/// What was saved, with these names.
struct Saved<'a>(&'a [Arc<str>]);

impl<'de> DeserializeSeed<'de> for Keys {
    type Value = Vec<Cell>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<Cell>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Keys {
    type Value = Vec<Cell>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of keys")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Vec<Cell>, A::Error> {
        exactly(self.0, list)
    }
}

impl<'de> DeserializeSeed<'de> for Values {
    type Value = (u64, Vec<ValueCell>);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(u64, Vec<ValueCell>), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Values {
    type Value = (u64, Vec<ValueCell>);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of values")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(u64, Vec<ValueCell>), A::Error> {
        let hits = list
            .next_element()?
            .ok_or_else(|| A::Error::custom("there is no number of hits"))?;
        Ok((hits, exactly(self.0, list)?))
    }
}

impl<'de> DeserializeSeed<'de> for Tracked<'_> {
    type Value = Option<Worst>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<Worst>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Tracked<'_> {
    type Value = Option<Worst>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of what actions have stored")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Option<Worst>, A::Error> {
        let mut worst = None;
        if let Some((place, names)) = self.0 {
            for _ in 0..place {
                list.next_element::<IgnoredAny>()?;
            }
            worst = list.next_element_seed(Stored(names))?.flatten();
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(worst)
    }
}

impl<'de> DeserializeSeed<'de> for Stored<'_> {
    type Value = Option<Worst>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<Worst>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Stored<'_> {
    type Value = Option<Worst>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("what an action has stored, or null")
    }

    fn visit_unit<E: Error>(self) -> Result<Option<Worst>, E> {
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<Worst>, A::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "lowercase")]
        enum Member {
            Value,
            Saved,
            #[serde(other)]
            Other,
        }
        let (mut value, mut saved) = (None, None);
        while let Some(member) = map.next_key()? {
            match member {
                Member::Value => value = Some(map.next_value::<Whole>()?.0),
                Member::Saved => saved = Some(map.next_value_seed(Saved(self.0))?),
                Member::Other => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        let (Some(value), Some(saved)) = (value, saved) else {
            return Err(A::Error::custom("an action has stored no value, or has saved nothing"));
        };
        Ok(Some(Worst { value, saved }))
    }
}

impl<'de> DeserializeSeed<'de> for Saved<'_> {
    type Value = Vec<(Arc<str>, Key)>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Saved<'_> {
    type Value = Vec<(Arc<str>, Key)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of what was saved")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut saved = Vec::with_capacity(self.0.len());
        for name in self.0 {
            match list.next_element::<Cell>()? {
                Some(key) => saved.push((Arc::clone(name), key.0)),
                None => break,
            }
        }
        while list.next_element::<Cell>()?.is_some() {}
        Ok(saved)
    }
}

/// A list of this length. Fails if it has another one.
fn exactly<'de, T: Deserialize<'de>, A: SeqAccess<'de>>(len: usize, mut list: A) -> Result<Vec<T>, A::Error> {
    let mut items = Vec::with_capacity(len);
    while let Some(item) = list.next_element()? {
        if items.len() == len {
            return Err(A::Error::custom("there are more keys or values than in the header"));
        }
        items.push(item);
    }
    match items.len() == len {
        true => Ok(items),
        false => Err(A::Error::custom("there are fewer keys or values than in the header")),
    }
}

/// A whole number of 64 bits, with or without a sign.
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

/// A string: of any bytes.
pub(super) struct Characters(pub(super) Text);

impl<'de> Deserialize<'de> for Characters {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Cell::deserialize(deserializer)?.0 {
            Key::Text(text) => Ok(Characters(text)),
            _ => Err(D::Error::custom("this is not a string")),
        }
    }
}

/// A key, or a field that was saved.
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

/// Members of a key that is an object: those of one kind are there.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Members {
    bytes: Option<String>,
    value: Option<i64>,
    comm: Option<Characters>,
    #[serde(deserialize_with = "present")]
    syscall: Option<Option<Characters>>,
    address: Option<String>,
    symbol: Option<Characters>,
    stack: Option<Vec<Symbol>>,
    first: Option<Whole>,
    last: Option<Whole>,
}

/// Distinguishes null from what is not there.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<Characters>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// An address in a stack.
#[derive(Deserialize)]
struct Symbol {
    address: String,
    symbol: Option<Characters>,
}

impl Members {
    fn key<E: Error>(self) -> Result<Key, E> {
        Ok(match self {
            Members {
                bytes: Some(digits), ..
            } => Key::Text(Text(bytes(&digits)?)),
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
                first: Some(first),
                last: Some(last),
                ..
            } => Key::Range {
                first: first.0,
                last: last.0,
            },
            _ => return Err(E::custom("this object is no key that is known")),
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

/// Bytes from hexadecimal digits.
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

/// A value.
pub(super) struct ValueCell(pub(super) Value);

impl<'de> Deserialize<'de> for ValueCell {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;

        impl<'de> Visitor<'de> for Number {
            type Value = ValueCell;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number or a distribution")
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<ValueCell, E> {
                Ok(ValueCell(Value::Number(number.into())))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<ValueCell, E> {
                Ok(ValueCell(Value::Number(number.into())))
            }

            fn visit_unit<E: Error>(self) -> Result<ValueCell, E> {
                Ok(ValueCell(Value::Unknown))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ValueCell, A::Error> {
                let dist = Distribution::deserialize(MapAccessDeserializer::new(map))?;
                Ok(ValueCell(Value::Dist(dist.dist()?)))
            }
        }

        deserializer.deserialize_any(Number)
    }
}

/// Counts of a distribution.
struct Buckets(Counts);

impl<'de> Deserialize<'de> for Buckets {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = Buckets;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("counts by the index of their bucket")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Buckets, A::Error> {
                let mut counts = Counts::default();
                while let Some((index, count)) = map.next_entry()? {
                    counts.add(index, count);
                }
                Ok(Buckets(counts))
            }
        }

        deserializer.deserialize_map(Members)
    }
}

#[derive(Deserialize)]
struct Distribution {
    count: u64,
    sum: Whole,
    min: Whole,
    max: Whole,
    zero_count: u64,
    scale: u8,
    positive: Buckets,
    negative: Buckets,
    /// Made anew, for any percentage.
    #[serde(rename = "quantiles")]
    _quantiles: IgnoredAny,
}

impl Distribution {
    fn dist<E: Error>(self) -> Result<Dist, E> {
        if self.scale > Dist::SCALE_MAX {
            return Err(E::custom("there is no such scale"));
        }
        // Without values there is neither.
        let extreme = |value: Whole| (self.count > 0).then_some(value.0);
        Ok(Dist {
            scale: self.scale,
            count: self.count,
            sum: Some(self.sum.0),
            min: extreme(self.min),
            max: extreme(self.max),
            zero: self.zero_count,
            positive: self.positive.0,
            negative: self.negative.0,
            ..Dist::default()
        })
    }
}
