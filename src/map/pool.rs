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

use super::chunks::Numbering;
use crate::sync::PreemptOff;

/// Contexts that can nest on a CPU: task, softirq, hardirq, NMI.
pub(super) const LEVELS: usize = 4;

/// The elements that are not published yet, and the places for entries.
///
/// An insertion needs an element before it knows whether it succeeds, since the key has to be
/// written before the element is published. If another CPU fills the slot first, the element stays
/// with the CPU and the level of nesting that took it, as the *spare* for the next insertion there.
/// So each CPU has at most [`LEVELS`] unpublished elements. The pool has that many more elements
/// than places: while a place is free, an element is available for it.
pub(super) struct Pool {
    /// Number of places for entries.
    capacity: u32,
    /// Number of places taken, plus excess elements, which were published while the last place was
    /// taken.
    places: Atomic<u32>,
    /// Number of elements.
    size: u32,
    numbering: Numbering,
    /// Number of elements that CPUs have taken so far.
    taken: Atomic<u32>,
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
    /// Creates a pool with `capacity` places. Fails with `ENOMEM`.
    pub(super) fn new(capacity: u32, numbering: Numbering, cpus: usize) -> Result<Self> {
        let mut pool = Self {
            capacity,
            places: Atomic::new(0),
            size: Self::elements(capacity, cpus).ok_or(ENOMEM)?,
            numbering,
            taken: Atomic::new(0),
            cpus: KVVec::with_capacity(cpus, GFP_KERNEL)?,
        };
        for _ in 0..cpus {
            pool.cpus.push_within_capacity(CpuSpares {
                level: Atomic::new(0),
                spares: core::array::from_fn(|_| Atomic::new(0)),
            })?;
        }
        Ok(pool)
    }

    /// Returns the number of elements that a pool has. `None`: too many.
    pub(super) fn elements(capacity: u32, cpus: usize) -> Option<u32> {
        let spares = u32::try_from(cpus.checked_mul(LEVELS)?).ok()?;
        capacity.checked_add(spares)
    }

    /// Number of elements.
    pub(super) fn size(&self) -> u32 {
        self.size
    }

    /// Returns whether an element has this number.
    #[inline]
    pub(super) fn has(&self, number: u32) -> bool {
        self.numbering.nth(number).is_some_and(|n| n < self.size)
    }

    /// Bytes of memory of a pool for this many CPUs. `None`: the size overflows.
    pub(super) fn size_bytes(cpus: usize) -> Option<usize> {
        size_of::<CpuSpares>().checked_mul(cpus)
    }

    /// Number of places for entries.
    pub(super) fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Returns the number of places taken, plus excess elements. Acquire: all of these are in their
    /// slots.
    pub(super) fn places(&self) -> u32 {
        self.places.load(Acquire)
    }

    /// Takes a place for an element that the caller has just published. False: all places were
    /// taken.
    pub(super) fn place(&self) -> bool {
        // Release pairs with `places()`. Other additions in between are read-modify-writes, which
        // continue the release sequence.
        self.places.fetch_add(1, Release) < self.capacity
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

    /// Takes an element that was never used.
    fn take(&self) -> Option<u32> {
        // Without this test the counter would wrap around some day.
        if self.taken.load(Relaxed) >= self.size {
            return None;
        }
        let n = self.taken.fetch_add(1, Relaxed);
        (n < self.size).then(|| self.numbering.number(n))
    }
}
