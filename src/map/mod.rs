// SPDX-License-Identifier: GPL-2.0

//! The tracing map: a lock-free hash table from keys to elements, updated by hits in any context.
//!
//! Open addressing with twice as many slots as entries, linear probing. All memory is allocated by
//! tasks, and never moved.
//!
//! # Index and counters
//!
//! An element has a number, which it keeps as long as the map exists. Its parts are stored in
//! chunks, by that number. The *index* (`index.rs`) has the parts that last: the slots, the key of
//! an element; *variables*, each with a value or unset, shared by all CPUs; *wide cells*, which are
//! variables of several words; and *side data*, words shared by all CPUs, in which a text may be
//! stored once. The *counters* (`counters.rs`) have the parts of one interval: *columns*, which
//! each CPU updates for itself and which are folded when they are read, and the losses.
//!
//! A hit finds both by one pointer, to the [`Generation`]. A task replaces the counters or the
//! slots by publishing the next generation; hits of the one before may go on until a grace period
//! has passed. A hit loads the pointer once for the element and its columns, so it is counted in
//! one interval, with all that it updates.
//!
//! A map may have a *second* one, with keys and columns of its own. Hits find it by the same
//! pointer, so its counters belong to the same intervals.
//!
//! [`Map::take_interval`] publishes fresh counters, and waits for a grace period. Then no hit
//! counts in the old ones any more; after another one it is known which of their elements are
//! entries. Variables and wide cells live on. (If a hit loses a variable or an action later, that
//! is counted as [`Loss::Missed`] in the interval of that time.)
//!
//! # Insertion
//!
//! The key is written to an element first, while no other context can see it. Then one
//! compare-and-swap publishes the element in the first empty slot on the path of the key. So no
//! slot is ever claimed but not yet usable, and no context waits for another. All lookups of a key
//! walk the same path, slots are never emptied, and the key in a full slot does not change: a key
//! can be in one slot only.
//!
//! After publishing an element, its owner takes one of the *places*, of which there are as many as
//! the map may have entries. So exactly that many different keys become entries, whatever the
//! timing. An element that gets no place stays in its slot as *excess*, and its hits are drops.
//! That takes a CPU that found a place free before, and none after its compare-and-swap: at most
//! one element for each level of nesting on each CPU.
//!
//! A key is dropped only if it is not an entry when all places are taken: after the last place is
//! known to be taken, the empty slot is loaded once more.
//!
//! # Replacing the table
//!
//! [`Map::replace_table`] takes four steps, with a grace period after each but the third:
//!
//! 1. A generation with both tables is published. Its hits search the next table only where a
//!    sealed slot ends the path in the first one. After the grace period all hits know both.
//! 2. All empty slots of the first table are sealed, by a compare-and-swap, as an insertion fills
//!    one. A path that ends at a sealed slot ends there for good: a key that is not before it is
//!    not in the first table, and never will be. So a key is either in the first table, where all
//!    hits find it, or in the next one only. After the grace period, each element in the first
//!    table is an entry or excess, since all hits that inserted one have ended.
//! 3. The elements of the first table are copied to the next one, where hits insert other keys
//!    meanwhile.
//! 4. A generation with the next table alone, which now has all elements, is published. After the
//!    grace period the first one is dropped.
//!
//! So no hit finds an empty slot on the path of a key that has an element: none is lost, and no key
//! gets two.
//!
//! `Documentation/map.rst` lists all states of a slot, and the planned ones of growth and expiry.
//!
//! # Bound
//!
//! [`Generation::insert`] visits each slot at most once, tries one compare-and-swap on it if it is
//! empty, and compares keys if the hashes are equal. It neither retries nor waits. The table has
//! more slots than elements, so each path has an empty or sealed slot; with half of the slots full,
//! finding it takes 2.5 probes on average.
//!
//! # Memory ordering
//!
//! The key is written before the slot (release) and read after it (acquire). A failed
//! compare-and-swap orders nothing, so the slot is loaded again. No update of a column is lost or
//! torn; once the hits are done, their sum is exact.

mod cell;
mod chunks;
mod columns;
mod counters;
mod elt;
mod entries;
mod generation;
mod hash;
mod index;
mod keys;
mod lookup;
mod once;
mod pool;
mod shape;
mod shared;
mod table;
mod tally;
mod wide;

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Release, //
        },
        rcu,
        Arc, //
    },
};

