// SPDX-License-Identifier: GPL-2.0

//! Allocation of elements to contexts, and of places to entries.

use kernel::{
    prelude::*,
    sync::atomic::{
        Acquire,
        Atomic,
        Relaxed,
        Release, //
    },
};

use super::{
    chunks::Numbering,
    room::Room,
    tickets::Tickets, //
};
use crate::sync::{
    Load,
    PreemptOff, //
};

/// Contexts that can nest on a CPU: task, softirq, hardirq, NMI.
pub(super) const LEVELS: usize = 4;

/// The first ticket of a stock. Soon 0 follows the highest number: not only in maps that were used
/// for long.
const FIRST_TICKET: u32 = u32::MAX - 1;

/// The elements that are not published yet, and the places for entries.
///
/// An insertion needs an element before it knows whether it succeeds, since the key has to be
/// written before the element is published. If another CPU fills the slot first, the element stays
/// with the CPU and the level of nesting that took it, as the *spare* for the next insertion there.
/// So each CPU has at most [`LEVELS`] unpublished elements. The pool has that many more elements
/// than places: while a place is free, an element is available for it.
///
/// The worker gives a map more places and elements as it grows ([`Pool::open`]). Elements that it
/// has taken out of the table go to the *stock*, from which insertions take first.
pub(super) struct Pool {
    room: Room,
    /// Number of places for entries.
    capacity: Atomic<u32>,
    /// Number of places taken, plus excess elements, which were published while the last place was
    /// taken.
    places: Atomic<u32>,
    /// Number of excess elements.
    excess: Atomic<u32>,
    numbering: Numbering,
    /// The elements that were never used: a ticket is the index of an element, and its number
    /// follows from it.
    fresh: Tickets,
    /// The numbers of elements that were used and are free again, at the place of their ticket. The
    /// length is a power of two, so places follow each other when tickets start anew.
    ///
    /// It has room for all numbers that can be free, and then a number is not overwritten before
    /// the insertion with its ticket has read it: that hit would have to end before a number that
    /// was taken later came back.
    stock: KVVec<Atomic<u32>>,
    stocked: Tickets,
    cpus: KVVec<CpuSpares>,
}

/// The spare elements of a CPU, on a cache line that no other CPU uses.
#[repr(align(64))]
struct CpuSpares {
    /// Insertions in progress on this CPU, each interrupted by the next.
    level: Atomic<u32>,
    /// For each level, the number of its spare element plus 1; 0: none.
    spares: [Atomic<u32>; LEVELS],
}

impl Pool {
    /// Creates a pool for a map of this `room` that begins with 2^`bits` entries: with the places
    /// and elements of the first table and the next. Fails with `ENOMEM`.
    pub(super) fn new(room: Room, bits: u32, numbering: Numbering, cpus: usize) -> Result<Self> {
        let next = room.next_bits(bits);
        let elements = Self::elements(room, next, numbering, cpus).ok_or(ENOMEM)?;
        let stock = Self::stock_len(room, bits, numbering, cpus).ok_or(ENOMEM)?;
        let mut pool = Self {
            room,
            capacity: Atomic::new(room.places(next).ok_or(ENOMEM)?),
            places: Atomic::new(0),
            excess: Atomic::new(0),
            numbering,
            fresh: Tickets::new(room.others()..elements),
            stock: KVVec::with_capacity(stock, GFP_KERNEL)?,
            stocked: Tickets::new(FIRST_TICKET..FIRST_TICKET),
            cpus: KVVec::with_capacity(cpus, GFP_KERNEL)?,
        };
        for _ in 0..stock {
            pool.stock.push_within_capacity(Atomic::new(0))?;
        }
        for _ in 0..cpus {
            pool.cpus.push_within_capacity(CpuSpares {
                level: Atomic::new(0),
                spares: core::array::from_fn(|_| Atomic::new(0)),
            })?;
        }
        Ok(pool)
    }

