// SPDX-License-Identifier: GPL-2.0

//! A generation of a map: the index and the counters that hits use until one of them is replaced.

use kernel::prelude::*;

use super::{
    counters::{
        Counters,
        Loss, //
    },
    index::Index,
    table::Table, //
};

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
}

impl Generation {
    /// The next generation, with fresh counters. Fails with `ENOMEM`.
    pub(super) fn with_fresh_counters(&self) -> Result<Self> {
        // INVARIANT: The counters are for the same elements.
        Ok(Self {
            index: self.index.clone(),
            counters: self.counters.fresh()?,
        })
    }

    /// The next generation, with these tables.
    pub(super) fn with_tables(&self, table: &Table, next: Option<&Table>) -> Self {
        // INVARIANT: The elements stay.
        Self {
            index: self.index.with_tables(table, next),
            counters: self.counters.clone(),
        }
    }

    /// Returns whether it has two tables: see [`super::Map::replace_table`].
    pub fn is_being_replaced(&self) -> bool {
        self.index.next.is_some()
    }

    /// Losses of this kind that were counted.
    pub fn losses(&self, loss: Loss) -> u64 {
        self.counters.losses(loss)
    }
}
