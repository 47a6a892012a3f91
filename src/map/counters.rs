// SPDX-License-Identifier: GPL-2.0

//! The counters of one interval: per-CPU parts that are folded into one number when they are read.

use kernel::{
    alloc::NumaNode,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    },
};

use super::{
    chunks::{
        zeroed,
        Chunks,
        Numbering, //
    },
    columns::{
        increment,
        increment_nth,
        Column,
        ColumnSet, //
    },
    shared::Shared, //
};
use crate::sync::PreemptOff;

/// The CPUs that columns are kept for.
#[derive(Clone, Copy)]
pub struct Cpus {
    /// Number of possible CPUs, online or not: `nr_cpu_ids`.
    pub count: usize,
    /// CPUs below this number have columns of their own. The others, which are not online when the
    /// map is created, share columns: a machine may have many times more possible CPUs than online
    /// ones.
    pub own: usize,
    /// Returns the NUMA node whose memory is nearest to a CPU.
    pub node: fn(cpu: usize) -> NumaNode,
}

impl Cpus {
    /// `count` CPUs with columns of their own, without a preference for a node.
    pub fn uniform(count: usize) -> Self {
        Self {
            count,
            own: count,
            node: |_| NumaNode::NO_NODE,
        }
    }

    /// The number of sets of columns that these CPUs take.
    pub(super) fn sets(&self) -> usize {
        self.own + usize::from(self.own < self.count)
    }
}

/// Kinds of losses of a hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The hit: the map is full, and lacks its key.
    Dropped,
    /// The hit: it needs a variable of another element, which is not set.
    Unresolved,
    /// A variable or an action of the hit: too many contexts work on the same cell, or are nested.
    Missed,
}

/// The columns of all elements, and the losses, of one interval.
///
/// # Invariants
///
/// `hits_only` is at most the number of `own` counters, and 0 unless the only column of elements is
/// [`Column::Hits`].
#[derive(Clone)]
pub(super) struct Counters {
    /// The counters of CPUs with columns of their own.
    own: Shared<CpuCounters>,
    /// Number of `own` counters with hits as their only column: all, or none. So a hit compares its
    /// CPU once to test both.
    hits_only: usize,
    columns: Shared<Column>,
    /// The counters that all other CPUs share, if such CPUs may come online. Updated by atomic
    /// instructions.
    shared: Option<Arc<CpuCounters>>,
    elements: usize,
    numbering: Numbering,
    cpus: Cpus,
}

/// The counters of one CPU, in memory of its node, which other CPUs only read; or counters that
/// CPUs share.
#[repr(align(64))]
struct CpuCounters {
    /// One part for each column of an element.
    parts: Chunks<Atomic<u64>>,
    /// One counter for each [`Loss`].
    losses: [Atomic<u64>; 3],
}

impl Counters {
    /// Creates counters that are all 0. Fails with `ENOMEM`.
    pub(super) fn new(
        elements: usize,
        numbering: Numbering,
        columns: &[Column],
        cpus: Cpus,
    ) -> Result<Self> {
        let mut kinds = KVVec::with_capacity(columns.len(), GFP_KERNEL)?;
        kinds.extend_from_slice(columns, GFP_KERNEL)?;
        Self::zero(elements, numbering, Shared::new(kinds)?, cpus)
    }

    /// Creates counters for the same elements, all 0. Fails with `ENOMEM`.
    pub(super) fn fresh(&self) -> Result<Self> {
        Self::zero(
            self.elements,
            self.numbering,
            self.columns.clone(),
            self.cpus,
        )
    }