    /// Returns the number of elements for a map whose last table is for 2^`bits` entries: for these
    /// entries, for the insertions of each CPU, and for `other`. If it grows further, they fill
    /// whole chunks. `None`: too many.
    pub(super) fn elements(
        room: Room,
        bits: u32,
        numbering: Numbering,
        cpus: usize,
    ) -> Option<u32> {
        let used = Self::published(room, bits, cpus)?.checked_add(room.others())?;
        match room.grows(bits) {
            true => used.checked_next_multiple_of(numbering.len() as u32),
            false => Some(used),
        }
    }

    /// Returns the number of elements that can be in the slots of a table for 2^`bits` entries.
    /// `None`: too many.
    pub(super) fn published(room: Room, bits: u32, cpus: usize) -> Option<u32> {
        let spares = u32::try_from(cpus.checked_mul(LEVELS)?).ok()?;
        room.places(bits)?.checked_add(spares)
    }

    /// Numbers that the stock has room for: all; or, if only elements in excess are taken out, the
    /// elements that are neither entries nor fresh when all places are taken.
    fn stock_len(room: Room, bits: u32, numbering: Numbering, cpus: usize) -> Option<usize> {
        let most = room.bits_max.max(bits);
        let numbers = match room {
            Room { forgets: true, .. } => Self::elements(room, most, numbering, cpus)?,
            _ if room.grows(bits) => {
                let spares = u32::try_from(cpus.checked_mul(LEVELS)?).ok()?;
                spares.checked_add(numbering.len() as u32)?
            }
            _ => return Some(0),
        };
        Some(numbers.checked_next_power_of_two()? as usize)
    }

    /// Bytes of memory of a pool. `None`: the size overflows.
    pub(super) fn size_bytes(
        room: Room,
        bits: u32,
        numbering: Numbering,
        cpus: usize,
    ) -> Option<usize> {
        let stock = Self::stock_len(room, bits, numbering, cpus)?;
        let spares = size_of::<CpuSpares>().checked_mul(cpus)?;
        stock
            .checked_mul(size_of::<Atomic<u32>>())?
            .checked_add(spares)
    }

