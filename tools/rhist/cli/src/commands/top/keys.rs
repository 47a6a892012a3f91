// SPDX-License-Identifier: MIT OR Apache-2.0

//! Numbers for keys, which keep the history small.

use std::rc::Rc;

use foldhash::HashMap;
use rhist_core::table::Key;

/// All keys seen, by number.
#[derive(Debug, Default)]
pub struct Keys {
    numbers: HashMap<Rc<[Key]>, u32>,
    seen: Vec<(Rc<[Key]>, String)>,
    /// Number of the key that stands for keys without a row, if it was seen.
    other: Option<u32>,
    /// Number after the last one looked up.
    next: u32,
}

impl Keys {
    /// Number of a key. Assigns a new one, with this label, to a new key.
    pub fn number(&mut self, key: &[Key], label: impl FnOnce() -> String) -> u32 {
        // Readings have most keys in the same order: checking the next one is faster than a hash
        // table.
        let number = match self.seen.get(self.next as usize) {
            Some((seen, _)) if **seen == *key => self.next,
            _ => self.find(key).unwrap_or_else(|| self.add(key, label())),
        };
        self.next = number.saturating_add(1);
        number
    }

    fn add(&mut self, key: &[Key], label: String) -> u32 {
        let number = u32::try_from(self.seen.len()).unwrap_or(u32::MAX);
        if let [Key::Other(_), ..] = key {
            self.other = Some(number);
        }
        let key: Rc<[Key]> = key.into();
        self.seen.push((Rc::clone(&key), label));
        self.numbers.insert(key, number);
        number
    }

    /// Number of a known key.
    pub fn find(&self, key: &[Key]) -> Option<u32> {
        self.numbers.get(key).copied()
    }

    /// Number of the key that stands for keys without a row, if it was seen.
    pub fn other(&self) -> Option<u32> {
        self.other
    }

    /// Key with this number.
    pub fn key(&self, number: u32) -> &[Key] {
        self.seen.get(number as usize).map_or(&[], |(key, _)| key)
    }

    /// Label of a key.
    pub fn label(&self, number: u32) -> &str {
        self.seen.get(number as usize).map_or("", |(_, label)| label)
    }
}
