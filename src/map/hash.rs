// SPDX-License-Identifier: GPL-2.0

//! Hashing of keys.

/// A hash function chosen by a seed.
///
/// Whoever does not know the seed cannot make up keys that collide more often than others.
/// Numbers that differ little, or in their upper bits only (process ids, flags, addresses), spread
/// like random ones: a multiplication carries each bit of a word upwards, the shift brings the
/// upper half down again. It takes three multiplications; with two, multiples of 2^32 cluster for
/// one seed in a hundred.
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
            // Odd, so that no step loses information.
            step: scramble(seed, 2) | 1,
            end: scramble(seed, 3) | 1,
        }
    }

    /// The hash of a key. Its upper bits are the best ones.
    #[inline]
    pub fn of(&self, words: impl Iterator<Item = u64>) -> u32 {
        let mut state = self.start;
        for word in words {
            state = (state ^ word).wrapping_mul(self.step);
            state ^= state >> 32;
        }
        state = state.wrapping_mul(self.end);
        state ^= state >> 32;
        (state.wrapping_mul(self.step) >> 32) as u32
    }
}

/// The `n`-th number of a sequence that depends on `seed` (the generator SplitMix64).
fn scramble(seed: u64, n: u64) -> u64 {
    let mut z = seed.wrapping_add(n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
