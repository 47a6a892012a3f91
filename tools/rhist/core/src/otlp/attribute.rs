// SPDX-License-Identifier: MIT OR Apache-2.0

//! Keys and saved fields as attributes of OTLP in recordings, without loss: the kind of each key is
//! kept. Numbers and strings are plain values; other kinds are lists with the members of the object
//! in `hist_jsonl`:
//!
//! | key | value |
//! |---|---|
//! | number | `intValue`; of more than 63 bits: `value`, as a string |
//! | number with a name, as a device | `value`, `name` |
//! | string | `stringValue`; `bytesValue` if it is not UTF-8 |
//! | task | `value`, `comm` |
//! | system call | `value`, `syscall`, which is false if no such call exists |
//! | address | `address` as a string, `symbol`; each only if it is known |
//! | stack | `arrayValue` of addresses, the innermost function first |
//! | range | `first`, `last` |
//! | keys without a row | `other`: why they have none |

use super::model::Any;
use super::model::Attribute;
use super::model::Bytes;
use super::model::Digits;
use crate::table::Frame;
use crate::table::Key;
use crate::table::Numbered;
use crate::table::Other;
use crate::table::Text;

/// Makes a value of OTLP from named members.
pub fn list<'a>(members: impl IntoIterator<Item = (&'a str, Any)>) -> Any {
    Any::Kvlist(attributes(members).into())
}

/// Makes attributes from names and values.
pub fn attributes<'a>(members: impl IntoIterator<Item = (&'a str, Any)>) -> Vec<Attribute> {
    let attribute = |(key, value): (&str, Any)| Attribute {
        key: key.to_owned(),
        value,
    };
    members.into_iter().map(attribute).collect()
}

/// Makes a string value.
pub fn string(text: &str) -> Any {
    Any::String(text.to_owned())
}

/// Makes a number value; a string if the number has more than 63 bits.
pub fn number(number: i128) -> Any {
    match i64::try_from(number) {
        Ok(_) => Any::Int(Digits(number)),
        Err(_) => Any::String(number.to_string()),
    }
}

fn text(text: &Text) -> Any {
    match std::str::from_utf8(text) {
        Ok(text) => string(text),
        Err(_) => Any::Bytes(Bytes(text.to_vec())),
    }
}

fn stack(frames: &[Frame]) -> Any {
    Any::Array(frames.iter().map(frame).collect::<Vec<_>>().into())
}

fn frame(frame: &Frame) -> Any {
    let address = frame
        .address
        .map(|address| ("address", string(&format!("{address:#x}"))));
    let symbol = frame.symbol.as_deref().map(|symbol| ("symbol", string(symbol)));
    list(address.into_iter().chain(symbol))
}

/// Value for a number with a name.
pub fn from_named(value: i128, name: &str) -> Any {
    list([("value", number(value)), ("name", string(name))])
}

/// Inverse of [`from_named`].
pub fn to_named(value: &Any) -> Option<(i128, &str)> {
    let Any::Kvlist(members) = value else {
        return None;
    };
    match members.values.as_slice() {
        [value, name] if value.key == "value" && name.key == "name" => match &name.value {
            Any::String(name) => Some((to_number(&value.value)?, name)),
            _ => None,
        },
        _ => None,
    }
}

/// Value for a key.
pub fn from_key(key: &Key) -> Any {
    match key {
        Key::Number(value) => match number(*value) {
            digits @ Any::String(_) => list([("value", digits)]),
            int => int,
        },
        Key::Text(value) => text(value),
        Key::Task { pid, comm } => list([("value", number((*pid).into())), ("comm", text(comm))]),
        Key::Syscall { number: value, name } => {
            let name = name.as_deref().map_or(Any::Bool(false), string);
            list([("value", number((*value).into())), ("syscall", name)])
        }
        Key::Address(value) => frame(value),
        Key::Stack(frames) => stack(frames),
        Key::Program(program) => stack(&program.frames(&Numbered)),
        Key::Range { first, last } => list([("first", number(*first)), ("last", number(*last))]),
        Key::Other(other) => list([("other", string(other.word()))]),
    }
}

/// Inverse of [`from_key`]. `None` if the value does not stand for a key.
pub fn to_key(value: &Any) -> Option<Key> {
    Some(match value {
        Any::Int(Digits(value)) => Key::Number(*value),
        Any::String(_) | Any::Bytes(_) => Key::Text(to_text(value)?),
        Any::Array(frames) => Key::Stack(frames.values.iter().map(to_frame).collect::<Option<_>>()?),
        Any::Kvlist(members) => match members.values.as_slice() {
            [other] if other.key == "other" => Key::Other(Other::parse(&to_string(&other.value)?)?),
            [value] if value.key == "value" => Key::Number(to_number(&value.value)?),
            [value, comm] if value.key == "value" && comm.key == "comm" => Key::Task {
                pid: to_number(&value.value)?.try_into().ok()?,
                comm: to_text(&comm.value)?,
            },
            [value, name] if value.key == "value" && name.key == "syscall" => Key::Syscall {
                number: to_number(&value.value)?.try_into().ok()?,
                name: match &name.value {
                    Any::Bool(false) => None,
                    name => Some(to_string(name)?),
                },
            },
            [first, last] if first.key == "first" && last.key == "last" => Key::Range {
                first: to_number(&first.value)?,
                last: to_number(&last.value)?,
            },
            _ => match to_named(value) {
                Some((number, _)) => Key::Number(number),
                None => Key::Address(to_frame(value)?),
            },
        },
        Any::Bool(_) | Any::Double(_) => return None,
    })
}

/// Reads a string value, or returns `None` for another kind.
pub fn to_string(value: &Any) -> Option<String> {
    match value {
        Any::String(text) => Some(text.clone()),
        _ => None,
    }
}

fn to_number(value: &Any) -> Option<i128> {
    match value {
        Any::Int(Digits(number)) => Some(*number),
        Any::String(digits) => digits.parse().ok(),
        _ => None,
    }
}

fn to_text(value: &Any) -> Option<Text> {
    match value {
        Any::String(text) => Some(Text::from(text.as_str())),
        Any::Bytes(Bytes(text)) => Some(Text::from(text.as_slice())),
        _ => None,
    }
}

fn to_frame(value: &Any) -> Option<Frame> {
    let Any::Kvlist(members) = value else {
        return None;
    };
    let mut frame = Frame {
        address: None,
        symbol: None,
    };
    for Attribute { key, value } in &members.values {
        let text = to_string(value)?;
        match key.as_str() {
            "address" => frame.address = Some(u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()?),
            "symbol" => frame.symbol = Some(text),
            _ => return None,
        }
    }
    Some(frame)
}
