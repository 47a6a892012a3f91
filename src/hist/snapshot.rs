// SPDX-License-Identifier: GPL-2.0

//! A snapshot of the entries of a histogram, in the order in which they are shown.

use core::cmp::Ordering;

use kernel::prelude::*;

use super::field::Compare;
use super::limits;
use super::row::Row;
use super::sort::heapsort;
use super::Histogram;
use super::SortKey;
use crate::event::hit::COMM_LEN;
use crate::map::Elt;
use crate::map::OnceText;
use crate::map::Read;
use crate::text::until_nul;

/// The entries of a histogram with their columns, each read once. What is sorted and shown does not change with
/// later hits.
pub(super) struct Snapshot<'a> {
    hist: &'a Histogram,
    entries: KVVec<Elt<'a>>,
    /// The columns of the first entry, then those of the second, and so on.
    columns: KVVec<u64>,
    /// Indices of entries, in the order in which they are shown.
    order: KVVec<u32>,
    /// Total and maximum of each column.
    wholes: KVec<Whole>,
    drops: u64,
}

impl<'a> Snapshot<'a> {
    /// Reads and sorts the entries. Fails with `ENOMEM`.
    pub(super) fn take(hist: &'a Histogram) -> Result<Self> {
        let mut snapshot = Self {
            hist,
            entries: KVVec::new(),
            columns: KVVec::new(),
            order: KVVec::new(),
            wholes: KVec::new(),
            drops: hist.drops(),
        };
        snapshot.read()?;
        snapshot.add_up()?;
        snapshot.sort()?;
        Ok(snapshot)
    }

    fn read(&mut self) -> Result {
        for entry in self.hist.map.elts() {
            let hitcount = entry.column(0);
            // Its first hit has inserted it, and not counted yet.
            if hitcount == 0 {
                continue;
            }
            self.entries.push(entry, GFP_KERNEL)?;
            self.columns.push(hitcount, GFP_KERNEL)?;
            for number in 1..self.n_columns() {
                self.columns.push(entry.column(number), GFP_KERNEL)?;
            }
        }
        Ok(())
    }

    fn add_up(&mut self) -> Result {
        let n = self.n_columns();
        self.wholes = KVec::from_elem(Whole { total: 0, max: 0 }, n, GFP_KERNEL)?;
        for columns in self.columns.chunks_exact(n) {
            for (whole, &column) in self.wholes.iter_mut().zip(columns) {
                whole.total = whole.total.wrapping_add(column);
                whole.max = whole.max.max(column);
            }
        }
        Ok(())
    }

    /// Columns of an entry.
    fn n_columns(&self) -> usize {
        self.hist.plan.program.columns.len()
    }

