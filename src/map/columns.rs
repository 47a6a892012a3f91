// SPDX-License-Identifier: GPL-2.0

//! Columns of elements: how a CPU updates its part, and how the parts are folded into one number.

use core::slice::from_ref;

use kernel::sync::atomic::{
    Atomic,
    Relaxed, //
};

use crate::sync::Load;

/// A number of an element that each CPU keeps for itself. The part of each CPU is 0 at first.
///
/// Most values of a trigger are shown from one column. An average takes two, the sum and the hits;
/// a distribution takes three, its smallest and largest value and the sum, beside its buckets.
/// Several values may use one column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// The number of hits.
    Hits,
    /// The sum of a value over all hits, wrapping.
    Sum,
    /// The smallest or the largest value of all hits.
    Extreme(Extreme),
}

/// An extreme of a value. Some bits of the value are flipped, so that the extreme is the largest
/// unsigned number, and 0, the initial value of all parts, stands for no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extreme {
    flip: u64,
}

impl Extreme {
    const SIGN: u64 = 1 << 63;

    /// The smallest value.
    pub const fn min(signed: bool) -> Self {
        Self {
            flip: !Self::max(signed).flip,
        }
    }

    /// The largest value.
    pub const fn max(signed: bool) -> Self {
        Self {
            flip: if signed { Self::SIGN } else { 0 },
        }
    }

    /// Updates the parts of this CPU for the columns of [`ColumnSet::MinMaxSum`]; `self` is the
    /// maximum. Any context.
    #[inline(always)]
    pub(super) fn update_min_max_sum(self, parts: &[Atomic<u64>; 3], value: u64) {
        let flipped = value ^ self.flip;
        // SAFETY: `parts` has three items.
        unsafe {
            raise(parts, 0, !flipped);
            raise(parts, 1, flipped);
            add(parts, 2, value);
        }
    }

    /// Counts a hit with `value` in an element whose only other columns are these: see
    /// [`Extreme::update_min_max_sum`]. Any context.
    #[inline(always)]
    pub(super) fn count_min_max_sum(self, parts: &[Atomic<u64>; 4], value: u64) {
        let [hits, min_max_sum @ ..] = parts;
        self.update_min_max_sum(min_max_sum, value);
        // Last: see `Counters::update()`.
        Column::count_hit(from_ref(hits));
    }
}

impl Column {
    /// Updates part `number` of this CPU's `parts` for a hit with `value`. Any context.
    ///
    /// # Safety
    ///
    /// `parts` has more than `number` items.
    #[inline(always)]
    pub(super) unsafe fn update(self, parts: &[Atomic<u64>], number: usize, value: u64) {
        // SAFETY: The caller guarantees that `parts` has more than `number` items.
        unsafe {
            match self {
                Self::Sum => add(parts, number, value),
                Self::Extreme(Extreme { flip }) => raise(parts, number, value ^ flip),
                Self::Hits => increment(parts, number),
            }
        }
    }

    /// Counts a hit in the first of this CPU's `parts`. Any context.
    #[inline(always)]
    pub(super) fn count_hit(parts: &[Atomic<u64>]) {
        if !parts.is_empty() {
            // SAFETY: `parts` is not empty.
            unsafe { increment(parts, 0) };
        }
    }

    /// Updates a part that several CPUs share.
    pub(super) fn update_shared(self, part: &Atomic<u64>, value: u64) {
        match self {
            Self::Hits => part.add(1, Relaxed),
            Self::Sum => part.add(value, Relaxed),
            Self::Extreme(Extreme { flip }) => raise_shared(part, value ^ flip),
        }
    }

    /// Adds a part to `folded`, which is a part itself: 0 at first, and an extreme has its bits
    /// flipped.
    pub(super) fn add(self, folded: &mut u64, part: u64) {
        *folded = match self {
            Self::Hits | Self::Sum => folded.wrapping_add(part),
            Self::Extreme(_) => u64::max(*folded, part),
        };
    }

    /// Returns the number that a part stands for.
    pub(super) fn number(self, part: u64) -> u64 {
        match self {
            Self::Hits | Self::Sum => part,
            Self::Extreme(Extreme { flip }) => part ^ flip,
        }
    }

