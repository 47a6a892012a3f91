// SPDX-License-Identifier: GPL-2.0

//! Lookup and insertion of elements in a generation.

#[cfg(doc)]
use super::index::Index;
use super::{
    counters::Loss,
    elt::Elt,
    generation::Generation,
    index::FirstSlot,
    keys::{
        ByteKey,
        Key,
        WordKey, //
    },
    others::Other,
    wide::WideCell, //
};
use crate::sync::PreemptOff;

impl Generation {
    /// Finds the element of `key`, or inserts it. Words that `key` lacks at its end are zero.
    /// `None`: no place is left for another key, or `key` has a wrong size; counted as a drop.
    ///
    /// Any context, NMI included. The caller [updates](Elt::update) the columns of the element, so
    /// that hits and drops add up to the calls.
    #[inline]
    pub fn insert<'a>(&'a self, preempt: PreemptOff<'_>, key: &[u8]) -> Option<Elt<'a>> {
        match ByteKey::new(key, self.index.keys.size()) {
            Some(key) => self.insert_key(preempt, key),
            None => self.without_place(preempt),
        }
    }

    /// Finds or inserts the element of a key of one word.
    #[inline(always)]
    pub fn insert_word<'a>(&'a self, preempt: PreemptOff<'_>, key: u64) -> Option<Elt<'a>> {
        self.insert_key(preempt, key)
    }

    /// Finds or inserts the element of a key of these words.
    #[inline(always)]
    pub fn insert_words<'a>(&'a self, preempt: PreemptOff<'_>, key: &[u64]) -> Option<Elt<'a>> {
        match WordKey::new(key, self.index.keys.width()) {
            Some(key) => self.insert_key(preempt, key),
            None => self.without_place(preempt),
        }
    }

