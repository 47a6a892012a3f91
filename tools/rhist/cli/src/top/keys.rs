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
    /// The number behind the last one.
    next: u32,
}

impl Keys {
    /// The number of a key, which is a new one with this label if it was not seen yet.
    pub fn number(&mut self, key: &[Key], label: impl FnOnce() -> String) -> u32 {
        // A reading has most keys in the order of the first one: that is quicker than a hash table.
        let number = match self.seen.get(self.next as usize) {
            Some((seen, _)) if **seen == *key => self.next,
            _ => self.find(key).unwrap_or_else(|| self.add(key, label())),
        };
        self.next = number.saturating_add(1);
        number
    }

    fn add(&mut self, key: &[Key], label: String) -> u32 {
        let number = u32::try_from(self.seen.len()).unwrap_or(u32::MAX);
        let key: Rc<[Key]> = key.into();
        self.seen.push((Rc::clone(&key), label));
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
