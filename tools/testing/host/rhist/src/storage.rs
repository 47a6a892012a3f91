// SPDX-License-Identifier: GPL-2.0

//! The storage of a map, part by part, as the worker extends it and uses it again. A part of the
//! map, whose storage nothing else can reach.

#[cfg(not(loom))]
use core::ptr;

use kernel::prelude::*;

use super::{
    chunks::Numbering,
    counters::Counters,
    index::Index,
    pool::Pool,
    totals::Totals,
    Generation,
    Loss,
    Room,
    Shape, //
};
use crate::sync::PreemptOff;

/// The numbers and places of elements.
pub struct Numbers(Pool);

impl Numbers {
    /// For elements of which `widest` words is the widest part. Fails with `ENOMEM`.
    pub fn new(room: Room, bits: u32, widest: usize, cpus: usize) -> Result<Self> {
        Ok(Self(Pool::new(room, bits, Numbering::new(widest), cpus)?))
    }

    /// Takes a number.
    pub fn take(&self) -> Option<u32> {
        self.0.take()
    }

    /// Gives a number back.
    pub fn give(&self, number: u32) {
        self.0.give(number);
    }

    /// Calls `offer` with a number: see [`Pool::offer`].
    pub fn offer(&self, preempt: PreemptOff<'_>, offer: impl FnOnce(u32) -> bool) -> Option<bool> {
        self.0.offer(preempt, offer)
    }

    /// Takes a place.
    pub fn place(&self) -> bool {
        self.0.place(false)
    }

    /// Number of places taken.
    pub fn places(&self) -> u32 {
        self.0.places()
    }

    /// Number of elements in excess.
    pub fn excess(&self) -> u32 {
        self.0.excess()
    }

    /// Gives places of entries and of elements in excess back.
    pub fn give_back(&self, entries: u32, excess: u32) {
        self.0.give_back(entries);
        self.0.give_back_excess(excess);
    }

    /// Opens the places and elements of a table for 2^`bits` entries.
    pub fn open(&self, bits: u32) {
        let capacity = self.0.room().places(bits).expect("not too many");
        self.0
            .open(capacity, self.0.elements_for(bits).expect("not too many"));
    }

    /// Places, elements, and elements that were used.
    pub fn counts(&self) -> (u32, u32, u32) {
        (self.0.capacity(), self.0.size(), self.0.used())
    }

    /// Numbers that the stock has room for.
    pub fn stock_len(&self) -> usize {
        self.0.bytes() / size_of::<u32>()
    }
}

/// The index and the counters of a map that were extended.
pub struct Extended {
    index: Index,
    counters: Counters,
}

impl Generation {
    /// Extends the storage to the elements of a table for 2^`bits` entries. Fails with `ENOMEM`.
    pub fn extended(&self, bits: u32) -> Result<Extended> {
        let elements = self.index.pool.elements_for(bits).ok_or(ENOMEM)? as usize;
        Ok(Extended {
            index: self.index.extended(elements, GFP_KERNEL | __GFP_NOWARN)?,
            counters: self
                .counters
                .extended(elements, GFP_KERNEL | __GFP_NOWARN)?,
        })
    }

    /// Bytes of memory that [`Generation::extended`] takes. `None`: the size overflows.
    pub fn step_bytes(&self, bits: u32) -> Option<usize> {
        step_bytes(&self.index, &self.counters, bits)
    }

    /// Bytes of memory that the index and the counters take.
    pub fn storage_bytes(&self) -> Option<usize> {
        self.index.bytes().checked_add(self.counters.bytes()?)
    }

    /// The addresses of all parts of an element: see [`Extended::addresses`].
    #[cfg(not(loom))]
    pub fn addresses(&self, preempt: PreemptOff<'_>, number: u32) -> [*const u8; 5] {
        addresses(&self.index, &self.counters, preempt, number)
    }

    /// Takes the counts of the `nth` element, and adds them to another one, of `other`.
    pub fn move_counts(&self, from: u32, to: u32) {
        let mut row = [0; 8];
        let row = &mut row[..self.counters.columns().len()];
        self.counters.take_element(from, row);
        self.counters.add_element(to, row);
    }
}

