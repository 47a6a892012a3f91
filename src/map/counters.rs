// SPDX-License-Identifier: GPL-2.0

//! The counters of one interval: per-CPU parts that are folded into one number when they are read.

use core::ops::Range;

use kernel::{
    alloc::{
        Flags,
        NumaNode, //
    },
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
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
use crate::sync::{
    Load,
    PreemptOff, //
};

/// The CPUs that columns are kept for.
#[derive(Clone, Copy)]
pub struct Cpus {
    /// Number of possible CPUs, online or not: `nr_cpu_ids`.
    pub count: usize,
    /// CPUs below this number have columns of their own, unless they are very many. The others,
    /// which are not online when the map is created, share columns: a machine may have many times
    /// more possible CPUs than online ones.
    pub own: usize,
    /// Returns the NUMA node whose memory is nearest to a CPU.
    pub node: fn(cpu: usize) -> NumaNode,
    /// Returns the number of the CPU that it is called on, with preemption off. Any context.
    pub current: fn() -> usize,
}

impl Cpus {
    /// `count` CPUs with columns of their own, without a preference for a node. If `own` is made
    /// less, the others have one set of columns in common.
    pub fn uniform(count: usize) -> Self {
        Self {
            count,
            own: count,
            node: |_| NumaNode::NO_NODE,
            current: || usize::MAX,
        }
    }

    /// The sets of columns that these CPUs take: of single CPUs, and shared ones.
    fn sets(&self) -> (usize, usize) {
        let others = usize::from(self.own < self.count);
        match self.own + others <= SETS_MAX {
            true => (self.own, others),
            false => (0, SETS_MAX),
        }
    }

    /// The node for the own set of a CPU.
    fn own_node(&self, cpu: usize) -> NumaNode {
        (self.node)(cpu)
    }

    /// The node for the `nth` shared set. CPUs that share one follow each other, and are mostly on
    /// one node.
    fn shared_node(&self, nth: usize) -> NumaNode {
        match self.sets() {
            (0, shared) => (self.node)(nth * self.own / shared),
            _ => NumaNode::NO_NODE,
        }
    }
}

/// Maximum number of sets of columns. If a set for each CPU were more, all of these are shared:
/// otherwise a histogram of a large machine would mostly be parts that are 0, which readers have to
/// visit. With 512 CPUs, the columns of a histogram of 2048 entries with four columns, and of the
/// elements that the CPUs need for insertions, take less than 4 MiB then.
const SETS_MAX: usize = 31;

/// Kinds of losses of a hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The hit: the map is full, and lacks its key.
    Dropped,
    /// The hit: it needs a variable of another element, which is not set.
    Unresolved,
    /// A variable or an action of the hit: too many contexts work on the same cell, or are nested.
    Missed,
    /// The place of a hit that is a drop, or folded: the worker lacks memory for more places.
    NoMemory,
}

impl Loss {
    /// Number of kinds.
    pub(super) const KINDS: usize = 4;
}

/// Where the counts go of an element that is taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    /// To another element, counted from 0.
    Element(u32),
    /// To the drops.
    Dropped,
}

/// The columns of all elements, and the losses, of one interval.
///
/// # Invariants
///
/// `hits_only` is at most the number of `own` counters, and 0 unless the only column of elements is
/// [`Column::Hits`]. `losses` has an item for each set of counters, own or shared.
#[derive(Clone)]
#[repr(C)]
pub(super) struct Counters {
    /// The counters of CPUs without columns of their own. Updated by atomic instructions.
    ///
    /// First: if `own` were at the address of all counters, each hit would compute that, which only
    /// hits on CPUs that share columns need: an instruction more.
    shared: Shared<CpuCounters>,
    /// The counters of CPUs with columns of their own.
    own: Shared<CpuCounters>,
    /// Number of `own` counters with hits as their only column: all, or none. So a hit compares its
    /// CPU once to test both.
    hits_only: usize,
    columns: Shared<Column>,
    /// The index of a CPU's shared counters is its number times this, over 2^32.
    share: u64,
    /// The losses of each set of counters, `own` and `shared`, and of the worker.
    losses: Shared<Losses>,
    /// Counts of the elements of `other` that hits did not count there: a row of columns for each.
    others: Shared<Atomic<u64>>,
    elements: usize,
    numbering: Numbering,
    cpus: Cpus,
}