    fn zero(
        elements: usize,
        numbering: Numbering,
        columns: Shared<Column>,
        cpus: Cpus,
    ) -> Result<Self> {
        let new = |node| CpuCounters::new(elements, numbering, columns.len(), node);
        let mut own = KVVec::with_capacity(cpus.own, GFP_KERNEL)?;
        for cpu in 0..cpus.own {
            own.push_within_capacity(new((cpus.node)(cpu))?)?;
        }
        let shared = match cpus.own < cpus.count {
            true => Some(Arc::new(new(NumaNode::NO_NODE)?, GFP_KERNEL)?),
            false => None,
        };
        let hits_only = match columns[..] {
            [Column::Hits] => own.len(),
            _ => 0,
        };
        // INVARIANT: `hits_only` is 0 or the number of `own` counters, and 0 unless the only column
        // is hits.
        Ok(Self {
            own: Shared::new(own)?,
            hits_only,
            columns,
            shared,
            elements,
            numbering,
            cpus,
        })
    }

    /// All sets of columns.
    fn sets(&self) -> impl Iterator<Item = &CpuCounters> {
        Iterator::chain(self.own.iter(), self.shared.iter().map(|shared| &**shared))
    }

    /// Bytes of memory that [`Counters::new`] takes for this many columns. `None`: the size
    /// overflows.
    pub(super) fn size_bytes(
        elements: usize,
        numbering: Numbering,
        columns: usize,
        cpus: Cpus,
    ) -> Option<usize> {
        let parts = Chunks::<Atomic<u64>>::size_bytes(elements, numbering, columns)?;
        let set = parts.checked_add(size_of::<CpuCounters>())?;
        set.checked_mul(cpus.sets())
    }

    /// Updates the columns of element `number` for a hit: see [`super::Elt::update`].
    ///
    /// # Safety
    ///
    /// An element has this number.
    #[inline(always)]
    pub(super) unsafe fn update<V>(
        &self,
        preempt: PreemptOff<'_>,
        number: u32,
        values: &[V],
        read: impl Fn(&V) -> (u64, ColumnSet),
    ) {
        let Some(cpu) = self.own.get(preempt.cpu()) else {
            // SAFETY: The caller guarantees that an element has this number.
            return unsafe { self.update_shared(number, values, read) };
        };
        // SAFETY: The caller guarantees that an element has this number.
        let parts = unsafe { cpu.parts.of(number) };
        if !values.is_empty() {
            self.update_values(parts, values, read);
        }
        // Last, so that a reader that sees the hit sees its values, if the CPU keeps the order of
        // stores: otherwise an extreme may lag behind by a hit.
        // SAFETY: `parts` has an item for each column, and at least one.
        unsafe { Column::Hits.update(parts, 0, 1) };
    }

    /// Updates the columns of values. Out of line, so that hits without values save no registers.
    #[inline(never)]
    fn update_values<V>(
        &self,
        parts: &[Atomic<u64>],
        values: &[V],
        read: impl Fn(&V) -> (u64, ColumnSet),
    ) {
        let mut next = 1;
        for value in values {
            let (value, set) = read(value);
            set.update(&self.columns, parts, next, value);
            next = next.wrapping_add(set.len());
        }
    }

    /// Returns the columns, and the parts of this CPU for element `number`; `None` if it shares
    /// them with others.
    ///
    /// # Safety
    ///
    /// An element has this number.
    #[inline(always)]
    pub(super) unsafe fn own_parts(
        &self,
        preempt: PreemptOff<'_>,
        number: u32,
    ) -> Option<(&[Column], &[Atomic<u64>])> {
        let cpu = self.own.get(preempt.cpu())?;
        // SAFETY: The caller guarantees that an element has this number.
        Some((&self.columns, unsafe { cpu.parts.of(number) }))
    }

    /// Counts a hit of element `number`, if its only column is the hitcount and this CPU has
    /// counters of its own. Otherwise does nothing and returns false.
    ///
    /// # Safety
    ///
    /// An element has this number.
    #[inline(always)]
    pub(super) unsafe fn count_hit(&self, preempt: PreemptOff<'_>, number: u32) -> bool {
        if preempt.cpu() >= self.hits_only {
            return false;
        }
        // SAFETY: By the invariants this CPU has counters and elements have one column. The caller
        // guarantees that the element exists.
        unsafe {
            let (start, nth) = self.own.get_unchecked(preempt.cpu()).parts.only(number);
            increment_nth(start, nth);
        }
        true
    }

