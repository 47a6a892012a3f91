// SPDX-License-Identifier: GPL-2.0

//! The size of a map and the layout of its elements.

use kernel::sync::atomic::Atomic;

use super::{
    cell::VarCell,
    chunks::{
        Chunks,
        Numbering, //
    },
    columns::Column,
    counters::{
        Counters,
        Cpus, //
    },
    pool::Pool,
    table::Table,
    wide::WideCells, //
};
use crate::limits::{
    BUCKETS_BITS_MAX,
    KEY_SIZE_MAX, //
};

/// The size of a map and the layout of its elements.
#[derive(Clone, Copy)]
pub struct Shape<'a> {
    /// log2 of the number of entries, at most [`Shape::BITS_MAX`].
    pub bits: u32,
    /// Bytes of a key: a multiple of 8 from 8 to [`KEY_SIZE_MAX`].
    pub key_size: usize,
    /// The columns of an element, of which the first is [`Column::Hits`].
    pub columns: &'a [Column],
    /// Variables of an element.
    pub vars: usize,
    /// The wide cells of an element, by the number of words of their values.
    pub wide: &'a [usize],
    /// Words of side data of an element.
    pub side: usize,
    /// The CPUs that hits come on.
    pub cpus: Cpus,
    /// A random number, so that keys that collide cannot be made up.
    pub seed: u64,
}

impl Shape<'_> {
    /// log2 of the entries of the largest map: see [`super::chunks`].
    pub const BITS_MAX: u32 = BUCKETS_BITS_MAX;

    /// Returns whether a map can have this shape.
    pub(super) fn is_valid(&self) -> bool {
        self.bits <= Self::BITS_MAX
            && (8..=KEY_SIZE_MAX as usize).contains(&self.key_size)
            && self.key_size % 8 == 0
            && self.columns.first() == Some(&Column::Hits)
            && (1..=self.cpus.count).contains(&self.cpus.own)
    }

    /// Words of the widest part of an element. `None`: the size overflows.
    pub(super) fn widest(&self) -> Option<usize> {
        let wide = WideCells::width(self.wide)?;
        let parts = [
            self.key_size / 8,
            self.columns.len(),
            self.vars,
            wide,
            self.side,
        ];
        parts.into_iter().max()
    }

    /// Bytes of memory that a map takes: the elements of entries and those that each CPU needs for
    /// insertions, the slots, and the lists of both. `None`: the size overflows.
    pub fn size_bytes(&self) -> Option<usize> {
        let (capacity, cpus) = (1 << self.bits, self.cpus);
        let elements = Pool::elements(capacity, cpus.count)?;
        let numbering = Numbering::new(self.widest()?);
        let words = |width| Chunks::<Atomic<u64>>::size_bytes(elements as usize, numbering, width);
        let parts = [
            Pool::size_bytes(cpus.count)?,
            Table::size_bytes(Table::bits_for(capacity, elements)),
            words(self.key_size / 8)?,
            Chunks::<VarCell>::size_bytes(elements as usize, numbering, self.vars)?,
            words(WideCells::width(self.wide)?)?,
            words(self.side)?,
            Counters::size_bytes(elements as usize, numbering, self.columns.len(), cpus)?,
        ];
        parts.into_iter().try_fold(0usize, usize::checked_add)
    }
}
