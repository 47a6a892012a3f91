// SPDX-License-Identifier: GPL-2.0

//! Tickets that hits take without a loop, while the worker adds more.

use core::ops::Range;

use kernel::sync::atomic::{
    Acquire,
    Atomic,
    Relaxed,
    Release, //
};

use crate::sync::Load;

/// Consecutive numbers of 32 bits, each of which is taken once. After the highest follows 0.
///
/// The next ticket and the end are one word. So a hit takes a ticket and learns whether it is one
/// by a single addition, and tickets that hits took behind the end are there again when the worker
/// moves the end: it sets both at once.
pub(super) struct Tickets(Atomic<u64>);

impl Tickets {
    /// The unit of the next ticket, which is the upper half. It wraps around at the top of the
    /// word. The end is the lower half.
    const ONE: u64 = 1 << 32;

    /// The tickets in `range`.
    pub(super) fn new(range: Range<u32>) -> Self {
        Self(Atomic::new(Self::word(range.start, range.end)))
    }

    const fn word(next: u32, end: u32) -> u64 {
        (next as u64) << 32 | end as u64
    }

    /// The next ticket, and the end.
    const fn halves(word: u64) -> (u32, u32) {
        ((word >> 32) as u32, word as u32)
    }

    /// Returns whether a ticket is before the end. They differ by less than 2^31: hits that find no
    /// ticket add at most one each, and the next one does not.
    const fn is_before(ticket: u32, end: u32) -> bool {
        end.wrapping_sub(ticket) as i32 > 0
    }

    /// Takes a ticket; `None` if all are taken. Any context. Acquire: it sees the worker's stores
    /// from before it added the ticket.
    pub(super) fn take(&self) -> Option<u32> {
        let (next, end) = Self::halves(self.0.relaxed());
        // Without this test the next ticket would go around some day.
        if !Self::is_before(next, end) {
            return None;
        }
        let (ticket, end) = Self::halves(self.0.fetch_add(Self::ONE, Acquire));
        Self::is_before(ticket, end).then_some(ticket)
    }

    /// Adds `n` tickets at the end. Only one task adds. Release: see [`Tickets::take`].
    pub(super) fn add(&self, n: u32) {
        let mut word = self.0.load(Relaxed);
        loop {
            let (next, end) = Self::halves(word);
            // Tickets behind the end were refused to hits that came too late.
            let next = if Self::is_before(next, end) {
                next
            } else {
                end
            };
            let added = Self::word(next, end.wrapping_add(n));
            match self.0.cmpxchg(word, added, Release) {
                Ok(_) => return,
                Err(now) => word = now,
            }
        }
    }

    /// The number of the next ticket that is taken, up to the end.
    pub(super) fn next(&self) -> u32 {
        let (next, end) = Self::halves(self.0.relaxed());
        if Self::is_before(next, end) {
            next
        } else {
            end
        }
    }

    /// The number behind the last ticket.
    pub(super) fn end(&self) -> u32 {
        Self::halves(self.0.relaxed()).1
    }
}
