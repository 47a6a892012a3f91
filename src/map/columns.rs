// SPDX-License-Identifier: GPL-2.0

//! Sums and drops, counted per CPU and added up when they are read.

use core::slice;

use kernel::prelude::*;
use kernel::sync::atomic::Atomic;
use kernel::sync::atomic::Relaxed;

use super::zeroed;

/// The sums of all elements, for each CPU in memory of its own.
pub(super) struct Sums {
    cpus: KVVec<Cpu>,
    /// Sums of one element.
    width: usize,
}

/// What one CPU counts. Only read by others.
#[repr(align(64))]
struct Cpu {
    sums: KVVec<Atomic<u64>>,
    drops: Atomic<u64>,
}

impl Sums {
    /// `width` sums for each of `elements` elements and each of `cpus` CPUs. Fails with `ENOMEM`.
    pub(super) fn new(elements: usize, width: usize, cpus: usize) -> Result<Self> {
        let len = elements.checked_mul(width).ok_or(ENOMEM)?;
        let mut sums = Self {
            cpus: KVVec::with_capacity(cpus, GFP_KERNEL)?,
            width,
        };
        for _ in 0..cpus {
            sums.cpus.push_within_capacity(Cpu {
                sums: zeroed(len)?,
                drops: Atomic::new(0),
            })?;
        }
        Ok(sums)
    }

    /// Bytes of all sums of all CPUs.
    pub(super) fn size_bytes(&self) -> usize {
        let sums = |cpu: &Cpu| size_of_val(cpu) + size_of_val(&cpu.sums[..]);
        self.cpus.iter().map(sums).sum()
    }

    /// The sums of element `index` on a CPU.
    ///
    /// # Safety
    ///
    /// There is such an element.
    #[inline(always)]
    pub(super) unsafe fn of(&self, cpu: usize, index: u32) -> &[Atomic<u64>] {
        let start = self.position(index, 0);
        let sums = start..start.wrapping_add(self.width);
        debug_assert!(sums.end <= self.cpus[cpu].sums.len());
        // SAFETY: Each CPU has `width` sums for each element.
        unsafe { self.cpus[cpu].sums.get_unchecked(sums) }
    }

    /// Sum `sum` of element `index` over all CPUs, wrapping.
    pub(super) fn sum(&self, index: u32, sum: usize) -> u64 {
        let position = self.position(index, sum);
        let sums = self.cpus.iter().map(|cpu| &cpu.sums[position]);
        sums.fold(0, |total, sum| total.wrapping_add(sum.load(Relaxed)))
    }

    /// Counts a drop.
    pub(super) fn drop(&self, cpu: usize) {
        // SAFETY: There is one.
        unsafe { add(slice::from_ref(&self.cpus[cpu].drops), 0, 1) };
    }

    /// The drops of all CPUs.
    pub(super) fn drops(&self) -> u64 {
        let drops = self.cpus.iter().map(|cpu| cpu.drops.load(Relaxed));
        drops.fold(0, u64::wrapping_add)
    }

    #[inline]
    fn position(&self, index: u32, sum: usize) -> usize {
        debug_assert!(sum < self.width);
        // There was memory for all of them.
        (index as usize).wrapping_mul(self.width).wrapping_add(sum)
    }
}

/// Adds to one of the counters to which only this CPU adds, in any context.
///
/// # Safety
///
/// There are more than `number` of them.
#[cfg(CONFIG_X86_64)]
#[inline(always)]
pub(super) unsafe fn add(counters: &[Atomic<u64>], number: usize, value: u64) {
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

/// Adds to one of the counters to which only this CPU adds, in any context.
///
/// # Safety
///
/// There are more than `number` of them.
#[cfg(not(CONFIG_X86_64))]
#[inline(always)]
pub(super) unsafe fn add(counters: &[Atomic<u64>], number: usize, value: u64) {
    debug_assert!(number < counters.len());
    // SAFETY: The caller says that there are more than `number`.
    unsafe { counters.get_unchecked(number) }.add(value, Relaxed);
}