    /// Bytes of memory that it takes.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&self.stock[..]) + size_of_val(&self.cpus[..])
    }

    /// Number of CPUs.
    pub(super) fn cpus(&self) -> usize {
        self.cpus.len()
    }

    /// The room of the map.
    pub(super) fn room(&self) -> Room {
        self.room
    }

    /// How the elements are numbered.
    pub(super) fn numbering(&self) -> Numbering {
        self.numbering
    }

    /// Number of elements that insertions may take, or have taken.
    pub(super) fn size(&self) -> u32 {
        self.fresh.end()
    }

    /// Number of elements for a map whose last table is for 2^`bits` entries, at least the present
    /// ones: see [`Pool::elements`].
    pub(super) fn elements_for(&self, bits: u32) -> Option<u32> {
        let elements = Self::elements(self.room, bits, self.numbering, self.cpus.len())?;
        // A part of the last chunk may be more than the last step needs.
        Some(elements.max(self.size()))
    }

    /// Number of places for entries.
    pub(super) fn capacity(&self) -> u32 {
        self.capacity.relaxed()
    }

    /// Makes `capacity` the number of places, and lets insertions take the first `elements`
    /// elements. All hits use generations that have these. Called by the worker.
    pub(super) fn open(&self, capacity: u32, elements: u32) {
        let more = elements.saturating_sub(self.fresh.end());
        self.fresh.add(more);
        self.capacity.store(capacity, Release);
    }

    /// Frees places of entries that were taken out. Called by the worker.
    pub(super) fn give_back(&self, places: u32) {
        self.places.fetch_sub(places, Release);
    }

    /// Frees places of elements in excess that were taken out. Called by the worker.
    pub(super) fn give_back_excess(&self, places: u32) {
        self.excess.fetch_sub(places, Relaxed);
        self.give_back(places);
    }

    /// Puts the number of an element that was taken out of all tables in the stock: no hit uses it,
    /// and its parts are like a fresh one's. Called by the worker.
    pub(super) fn give(&self, number: u32) {
        let ticket = self.stocked.end();
        let free = ticket.wrapping_sub(self.stocked.next()) as usize;
        // Otherwise the number is not used again.
        if free < self.stock.len() {
            if let Some(place) = self.place_in_stock(ticket) {
                place.store(number, Relaxed);
                self.stocked.add(1);
            }
        }
    }

    /// Returns the number of places taken, plus excess elements. Acquire: all of these are in their
    /// slots.
    pub(super) fn places(&self) -> u32 {
        self.places.load(Acquire)
    }

    /// Takes a place for an element that the caller has just published. False: all places were
    /// taken, and the element may not be `beyond` them.
    pub(super) fn place(&self, beyond: bool) -> bool {
        // Release pairs with `places()`. Other additions in between are read-modify-writes, which
        // continue the release sequence.
        let placed = self.places.fetch_add(1, Release) < self.capacity() || beyond;
        if !placed {
            self.excess.fetch_add(1, Relaxed);
        }
        placed
    }

    /// Number of excess elements that are, or soon will be, in a slot.
    pub(super) fn excess(&self) -> u32 {
        self.excess.load(Relaxed)
    }

    /// Number of entries. Less than the places that are taken if elements are in excess.
    pub(super) fn entries(&self) -> u32 {
        let excess = self.excess();
        self.places().saturating_sub(excess).min(self.capacity())
    }

    /// Calls `offer` with the number of an element that no other context uses. `offer` returns
    /// whether it has published the element; if not, the element is kept as a spare.
    ///
    /// Returns `None` without a call if the pool has no element for this context: the calls on this
    /// CPU are nested more than [`LEVELS`] deep.
    ///
    /// A context that interrupts this one runs to its end before this one continues. So it leaves
    /// the level as it found it, and a level has one user at a time.
    pub(super) fn offer(
        &self,
        preempt: PreemptOff<'_>,
        offer: impl FnOnce(u32) -> bool,
    ) -> Option<bool> {
        let cpu = &self.cpus[preempt.cpu()];
        let level = cpu.level.load(Relaxed);
        let spare = cpu.spares.get(level as usize)?;
        cpu.level.store(level + 1, Relaxed);
        let number = match spare.xchg(0, Relaxed) {
            0 => self.take(),
            kept => Some(kept - 1),
        };
        let published = number.map(|number| {
            let published = offer(number);
            if !published {
                spare.store(number + 1, Relaxed);
            }
            published
        });
        cpu.level.store(level, Relaxed);
        published
    }

    /// [`Pool::offer`] for the worker, which keeps no spare.
    pub(super) fn offer_from_worker(&self, offer: impl FnOnce(u32) -> bool) -> Option<bool> {
        let number = self.take()?;
        let published = offer(number);
        if !published {
            self.give(number);
        }
        Some(published)
    }

    /// Number of elements that were ever used: the first ones, of which `other` has the very first.
    pub(super) fn used(&self) -> u32 {
        self.fresh.next()
    }

    /// Takes an element that no slot has: from the stock, or one that was never used.
    pub(super) fn take(&self) -> Option<u32> {
        let stocked = self.stocked.take();
        match stocked.and_then(|ticket| self.place_in_stock(ticket)) {
            // By the acquired ticket, it sees the number, and that the parts of the element were
            // cleared.
            Some(place) => Some(place.load(Relaxed)),
            None => self.fresh.take().map(|n| self.numbering.number(n)),
        }
    }

    /// The place in the stock that belongs to a ticket. `None`: the map lacks a stock.
    fn place_in_stock(&self, ticket: u32) -> Option<&Atomic<u32>> {
        self.stock
            .get(ticket as usize & self.stock.len().wrapping_sub(1))
    }
}
