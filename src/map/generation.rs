// SPDX-License-Identifier: GPL-2.0

//! A generation of a map: the index and the counters that hits use until one of them is replaced.

use kernel::{
    alloc::Flags,
    prelude::*,
    sync::Arc, //
};

use super::{
    chunks::Numbering,
    counters::{
        Counters,
        Loss, //
    },
    index::Index,
    pool::Pool,
    shape::Shape,
    table::Table,
    totals::PerMap, //
};
use crate::sync::PreemptOff;

/// The index and the counters that a hit uses, behind one pointer.
///
/// Parts of both are embedded, so that they need no pointers of their own. Large parts are shared
/// with other generations.
///
/// # Invariants
///
/// The index and the counters are for the same elements.
#[repr(C)]
pub struct Generation {
    pub(super) index: Index,
    pub(super) counters: Counters,
    second: Option<Arc<Generation>>,
}

/// The parts of a map that are the same in both banks.
pub(super) struct Parts {
    pub(super) index: KBox<Index>,
    /// Number of elements.
    pub(super) elements: usize,
}

impl Parts {
    /// Fails with `ENOMEM`.
    // Not inlined, since an index takes much of the kernel's stack.
    #[inline(never)]
    pub(super) fn new(index: Index, elements: usize) -> Result<Self> {
        Ok(Self {
            index: KBox::new(index, growth_flags())?,
            elements,
        })
    }
}

/// For memory that a map can do without for some time.
pub(super) fn growth_flags() -> Flags {
    GFP_KERNEL | __GFP_NOWARN
}

impl Generation {
    /// The first generation of a map. Fails with `EINVAL` for a shape out of range and with
    /// `ENOMEM`.
    pub(super) fn new(shape: &Shape<'_>, second: Option<Arc<Self>>) -> Result<Self> {
        if !shape.is_valid() {
            return Err(EINVAL);
        }
        let numbering = Numbering::new(shape.widest().ok_or(ENOMEM)?);
        let pool = Pool::new(shape.room, shape.bits, numbering, shape.cpus.count)?;
        if shape.bits_max_of() < shape.bits.max(shape.room.bits_max) {
            return Err(EINVAL);
        }
        let (elements, others) = (pool.size() as usize, shape.room.others());
        // INVARIANT: Both have these elements.
        Ok(Self {
            counters: Counters::new(elements, numbering, shape.columns, shape.cpus, others)?,
            index: Index::new(shape, pool, numbering)?,
            second,
        })
    }

    /// The same generation with fresh counters, in the second map, too. Fails with `ENOMEM`.
    pub(super) fn with_fresh_counters(&self) -> Result<Arc<Self>> {
        let second = self.second.as_ref();
        let second = second.map(|second| second.with_fresh_counters());
        // INVARIANT: The counters are for the same elements.
        let fresh = Self {
            index: self.index.clone(),
            counters: self.counters.fresh()?,
            second: second.transpose()?,
        };
        Ok(Arc::new(fresh, GFP_KERNEL)?)
    }

    /// The next generation with this bank: with these parts of the map and of the second one, and
    /// counters for all elements. Fails with `ENOMEM`.
    pub(super) fn with_parts(&self, parts: &PerMap<Parts>) -> Result<Arc<Self>> {
        let second = self.second.as_ref().zip(parts.second.as_ref());
        let second = second.map(|(second, parts)| second.with(parts, None));
        self.with(&parts.first, second.transpose()?)
    }

    fn with(&self, parts: &Parts, second: Option<Arc<Self>>) -> Result<Arc<Self>> {
        let counters = match parts.elements > self.elements() {
            true => self.counters.extended(parts.elements, growth_flags())?,
            false => self.counters.clone(),
        };
        // INVARIANT: The counters are for the elements of the index.
        let next = Self {
            index: Index::clone(&parts.index),
            counters,
            second,
        };
        Ok(Arc::new(next, GFP_KERNEL)?)
    }

    /// The parts of this generation. Fails with `ENOMEM`.
    #[inline(never)]
    pub(super) fn parts(&self) -> Result<Parts> {
        Parts::new(self.index.clone(), self.elements())
    }

    /// The parts of this generation with other tables. Fails with `ENOMEM`.
    #[inline(never)]
    pub(super) fn parts_with(&self, table: &Table, next: Option<&Table>) -> Result<Parts> {
        Parts::new(self.index.with_tables(table, next), self.elements())
    }

    /// The generation of the second map, if it has one: see [`super::Map::with_second`].
    #[inline(always)]
    pub fn second(&self) -> Option<&Self> {
        self.second.as_deref()
    }

    /// Bytes of a key. Any context.
    #[inline]
    pub fn key_size(&self) -> usize {
        self.index.keys.size()
    }

    /// The maximum number of entries. Task context.
    pub fn capacity(&self) -> usize {
        self.index.pool.capacity() as usize
    }

    /// Number of elements: for entries, and for insertions by each CPU.
    pub fn elements(&self) -> usize {
        self.counters.elements()
    }

    /// Number of entries. Task context.
    pub fn len(&self) -> usize {
        let pool = &self.index.pool;
        pool.entries() as usize
    }

    /// Returns whether it is empty. Task context.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether it has two tables.
    pub fn is_being_replaced(&self) -> bool {
        self.index.next.is_some()
    }

    /// The index among all elements, from 0, of the one with this number; 0 if none has it.
    pub fn nth(&self, number: u32) -> usize {
        self.counters.numbering().nth(number).unwrap_or(0) as usize
    }

    /// Returns whether its size is fixed and its entries stay.
    pub(super) fn is_fixed(&self) -> bool {
        self.index.is_fixed()
    }

    /// Bytes of memory that it takes with so many banks; without the second map.
    pub(super) fn bytes(&self, banks: usize) -> usize {
        self.index.bytes() + self.counters.bytes().unwrap_or(0) * banks
    }

    /// Counts a loss. Any context.
    pub fn lose(&self, preempt: PreemptOff<'_>, loss: Loss) {
        self.counters.lose(preempt, loss);
    }

    /// The generations of the map and of the second map, if it has one.
    pub(super) fn maps(&self) -> impl Iterator<Item = &Self> {
        Iterator::chain([self].into_iter(), self.second())
    }

    /// Calls `f` for each map.
    pub(super) fn per_map<T>(&self, mut f: impl FnMut(&Self) -> Result<T>) -> Result<PerMap<T>> {
        Ok(PerMap {
            first: f(self)?,
            second: self.second().map(f).transpose()?,
        })
    }
}
