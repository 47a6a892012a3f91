// SPDX-License-Identifier: GPL-2.0

//! The events that were registered through one open file, by write index.
//!
//! Programs write from many threads, so lookup takes no lock. The table only grows, by chunks that
//! do not move, each twice as long as the one before.

use super::{
    event::EventUse,
    quota::{
        Charge,
        Quota, //
    },
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        SetOnce, //
    },
};

/// Number of entries in the first chunk.
const FIRST: usize = 8;
/// Maximum number of chunks: enough for all event types that the kernel can number, in both
/// interfaces.
const CHUNKS: usize = 14;

/// An event that was registered through the file.
pub(super) struct IndexEntry {
    pub(super) event: EventUse,
    /// Registered by the original interface, in which writing a disabled event succeeds.
    pub(super) original: bool,
}

/// A piece of a table.
pub(super) struct Chunk {
    slots: KVVec<SetOnce<IndexEntry>>,
    _charge: Charge,
}

/// Maps write indices to events.
pub(super) struct IndexTable {
    chunks: [SetOnce<Chunk>; CHUNKS],
    /// Number of entries. Used only to add one; lookup does not read it.
    len: Atomic<usize>,
}

impl IndexTable {
    pub(super) fn new() -> Self {
        Self {
            chunks: [const { SetOnce::new() }; CHUNKS],
            len: Atomic::new(0),
        }
    }

    /// Splits an index into chunk, length of the chunk, and index in the chunk.
    #[inline]
    fn place(index: usize) -> (usize, usize, usize) {
        let chunk = (index / FIRST + 1).ilog2() as usize;
        let len = FIRST << chunk;
        // The chunks before it have len - FIRST entries together.
        (chunk, len, index + FIRST - len)
    }

    #[inline]
    fn slot(&self, index: usize) -> Option<&SetOnce<IndexEntry>> {
        let (chunk, _, at) = Self::place(index);
        self.chunks.get(chunk)?.as_ref()?.slots.get(at)
    }

    /// Looks up the entry of an index. Takes no lock.
    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&IndexEntry> {
        self.slot(index)?.as_ref()
    }

    /// Allocates memory for [`IndexTable::add`] if the table is full. Called without locks.
    ///
    /// # Errors
    ///
    /// The errors of [`Charge::new`]; `EMFILE` also if the table cannot grow.
    pub(super) fn spare(&self, quota: &Arc<Quota>) -> Result<Option<Chunk>> {
        let (chunk, len, _) = Self::place(self.len.load(Relaxed));
        if self.chunks.get(chunk).ok_or(EMFILE)?.as_ref().is_some() {
            return Ok(None);
        }
        let charge = Charge::new(quota, len * size_of::<SetOnce<IndexEntry>>())?;
        let mut slots = KVVec::with_capacity(len, GFP_KERNEL_ACCOUNT)?;
        for _ in 0..len {
            slots.push(SetOnce::new(), GFP_KERNEL_ACCOUNT)?;
        }
        Ok(Some(Chunk {
            slots,
            _charge: charge,
        }))
    }

    /// Finds the index of an event in one of the interfaces, or adds the event. Called with the
    /// registry locked. `None` if another thread has taken the last free slot: call
    /// [`IndexTable::spare`] again.
    pub(super) fn add(
        &self,
        event: &EventUse,
        original: bool,
        spare: &mut Option<Chunk>,
    ) -> Option<u32> {
        let len = self.len.load(Relaxed);
        let same = |entry: &IndexEntry| {
            Arc::ptr_eq(entry.event.event(), event.event()) && entry.original == original
        };
        if let Some(found) = (0..len).find(|&index| self.get(index).is_some_and(same)) {
            return Some(found as u32);
        }
        let (chunk, size, _) = Self::place(len);
        let chunk = self.chunks.get(chunk)?;
        if chunk.as_ref().is_none() {
            chunk.populate(spare.take_if(|spare| spare.slots.len() == size)?);
        }
        self.slot(len)?.populate(IndexEntry {
            event: event.clone(),
            original,
        });
        self.len.store(len + 1, Relaxed);
        Some(len as u32)
    }
}
