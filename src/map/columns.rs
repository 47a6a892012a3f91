// SPDX-License-Identifier: GPL-2.0

//! The columns of a map: numbers that each CPU keeps for itself, and that are folded into one when they are
//! read.

use core::slice;

use kernel::alloc::NumaNode;
use kernel::prelude::*;
use kernel::sync::atomic::Atomic;
use kernel::sync::atomic::Relaxed;

use super::chunks::zeroed;
use super::chunks::Chunks;

/// What a column makes of the hits of an element. All begin with 0, per CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// How many hits there were.
    Hits,
    /// The sum of a value of each hit, wrapping.
    Sum,
}

impl Column {
    /// Updates part `number` of `parts`, which are those of this CPU, for a hit with `value`. Any context.
    ///
    /// # Safety
    ///
    /// There are more than `number` parts.
    #[inline(always)]
    unsafe fn update(self, parts: &[Atomic<u64>], number: usize, value: u64) {
        // SAFETY: As this.
        unsafe {
            match self {
                Self::Hits => increment(parts, number),
                Self::Sum => add(parts, number, value),
            }
        }
    }

    /// Folds the parts of all CPUs.
    fn fold(self, parts: impl Iterator<Item = u64>) -> u64 {
        match self {
            Self::Hits | Self::Sum => parts.fold(0, u64::wrapping_add),
        }
    }
}

/// The CPUs that columns are kept for.
#[derive(Clone, Copy)]
pub struct Cpus {
    /// How many, including those that may come: `nr_cpu_ids`.
    pub count: usize,
    /// The node whose memory is near a CPU.
    pub node: fn(cpu: usize) -> NumaNode,
}

impl Cpus {
    /// So many CPUs, all of which are as near to any memory.
    pub fn uniform(count: usize) -> Self {
        Self {
            count,
            node: |_| NumaNode::NO_NODE,
        }
    }
}

/// The columns of all elements, and the drops.
pub(super) struct Columns {
    columns: KVec<Column>,
    cpus: KVVec<Cpu>,
}

/// What one CPU keeps, in memory of its own node. Only read by others.
#[repr(align(64))]
struct Cpu {
    /// One part for each column of an element.
    parts: Chunks<Atomic<u64>>,
    drops: Atomic<u64>,
}

impl Columns {
    /// Fails with `ENOMEM`.
    pub(super) fn new(elements: usize, columns: &[Column], cpus: Cpus) -> Result<Self> {
        let mut kinds = KVec::with_capacity(columns.len(), GFP_KERNEL)?;
        kinds.extend_from_slice(columns, GFP_KERNEL)?;
        let mut all = Self {
            columns: kinds,
            cpus: KVVec::with_capacity(cpus.count, GFP_KERNEL)?,
        };
        for cpu in 0..cpus.count {
            let node = (cpus.node)(cpu);
            all.cpus.push_within_capacity(Cpu {
                parts: Chunks::new(elements, columns.len(), |n| zeroed(n, node))?,
                drops: Atomic::new(0),
            })?;
        }
        Ok(all)
    }

    /// Bytes of memory.
    pub(super) fn size_bytes(&self) -> usize {
        let size = |cpu: &Cpu| size_of_val(cpu) + cpu.parts.size_bytes();
        self.cpus.iter().map(size).sum()
    }

    /// Updates the columns of element `index` for a hit on `cpu`: see [`super::Elt::update`].
    ///
    /// # Safety
    ///
    /// There is such an element.
    #[inline(always)]
    pub(super) unsafe fn update<V>(
        &self,
        cpu: usize,
        index: u32,
        values: &[V],
        read: impl Fn(&V) -> u64,
    ) {
        let Some(cpu) = self.cpus.get(cpu) else {
            return;
        };
        // SAFETY: There is such an element.
        let parts = unsafe { cpu.parts.of(index) };
        let columns = self.columns.iter().skip(1);
        // SAFETY: There is a part for each column, and at least one.
        unsafe { Column::Hits.update(parts, 0, 1) };
        for ((number, &column), value) in (1..).zip(columns).zip(values) {
            // SAFETY: There is a part for each column.
            unsafe { column.update(parts, number, read(value)) };
        }
    }

