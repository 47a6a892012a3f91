// SPDX-License-Identifier: GPL-2.0

//! Strings behind pointers: the record of a hit has only the address.

/// Aligned blocks of this size are readable as a whole or not at all, on every architecture: memory
/// tags have a granule of 16 bytes.
pub const BLOCK: usize = 16;

/// Reads the string at `address` to `to`, up to its NUL or until `to` is full. Reads the rest of
/// the NUL's block, too. Returns false if a read fails.
///
/// `read` fills bytes from memory at an address, or returns false. Each call stays within a block,
/// so a string that ends before unreadable memory can be read.
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