pub use cell::{
    VarCell,
    VarMask, //
};
pub use columns::{
    Column,
    ColumnSet,
    Extreme, //
};
pub use counters::{
    Cpus,
    Loss, //
};
pub use elt::{
    Elt,
    MinMaxSumParts, //
};
pub use generation::Generation;
pub use hash::Hash;
pub use index::FirstSlot;
pub use once::OnceText;
pub use shape::Shape;
use table::Table;
pub use tally::Tally;
pub use wide::{
    text_to_words,
    words_to_text,
    Read,
    Replace,
    WideCell, //
};

use crate::sync::{
    PreemptOff,
    Published, //
};

/// A map from keys to elements.
pub struct Map {
    generation: Published<Generation>,
    /// Whether a task is replacing the generation.
    replacing: Atomic<u32>,
}

impl Map {
    /// Creates an empty map. May sleep. Fails with `EINVAL` for a shape out of range and with
    /// `ENOMEM`.
    pub fn new(shape: Shape<'_>) -> Result<Self> {
        Self::with_second(shape, None)
    }

    /// Creates an empty map, and a [second](Generation::second) one if that has a shape: see
    /// [`Map::new`].
    pub fn with_second(shape: Shape<'_>, second: Option<Shape<'_>>) -> Result<Self> {
        let second = match second {
            Some(shape) => Some(Arc::new(Generation::new(&shape, None)?, GFP_KERNEL)?),
            None => None,
        };
        let generation = Generation::new(&shape, second)?;
        Ok(Self {
            generation: Published::new(Arc::new(generation, GFP_KERNEL)?),
            replacing: Atomic::new(0),
        })
    }

    /// Returns the current generation, for a hit. Any context.
    #[inline(always)]
    pub fn read<'a>(&'a self, preempt: PreemptOff<'a>) -> &'a Generation {
        self.generation.read(preempt)
    }

    /// Returns the current generation, to read its contents: hits change it until it is replaced.
    /// Task context.
    pub fn contents(&self) -> Arc<Generation> {
        self.generation.get()
    }

    /// Ends an interval: from now on, hits count in fresh counters, which begin at 0. Returns the
    /// generation that has the counters of the interval; hits do not change them any more. Each hit
    /// is counted in one interval. Task context, sleeps. Fails with `ENOMEM`, and with `EBUSY` if
    /// another task is replacing the generation.
    pub fn take_interval(&self) -> Result<Arc<Generation>> {
        let _replacing = Replacing::begin(&self.replacing)?;
        let old = self.contents();
        let fresh = Arc::new(old.with_fresh_counters()?, GFP_KERNEL)?;
        self.generation.replace(fresh);
        // An element that hits of the interval found may be new, inserted by a hit that counts in
        // the next one: only when that hit has ended, it is known whether the element is an entry.
        rcu::synchronize_rcu();
        Ok(old)
    }

    /// Replaces the slots by as many as 2^`bits` entries need. All elements keep their number. Task
    /// context, sleeps. Fails with `EINVAL` if these are too few or too many for the elements, with
    /// `ENOMEM`, and with `EBUSY` if another task is replacing the generation.
    pub fn replace_table(&self, bits: u32) -> Result {
        let _replacing = Replacing::begin(&self.replacing)?;
        let old = self.contents();
        let (table, pool) = (&old.index.table, &old.index.pool);
        if bits > Shape::BITS_MAX || pool.capacity() > 1 << bits {
            return Err(EINVAL);
        }
        let next = Table::new(Table::bits_for(1 << bits, pool.size()))?;
        let both = Arc::new(old.with_tables(table, Some(&next)), GFP_KERNEL)?;
        let alone = Arc::new(old.with_tables(&next, None), GFP_KERNEL)?;
        self.generation.replace(both);
        table.seal();
        rcu::synchronize_rcu();
        table.copy_to(&next);
        self.generation.replace(alone);
        Ok(())
    }
}

/// The exclusive right to replace the generation of a map; dropping it gives it up.
struct Replacing<'a>(&'a Atomic<u32>);

impl<'a> Replacing<'a> {
    /// Takes the right. Fails with `EBUSY` if another task has it.
    fn begin(replacing: &'a Atomic<u32>) -> Result<Self> {
        match replacing.cmpxchg(0, 1, Acquire) {
            Ok(_) => Ok(Self(replacing)),
            Err(_) => Err(EBUSY),
        }
    }
}

impl Drop for Replacing<'_> {
    fn drop(&mut self) {
        self.0.store(0, Release);
    }
}
