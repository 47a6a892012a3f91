// SPDX-License-Identifier: GPL-2.0

//! A generation of a map: the index and the counters that hits use until one of them is replaced.

use kernel::{
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
    table::{
        Slot,
        Table, //
    },
};
use crate::sync::PreemptOff;

/// The index and the counters that a hit uses, behind one pointer.
///
/// Parts of both are embedded, so that they need no pointers of their own. Large parts are shared
/// with other generations. A task that holds a generation can read its counts even after the map
/// has replaced it.
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

impl Generation {
    /// The first generation of a map. Fails with `EINVAL` for a shape out of range and with
    /// `ENOMEM`.
    pub(super) fn new(shape: &Shape<'_>, second: Option<Arc<Self>>) -> Result<Self> {
        if !shape.is_valid() {
            return Err(EINVAL);
        }
        let numbering = Numbering::new(shape.widest().ok_or(ENOMEM)?);
        let pool = Pool::new(1 << shape.bits, numbering, shape.cpus.count)?;
        if !numbering.fits(pool.size(), Slot::NUMBER_END) {
            return Err(EINVAL);
        }
        let elements = pool.size() as usize;
        // INVARIANT: Both have these elements.
        Ok(Self {
            counters: Counters::new(elements, numbering, shape.columns, shape.cpus)?,
            index: Index::new(shape, pool, numbering)?,
            second,
        })
    }

    /// The next generation, with fresh counters, in the second map, too. Fails with `ENOMEM`.
    pub(super) fn with_fresh_counters(&self) -> Result<Self> {
        let second = match &self.second {
            Some(second) => Some(Arc::new(second.with_fresh_counters()?, GFP_KERNEL)?),
            None => None,
        };
        // INVARIANT: The counters are for the same elements.
        Ok(Self {
            index: self.index.clone(),
            counters: self.counters.fresh()?,
            second,
        })
    }

    /// The next generation, with these tables.
    pub(super) fn with_tables(&self, table: &Table, next: Option<&Table>) -> Self {
        // INVARIANT: The elements stay.
        Self {
            index: self.index.with_tables(table, next),
            counters: self.counters.clone(),
            second: self.second.clone(),
        }
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

    /// Number of entries. Task context.
    pub fn len(&self) -> usize {
        let pool = &self.index.pool;
        pool.places().min(pool.capacity()) as usize
    }

    /// Returns whether it is empty. Task context.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether it has two tables: see [`super::Map::replace_table`].
    pub fn is_being_replaced(&self) -> bool {
        self.index.next.is_some()
    }

    /// Counts a loss. Any context.
    pub fn lose(&self, preempt: PreemptOff<'_>, loss: Loss) {
        self.counters.lose(preempt, loss);
    }

    /// Losses of this kind that were counted.
    pub fn losses(&self, loss: Loss) -> u64 {
        self.counters.losses(loss)
    }
}