impl Extended {
    /// Extends it once more. Fails with `ENOMEM`.
    pub fn extended(&self, bits: u32) -> Result<Self> {
        let elements = self.index.pool.elements_for(bits).ok_or(ENOMEM)? as usize;
        Ok(Self {
            index: self.index.extended(elements, GFP_KERNEL)?,
            counters: self.counters.extended(elements, GFP_KERNEL)?,
        })
    }

    /// Bytes of memory that [`Extended::extended`] takes. `None`: the size overflows.
    pub fn step_bytes(&self, bits: u32) -> Option<usize> {
        step_bytes(&self.index, &self.counters, bits)
    }

    /// Number of elements.
    pub fn elements(&self) -> usize {
        self.counters.elements()
    }

    /// Bytes of memory that the index and the counters take, shared parts included.
    pub fn storage_bytes(&self) -> Option<usize> {
        self.index.bytes().checked_add(self.counters.bytes()?)
    }

    /// The addresses of all parts of an element.
    #[cfg(not(loom))]
    pub fn addresses(&self, preempt: PreemptOff<'_>, number: u32) -> [*const u8; 5] {
        addresses(&self.index, &self.counters, preempt, number)
    }

    /// The number of the `nth` element.
    pub fn number(&self, nth: u32) -> u32 {
        self.counters.numbering().number(nth)
    }

    /// Counts a loss in the counters of both.
    pub fn lose(&self, preempt: PreemptOff<'_>, loss: Loss) {
        self.counters.lose(preempt, loss);
    }

    /// The counts of all elements.
    pub fn totals(&self) -> Totals {
        let elements = self.elements() as u32;
        let mut totals = Totals::new(&self.counters, elements, GFP_KERNEL).expect("memory");
        totals.add(&self.counters, 0..elements);
        totals.add_losses(&self.counters);
        totals
    }
}

/// The addresses of the key, the variables, the side data, the birth and this CPU's
/// columns of an element.
#[cfg(not(loom))]
fn addresses(
    index: &Index,
    counters: &Counters,
    preempt: PreemptOff<'_>,
    number: u32,
) -> [*const u8; 5] {
    // SAFETY: Tests ask for elements that are there.
    unsafe {
        [
            index.keys.get(number).as_ptr(),
            index.vars.of(number).as_ptr().cast(),
            index.side.of(number).as_ptr().cast(),
            index
                .birth(number)
                .map_or(ptr::null(), ptr::from_ref)
                .cast(),
            counters
                .own_parts(preempt, number)
                .map_or(ptr::null(), |(_, parts)| parts.as_ptr().cast()),
        ]
    }
}

fn step_bytes(index: &Index, counters: &Counters, bits: u32) -> Option<usize> {
    let elements = index.pool.elements_for(bits)? as usize;
    let bytes = index.step_bytes(elements)?;
    bytes.checked_add(counters.step_bytes(elements)?)
}

/// Counters for a map of some shape, which no map has.
pub struct Bank(Counters);

impl Bank {
    /// Counters for a map of this shape. Fails with `ENOMEM`.
    pub fn new(shape: &Shape<'_>) -> Result<Self> {
        let numbering = Numbering::new(shape.widest().ok_or(ENOMEM)?);
        let (room, bits) = (shape.room, shape.room.next_bits(shape.bits));
        let elements = Pool::elements(room, bits, numbering, shape.cpus.count).ok_or(ENOMEM)?;
        Ok(Self(Counters::new(
            elements as usize,
            numbering,
            shape.columns,
            shape.cpus,
            room.others(),
        )?))
    }

    /// Bytes of memory that they take.
    pub fn bytes(&self) -> Option<usize> {
        self.0.bytes()
    }
}

impl Totals {
    /// Totals of so many elements like these: see [`Totals::grow`].
    pub fn grown(mut self, generation: &Generation, elements: u32) -> Result<Self> {
        let mut zeros = Self::new(&generation.counters, elements, GFP_KERNEL)?;
        self.grow(&mut zeros);
        Ok(self)
    }

    /// Moves counts of an element to another one: see [`Totals::move_element`].
    pub fn moved(mut self, from: u32, to: u32) -> Self {
        self.move_element(from, to);
        self
    }

    /// Moves the hits of an element to the losses: see [`Totals::move_to_loss`].
    pub fn lost(mut self, from: u32, loss: Loss) -> Self {
        self.move_to_loss(from, loss);
        self
    }
}
