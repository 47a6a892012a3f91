// SPDX-License-Identifier: GPL-2.0

//! The events that were registered through one open file, by the index that they are written with.
//!
//! Programs write from many threads, so looking an event up takes no lock. The table only grows: in
//! chunks that stay where they are, each twice as long as the one before.

use super::registry::Use;
use kernel::prelude::*;
use kernel::sync::Arc;
use kernel::sync::SetOnce;

/// Events in the first chunk.
const FIRST: usize = 8;
/// Chunks: enough for as many events as the kernel has numbers for, by both interfaces.
const CHUNKS: usize = 14;

/// An event as a file has it.
pub(super) struct Entry {
    pub(super) event: Use,
    /// It was registered by the original interface, where writing what nobody listens to succeeds.
    pub(super) original: bool,
}

/// The table.
pub(super) struct Table {
    chunks: [SetOnce<KVec<SetOnce<Entry>>>; CHUNKS],
}

impl Table {
    pub(super) fn new() -> Self {
        Self {
            chunks: [const { SetOnce::new() }; CHUNKS],
        }
    }

    /// The chunk of an index, how long it is, and the place in it.
    fn place(index: usize) -> (usize, usize, usize) {
        let chunk = (index / FIRST + 1).ilog2() as usize;
        (chunk, FIRST << chunk, index - FIRST * ((1 << chunk) - 1))
    }

    /// The entry of an index.
    pub(super) fn get(&self, index: usize) -> Option<&Entry> {
        let (chunk, _, at) = Self::place(index);
        self.chunks.get(chunk)?.as_ref()?.get(at)?.as_ref()
    }

    /// The index of an event by one of the interfaces, which is added if it is not there. Nobody
    /// else adds any meanwhile.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, `EMFILE`.
    pub(super) fn add(&self, event: &Use, original: bool) -> Result<u32> {
        let mut index = 0;
        while let Some(other) = self.get(index) {
            if Arc::ptr_eq(other.event.event(), event.event()) && other.original == original {
                return Ok(index as u32);
            }
            index += 1;
        }
        let (chunk, len, at) = Self::place(index);
        let chunk = self.chunks.get(chunk).ok_or(EMFILE)?;
        if chunk.as_ref().is_none() {
            let mut slots = KVec::with_capacity(len, GFP_KERNEL_ACCOUNT)?;
            for _ in 0..len {
                slots.push(SetOnce::new(), GFP_KERNEL_ACCOUNT)?;
            }
            chunk.populate(slots);
        }
        let slot = chunk
            .as_ref()
            .and_then(|slots| slots.get(at))
            .ok_or(EMFILE)?;
        slot.populate(Entry {
            event: event.clone(),
            original,
        });
        Ok(index as u32)
    }
}