/// The columns of one CPU, in memory of its node, which other CPUs only read; or columns that CPUs
/// share.
#[repr(align(64))]
struct CpuCounters {
    /// One part for each column of an element.
    parts: Chunks<Atomic<u64>>,
}

/// One counter for each [`Loss`]: of one CPU, or of CPUs that share their columns.
#[repr(align(64))]
struct Losses([Atomic<u64>; Loss::KINDS]);

impl Counters {
    /// Creates counters that are all 0, with `others` elements of `other`. Fails with `ENOMEM`.
    pub(super) fn new(
        elements: usize,
        numbering: Numbering,
        columns: &[Column],
        cpus: Cpus,
        others: u32,
    ) -> Result<Self> {
        let mut kinds = KVVec::with_capacity(columns.len(), GFP_KERNEL)?;
        kinds.extend_from_slice(columns, GFP_KERNEL)?;
        let others = others as usize * kinds.len();
        Self::zero(elements, numbering, Shared::new(kinds)?, cpus, others)
    }

    /// Creates counters for the same elements, all 0. Fails with `ENOMEM`.
    pub(super) fn fresh(&self) -> Result<Self> {
        let (columns, others) = (self.columns.clone(), self.others.len());
        Self::zero(self.elements, self.numbering, columns, self.cpus, others)
    }

    fn zero(
        elements: usize,
        numbering: Numbering,
        columns: Shared<Column>,
        cpus: Cpus,
        others: usize,
    ) -> Result<Self> {
        let (own, shared) = cpus.sets();
        let set = |node| CpuCounters::new(elements, numbering, columns.len(), node);
        let own_sets = Self::all(own, |cpu| set(cpus.own_node(cpu)))?;
        let shared_sets = Self::all(shared, |nth| set(cpus.shared_node(nth)))?;
        let zeros = zeroed(others, NumaNode::NO_NODE, GFP_KERNEL)?;
        let hits_only = match columns[..] {
            [Column::Hits] => own,
            _ => 0,
        };
        // INVARIANT: `hits_only` is 0 or the number of `own` counters, and 0 unless the only column
        // is hits.
        Ok(Self {
            own: own_sets,
            hits_only,
            columns,
            shared: shared_sets,
            share: ((shared as u64) << 32) / cpus.own.max(1) as u64,
            losses: Self::all(own + shared + 1, |_| Ok(Losses::new()))?,
            others: Shared::new(zeros)?,
            elements,
            numbering,
            cpus,
        })
    }

    /// An array of `n` items that `make` makes.
    fn all<T>(n: usize, make: impl Fn(usize) -> Result<T>) -> Result<Shared<T>> {
        let mut items = KVVec::with_capacity(n, GFP_KERNEL)?;
        for nth in 0..n {
            items.push_within_capacity(make(nth)?)?;
        }
        Shared::new(items)
    }

    /// These counters for `elements` elements, the present ones among them, whose counts and losses
    /// are shared. Fails with `ENOMEM`.
    pub(super) fn extended(&self, elements: usize, flags: Flags) -> Result<Self> {
        let extend = |set: &CpuCounters, node| {
            let zeros = |n| zeroed(n, node, flags);
            let parts = set.parts.extended(elements, self.numbering, flags, zeros)?;
            Ok(CpuCounters { parts })
        };
        let (own, shared, cpus) = (&self.own, &self.shared, self.cpus);
        Ok(Self {
            own: Self::all(own.len(), |nth| extend(&own[nth], cpus.own_node(nth)))?,
            shared: Self::all(shared.len(), |nth| {
                extend(&shared[nth], cpus.shared_node(nth))
            })?,
            elements,
            ..self.clone()
        })
    }

    /// Bytes of memory that [`Counters::extended`] takes. `None`: the size overflows.
    pub(super) fn step_bytes(&self, elements: usize) -> Option<usize> {
        self.sets().try_fold(0usize, |sum, set| {
            let parts = set.parts.step_bytes(elements, self.numbering)?;
            sum.checked_add(parts)?
                .checked_add(size_of::<CpuCounters>())
        })
    }

    /// All sets of columns.
    fn sets(&self) -> impl Iterator<Item = &CpuCounters> {
        Iterator::chain(self.own.iter(), self.shared.iter())
    }