    /// Returns the number of the hits of two elements together.
    pub fn join(self, a: u64, b: u64) -> u64 {
        // The bits of an extreme are flipped twice.
        let mut part = self.number(a);
        self.add(&mut part, self.number(b));
        self.number(part)
    }

    /// Returns whether it is the smallest or the largest value.
    pub(super) fn is_extreme(self) -> bool {
        matches!(self, Self::Extreme(_))
    }
}

/// The columns that are updated with one value. They follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnSet {
    /// This many of any kind.
    Any(usize),
    /// The smallest value, the largest and the sum: the commonest set. Has the kind of the maximum.
    MinMaxSum(Extreme),
}

impl ColumnSet {
    /// One column.
    pub const ONE: Self = Self::Any(1);

    /// Returns the set of all of `columns`.
    pub fn of(columns: &[Column]) -> Self {
        match *columns {
            [Column::Extreme(min), Column::Extreme(max), Column::Sum] if min.flip == !max.flip => {
                Self::MinMaxSum(max)
            }
            _ => Self::Any(columns.len()),
        }
    }

    /// Number of columns.
    pub fn len(self) -> usize {
        match self {
            Self::Any(n) => n,
            Self::MinMaxSum(_) => 3,
        }
    }

    /// Returns whether the set has no columns.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Updates the parts of this CPU for these columns with `value`; `first` is the index of the
    /// first one. Any context.
    #[inline(always)]
    pub(super) fn update(
        self,
        columns: &[Column],
        parts: &[Atomic<u64>],
        first: usize,
        value: u64,
    ) {
        match self {
            Self::MinMaxSum(max) => {
                let parts = parts.get(first..).and_then(|parts| parts.first_chunk());
                if let Some(parts) = parts {
                    max.update_min_max_sum(parts, value);
                }
            }
            Self::Any(n) => {
                let end = first.wrapping_add(n);
                if let (Some(columns), Some(parts)) =
                    (columns.get(first..end), parts.get(first..end))
                {
                    for (column, part) in columns.iter().zip(parts) {
                        // SAFETY: The slice has one item, and the number is 0.
                        unsafe { column.update(from_ref(part), 0, value) };
                    }
                }
            }
        }
    }
}

/// Stores `value` in a part of this CPU if it is larger. Any context.
///
/// It retries only if an interrupt has stored a larger number meanwhile.
///
/// # Safety
///
/// `parts` has more than `number` items.
#[cfg(CONFIG_X86_64)]
#[inline(always)]
unsafe fn raise(parts: &[Atomic<u64>], number: usize, value: u64) {
    debug_assert!(number < parts.len());
    // SAFETY: The caller guarantees that `parts` has more than `number` items.
    let part = unsafe { parts.get_unchecked(number) };
    let mut last = part.relaxed();
    while last < value {
        let found: u64;
        // SAFETY: It is valid and aligned memory, accessed only by such instructions and atomic
        // loads. As in `add`, the instruction needs no lock prefix: other CPUs only load.
        unsafe {
            core::arch::asm!(
                "cmpxchg qword ptr [{part}], {value}",
                part = in(reg) part.as_ptr(),
                value = in(reg) value,
                inout("rax") last => found,
                options(nostack),
            );
        }
        if found == last {
            break;
        }
        last = found;
    }
}

/// Stores `value` in a part of this CPU if it is larger. Any context.
///
/// # Safety
///
/// `parts` has more than `number` items.
#[cfg(not(CONFIG_X86_64))]
#[inline(always)]
unsafe fn raise(parts: &[Atomic<u64>], number: usize, value: u64) {
    debug_assert!(number < parts.len());
    // SAFETY: The caller guarantees that `parts` has more than `number` items.
    let part = unsafe { parts.get_unchecked(number) };
    // Most values are not a new extreme.
    if part.relaxed() < value {
        raise_shared(part, value);
    }
}

