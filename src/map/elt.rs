// SPDX-License-Identifier: GPL-2.0

//! An element of a map.

use super::{
    cell::VarCell,
    columns::{
        Column,
        ColumnSet,
        Extreme, //
    },
    generation::Generation,
    wide::WideCell, //
};
use crate::sync::PreemptOff;
use kernel::sync::atomic::{
    Atomic,
    Relaxed, //
};

/// The columns of an element, and this CPU's parts for them.
struct OwnParts<'a> {
    columns: &'a [Column],
    parts: &'a [Atomic<u64>],
}

/// This CPU's parts of an element's only columns, which are the hitcount and a
/// [`ColumnSet::MinMaxSum`].
pub struct MinMaxSumParts<'a>(&'a [Atomic<u64>; 4]);

impl MinMaxSumParts<'_> {
    /// Updates the columns for a hit with `value`; `max` is the maximum. Any context.
    #[inline(always)]
    pub fn count(self, max: Extreme, value: u64) {
        max.count_min_max_sum(self.0, value);
    }
}

/// A reference to an element of a map: its key, columns, variables and side data.
///
/// # Invariants
///
/// An acquiring load of a slot of the generation's index has found the element with this `number`;
/// or it is one of [`Other`](super::Other), which the generation has.
#[derive(Clone, Copy)]
pub struct Elt<'a> {
    generation: &'a Generation,
    number: u32,
}

impl<'a> Elt<'a> {
    /// Refers to the element with this number, which an acquiring load of a slot of the
    /// generation's index has found, or to one of [`Other`](super::Other).
    #[inline(always)]
    pub(super) fn new(generation: &'a Generation, number: u32) -> Self {
        // INVARIANT: The caller found the element by an acquiring load, or has these elements.
        Self { generation, number }
    }

    /// Updates the columns for a hit: the first counts it. `read` turns each of `values` into a
    /// number, and returns the set of columns to update with it; sets follow each other. Any
    /// context.
    #[inline(always)]
    pub fn update<V>(
        self,
        preempt: PreemptOff<'_>,
        values: &[V],
        read: impl Fn(&V) -> (u64, ColumnSet),
    ) {
        let counters = &self.generation.counters;
        // SAFETY: By the invariants of `Elt`, an element has this number.
        unsafe { counters.update(preempt, self.number, values, read) }
    }

    /// Inlined [`Elt::update`]. Any context.
    #[inline(always)]
    pub fn update_inline<V>(
        self,
        preempt: PreemptOff<'_>,
        values: &[V],
        read: impl Fn(&V) -> (u64, ColumnSet),
    ) {
        let Some(OwnParts { columns, parts }) = self.own_parts(preempt) else {
            return self.update_shared(preempt, values, read);
        };
        let mut next = 1;
        for value in values {
            let (value, set) = read(value);
            set.update(columns, parts, next, value);
            next = next.wrapping_add(set.len());
        }
        // Last: see `Counters::update()`.
        Column::count_hit(parts);
    }