    /// Bytes of memory that [`Counters::new`] takes for this many columns. `None`: the size
    /// overflows.
    pub(super) fn size_bytes(
        elements: usize,
        numbering: Numbering,
        columns: usize,
        cpus: Cpus,
        others: u32,
    ) -> Option<usize> {
        let parts = Chunks::<Atomic<u64>>::size_bytes(elements, numbering, columns)?;
        let set = parts.checked_add(size_of::<CpuCounters>() + size_of::<Losses>())?;
        let (own, shared) = cpus.sets();
        let others = (others as usize).checked_mul(columns * size_of::<u64>())?;
        set.checked_mul(own.checked_add(shared)?)?
            .checked_add(others + size_of::<Losses>())
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

    /// Updates the columns for a hit on this CPU, which has none of its own. It asks for the number
    /// of the CPU: as one argument more it would not fit into a register, and hits with own columns
    /// would pay for it.
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
        let cpu = (self.cpus.current)();
        let Some(shared) = self.shared.get(self.share_of(cpu)) else {
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

    /// The index of the shared counters of a CPU that has none of its own. CPUs that came online
    /// after the map was created share the last ones.
    fn share_of(&self, cpu: usize) -> usize {
        let nth = (cpu as u64).saturating_mul(self.share) >> 32;
        usize::min(nth as usize, self.shared.len().wrapping_sub(1))
    }

    /// Adds the parts of all CPUs of a column of element `number` to `folded`.
    ///
    /// # Safety
    ///
    /// An element has this number.
    pub(super) unsafe fn add_column(&self, number: u32, column: usize, folded: &mut u64) {
        for set in self.sets() {
            // SAFETY: The caller guarantees that an element has this number.
            let part = unsafe { set.parts.of(number) }[column].relaxed();
            self.columns[column].add(folded, part);
        }
        if let Some(row) = self.numbering.nth(number).and_then(|nth| self.other(nth)) {
            self.columns[column].add(folded, row[column].relaxed());
        }
    }

    /// The counts of the `nth` element that hits did not count there. `None`: it is not one of
    /// `other`.
    fn other(&self, nth: u32) -> Option<&[Atomic<u64>]> {
        self.others
            .chunks_exact(self.columns.len())
            .nth(nth as usize)
    }

    /// Adds the parts of all CPUs for the elements `elements`, counted from 0, to `sums`, which has
    /// a number for each column of each of them. `read` reads a part. Parts are read as they lie in
    /// memory: CPU by CPU, then by element, in the order of the columns.
    pub(super) fn add_parts(
        &self,
        elements: Range<u32>,
        sums: &mut [u64],
        read: impl Fn(&Atomic<u64>) -> u64,
    ) {
        let end = elements.end.min(self.elements as u32);
        for set in self.sets() {
            let sums = sums.chunks_exact_mut(self.columns.len());
            for (nth, sums) in (elements.start..end).zip(sums) {
                // SAFETY: `nth` is less than the number of elements, so an element has this number.
                let parts = unsafe { set.parts.of(self.numbering.number(nth)) };
                self.add_row(sums, parts, &read);
            }
        }
        let sums = sums.chunks_exact_mut(self.columns.len());
        let others = (elements.start..end).map_while(|nth| self.other(nth));
        for (sums, parts) in sums.zip(others) {
            self.add_row(sums, parts, &read);
        }
    }

    /// Adds the parts of an element to `sums`.
    fn add_row(&self, sums: &mut [u64], parts: &[Atomic<u64>], read: impl Fn(&Atomic<u64>) -> u64) {
        for ((sum, part), column) in sums.iter_mut().zip(parts).zip(&*self.columns) {
            column.add(sum, read(part));
        }
    }

    /// Adds the parts of the `nth` element to `row`, and zeroes them. No hit counts in the element.
    pub(super) fn take_element(&self, nth: u32, row: &mut [u64]) {
        self.add_parts(nth..nth.saturating_add(1), row, |part| {
            let counted = part.relaxed();
            // As in a fold: most parts are 0.
            if counted != 0 {
                part.store(0, Relaxed);
            }
            counted
        });
    }

    /// Adds `row`, parts for each column, to the `nth` element, which is one of `other`. The caller
    /// holds the lock of the map's state, so no other task changes these counts.
    pub(super) fn add_element(&self, nth: u32, row: &[u64]) {
        let parts = self.other(nth).unwrap_or_default();
        for ((part, &add), column) in parts.iter().zip(row).zip(&*self.columns) {
            let mut sum = part.relaxed();
            column.add(&mut sum, add);
            part.store(sum, Relaxed);
        }
    }

    /// The columns of an element.
    pub(super) fn columns(&self) -> &Shared<Column> {
        &self.columns
    }

    /// How the elements are numbered.
    pub(super) fn numbering(&self) -> Numbering {
        self.numbering
    }

    /// Number of elements.
    pub(super) fn elements(&self) -> usize {
        self.elements
    }

    /// Bytes of memory that [`Counters::fresh`] takes. `None`: the size overflows.
    pub(super) fn bytes(&self) -> Option<usize> {
        let width = self.columns.len();
        let others = (self.others.len() / width) as u32;
        Self::size_bytes(self.elements, self.numbering, width, self.cpus, others)
    }

    /// Counts a loss.
    pub(super) fn lose(&self, preempt: PreemptOff<'_>, loss: Loss) {
        let (cpu, own) = (preempt.cpu(), self.own.len());
        if cpu < own {
            // SAFETY: By the invariants each set has losses, which have one counter for each kind
            // of [`Loss`].
            unsafe { increment(&self.losses[cpu].0, loss as usize) };
            return;
        }
        let shared = own.wrapping_add(self.share_of(cpu));
        if let Some(losses) = self.losses.get(shared) {
            Column::Hits.update_shared(&losses.0[loss as usize], 1);
        }
    }

    /// Adds `row`, parts for each column of an element that was taken out, where its counts go. The
    /// caller holds the lock of the map's state. `second`: these are counters of buckets.
    pub(super) fn put(&self, second: bool, to: Move, row: &[u64]) {
        let hits = row.first().copied().unwrap_or(0);
        match to {
            Move::Element(to) if !second => self.add_element(to, row),
            Move::Element(to) => {
                // SAFETY: `to` is the index of an element of these counters, which has this number.
                unsafe { self.add_hits(self.numbering.number(to), hits) }
            }
            Move::Dropped => self.add_loss(Loss::Dropped, hits),
        }
    }

    /// Counts `n` losses. The caller holds the lock of the map's state: see
    /// [`Counters::add_element`].
    pub(super) fn add_loss(&self, loss: Loss, n: u64) {
        if let Some(losses) = self.losses.last() {
            let loss = &losses.0[loss as usize];
            loss.store(loss.relaxed().wrapping_add(n), Relaxed);
        }
    }

    /// Adds hits to an element whose only column they are, and in which no hit counts.
    ///
    /// # Safety
    ///
    /// An element has this number.
    unsafe fn add_hits(&self, number: u32, hits: u64) {
        // In any set: hits of its CPU use other elements.
        for set in self.sets().take(1) {
            // SAFETY: The caller guarantees that an element has this number.
            let parts = unsafe { set.parts.of(number) };
            parts
                .iter()
                .take(1)
                .for_each(|part| part.add(hits, Relaxed));
        }
    }

    /// Adds the losses of all CPUs, indexed by [`Loss`].
    pub(super) fn add_losses(&self, sums: &mut [u64; Loss::KINDS]) {
        for losses in &*self.losses {
            for (sum, loss) in sums.iter_mut().zip(&losses.0) {
                *sum = sum.wrapping_add(loss.load(Relaxed));
            }
        }
    }

    /// Sets the losses of all CPUs to 0. No hit counts in these counters.
    pub(super) fn zero_losses(&self) {
        let losses = self.losses.iter().flat_map(|losses| &losses.0);
        losses.for_each(|loss| loss.store(0, Relaxed));
    }
}

impl CpuCounters {
    /// Creates counters that are all 0. Fails with `ENOMEM`.
    fn new(elements: usize, numbering: Numbering, width: usize, node: NumaNode) -> Result<Self> {
        Ok(Self {
            parts: Chunks::new(elements, numbering, width, |n| zeroed(n, node, GFP_KERNEL))?,
        })
    }
}

impl Losses {
    /// No losses.
    fn new() -> Self {
        Self(core::array::from_fn(|_| Atomic::new(0)))
    }
}
