// SPDX-License-Identifier: GPL-2.0

//! A list of entries that a reader keeps while hits go on.
//!
//! The list has the number of each entry, and finds its element again by that. In a map whose
//! elements are taken out, another entry may have the number by then. So the list of such a map has
//! copies of the key, the text in the side data, and the birth.
//!
//! # The copies belong together
//!
//! They are made by several loads, beside hits. A number is used again a grace period after a
//! generation without its slot was published. The reader makes the list anew if that has happened
//! meanwhile: see [`Map::whole`](super::Map::whole).
//!
//! # Later reads are of the entry, or not used
//!
//! Variables and wide cells are read from the element itself. An entry with a used number has a
//! later birth, by grace periods. Its birth is stored before its slot (release). A hit that stores
//! a variable has found that slot (acquire), and the store is a release. So a reader that finds
//! such a value, and then loads the birth (`smp_rmb()` in between), finds the later one. The worker
//! unsets all cells before it gives the number back: a reader that finds the birth unchanged has
//! read a value of the entry, or none.

use core::ptr;

use kernel::{
    alloc::Flags,
    prelude::*,
    sync::Arc, //
};

use super::{
    elt::Elt,
    generation::Generation,
    once::OnceText, //
};
use crate::sync::smp_rmb;

/// Entries of a generation, in the order in which they were added.
///
/// # Invariants
///
/// An acquiring load of a slot of the generation's index has found an element with each of the
/// numbers.
pub struct EntryList {
    generation: Arc<Generation>,
    numbers: KVVec<u32>,
    /// The parts of entries that do not change; `None`: elements stay.
    copies: Option<Copies>,
}

#[derive(Default)]
struct Copies {
    /// The keys, one after the other.
    keys: KVVec<u8>,
    texts: KVVec<[u8; OnceText::SIZE]>,
    births: KVVec<u64>,
}

impl EntryList {
    /// An empty list.
    pub fn new(generation: Arc<Generation>) -> Self {
        Self {
            numbers: KVVec::new(),
            copies: (!generation.is_fixed()).then(Copies::default),
            generation,
        }
    }

    /// Adds an entry of the list's generation. Fails with `ENOMEM`, and with `EINVAL` for an entry
    /// of another generation.
    pub fn push(&mut self, elt: Elt<'_>, flags: Flags) -> Result {
        if !ptr::eq(elt.generation(), &*self.generation) {
            return Err(EINVAL);
        }
        if let Some(copies) = &mut self.copies {
            for word in elt.key_words() {
                copies.keys.extend_from_slice(&word.to_ne_bytes(), flags)?;
            }
            copies.texts.push(OnceText::load_from(elt.side()), flags)?;
            copies.births.push(elt.birth().unwrap_or(0), flags)?;
        }
        // INVARIANT: By the invariants of `Elt` such a load has found it.
        self.numbers.push(elt.number(), flags)?;
        Ok(())
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Returns whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// The `nth` entry, from 0. `None`: the list is shorter.
    pub fn get(&self, nth: usize) -> Option<ListedEntry<'_>> {
        let number = *self.numbers.get(nth)?;
        Some(ListedEntry {
            list: self,
            nth,
            // The number is one of this list.
            elt: Elt::new(&self.generation, number),
        })
    }
}

/// An entry of a list.
#[derive(Clone, Copy)]
pub struct ListedEntry<'a> {
    list: &'a EntryList,
    nth: usize,
    /// The element with its number, which may be another entry's by now.
    elt: Elt<'a>,
}

impl<'a> ListedEntry<'a> {
    /// The number of its element.
    pub fn number(self) -> u32 {
        self.elt.number()
    }

    /// The key, which does not change.
    pub fn key(self) -> &'a [u8] {
        match &self.list.copies {
            None => self.elt.key(),
            Some(copies) => {
                let size = self.list.generation.key_size();
                let keys = copies.keys.get(self.nth * size..);
                keys.and_then(|keys| keys.get(..size)).unwrap_or(&[])
            }
        }
    }

    /// The text in its side data; an empty one if none is stored.
    pub fn text(self) -> [u8; OnceText::SIZE] {
        let copies = self.list.copies.as_ref();
        match copies.and_then(|copies| copies.texts.get(self.nth)) {
            Some(text) if text[0] != 0 => *text,
            // The hit that inserted the entry may have stored it since.
            _ => self
                .read(|elt| OnceText::load_from(elt.side()))
                .unwrap_or_default(),
        }
    }

    /// The time of its insertion, if the map has a clock.
    pub fn birth(self) -> Option<u64> {
        self.copied_birth().or(self.elt.birth())
    }

    /// The copy of its birth; 0 without a clock. `None`: elements stay.
    fn copied_birth(self) -> Option<u64> {
        let copies = self.list.copies.as_ref()?;
        copies.births.get(self.nth).copied()
    }

    /// Reads something by `read` that hits change. `None`: the entry is gone, and its number may be
    /// another one's.
    pub fn read<T>(self, read: impl FnOnce(Elt<'a>) -> T) -> Option<T> {
        let value = read(self.elt);
        smp_rmb();
        self.is_there().then_some(value)
    }

    /// Returns whether its element is not another entry's yet.
    pub fn is_there(self) -> bool {
        let birth = self.copied_birth();
        birth.is_none() || birth == self.elt.birth()
    }
}