/// Stores `value` if it is larger.
///
/// It retries only after another context, which may have interrupted this one, has stored a larger
/// number. So it ends, at the latest, when no hit has a larger value than this one.
fn raise_shared(part: &Atomic<u64>, value: u64) {
    let mut last = part.load(Relaxed);
    while last < value {
        match part.cmpxchg(last, value, Relaxed) {
            Ok(_) => return,
            Err(now) => last = now,
        }
    }
}

/// Adds to a counter of this CPU. Any context.
///
/// # Safety
///
/// `counters` has more than `number` items.
#[cfg(CONFIG_X86_64)]
#[inline(always)]
unsafe fn add(counters: &[Atomic<u64>], number: usize, value: u64) {
    debug_assert!(number < counters.len());
    // SAFETY: By the caller the counter is valid and aligned memory. It is only accessed by such an
    // instruction and by atomic loads. An interrupt comes before or after the instruction, so no
    // context on this CPU loses an addition. Other CPUs, against which it would need the lock
    // prefix, only load, all 8 bytes at once.
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
/// `counters` has more than `number` items.
#[cfg(CONFIG_X86_64)]
#[inline(always)]
pub(super) unsafe fn increment(counters: &[Atomic<u64>], number: usize) {
    debug_assert!(number < counters.len());
    // SAFETY: The caller guarantees that the counter is valid and aligned memory. One instruction
    // is atomic towards interrupts on this CPU; other CPUs only load the counter.
    unsafe {
        core::arch::asm!(
            "inc qword ptr [{counter}]",
            counter = in(reg) counters.as_ptr().add(number),
            options(nostack),
        );
    }
}

/// Adds 1 to the counter `nth` counters behind `start`: [`increment`] without computing its address
/// first.
///
/// # Safety
///
/// `start` and `nth` give the address of a counter of this CPU.
#[inline(always)]
pub(super) unsafe fn increment_nth(start: *const Atomic<u64>, nth: usize) {
    // SAFETY: The caller guarantees that the counter is valid and aligned memory. One instruction
    // is atomic towards interrupts on this CPU; other CPUs only load the counter.
    #[cfg(CONFIG_X86_64)]
    unsafe {
        core::arch::asm!(
            "inc qword ptr [{start} + 8 * {nth}]",
            start = in(reg) start,
            nth = in(reg) nth,
            options(nostack),
        );
    }
    // SAFETY: The caller guarantees that this is the address of a counter.
    #[cfg(not(CONFIG_X86_64))]
    unsafe {
        increment(from_ref(&*start.wrapping_add(nth)), 0)
    }
}

/// Adds to a counter of this CPU. Any context.
///
/// Loading, adding and storing are one instruction where the CPU has it (LSE, from Armv8.1 on).
/// Elsewhere it is a branch to a loop: the kernel has the better of the two in place before a
/// module runs (arch/arm64/include/asm/alternative-macros.h).
///
/// # Safety
///
/// `counters` has more than `number` items.
#[cfg(CONFIG_ARM64)]
#[inline(always)]
unsafe fn add(counters: &[Atomic<u64>], number: usize, value: u64) {
    debug_assert!(number < counters.len());
    // SAFETY: The caller guarantees that the counter is valid and aligned memory. It is only
    // accessed by such instructions and by atomic loads, and either form is atomic: an exclusive
    // store fails if anything came between, and the loop runs once more. The replacement has the
    // length of the branch, and depends on its address no more than on the registers of the loop.
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
/// `counters` has more than `number` items.
#[cfg(not(CONFIG_X86_64))]
#[inline(always)]
pub(super) unsafe fn increment(counters: &[Atomic<u64>], number: usize) {
    // SAFETY: The caller guarantees that `counters` has more than `number` items.
    unsafe { add(counters, number, 1) };
}

/// Adds to a counter of this CPU. Any context.
///
/// # Safety
///
/// `counters` has more than `number` items.
#[cfg(not(any(CONFIG_X86_64, CONFIG_ARM64)))]
#[inline(always)]
unsafe fn add(counters: &[Atomic<u64>], number: usize, value: u64) {
    debug_assert!(number < counters.len());
    // SAFETY: The caller guarantees that `counters` has more than `number` items.
    unsafe { counters.get_unchecked(number) }.add(value, Relaxed);
}
