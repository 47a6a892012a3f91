// SPDX-License-Identifier: GPL-2.0

//! The counts of a map so far, during and between cuts.

use core::ops::Range;

use kernel::sync::{
    lock::mutex::MutexGuard,
    Arc, //
};

use super::{
    counters::Loss,
    elt::Elt,
    generation::Generation,
    intervals::{
        State,
        Sums, //
    },
    totals::{
        PerMap,
        Totals, //
    },
};

/// The counts of a map so far: the live bank, the part of the closed bank that is not folded yet,
/// and the totals. While it exists, no cut moves a count from one to another, so it has each hit
/// once.
pub(super) struct View<'a> {
    pub(super) state: MutexGuard<'a, State>,
    live: Arc<Generation>,
}

impl<'a> View<'a> {
    /// A view of the map with this state and this generation, which is replaced only with the state
    /// locked.
    pub(super) fn new(state: MutexGuard<'a, State>, live: Arc<Generation>) -> Self {
        Self { state, live }
    }

    /// The generation of the map, or of the second one, which has the live bank.
    fn live(&self, second: bool) -> Option<&Generation> {
        self.live.maps().nth(usize::from(second))
    }

    /// The totals, and the generation with the closed bank.
    fn cut(&self, second: bool) -> Option<(&Sums, &Generation)> {
        let intervals = self.state.intervals.as_ref()?;
        let closed = intervals.closed().maps().nth(usize::from(second))?;
        Some((intervals.sums(second)?, closed))
    }

    /// A column of an element.
    pub(super) fn column(&self, second: bool, elt: Elt<'_>, column: usize) -> u64 {
        let Some(live) = self.live(second) else {
            return 0;
        };
        let (mut part, number) = (0, elt.number());
        let counters = &live.counters;
        // SAFETY: By the invariants of `Elt` an element has this number, in all generations.
        unsafe { counters.add_column(number, column, &mut part) };
        if let (Some((sums, closed)), Some(nth)) =
            (self.cut(second), counters.numbering().nth(number))
        {
            let kind = counters.columns()[column];
            kind.add(&mut part, sums.totals.part(nth, column));
            if sums.has_closed(nth) {
                // SAFETY: As above.
                unsafe { closed.counters.add_column(number, column, &mut part) };
            }
        }
        counters.columns()[column].number(part)
    }

    /// Adds what both banks have counted for these elements to `totals`.
    fn add_bank_parts_to(&self, second: bool, totals: &mut Totals, elements: Range<u32>) {
        if let Some(live) = self.live(second) {
            totals.add(&live.counters, elements.clone());
        }
        if let Some((sums, closed)) = self.cut(second) {
            totals.add(
                &closed.counters,
                elements.start.max(sums.folded)..elements.end,
            );
        }
    }

    /// Adds the losses that both banks have counted to `totals`.
    fn add_bank_losses_to(&self, second: bool, totals: &mut Totals) {
        if let Some(live) = self.live(second) {
            totals.add_losses(&live.counters);
        }
        if let Some((sums, closed)) = self.cut(second) {
            if sums.has_closed_losses() {
                totals.add_losses(&closed.counters);
            }
        }
    }

    /// Adds what both banks have counted to `totals`.
    pub(super) fn add_banks_to(&self, totals: &mut PerMap<Totals>) {
        for (second, totals) in [false, true].into_iter().zip(totals.iter_mut()) {
            self.add_bank_losses_to(second, totals);
            let elements = 0..totals.elements();
            self.add_bank_parts_to(second, totals, elements);
        }
    }

    /// Adds all counts of these elements to `totals`.
    pub(super) fn add_to(&self, second: bool, totals: &mut Totals, elements: Range<u32>) {
        self.add_bank_parts_to(second, totals, elements.clone());
        if let Some((sums, _)) = self.cut(second) {
            totals.add_totals(&sums.totals, elements);
        }
    }

    /// Adds all losses to `totals`.
    pub(super) fn add_losses_to(&self, second: bool, totals: &mut Totals) {
        self.add_bank_losses_to(second, totals);
        if let Some((sums, _)) = self.cut(second) {
            totals.add_losses_of(&sums.totals);
        }
    }

    pub(super) fn loss(&self, second: bool, loss: Loss) -> u64 {
        let mut losses = [0; Loss::KINDS];
        if let Some(live) = self.live(second) {
            live.counters.add_losses(&mut losses);
        }
        let mut folded = 0;
        if let Some((sums, closed)) = self.cut(second) {
            if sums.has_closed_losses() {
                closed.counters.add_losses(&mut losses);
            }
            folded = sums.totals.loss(loss);
        }
        losses[loss as usize].wrapping_add(folded)
    }

    /// Dropped hits: the counted ones, and the hits of elements in excess.
    pub(super) fn drops(&self, second: bool) -> u64 {
        let excess = self
            .live(second)
            .into_iter()
            .flat_map(Generation::in_excess);
        let hits = excess.map(|elt| self.column(second, elt, 0));
        hits.fold(self.loss(second, Loss::Dropped), u64::wrapping_add)
    }
}
