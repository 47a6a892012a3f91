// SPDX-License-Identifier: MIT OR Apache-2.0

//! Keys and saved fields as attributes for any receiver: only numbers and strings, as Prometheus
//! requires for labels.
//!
//! | key | attributes |
//! |---|---|
//! | number | the number; of more than 63 bits: a string |
//! | number with a name, task, system call | the number; the name in a second attribute, `….name` |
//! | string | a string, with `\x…` for invalid UTF-8 and for terminal control characters |
//! | address | its symbol, or `0x…` |
//! | stack | a string, the outermost function first, with `;` in between |
//! | range | a string, `FIRST-LAST` |
//! | keys without a row | `other`, `expired`, or `recycled` |
//!
//! For a string that is the path of a control group, extra attributes name its container and its
//! pod: see [`rhist_core::names::container`].
//!
//! Different keys have different attributes, unless they only differ in addresses: see
//! `Table::without_addresses()`.

use rhist_core::otlp::attribute::number;
use rhist_core::otlp::attribute::string;
use rhist_core::otlp::model::Any;
use rhist_core::table::Key;

/// Value of the attribute for a key, and of the second attribute, if any. `name` is the name of a
/// number.
pub fn from_key(key: &Key, name: Option<String>) -> (Any, Option<String>) {
    match key {
        Key::Number(value) => (number(*value), name),
        Key::Task { pid, comm } => (number((*pid).into()), Some(comm.to_string())),
        Key::Syscall { number: value, name } => (number((*value).into()), name.clone()),
        Key::Text(_) | Key::Address(_) | Key::Stack(_) | Key::Program(_) | Key::Range { .. } | Key::Other(_) => {
            (string(&key.to_string()), None)
        }
    }
}
