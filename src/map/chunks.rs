// SPDX-License-Identifier: GPL-2.0

//! Storage for the parts of elements, by the index of the element.
//!
//! It is allocated in chunks for [`LEN`] elements each. More chunks can be added without moving those that exist.
//! Most are small enough for kmalloc(), whose memory needs fewer TLB entries than that of vmalloc().

use core::slice;
use kernel::alloc::NumaNode;
use kernel::prelude::*;
use kernel::sync::atomic::Atomic;

/// log2 of [`LEN`].
const BITS: u32 = 11;

/// Elements of a chunk: as many as a histogram has by default.
const LEN: usize = 1 << BITS;

/// The same number of items for each element.
///
/// # Invariants
///
/// There are items for all elements, those of each element in one chunk: the first of element n is at
/// `starts[n / LEN]`, increased by n times the items of an element.
pub(super) struct Chunks<T> {
    starts: KVec<Start<T>>,
    /// Items of an element.
    width: usize,
    /// What the starts point to.
    chunks: KVec<KVVec<T>>,
}

/// Where a chunk would begin if it had the items of all elements before it, too. So the index of an element need
/// not be reduced to one in its chunk. To be used with wrapping arithmetic only.
struct Start<T>(*const T);

// SAFETY: It is only used to make shared references to items, which may be sent if `T` is `Sync`.
unsafe impl<T: Sync> Send for Start<T> {}
// SAFETY: As above.
unsafe impl<T: Sync> Sync for Start<T> {}

impl<T> Chunks<T> {
    /// `width` items for each of `elements` elements; `alloc` allocates that many of them. Fails with `ENOMEM`.
    pub(super) fn new(
        elements: usize,
        width: usize,
        alloc: impl Fn(usize) -> Result<KVVec<T>>,
    ) -> Result<Self> {
        let n = elements.div_ceil(LEN);
        let mut starts = KVec::with_capacity(n, GFP_KERNEL)?;
        let mut chunks = KVec::with_capacity(n, GFP_KERNEL)?;
        for before in (0..elements).step_by(LEN) {
            let items = LEN.min(elements - before).checked_mul(width);
            let chunk = alloc(items.ok_or(ENOMEM)?)?;
            // INVARIANT: The chunk begins with the items of element `before`.
            let start = chunk.as_ptr().wrapping_sub(before.wrapping_mul(width));
            starts.push(Start(start), GFP_KERNEL)?;
            chunks.push(chunk, GFP_KERNEL)?;
        }
        Ok(Self {
            starts,
            width,
            chunks,
        })
    }

    /// Items of an element.
    #[inline]
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Bytes of memory.
    pub(super) fn size_bytes(&self) -> usize {
        let chunks = self.chunks.iter().map(|chunk| size_of_val(&chunk[..]));
        size_of_val(&self.starts[..]) + size_of_val(&self.chunks[..]) + chunks.sum::<usize>()
    }

    /// The items of element `index`.
    ///
    /// # Safety
    ///
    /// There is such an element.
    #[inline(always)]
    pub(super) unsafe fn of(&self, index: u32) -> &[T] {
        let index = index as usize;
        debug_assert!(index / LEN < self.starts.len());
        // SAFETY: By the caller and the invariants, the element is in this chunk, and its `width` items are at this
        // place, for as long as `self`.
        unsafe {
            let start = self.starts.get_unchecked(index / LEN);
            let first = start.0.wrapping_add(index.wrapping_mul(self.width));
            slice::from_raw_parts(first, self.width)
        }
    }
}

/// `n` zeros in memory of `node`. Fails with `ENOMEM`.
#[cfg(MODULE)]
pub(super) fn zeroed(n: usize, node: NumaNode) -> Result<KVVec<Atomic<u64>>> {
    use kernel::alloc::allocator::KVmalloc;
    use kernel::alloc::layout::ArrayLayout;
    use kernel::alloc::Allocator;

    let layout = ArrayLayout::<Atomic<u64>>::new(n).map_err(|_| ENOMEM)?;
    let zeros = KVmalloc::alloc(layout.into(), GFP_KERNEL | __GFP_ZERO, node)?;
    // SAFETY: It is memory of the allocator of `KVVec` for `n` items, which are integers: zeros are valid ones.
    Ok(unsafe { KVVec::from_raw_parts(zeros.as_ptr().cast(), n, n) })
}

/// `n` zeros. Fails with `ENOMEM`.
#[cfg(not(MODULE))]
pub(super) fn zeroed(n: usize, _node: NumaNode) -> Result<KVVec<Atomic<u64>>> {
    let mut zeros = KVVec::with_capacity(n, GFP_KERNEL)?;
    for _ in 0..n {
        zeros.push_within_capacity(Atomic::new(0))?;
    }
    Ok(zeros)
}