    /// The same where all columns are [sums](Column::Sum), but the first.
    ///
    /// # Safety
    ///
    /// As [`Columns::update`].
    #[inline(always)]
    pub(super) unsafe fn update_sums<V>(
        &self,
        cpu: usize,
        index: u32,
        values: &[V],
        read: impl Fn(&V) -> u64,
    ) {
        let Some(cpu) = self.cpus.get(cpu) else {
            return;
        };
        // SAFETY: There is such an element.
        let parts = unsafe { cpu.parts.of(index) };
        if values.len() < parts.len() {
            // SAFETY: There are more parts than values.
            unsafe {
                Column::Hits.update(parts, 0, 1);
                for (number, value) in (1..).zip(values) {
                    Column::Sum.update(parts, number, read(value));
                }
            }
        }
    }

    /// Column `number` of element `index`, folded.
    ///
    /// # Safety
    ///
    /// There is such an element.
    pub(super) unsafe fn fold(&self, index: u32, number: usize) -> u64 {
        // SAFETY: There is such an element.
        let part = |cpu: &Cpu| unsafe { cpu.parts.of(index) }[number].load(Relaxed);
        self.columns[number].fold(self.cpus.iter().map(part))
    }

    /// Counts a drop.
    pub(super) fn drop(&self, cpu: usize) {
        // SAFETY: There is one.
        unsafe { increment(slice::from_ref(&self.cpus[cpu].drops), 0) };
    }

    /// The drops of all CPUs.
    pub(super) fn drops(&self) -> u64 {
        Column::Hits.fold(self.cpus.iter().map(|cpu| cpu.drops.load(Relaxed)))
    }
}

/// Adds to one of the counters to which only this CPU adds, in any context.
///
/// # Safety
///
/// There are more than `number` of them.
#[cfg(CONFIG_X86_64)]
#[inline(always)]
unsafe fn add(counters: &[Atomic<u64>], number: usize, value: u64) {
    debug_assert!(number < counters.len());
    // SAFETY: The counter is valid and aligned memory. It is only accessed by this function and by
    // atomic loads. One instruction cannot be interrupted halfway, so no context on this CPU loses
    // an addition; other CPUs, against which it would need the lock prefix, only read, and they
    // read all 8 bytes at once.
    unsafe {
        core::arch::asm!(
            "add qword ptr [{counters} + 8 * {number}], {value}",
            counters = in(reg) counters.as_ptr(),
            number = in(reg) number,
            value = in(reg) value,
            options(nostack),
        );
    }
}

/// Adds 1: [`add`] with one instruction less.
///
/// # Safety
///
/// As [`add`].
#[cfg(CONFIG_X86_64)]
#[inline(always)]
unsafe fn increment(counters: &[Atomic<u64>], number: usize) {
    debug_assert!(number < counters.len());
    // SAFETY: As in `add`.
    unsafe {
        core::arch::asm!(
            "inc qword ptr [{counter}]",
            counter = in(reg) counters.as_ptr().add(number),
            options(nostack),
        );
    }
}

/// Adds 1.
///
/// # Safety
///
/// As [`add`].
#[cfg(not(CONFIG_X86_64))]
#[inline(always)]
unsafe fn increment(counters: &[Atomic<u64>], number: usize) {
    // SAFETY: As this.
    unsafe { add(counters, number, 1) };
}

/// Adds to one of the counters to which only this CPU adds, in any context.
///
/// # Safety
///
/// There are more than `number` of them.
#[cfg(not(CONFIG_X86_64))]
#[inline(always)]
unsafe fn add(counters: &[Atomic<u64>], number: usize, value: u64) {
    debug_assert!(number < counters.len());
    // SAFETY: The caller says that there are more than `number`.
    unsafe { counters.get_unchecked(number) }.add(value, Relaxed);
}