    /// The entries, in order.
    pub(super) fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        self.order.iter().map(|&entry| Row {
            plan: &self.hist.plan,
            key: self.key(entry),
            comm: self.comm(entry),
            columns: self.columns(entry),
            wholes: &self.wholes,
            elt: Some(self.entries[entry as usize]),
        })
    }

    /// How many entries there are.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Hits of all entries.
    pub(super) fn hits(&self) -> u64 {
        self.wholes[0].total
    }

    /// Hits that were dropped.
    pub(super) fn drops(&self) -> u64 {
        self.drops
    }

    fn key(&self, entry: u32) -> &'a [u8] {
        self.entries[entry as usize].key()
    }

    /// The comm of the entry; an empty one if none is stored.
    fn comm(&self, entry: u32) -> [u8; COMM_LEN] {
        OnceText::of(self.entries[entry as usize].side()).map_or([0; COMM_LEN], OnceText::load)
    }

    fn columns(&self, entry: u32) -> &[u64] {
        let n = self.n_columns();
        &self.columns[entry as usize * n..][..n]
    }

    /// Sorts by the bytes of the keys, then by the sort keys of the trigger: see [`super::sort`].
    fn sort(&mut self) -> Result {
        let mut order = KVVec::with_capacity(self.entries.len(), GFP_KERNEL)?;
        for entry in (0..).take(self.entries.len()) {
            order.push(entry, GFP_KERNEL)?;
        }
        heapsort(&mut order, |&a, &b| self.key(a).cmp(self.key(b)));
        self.sort_by(&mut order, &self.hist.plan.sort);
        self.order = order;
        Ok(())
    }

    /// Sorts by the first of `keys`, then entries that are equal by the rest.
    fn sort_by(&self, mut order: &mut [u32], keys: &[SortKey]) {
        let Some((key, rest)) = keys.split_first() else {
            return;
        };
        heapsort(order, |&a, &b| self.compare(key, a, b));
        if rest.is_empty() {
            return;
        }
        while let Some(&first) = order.first() {
            let equal = |&entry: &u32| self.compare(key, first, entry).is_eq();
            let n = order.iter().take_while(|entry| equal(entry)).count();
            let (run, others) = order.split_at_mut(n.max(1));
            self.sort_by(run, rest);
            order = others;
        }
    }

    fn compare(&self, key: &SortKey, a: u32, b: u32) -> Ordering {
        let plan = &self.hist.plan;
        let order = match plan.fields[key.field].column() {
            Some(column) => self.columns(a)[column].cmp(&self.columns(b)[column]),
            None => {
                let n = key.field - plan.n_vals;
                let at = plan.program.parts()[n].at;
                compare_keys(
                    plan.keys()[n].compare(),
                    &self.key(a)[at..],
                    &self.key(b)[at..],
                )
            }
        };
        match key.descending {
            true => order.reverse(),
            false => order,
        }
    }
}

/// Compares the key fields that `a` and `b` start with.
fn compare_keys(by: Compare, a: &[u8], b: &[u8]) -> Ordering {
    match by {
        Compare::Nothing => Ordering::Equal,
        Compare::Text => until_nul(a).cmp(until_nul(b)),
        Compare::Number(type_) => type_.compare(number(a), number(b)),
    }
}

/// The number that `bytes`, part of a key, start with.
pub(super) fn number(bytes: &[u8]) -> u64 {
    bytes
        .first_chunk()
        .map_or(0, |chunk| u64::from_ne_bytes(*chunk))
}

/// Total and maximum of a column over all entries.
#[derive(Clone, Copy)]
pub(super) struct Whole {
    pub(super) total: u64,
    pub(super) max: u64,
}

/// The hit that the last snapshot of the ring buffer was taken for.
pub(super) struct Taken {
    /// The value that triggered it.
    pub(super) value: u64,
    key: KVec<u8>,
    comm: [u8; COMM_LEN],
}

impl Taken {
    /// That of `hist`; `None` if none was taken. Fails with `ENOMEM`.
    pub(super) fn read(hist: &Histogram) -> Result<Option<Self>> {
        let Some(cell) = hist.taken() else {
            return Ok(None);
        };
        let key_words = hist.map.key_size() / size_of::<u64>();
        let mut words = [0; 1 + limits::KEY_SIZE as usize / size_of::<u64>() + OnceText::WORDS];
        loop {
            match cell.read(&mut words) {
                Read::Done => break,
                Read::Unset => return Ok(None),
                Read::Busy => (),
            }
        }
        let mut key = KVec::new();
        for word in &words[1..=key_words] {
            key.extend_from_slice(&word.to_ne_bytes(), GFP_KERNEL)?;
        }
        Ok(Some(Self {
            value: words[0],
            key,
            comm: OnceText::of_words([words[1 + key_words], words[2 + key_words]]),
        }))
    }

    /// Its key as a row.
    pub(super) fn row<'a>(&'a self, hist: &'a Histogram) -> Row<'a> {
        Row {
            plan: hist.plan(),
            key: &self.key,
            comm: self.comm,
            columns: &[],
            wholes: &[],
            elt: None,
        }
    }
}