    /// Returns the columns, and this CPU's parts for them; `None` if it shares them with others.
    /// Any context.
    #[inline(always)]
    fn own_parts(self, preempt: PreemptOff<'_>) -> Option<OwnParts<'a>> {
        let counters = &self.generation.counters;
        // SAFETY: By the invariants of `Elt`, an element has this number.
        let (columns, parts) = unsafe { counters.own_parts(preempt, self.number) }?;
        Some(OwnParts { columns, parts })
    }

    /// Out-of-line [`Elt::update`], for a CPU that shares its columns.
    #[inline(never)]
    fn update_shared<V>(
        self,
        preempt: PreemptOff<'_>,
        values: &[V],
        read: impl Fn(&V) -> (u64, ColumnSet),
    ) {
        self.update(preempt, values, read);
    }

    /// Returns this CPU's parts of the columns; `None` if the element has fewer columns, or the CPU
    /// shares them with others. Any context.
    #[inline(always)]
    pub fn min_max_sum(self, preempt: PreemptOff<'_>) -> Option<MinMaxSumParts<'a>> {
        let parts = self.own_parts(preempt)?.parts;
        parts.first_chunk().map(MinMaxSumParts)
    }

    /// Counts a hit without values. Any context.
    #[inline(always)]
    pub fn count(self, preempt: PreemptOff<'_>) {
        self.update_sums(preempt, &[], |&value: &u64| value);
    }

    /// Updates the columns, of which all but the first are [sums](Column::Sum), for a hit. Any
    /// context.
    #[inline(always)]
    pub fn update_sums<V>(self, preempt: PreemptOff<'_>, values: &[V], read: impl Fn(&V) -> u64) {
        let counters = &self.generation.counters;
        // SAFETY: By the invariants of `Elt`, an element has this number.
        unsafe { counters.update_sums(preempt, self.number, values, read) }
    }

    /// Sets variable `number`. Returns false if it cannot hold this value, and is now unset; see
    /// [`VarCell::set`]. Any context.
    #[must_use]
    #[inline]
    pub fn set_var(self, number: usize, value: u64) -> bool {
        let var = self.vars().get(number);
        var.is_some_and(|var| var.set(self.generation.index.mask, value))
    }

    /// Returns the value of variable `number`, if it is set. Any context.
    #[inline]
    pub fn var(self, number: usize) -> Option<u64> {
        self.vars().get(number)?.get(self.generation.index.mask)
    }

    /// Reads variable `number` and unsets it: each value that was set is returned at most once. Any
    /// context.
    #[inline(always)]
    pub fn take_var(self, number: usize) -> Option<u64> {
        self.vars().get(number)?.take(self.generation.index.mask)
    }

    /// Returns whether a variable is set.
    pub(super) fn has_set_var(self) -> bool {
        let mask = self.generation.index.mask;
        self.vars().iter().any(|var| var.get(mask).is_some())
    }

    /// Number of variables that are set. `wide` has a bit for each wide cell that is a variable.
    pub(super) fn set_vars(self, wide: u32) -> usize {
        let mask = self.generation.index.mask;
        let words = self.vars().iter().filter(|var| var.get(mask).is_some());
        let cells = (0..32).filter(|nth| wide >> nth & 1 != 0);
        let cells = cells.filter_map(|nth| self.wide(nth));
        words.count() + cells.filter(|cell| cell.state() != 0).count()
    }

    /// Returns whether one of these variables, a bit for each, is not set.
    pub(super) fn has_unset_var(self, vars: u32) -> bool {
        let mask = self.generation.index.mask;
        let mut cells = self.vars().iter().enumerate();
        cells.any(|(nth, var)| vars >> nth & 1 != 0 && var.get(mask).is_none())
    }

    #[inline]
    fn vars(self) -> &'a [VarCell] {
        // SAFETY: By the invariants of `Elt`, an element has this number.
        unsafe { self.generation.index.vars.of(self.number) }
    }

    /// The generation that the element was found in.
    #[inline(always)]
    pub fn generation(self) -> &'a Generation {
        self.generation
    }

    /// Returns the number of the element, for [`Generation::wide_at`]. It is constant for the life
    /// of the map.
    #[inline]
    pub fn number(self) -> u32 {
        self.number
    }

    /// The index of the element among all, from 0: see [`Generation::elements`].
    pub fn nth(self) -> Option<usize> {
        let nth = self.generation.counters.numbering().nth(self.number)?;
        Some(nth as usize)
    }

    /// Returns wide cell `number`, if the element has so many.
    #[inline]
    pub fn wide(self, number: usize) -> Option<WideCell<'a>> {
        // SAFETY: By the invariants of `Elt`, an element has this number.
        unsafe { self.generation.index.wide.of(self.number, number) }
    }

    /// Returns the side data, all zero when the element is new.
    #[inline]
    pub fn side(self) -> &'a [Atomic<u64>] {
        // SAFETY: By the invariants of `Elt`, an element has this number.
        unsafe { self.generation.index.side.of(self.number) }
    }

    /// The time of its insertion, by the [clock](super::Shape::clock) of the map.
    pub fn birth(self) -> Option<u64> {
        // SAFETY: By the invariants of `Elt`, an element has this number.
        let birth = unsafe { self.generation.index.birth(self.number) }?;
        // Written before the slot, which was loaded with acquire.
        Some(birth.load(Relaxed))
    }

    /// Returns whether `key` is its key.
    pub fn is(self, key: &[u8]) -> bool {
        // SAFETY: By the invariants it was found by an acquiring load.
        unsafe { self.generation.index.keys.is_bytes(self.number, key) }
    }

    /// The key; an empty one in a map whose elements are taken out, as it may change there: see
    /// [`Elt::key_words`].
    #[cfg(not(loom))]
    pub fn key(self) -> &'a [u8] {
        match self.generation.is_fixed() {
            // SAFETY: By the invariants it was found by an acquiring load; and no number is used
            // again in a map of this kind.
            true => unsafe { self.generation.index.keys.get(self.number) },
            false => &[],
        }
    }

    /// The words of the key. A task may get words of another key, or some of both, if the number is
    /// used again meanwhile.
    pub fn key_words(self) -> impl Iterator<Item = u64> + 'a {
        // SAFETY: By the invariants of `Elt`, an element has this number.
        unsafe { self.generation.index.keys.load(self.number) }
    }
}
