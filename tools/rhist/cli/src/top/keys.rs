// SPDX-License-Identifier: MIT OR Apache-2.0

//! Numbers for keys, so that what is kept of each interval is small.

use std::rc::Rc;

use foldhash::HashMap;
use rhist_core::table::Key;

/// Keys that were seen, by number.
#[derive(Debug, Default)]
pub struct Keys {
    numbers: HashMap<Rc<[Key]>, u32>,
    seen: Vec<(Rc<[Key]>, String)>,
}

impl Keys {
    /// The number of a key, which is a new one with this label if it was not seen yet.
    pub fn number(&mut self, key: &[Key], label: impl FnOnce() -> String) -> u32 {
        if let Some(&number) = self.numbers.get(key) {
            return number;
        }
        let number = u32::try_from(self.seen.len()).unwrap_or(u32::MAX);
        let key: Rc<[Key]> = key.into();
        self.seen.push((Rc::clone(&key), label()));
        self.numbers.insert(key, number);
        number
    }

    /// The number of a key, if it was seen.
    pub fn find(&self, key: &[Key]) -> Option<u32> {
        self.numbers.get(key).copied()
    }

    /// A key that was seen.
    pub fn key(&self, number: u32) -> &[Key] {
        self.seen.get(number as usize).map_or(&[], |(key, _)| key)
    }

    /// How a key is shown.
    pub fn label(&self, number: u32) -> &str {
        self.seen.get(number as usize).map_or("", |(_, label)| label)
    }
}
