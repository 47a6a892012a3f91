// SPDX-License-Identifier: GPL-2.0

//! The stacks in the keys of a histogram.
//!
//! A stack that is one of several keys is *interned*: its words are the key of an element in a map
//! of stacks, and the key in the histogram's own map has the number of that element instead, in one
//! word. So keys are short, equal stacks are stored once, and different ones have different
//! numbers. Readers find the words again by the number.
//!
//! # A hit without a stack would have been a drop
//!
//! The map of stacks has as many places as the entries of the histogram have stacks. When all are
//! taken, hits with at least as many different keys as the histogram has places have come: each
//! brought at most as many new stacks as a key has. So a hit with yet another stack has a key that
//! would lack a place, too.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    limits::STACK_SIZE,
    map::{
        Column,
        Cpus,
        Generation,
        Loss,
        Map,
        Room,
        Shape, //
    },
    sync::PreemptOff,
};

/// The stacks in the keys of a histogram.
pub(in crate::hist) struct Stacks(Map);

/// The words of a stack, and zeros behind them.
type StackBytes = [u8; STACK_SIZE as usize];

impl Stacks {
    /// The shape of the map for `stacks` stacks in each key of a map of shape `of`.
    pub(super) fn shape(stacks: usize, of: &Shape<'_>) -> Shape<'static> {
        let mut shape = Shape {
            bits: 0,
            key_size: STACK_SIZE as usize,
            // Hits do not count here: these columns are as few as a map can have.
            columns: &[Column::Hits],
            vars: 0,
            wide: &[],
            side: 0,
            clock: None,
            cpus: Cpus { own: 1, ..of.cpus },
            // Different from the histogram's.
            seed: !of.seed,
            room: Room::fixed(0),
            request: None,
        };
        let bits = of.bits + stacks.next_power_of_two().ilog2();
        shape.bits = bits.min(Shape::BITS_MAX).min(shape.bits_max_of());
        shape.room = Room::fixed(shape.bits);
        shape
    }

    /// Creates an empty map of stacks. May sleep. Fails with `ENOMEM`.
    pub(super) fn new(shape: Shape<'_>) -> Result<Self> {
        Map::new(shape).map(Self)
    }

    /// The number of the stack with these entries. `None`: it lacks a place, which is counted.
    /// Any context.
    #[inline(always)]
    pub(in crate::hist) fn number(&self, preempt: PreemptOff<'_>, entries: &[u64]) -> Option<u64> {
        let words = match entries {
            [] => &[0],
            entries => entries,
        };
        let stack = self.0.read(preempt).insert_words(preempt, words)?;
        Some(stack.number().into())
    }

    /// Hits without a stack so far. Task context, may sleep.
    pub(super) fn lost(&self) -> u64 {
        self.0.losses(Loss::Dropped)
    }

    /// Number of stacks. Task context.
    pub(super) fn len(&self) -> usize {
        self.0.contents().len()
    }
}

/// The stacks in the keys that a reader shows, each once.
pub(in crate::hist) struct StackList {
    stacks: Arc<Generation>,
    /// For each element, the index of its stack in `list`, plus 1; 0: it is not there.
    indices: KVVec<u32>,
    list: KVVec<StackBytes>,
}

impl StackList {
    /// An empty list. Fails with `ENOMEM`.
    pub(in crate::hist) fn new(stacks: &Stacks) -> Result<Self> {
        let stacks = stacks.0.contents();
        Ok(Self {
            indices: KVVec::from_elem(0, stacks.elements(), GFP_KERNEL_ACCOUNT)?,
            stacks,
            list: KVVec::new(),
        })
    }

    /// Adds the stack with this number, which was in a key. Fails with `ENOMEM`.
    pub(in crate::hist) fn add(&mut self, number: u64) -> Result {
        let number = number as u32;
        let index = self.indices.get_mut(self.stacks.nth(number));
        let (Some(index @ 0), Some(words)) = (index, self.stacks.key_at(number)) else {
            return Ok(());
        };
        let mut stack = [0; STACK_SIZE as usize];
        for (bytes, word) in stack.chunks_exact_mut(size_of::<u64>()).zip(words) {
            bytes.copy_from_slice(&word.to_ne_bytes());
        }
        self.list.push(stack, GFP_KERNEL_ACCOUNT)?;
        *index = self.list.len() as u32;
        Ok(())
    }

    /// The words of the stack with this number; all 0 for one that is not in the list.
    pub(in crate::hist) fn get(&self, number: u64) -> &StackBytes {
        const NONE: &StackBytes = &[0; STACK_SIZE as usize];
        let index = self.indices.get(self.stacks.nth(number as u32));
        let index = index.and_then(|&index| (index as usize).checked_sub(1));
        index.and_then(|index| self.list.get(index)).unwrap_or(NONE)
    }
}