    /// Updates the columns of an element whose columns, except the first, are [sums](Column::Sum).
    ///
    /// # Safety
    ///
    /// An element has this number.
    #[inline(always)]
    pub(super) unsafe fn update_sums<V>(
        &self,
        preempt: PreemptOff<'_>,
        number: u32,
        values: &[V],
        read: impl Fn(&V) -> u64,
    ) {
        // SAFETY: The caller guarantees that an element has this number.
        if unsafe { self.count_hit(preempt, number) } {
            return;
        }
        let Some(cpu) = self.own.get(preempt.cpu()) else {
            // SAFETY: The caller guarantees that an element has this number.
            return unsafe {
                self.update_shared(number, values, move |value| (read(value), ColumnSet::ONE))
            };
        };
        // SAFETY: The caller guarantees that an element has this number.
        let parts = unsafe { cpu.parts.of(number) };
        if values.len() < parts.len() {
            // SAFETY: `parts` has more items than `values`.
            unsafe {
                Column::Hits.update(parts, 0, 1);
                for (nth, value) in (1..).zip(values) {
                    Column::Sum.update(parts, nth, read(value));
                }
            }
        }
    }

    /// Updates the columns for a hit on a CPU that has none of its own.
    ///
    /// # Safety
    ///
    /// An element has this number.
    #[cold]
    #[inline(never)]
    unsafe fn update_shared<V>(
        &self,
        number: u32,
        values: &[V],
        read: impl Fn(&V) -> (u64, ColumnSet),
    ) {
        let Some(shared) = &self.shared else {
            return;
        };
        // SAFETY: The caller guarantees that an element has this number.
        let parts = unsafe { shared.parts.of(number) };
        let mut parts = parts.iter().zip(&*self.columns);
        let hits = parts.next();
        for value in values {
            let (value, set) = read(value);
            for (part, column) in parts.by_ref().take(set.len()) {
                column.update_shared(part, value);
            }
        }
        if let Some((part, column)) = hits {
            column.update_shared(part, 1);
        }
    }

    /// Folds the parts of all CPUs of a column of element `number`.
    ///
    /// # Safety
    ///
    /// An element has this number.
    pub(super) unsafe fn fold(&self, number: u32, column: usize) -> u64 {
        // SAFETY: The caller guarantees that an element has this number.
        let part = |cpu: &CpuCounters| unsafe { cpu.parts.of(number) }[column].load(Relaxed);
        self.columns[column].fold(self.sets().map(part))
    }

    /// Counts a loss.
    pub(super) fn lose(&self, preempt: PreemptOff<'_>, loss: Loss) {
        match (self.own.get(preempt.cpu()), &self.shared) {
            // SAFETY: `losses` has one counter for each kind of [`Loss`].
            (Some(own), _) => unsafe { increment(&own.losses, loss as usize) },
            (None, Some(shared)) => Column::Hits.update_shared(&shared.losses[loss as usize], 1),
            (None, None) => (),
        }
    }

    /// The losses of all CPUs.
    pub(super) fn losses(&self, loss: Loss) -> u64 {
        let losses = |cpu: &CpuCounters| cpu.losses[loss as usize].load(Relaxed);
        Column::Hits.fold(self.sets().map(losses))
    }
}

impl CpuCounters {
    /// Creates counters that are all 0. Fails with `ENOMEM`.
    fn new(elements: usize, numbering: Numbering, width: usize, node: NumaNode) -> Result<Self> {
        Ok(Self {
            parts: Chunks::new(elements, numbering, width, |n| zeroed(n, node))?,
            losses: [Atomic::new(0), Atomic::new(0), Atomic::new(0)],
        })
    }
}