    /// Finds or inserts the element of a key of `N` words. The compiler unrolls its loops, which
    /// saves some 20 instructions a hit.
    #[inline(always)]
    pub fn insert_array<'a, const N: usize>(
        &'a self,
        preempt: PreemptOff<'_>,
        key: [u64; N],
    ) -> Option<Elt<'a>> {
        match self.is_whole(&key) {
            true => self.insert_key(preempt, key),
            false => self.insert_words(preempt, &key),
        }
    }

    #[inline(always)]
    fn insert_key<'a>(&'a self, preempt: PreemptOff<'_>, key: impl Key) -> Option<Elt<'a>> {
        self.elt_or_loss(preempt, self.index.insert(preempt, key))
    }

    /// [`Generation::insert_word`] of a key that is not in the first slot of its path: see
    /// [`Generation::lookup_word_first_slot`].
    #[inline(always)]
    pub fn insert_word_on_path<'a>(&'a self, preempt: PreemptOff<'_>, key: u64) -> Option<Elt<'a>> {
        self.elt_or_loss(preempt, self.index.insert_on_path(preempt, key))
    }

    /// [`Generation::insert_array`] of a key that is not in the first slot of its path: see
    /// [`Generation::lookup_array_first_slot`].
    #[inline(always)]
    pub fn insert_array_on_path<'a, const N: usize>(
        &'a self,
        preempt: PreemptOff<'_>,
        key: [u64; N],
    ) -> Option<Elt<'a>> {
        match self.is_whole(&key) {
            true => self.elt_or_loss(preempt, self.index.insert_on_path(preempt, key)),
            false => self.insert_words(preempt, &key),
        }
    }

    /// Returns whether the keys of the map have room for these words, and the last one is not zero.
    #[inline(always)]
    fn is_whole(&self, key: &[u64]) -> bool {
        key.last().is_some_and(|&last| last != 0) && key.len() <= self.index.keys.width()
    }

    #[inline(always)]
    fn elt_or_loss(&self, preempt: PreemptOff<'_>, found: Option<u32>) -> Option<Elt<'_>> {
        match found {
            Some(number) => Some(Elt::new(self, number)),
            None => self.without_place(preempt),
        }
    }

    /// The element for a hit whose key lacks a place: [`Other::Folded`], in which its variables are
    /// lost. `None`: it is a drop.
    #[cold]
    fn without_place(&self, preempt: PreemptOff<'_>) -> Option<Elt<'_>> {
        if self.index.has_no_memory() {
            self.counters.lose(preempt, Loss::NoMemory);
        }
        if self.index.pool.room().folds {
            for _ in 0..self.index.vars.width() {
                self.counters.lose(preempt, Loss::Missed);
            }
            return Some(Elt::new(self, Other::Folded.number()));
        }
        self.counters.lose(preempt, Loss::Dropped);
        None
    }

    /// Finds the element of a key of one word in the first slot of its path, where most are. `None`
    /// if it is not there, or its hits are drops. Any context.
    #[inline(always)]
    pub fn lookup_word_first_slot(&self, key: u64) -> Option<Elt<'_>> {
        let number = self.index.lookup_word_first_slot(key)?;
        Some(Elt::new(self, number))
    }

    /// Looks for the element of a key of one word in the first slot of its path. Any context.
    #[inline(always)]
    pub fn lookup_first_slot(&self, key: u64) -> FirstSlot<Elt<'_>> {
        match self.index.lookup_first_slot(key) {
            FirstSlot::Hit(number) => FirstSlot::Hit(Elt::new(self, number)),
            FirstSlot::Empty => FirstSlot::Empty,
            FirstSlot::Other => FirstSlot::Other,
        }
    }

    /// Finds the element of a key of `N` words in the first slot of its path: see
    /// [`Index::lookup_array_first_slot`]. Any context.
    #[inline(always)]
    pub fn lookup_array_first_slot<const N: usize>(&self, key: [u64; N]) -> Option<Elt<'_>> {
        let number = self.index.lookup_array_first_slot(key)?;
        Some(Elt::new(self, number))
    }

    /// Finds the element of `key`, if it has one. Any context.
    #[inline]
    pub fn lookup(&self, key: &[u8]) -> Option<Elt<'_>> {
        let key = ByteKey::new(key, self.index.keys.size())?;
        Some(Elt::new(self, self.index.lookup(key)?))
    }

    /// Returns whether a new key finds no place now. Any context.
    #[inline]
    pub fn is_full(&self) -> bool {
        let pool = &self.index.pool;
        pool.places() >= pool.capacity()
    }

    /// Finds the element of a key of these words, if it has one. Any context.
    pub fn lookup_words(&self, key: &[u64]) -> Option<Elt<'_>> {
        let key = WordKey::new(key, self.index.keys.width())?;
        Some(Elt::new(self, self.index.lookup(key)?))
    }

    /// Finds the element of a key of one word, if it has one. Any context.
    #[inline]
    pub fn lookup_word(&self, key: u64) -> Option<Elt<'_>> {
        Some(Elt::new(self, self.index.lookup(key)?))
    }

    /// Finds the element of a key of `N` words, if it has one. If the keys of the map are shorter,
    /// only the first words count. Any context.
    #[inline(always)]
    pub fn lookup_array<const N: usize>(&self, key: [u64; N]) -> Option<Elt<'_>> {
        let number = match self.is_whole(&key) {
            true => self.index.lookup(key)?,
            false => {
                let width = self.index.keys.width();
                let key = key.get(..width).unwrap_or(&key);
                self.index.lookup(WordKey::new(key, width)?)?
            }
        };
        Some(Elt::new(self, number))
    }

    /// A wide cell of the element with this [number](Elt::number).
    #[inline]
    pub fn wide_at(&self, number: u32, cell: usize) -> Option<WideCell<'_>> {
        match self.has(number) {
            // SAFETY: An element has this number.
            true => unsafe { self.index.wide.of(number, cell) },
            false => None,
        }
    }

    /// The words of the key of the element with this [number](Elt::number). The caller has the
    /// number from a hit that found the element.
    pub fn key_at(&self, number: u32) -> Option<impl Iterator<Item = u64> + '_> {
        match self.has(number) {
            // SAFETY: An element has this number.
            true => Some(unsafe { self.index.keys.load(number) }),
            false => None,
        }
    }

    /// Sets variable `var` of the element with this [number](Elt::number), which has a key.
    pub fn set_var_at(&self, number: u32, var: usize, value: u64) {
        if self.has(number) {
            let _ = Elt::new(self, number).set_var(var, value);
        }
    }

    /// Returns whether an element of this generation has this number. Later generations of a map
    /// that grows have more, and insert them in tables that this one has, too.
    #[inline]
    pub fn has(&self, number: u32) -> bool {
        let nth = self.counters.numbering().nth(number);
        nth.is_some_and(|nth| (nth as usize) < self.elements())
    }
}
