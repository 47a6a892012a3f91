// SPDX-License-Identifier: GPL-2.0

//! Hashing of keys.

/// A hash function chosen by a seed.
///
/// Without knowing the seed, one cannot construct keys that collide more often than others. Numbers
/// that differ little, or in their upper bits only (process ids, flags, addresses), spread like
/// random ones. The product of two words has two words: the lower one depends on the lower bits of
/// the key and the upper one on the upper bits. Both are combined and multiplied once more, since
/// one product leaves sequences as evenly spaced, or as badly, as they were.
#[derive(Clone, Copy)]
pub struct Hash {
    start: u64,
    step: u64,
    end: u64,
}

impl Hash {
    /// Chooses the function for `seed`, which should be random.
    pub fn new(seed: u64) -> Self {
        Self {
            start: scramble(seed, 1),
            // Odd, so that no lower word loses anything.
            step: scramble(seed, 2) | 1,
            end: scramble(seed, 3) | 1,
        }
    }

    /// The hash of a key. Its upper bits are the best ones; the lower 32 are not used.
    #[inline(always)]
    pub fn of(&self, words: impl Iterator<Item = u64>) -> u64 {
        let state = words.fold(self.start, |state, word| {
            let product = u128::from(state ^ word) * u128::from(self.step);
            product as u64 ^ (product >> 64) as u64
        });
        state.wrapping_mul(self.end)
    }
}

/// The `n`-th number of a sequence that depends on `seed` (the generator SplitMix64). Numbers 1 to
/// 3 choose the hash function.
pub(super) fn scramble(seed: u64, n: u64) -> u64 {
    let mut z = seed.wrapping_add(n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
