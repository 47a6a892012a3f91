// SPDX-License-Identifier: MIT OR Apache-2.0

//! Keys and saved fields as attributes that any receiver takes: numbers and strings only, as labels of Prometheus have to be.
//!
//! | key | attributes |
//! |---|---|
//! | number | the number; of more than 63 bits: a string |
//! | number with a name, task, system call | the number, and the name in a second attribute, behind `.name` |
//! | string | a string, with `\x…` in the place of what is no UTF-8, and of what a terminal would interpret |
//! | address | its symbol, or `0x…` |
//! | stack | a string, the outermost function first, with `;` in between |
//! | range | a string, `FIRST-LAST` |
//!
//! If a string is the path of a control group, the container that it belongs to is in an attribute of its own: see
//! [`super::container`].
//!
//! Different keys have different attributes, unless they only differ in addresses: see `Table::without_addresses()`.

use super::attribute::number;
use super::attribute::string;
use super::model::Any;
use crate::table::Key;

/// The value of an attribute for a key, and the name in a second one, if there is one. `name` is that of the number.
pub fn from_key(key: &Key, name: Option<String>) -> (Any, Option<String>) {
    match key {
        Key::Number(value) => (number(*value), name),
        Key::Task { pid, comm } => (number((*pid).into()), Some(comm.to_string())),
        Key::Syscall { number: value, name } => (number((*value).into()), name.clone()),
        Key::Text(_) | Key::Address(_) | Key::Stack(_) | Key::Range { .. } => (string(&key.to_string()), None),
    }
}

/// The name of the second attribute of a key or saved field.
pub fn second(name: &str) -> String {
    format!("{name}.name")
}
