// SPDX-License-Identifier: GPL-2.0

//! Variables of elements (`vars` and `var_set` of `tracing_map_elt`).
//!
//! Hits on any CPU set a variable, and hits of other events read it. C keeps the value in one word
//! and whether it is set in another. So a reader can see one without the other, and two read-once
//! references can get the same value. Here both are in one word, and each operation is one access
//! to it that counts.
//!
//! # Representation
//!
//! A variable has a 64-bit value or none, which is one state more than a word has. The word is the
//! value XOR a random number, the [`VarMask`] of the map; 0: not set. So one value cannot be held,
//! the mask itself. Setting it leaves the variable unset, and [`VarCell::set`] returns false. No
//! user learns the mask, so that value cannot be chosen, and by accident it comes once in 2^64
//! sets: at a thousand million sets a second, once in 584 years.
//!
//! Value and flag in two words would need a 128-bit compare-and-swap. Not all CPUs have one, not
//! even all x86-64 CPUs; and it has to be retried if other CPUs interfere. With a bound on the
//! retries it gives up much more often than once in 2^64.
//!
//! # Bound
//!
//! [`VarCell::set`] is one store, [`VarCell::get`] one load, [`VarCell::take`] at most a load and
//! an exchange. None of them retries or waits, whatever other contexts do. (Where the architecture
//! has no instruction that exchanges, the kernel's `xchg()` repeats a load and a conditional store,
//! as all its atomic operations do there.)
//!
//! # Memory ordering
//!
//! All accesses are to one word. All CPUs agree on one order of all writes to it, whatever the
//! ordering of the accesses. The exchange of a take comes right after the write whose word it
//! returns, with no other write between, and puts 0 in its place. So a set is followed by one take
//! that returns its value, or by a set that overwrites it, or by neither, and then it is still set.
//! A take whose load finds 0 comes before all sets that this load does not see yet.
//!
//! A set is a release, a get or take that finds a value is an acquire: a reader that sees the value
//! also sees earlier stores of the setter, such as other variables or a string in the side data. A
//! take releases nothing, since an unset variable tells a reader nothing.

use kernel::{
    alloc::Flags,
    prelude::*,
    sync::atomic::Atomic, //
};

use crate::sync::{
    Load,
    Store, //
};

/// A variable of an element: a value and whether it is set. Shared by all CPUs.
///
/// All operations can be called in any context, NMI included, and on all CPUs at once. All
/// operations on one variable get the same mask.
pub struct VarCell {
    /// The value XOR the mask; 0: not set.
    word: Atomic<u64>,
}

/// The mask of all variables of a map. It is a secret: see the module's documentation.
#[derive(Clone, Copy)]
pub struct VarMask(u64);

impl VarMask {
    /// Makes `random` the mask. It is the value that cannot be held, so a small number will not do.
    #[inline]
    pub fn new(random: u64) -> Self {
        Self(random)
    }
}

/// Allocates `n` unset variables. Fails with `ENOMEM`.
pub(super) fn unset(n: usize, flags: Flags) -> Result<KVVec<VarCell>> {
    let mut vars = KVVec::with_capacity(n, flags)?;
    for _ in 0..n {
        vars.push_within_capacity(VarCell::new())?;
    }
    Ok(vars)
}

impl VarCell {
    /// Creates an unset variable.
    #[expect(clippy::new_without_default)]
    #[inline]
    pub fn new() -> Self {
        Self {
            word: Atomic::new(0),
        }
    }

    /// Unsets the variable, which belongs to no entry.
    pub(super) fn clear(&self) {
        self.word.release(0);
    }

    /// Sets the variable to `value`. Returns false if `value` is the mask: the variable is unset
    /// then, and the caller counts a miss.
    #[must_use]
    #[inline(always)]
    pub fn set(&self, mask: VarMask, value: u64) -> bool {
        let word = value ^ mask.0;
        self.word.release(word);
        word != 0
    }

    /// Returns the value, if it is set.
    #[inline(always)]
    pub fn get(&self, mask: VarMask) -> Option<u64> {
        match self.word.acquire() {
            0 => None,
            word => Some(word ^ mask.0),
        }
    }

    /// Returns the value, if it is set, and unsets it: for a read-once reference. No two takes
    /// return the same value.
    #[inline(always)]
    pub fn take(&self, mask: VarMask) -> Option<u64> {
        // Most variables that are taken are not set. A load leaves the cache line with other CPUs.
        if self.word.acquire() == 0 {
            return None;
        }
        // Another CPU may have taken it since, or set it to a newer value.
        match self.word.exchange(0) {
            0 => None,
            word => Some(word ^ mask.0),
        }
    }
}
