// SPDX-License-Identifier: GPL-2.0

//! The size of a map and the layout of its elements.

use super::{
    columns::Column,
    counters::Cpus,
    pool::Pool,
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

    /// Whether a map can have it.
    pub(super) fn is_valid(&self) -> bool {
        self.bits <= Self::BITS_MAX
            && (8..=KEY_SIZE_MAX as usize).contains(&self.key_size)
            && self.key_size % 8 == 0
            && self.columns.first() == Some(&Column::Hits)
            && (1..=self.cpus.count).contains(&self.cpus.own)
    }

    /// Words of the widest part of an element. `None`: more than there can be.
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

    /// Bytes of memory that the elements of a map take, which is nearly all of it. `None`: more than there can be.
    pub fn size_bytes(&self) -> Option<usize> {
        let parts = self.columns.len().checked_mul(self.cpus.sets())?;
        let words = parts.checked_add(self.vars)?.checked_add(self.side)?;
        let words = words.checked_add(WideCells::width(self.wide)?)?;
        let element = words.checked_mul(8)?.checked_add(self.key_size)?;
        let elements = Pool::elements(1 << self.bits, self.cpus.count)?;
        element.checked_mul(elements as usize)
    }
}
