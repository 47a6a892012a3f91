// SPDX-License-Identifier: GPL-2.0

//! Text behind a pointer, of which the record of a hit has the address only.

/// Aligned blocks of this size are readable as a whole or not at all, on every architecture: memory
/// tags have a granule of 16 bytes.
pub const BLOCK: usize = 16;

/// Reads the text at `address` to `to`, up to its NUL or as much as there is room for. What is behind the NUL in its
/// block is read, too. Returns false if not all of that can be read.
///
/// `read` fills bytes from memory at an address, or returns false. It is never called for bytes of two blocks, so that
/// it fails for no text that ends before memory that cannot be read.
#[inline(always)]
pub fn read_text(
    mut to: &mut [u8],
    mut address: usize,
    read: impl Fn(&mut [u8], usize) -> bool,
) -> bool {
    while !to.is_empty() {
        let count = to.len().min(BLOCK - address % BLOCK);
        let (block, rest) = to.split_at_mut(count);
        if !read(block, address) {
            return false;
        }
        if block.contains(&0) {
            break;
        }
        to = rest;
        address = address.wrapping_add(count);
    }
    true
}
