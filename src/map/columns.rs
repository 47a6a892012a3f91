// SPDX-License-Identifier: GPL-2.0

//! The columns of a map: numbers that each CPU keeps for itself, folded into one when they are read.

use core::iter;

use kernel::alloc::NumaNode;
use kernel::prelude::*;
use kernel::sync::atomic::Atomic;
use kernel::sync::atomic::Relaxed;

use super::chunks::zeroed;
use super::chunks::Chunks;
use super::chunks::Numbering;
use crate::sync::PreemptOff;

/// What a column makes of the hits of an element. The part of each CPU is 0 at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// The number of hits.
    Hits,
    /// The sum of a value over all hits, wrapping.
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
        // SAFETY: By the caller there are more than `number` parts.
        unsafe {
            match self {
                Self::Hits => increment(parts, number),
                Self::Sum => add(parts, number, value),
            }
        }
    }

    /// As [`Column::update`], for a `part` that other CPUs update, too.
    fn update_shared(self, part: &Atomic<u64>, value: u64) {
        match self {
            Self::Hits => part.add(1, Relaxed),
            Self::Sum => part.add(value, Relaxed),
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
    /// Their number, including those that may come online: `nr_cpu_ids`.
    pub count: usize,
    /// The CPUs below this have columns of their own. The others, which are not online when the map is created,
    /// share columns: a machine may have many times the CPUs to come that it has.
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

/// Why something of a hit is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The hit: there is no place for its key.
    Dropped,
    /// The hit: a variable that it needs of another element is not set.
    Unresolved,
    /// A variable, or an action of the hit: too many others are at work on the same, or within each other.
    Missed,
}

/// The columns of all elements, and the losses.
pub(super) struct Columns {
    columns: KVec<Column>,
    /// Those of CPUs with columns of their own.
    cpus: KVVec<CpuColumns>,
    /// Those of all other CPUs, if there are any. Updated by atomic instructions.
    shared: Option<CpuColumns>,
}

/// The parts of one CPU, in memory of its node, which other CPUs only read; or those that CPUs share.
#[repr(align(64))]
struct CpuColumns {
    /// One part for each column of an element.
    parts: Chunks<Atomic<u64>>,
    /// One counter for each [`Loss`].
    losses: [Atomic<u64>; 3],
}

impl Columns {
    /// Creates columns that are all 0. Fails with `ENOMEM`.
    pub(super) fn new(
        elements: usize,
        numbering: Numbering,
        columns: &[Column],
        cpus: Cpus,
    ) -> Result<Self> {
        let mut kinds = KVec::with_capacity(columns.len(), GFP_KERNEL)?;
        kinds.extend_from_slice(columns, GFP_KERNEL)?;
        let mut all = Self {
            columns: kinds,
            cpus: KVVec::with_capacity(cpus.own, GFP_KERNEL)?,
            shared: None,
        };
        for cpu in 0..cpus.own {
            let new = CpuColumns::new(elements, numbering, columns.len(), (cpus.node)(cpu))?;
            all.cpus.push_within_capacity(new)?;
        }
        if cpus.own < cpus.count {
            let new = CpuColumns::new(elements, numbering, columns.len(), NumaNode::NO_NODE)?;
            all.shared = Some(new);
        }
        Ok(all)
    }

    /// All sets of columns.
    fn sets(&self) -> impl Iterator<Item = &CpuColumns> {
        Iterator::chain(self.cpus.iter(), &self.shared)
    }

    /// Bytes of memory.
    pub(super) fn size_bytes(&self) -> usize {
        let size = |cpu: &CpuColumns| size_of_val(cpu) + cpu.parts.size_bytes();
        self.sets().map(size).sum()
    }

    /// The parts of element `number` for this CPU; `None` if it has none of its own.
    ///
    /// # Safety
    ///
    /// There is such an element.
    #[inline(always)]
    unsafe fn parts(&self, preempt: PreemptOff<'_>, number: u32) -> Option<&[Atomic<u64>]> {
        let cpu = self.cpus.get(preempt.cpu())?;
        // SAFETY: By the caller there is such an element.
        Some(unsafe { cpu.parts.of(number) })
    }

    /// Updates the columns of element `number` for a hit: see [`super::Elt::update`].
    ///
    /// # Safety
    ///
    /// There is such an element.
    #[inline(always)]
    pub(super) unsafe fn update<V>(
        &self,
        preempt: PreemptOff<'_>,
        number: u32,
        values: &[V],
        read: impl Fn(&V) -> u64,
    ) {
        // SAFETY: By the caller there is such an element.
        let Some(parts) = (unsafe { self.parts(preempt, number) }) else {
            // SAFETY: As above.
            return unsafe { self.update_shared(number, values, read) };
        };
        // SAFETY: There is a part for each column, and at least one.
        unsafe { Column::Hits.update(parts, 0, 1) };
        if values.is_empty() {
            return;
        }
        let columns = self.columns.iter().skip(1);
        for ((nth, &column), value) in (1..).zip(columns).zip(values) {
            // SAFETY: There is a part for each column.
            unsafe { column.update(parts, nth, read(value)) };
        }
    }

    /// As [`Columns::update`], if all columns but the first are [sums](Column::Sum).
    ///
    /// # Safety
    ///
    /// As [`Columns::update`].
    #[inline(always)]
    pub(super) unsafe fn update_sums<V>(
        &self,
        preempt: PreemptOff<'_>,
        number: u32,
        values: &[V],
        read: impl Fn(&V) -> u64,
    ) {
        // SAFETY: By the caller there is such an element.
        let Some(parts) = (unsafe { self.parts(preempt, number) }) else {
            // SAFETY: As above.
            return unsafe { self.update_shared(number, values, read) };
        };
        if values.len() < parts.len() {
            // SAFETY: There are more parts than values.
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
    /// As [`Columns::update`].
    #[cold]
    #[inline(never)]
    unsafe fn update_shared<V>(&self, number: u32, values: &[V], read: impl Fn(&V) -> u64) {
        if let Some(shared) = &self.shared {
            // SAFETY: By the caller there is such an element.
            let parts = unsafe { shared.parts.of(number) };
            let values = Iterator::chain(iter::once(1), values.iter().map(read));
            for ((part, &column), value) in parts.iter().zip(&self.columns).zip(values) {
                column.update_shared(part, value);
            }
        }
    }

    /// Folds the parts of all CPUs of a column of element `number`.
    ///
    /// # Safety
    ///
    /// There is such an element.
    pub(super) unsafe fn fold(&self, number: u32, column: usize) -> u64 {
        // SAFETY: There is such an element.
        let part = |cpu: &CpuColumns| unsafe { cpu.parts.of(number) }[column].load(Relaxed);
        self.columns[column].fold(self.sets().map(part))
    }

    /// Counts a loss.
    pub(super) fn lose(&self, preempt: PreemptOff<'_>, loss: Loss) {
        match (self.cpus.get(preempt.cpu()), &self.shared) {
            // SAFETY: There is one counter for each.
            (Some(own), _) => unsafe { increment(&own.losses, loss as usize) },
            (None, Some(shared)) => Column::Hits.update_shared(&shared.losses[loss as usize], 1),
            (None, None) => (),
        }
    }

    /// The losses of all CPUs.
    pub(super) fn losses(&self, loss: Loss) -> u64 {
        let losses = |cpu: &CpuColumns| cpu.losses[loss as usize].load(Relaxed);
        Column::Hits.fold(self.sets().map(losses))
    }
}

impl CpuColumns {
    /// Creates columns that are all 0. Fails with `ENOMEM`.
    fn new(elements: usize, numbering: Numbering, width: usize, node: NumaNode) -> Result<Self> {
        Ok(Self {
            parts: Chunks::new(elements, numbering, width, |n| zeroed(n, node))?,
            losses: [Atomic::new(0), Atomic::new(0), Atomic::new(0)],
        })
    }
}

/// Adds to a counter of this CPU. Any context.
///
/// # Safety
///
/// There are more than `number` counters.
#[cfg(CONFIG_X86_64)]
#[inline(always)]
unsafe fn add(counters: &[Atomic<u64>], number: usize, value: u64) {
    debug_assert!(number < counters.len());
    // SAFETY: By the caller the counter is valid and aligned memory. It is only accessed by such an
    // instruction and by atomic loads. An interrupt comes before or after the instruction, so no context on
    // this CPU loses an addition. Other CPUs, against which it would need the lock prefix, only load, all 8
    // bytes at once.
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

/// Adds to a counter of this CPU. Any context.
///
/// Loading, adding and storing are one instruction where the CPU has it (LSE, from Armv8.1 on). Elsewhere it is a
/// branch to a loop: the kernel has the better of the two in place before a module runs
/// (arch/arm64/include/asm/alternative-macros.h).
///
/// # Safety
///
/// There are more than `number` counters.
#[cfg(CONFIG_ARM64)]
#[inline(always)]
unsafe fn add(counters: &[Atomic<u64>], number: usize, value: u64) {
    debug_assert!(number < counters.len());
    // SAFETY: By the caller the counter is valid and aligned memory. It is only accessed by such instructions and by
    // atomic loads, and either form is atomic: an exclusive store fails if anything came between, and the loop goes
    // round once more. What replaces the branch has its length, and depends on its place no more than on what is in the
    // registers of the loop.
    unsafe {
        core::arch::asm!(
            "661:",
            "b 665f",
            "662:",
            ".pushsection .altinstructions,\"a\"",
            ".word 661b - .",
            ".word 663f - .",
            ".hword {lse}",
            ".byte 662b - 661b",
            ".byte 664f - 663f",
            ".popsection",
            ".subsection 1",
            ".arch_extension lse",
            "663:",
            "stadd {value}, [{counter}]",
            "664:",
            "665:",
            "ldxr {sum}, [{counter}]",
            "add {sum}, {sum}, {value}",
            "stxr {failed:w}, {sum}, [{counter}]",
            "cbnz {failed:w}, 665b",
            "b 662b",
            ".previous",
            lse = const kernel::bindings::ARM64_HAS_LSE_ATOMICS,
            counter = in(reg) counters.as_ptr().add(number),
            value = in(reg) value,
            sum = out(reg) _,
            failed = out(reg) _,
            options(nostack, preserves_flags),
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
    // SAFETY: By the caller there are more than `number` counters.
    unsafe { add(counters, number, 1) };
}

/// Adds to a counter of this CPU. Any context.
///
/// # Safety
///
/// There are more than `number` counters.
#[cfg(not(any(CONFIG_X86_64, CONFIG_ARM64)))]
#[inline(always)]
unsafe fn add(counters: &[Atomic<u64>], number: usize, value: u64) {
    debug_assert!(number < counters.len());
    // SAFETY: By the caller there are more than `number` counters.
    unsafe { counters.get_unchecked(number) }.add(value, Relaxed);
}
