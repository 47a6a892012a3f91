// SPDX-License-Identifier: MIT OR Apache-2.0

//! Formats keys and saved fields for people, with names instead of numbers.

use std::borrow::Cow;
use std::collections::HashMap;

use rhist_core::names::Names;
use rhist_core::names::container;
use rhist_core::question::Question;
use rhist_core::recipe::NameKind;
use rhist_core::table::Column;
use rhist_core::table::Frame;
use rhist_core::table::Key;
use rhist_core::table::Keys;
use rhist_core::table::Other;
use rhist_core::table::Row;
use rhist_core::table::Table;
use rhist_core::table::Text;
use rhist_core::table::Unit;
use rhist_core::table::Worst;

use super::number::range;
use super::page::plain;

/// Formats keys and saved fields. Escapes everything that a terminal would interpret.
#[derive(Clone, Copy)]
pub struct Labels<'a> {
    /// Source of the kinds of names.
    pub question: &'a Question,
    /// Names of numbers.
    pub names: &'a Names,
}

impl Labels<'_> {
    /// Name of a number, or of the control group of a container, if any.
    pub(super) fn name(&self, column: &str, key: &Key) -> Option<String> {
        let kind = self.question.name_kind(column);
        match key {
            Key::Number(number) => self.names.name(kind, column, *number),
            Key::Text(path) if kind == NameKind::Container => container::label(std::str::from_utf8(path).ok()?),
            _ => None,
        }
    }

    /// The table for people, with names instead of numbers, and symbols instead of addresses.
    /// Merges rows that look the same, such as calls from several places of a function.
    pub(super) fn named<'a>(&self, table: &'a Table) -> Cow<'a, Table> {
        let is_same = |(column, key): (&Column, &Key)| self.named_key(&column.name, key).is_none();
        if table
            .rows
            .iter()
            .all(|row| table.keys.iter().zip(&row.keys).all(is_same))
        {
            return Cow::Borrowed(table);
        }
        let mut named = Table {
            rows: Vec::new(),
            ..table.clone()
        };
        let mut places: HashMap<Keys, usize> = HashMap::with_capacity(table.rows.len());
        for row in &table.rows {
            let keys = table.keys.iter().zip(&row.keys);
            let keys: Keys = keys
                .map(|(column, key)| self.named_key(&column.name, key).unwrap_or_else(|| key.clone()))
                .collect();
            match places.get(&keys).and_then(|&place| named.rows.get_mut(place)) {
                Some(same) => same.merge(row, &table.values),
                None => {
                    places.insert(keys.clone(), named.rows.len());
                    named.rows.push(Row { keys, ..row.clone() });
                }
            }
        }
        Cow::Owned(named)
    }

    /// Key for people, if it differs. A number stays one with `.hex`: rows are sorted by it.
    fn named_key(&self, column: &str, key: &Key) -> Option<Key> {
        let is_named = self.question.name_kind(column) != NameKind::Hex;
        match (key, is_named.then(|| self.name(column, key)).flatten()) {
            (Key::Other(Other::Expired | Other::Recycled), _) => Some(Key::Other(Other::Folded)),
            (_, Some(name)) => Some(Key::Text(Text::from(name.as_str()))),
            (Key::Address(frame), None) if frame.symbol.is_some() && frame.address.is_some() => {
                Some(Key::Address(Frame {
                    address: None,
                    symbol: frame.symbol.clone(),
                }))
            }
            _ => None,
        }
    }

    /// Formats a key.
    pub fn key(&self, column: &Column, key: &Key) -> String {
        match key {
            Key::Range { first, last } if column.unit != Unit::Plain => range(*first, *last, column.unit),
            _ => self.field(&column.name, key),
        }
    }

    /// Formats a saved field.
    fn field(&self, name: &str, key: &Key) -> String {
        match self.name(name, key) {
            Some(name) => Text::from(name.as_str()).to_string(),
            None => key.to_string(),
        }
    }

    /// The question's sentence about the fields saved with the largest value. Empty if nothing was
    /// saved.
    pub fn worst(&self, worst: &Worst) -> String {
        let saved = |name: &str| {
            let found = worst.saved.iter().find(|(field, _)| **field == *name);
            found.map(|(field, key)| self.field(field, key))
        };
        if worst.saved.is_empty() {
            return String::new();
        }
        if self.question.worst.is_empty() {
            let all = worst.saved.iter();
            let all: Vec<_> = all
                .map(|(name, key)| format!("{} {}", Text::from(&**name), self.field(name, key)))
                .collect();
            return all.join(", ");
        }
        let mut sentence = String::new();
        let mut rest = self.question.worst.as_str();
        while let Some((before, after)) = rest.split_once('{') {
            sentence += &plain(before);
            let Some((name, after)) = after.split_once('}') else {
                break;
            };
            sentence += &saved(name).unwrap_or_else(|| "?".to_owned());
            rest = after;
        }
        sentence + &plain(rest)
    }
}
