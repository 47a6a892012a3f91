// SPDX-License-Identifier: GPL-2.0

//! Who may use which element, and how many become entries.

use kernel::prelude::*;
use kernel::sync::atomic::Acquire;
use kernel::sync::atomic::Atomic;
use kernel::sync::atomic::Relaxed;
use kernel::sync::atomic::Release;

/// Contexts that can be nested on a CPU: task, softirq, hardirq, NMI.
pub(super) const LEVELS: usize = 4;

/// The elements that are not published yet, and the places for entries.
///
/// An element is needed to offer a key, because the key must be in place before anybody can see it.
/// The offer may come to nothing: another CPU was faster with the same key, or with another one in
/// the same slot. The element then stays with the CPU and the level of nesting that took it, as
/// the *spare* for its next offer. So each CPU has at most [`LEVELS`] elements that are not
/// entries, and there are that many more elements than places: whoever finds a place free also
/// finds an element.
pub(super) struct Pool {
    /// Places for entries.
    capacity: u32,
    /// Places asked for. Grows beyond `capacity` only by those who asked at the moment when the
    /// last place went.
    places: Atomic<u32>,
    /// Number of elements.
    size: u32,
    /// Elements that were ever taken.
    taken: Atomic<u32>,
    cpus: KVVec<Cpu>,
}

/// The elements which a CPU has at hand. On a line of its own: other CPUs have no business here.
#[repr(align(64))]
struct Cpu {
    /// Offers under way on this CPU, each but the last interrupted by the next.
    level: Atomic<u32>,
    /// By level: index of the spare element plus 1; 0: none.
    spares: [Atomic<u32>; LEVELS],
}

impl Pool {
    /// A pool with `capacity` places. Fails with `ENOMEM`.
    pub(super) fn new(capacity: u32, cpus: usize) -> Result<Self> {
        let spares = cpus.checked_mul(LEVELS).ok_or(ENOMEM)?;
        let size = capacity.checked_add(u32::try_from(spares).map_err(|_| ENOMEM)?);
        let mut pool = Self {
            capacity,
            places: Atomic::new(0),
            size: size.ok_or(ENOMEM)?,
            taken: Atomic::new(0),
            cpus: KVVec::with_capacity(cpus, GFP_KERNEL)?,
        };
        for _ in 0..cpus {
            pool.cpus.push_within_capacity(Cpu {
                level: Atomic::new(0),
                spares: core::array::from_fn(|_| Atomic::new(0)),
            })?;
        }
        Ok(pool)
    }

    /// Number of elements; all indices are below.
    pub(super) fn size(&self) -> u32 {
        self.size
    }

    /// Bytes of the bookkeeping per CPU.
    pub(super) fn size_bytes(&self) -> usize {
        size_of_val(&self.cpus[..])
    }

    /// Places for entries.
    pub(super) fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Places asked for: the entries, plus the elements in excess.
    ///
    /// Acquires: the slots of all that asked for a place before are filled.
    pub(super) fn places(&self) -> u32 {
        self.places.load(Acquire)
    }

    /// Asks for a place. The caller has filled a slot with an element and asks once for it. False:
    /// all places were taken.
    pub(super) fn place(&self) -> bool {
        // Release pairs with `places()`. Those who asked in between are read-modify-writes, which
        // pass on what precedes them.
        self.places.fetch_add(1, Release) < self.capacity
    }

    /// An element of which the caller is the only owner while `offer` runs. `offer` says whether it
    /// has published it; if not, it is kept for the next time.
    ///
    /// Returns `None` without running `offer` if there is no element, which means that the calls on
    /// this CPU are nested more than [`LEVELS`] deep.
    ///
    /// Contexts that interrupt this one run to their end before it continues. So each finds the
    /// level as it leaves it, and one level has one user at a time. A caller that lies about its
    /// CPU can lose elements this way, but never share one: it owns what it exchanged for 0.
    pub(super) fn offer(&self, cpu: usize, offer: impl FnOnce(u32) -> bool) -> Option<bool> {
        let cpu = &self.cpus[cpu];
        let level = cpu.level.load(Relaxed);
        let spare = cpu.spares.get(level as usize)?;
        cpu.level.store(level + 1, Relaxed);
        let index = match spare.xchg(0, Relaxed) {
            0 => self.take(),
            kept => Some(kept - 1),
        };
        let published = index.map(|index| {
            let published = offer(index);
            if !published {
                spare.store(index + 1, Relaxed);
            }
            published
        });
        cpu.level.store(level, Relaxed);
        published
    }

    /// An element that was never used.
    fn take(&self) -> Option<u32> {
        // The first look keeps the counter from running on.
        if self.taken.load(Relaxed) >= self.size {
            return None;
        }
        let index = self.taken.fetch_add(1, Relaxed);
        (index < self.size).then_some(index)
    }
}
