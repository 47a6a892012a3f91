// SPDX-License-Identifier: GPL-2.0

//! The size of a map and the layout of its elements.

use kernel::{
    prelude::*,
    sync::{
        atomic::Atomic,
        Arc, //
    },
};

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
    request::Request,
    room::Room,
    table::{
        Slot,
        Table, //
    },
    wide::WideCells, //
};
use crate::limits::{
    BUCKETS_BITS_GROWN,
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
    /// The clock by which an element keeps the time of its insertion. `None`: it does not keep it.
    /// Hits read it, in any context.
    pub clock: Option<fn() -> u64>,
    /// The CPUs that hits come on.
    pub cpus: Cpus,
    /// A random number, so that keys that collide cannot be made up.
    pub seed: u64,
    /// The room beyond that size.
    pub room: Room,
    /// Hits ask its worker here. A map needs it if it grows or forgets.
    pub request: Option<&'a Arc<Request>>,
}

impl Shape<'_> {
    /// log2 of the entries of the largest map at first: see [`super::chunks`].
    pub const BITS_MAX: u32 = BUCKETS_BITS_MAX;

    /// Returns whether a map can have this shape.
    pub(super) fn is_valid(&self) -> bool {
        let room = self.room;
        self.bits <= Self::BITS_MAX
            && room.bits_max <= BUCKETS_BITS_GROWN
            && (room.others || !room.folds && !room.forgets)
            && (self.request.is_some() || !room.grows(self.bits) && !room.forgets)
            && (8..=KEY_SIZE_MAX as usize).contains(&self.key_size)
            && self.key_size % 8 == 0
            && self.columns.first() == Some(&Column::Hits)
            && (1..=self.cpus.count).contains(&self.cpus.own)
    }

    /// Words of an element for the time of its insertion.
    pub(super) fn births(&self) -> usize {
        usize::from(self.clock.is_some())
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

    /// log2 of the largest number of entries whose elements can be numbered, with this layout and
    /// room: what [`Room::bits_max`] may be. 0 if a map cannot have this layout.
    pub fn bits_max_of(&self) -> u32 {
        let Some(widest) = self.widest() else {
            return 0;
        };
        let numbering = Numbering::new(widest);
        let fits = |&bits: &u32| {
            let elements = Pool::elements(self.room, bits, numbering, self.cpus.count);
            elements.is_some_and(|elements| numbering.fits(elements, Slot::NUMBER_END))
        };
        (0..=BUCKETS_BITS_GROWN).rev().find(fits).unwrap_or(0)
    }

    /// The size of a table for 2^`bits` entries. `None`: too many.
    pub(super) fn table(&self, bits: u32) -> Option<TableSize> {
        TableSize::new(self.room, bits, self.cpus.count)
    }

    /// The size of the table after the first one. `None`: the map does not grow.
    pub(super) fn next_table(&self) -> Option<TableSize> {
        let grows = self.room.grows(self.bits);
        self.table(self.room.next_bits(self.bits)).filter(|_| grows)
    }

    /// Bytes of memory that a map takes at first: the slots, the elements of entries, the elements
    /// that each CPU needs for insertions, and the lists of both. A map that grows has slots and
    /// elements for its next size, too. `None`: the size overflows.
    pub fn size_bytes(&self) -> Option<usize> {
        let (room, cpus, width) = (self.room, self.cpus, self.columns.len());
        let numbering = Numbering::new(self.widest()?);
        let next_bits = room.next_bits(self.bits);
        let elements = Pool::elements(room, next_bits, numbering, cpus.count)? as usize;
        let words = |width| Chunks::<Atomic<u64>>::size_bytes(elements, numbering, width);
        let parts = [
            Pool::size_bytes(room, self.bits, numbering, cpus.count)?,
            self.table(self.bits)?.bytes(),
            self.next_table().map_or(0, |table| table.bytes()),
            words(self.key_size / 8)?,
            Chunks::<VarCell>::size_bytes(elements, numbering, self.vars)?,
            words(WideCells::width(self.wide)?)?,
            words(self.side)?,
            words(self.births())?,
            Counters::size_bytes(elements, numbering, width, cpus, room.others())?,
        ];
        parts.into_iter().try_fold(0usize, usize::checked_add)
    }
}

/// The size of a table.
#[derive(Clone, Copy)]
pub(super) struct TableSize {
    /// log2 of the number of slots.
    slots_bits: u32,
    /// Number of places that are taken when it takes no more keys.
    pub(super) limit: u32,
    /// Number of slots on the path of a key.
    path_max: u32,
}

impl TableSize {
    /// The size of a table for 2^`bits` entries in a map of this room. If the map grows further,
    /// its paths are short. `None`: too many.
    pub(super) fn new(room: Room, bits: u32, cpus: usize) -> Option<Self> {
        let limit = room.places(bits)?;
        let published = Pool::published(room, bits, cpus)?;
        Some(Self {
            slots_bits: Table::bits_for(limit, room.slots_per_place(), published),
            limit,
            path_max: match room.grows(bits) {
                true => Table::PATH_MAX,
                false => u32::MAX,
            },
        })
    }

    /// Bytes of memory of the table.
    pub(super) fn bytes(&self) -> usize {
        Table::size_bytes(self.slots_bits)
    }

    /// A table of this size. Fails with `ENOMEM`.
    pub(super) fn table(&self) -> Result<Table> {
        Table::new(self.slots_bits, self.limit, self.path_max)
    }

    /// A next table of this size, which is not open. Fails with `ENOMEM`.
    pub(super) fn next_table(&self) -> Result<Table> {
        Table::new_next(self.slots_bits, self.limit, self.path_max)
    }
}
