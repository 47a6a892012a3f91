// SPDX-License-Identifier: GPL-2.0

//! Storage for the parts of elements, by the number of the element.
//!
//! It is allocated in chunks, and more of them can be added without moving those that exist. The number of an element
//! is that of its chunk, and in the lower [`BITS`] its place in the chunk. So a hit finds the chunk by a shift that is
//! constant, however many elements there are in each: that depends on the widest part of the map's elements
//! ([`Numbering`]).
//!
//! A chunk has up to [`BYTES_MAX`], since kmalloc() gives blocks of that size also if memory is fragmented, and they
//! need fewer TLB entries than what vmalloc() gives. Keys and columns of one word, as most histograms have, are in chunks
//! of 2048 elements, 16 KiB each. With a key of 504 bytes, 64 elements are in a chunk: 31.5 KiB. With 33 columns it is
//! 64 elements, too: 16.5 KiB, where 2048 would take 528 KiB.

use core::slice;
use kernel::{
    alloc::NumaNode,
    prelude::*,
    sync::{
        atomic::Atomic,
        Arc, //
    },
};

use super::shared::Shared;

/// The bits of a number that say which element of its chunk it is.
const BITS: u32 = 11;

/// Most elements of a chunk: as many as a histogram has by default.
const LEN_MAX: usize = 1 << BITS;

/// Fewest elements of a chunk, however wide they are, so that the numbers of 2^17 elements and the spares of all CPUs
/// are below 2^24. Elements of more than 1 KiB take chunks of more than [`BYTES_MAX`].
const LEN_MIN: usize = 32;

/// Most bytes of a chunk: eight pages (`PAGE_ALLOC_COSTLY_ORDER`), where they have 4 KiB. The page allocator reclaims
/// and compacts memory for these; for more it soon gives up.
const BYTES_MAX: usize = 32 << 10;

/// How elements are numbered.
#[derive(Clone, Copy)]
pub(super) struct Numbering {
    /// log2 of the elements of a chunk.
    bits: u32,
}

impl Numbering {
    /// The numbering of elements whose widest part has so many words.
    pub(super) fn new(widest: usize) -> Self {
        let len = (BYTES_MAX / size_of::<u64>()) / widest.max(1);
        Self {
            bits: len.clamp(LEN_MIN, LEN_MAX).ilog2(),
        }
    }

    /// The number of the `n`th element, counted from 0. Numbers grow with `n`.
    pub(super) fn number(self, n: u32) -> u32 {
        let place = n & ((1 << self.bits) - 1);
        n >> self.bits << BITS | place
    }

    /// Which element has this number; `None` if none has it, however many there are.
    #[inline]
    pub(super) fn nth(self, number: u32) -> Option<u32> {
        let place = number & (LEN_MAX as u32 - 1);
        (place >> self.bits == 0).then_some(number >> BITS << self.bits | place)
    }

    /// Whether the numbers of so many elements are below `end`.
    pub(super) fn fits(self, elements: u32, end: u32) -> bool {
        elements.div_ceil(1 << self.bits) <= end >> BITS
    }

    /// Elements of a chunk.
    fn len(self) -> usize {
        1 << self.bits
    }
}

/// So many items for each element.
///
/// # Invariants
///
/// There are items for all elements, those of each element in one chunk: the first of the element with number n is at
/// `starts[n >> BITS]`, increased by n times the items of an element.
pub(super) struct Chunks<T> {
    starts: Shared<Start<T>>,
    /// Items of an element.
    width: usize,
    /// What the starts point to. The list may be too long for kmalloc(), as that of the starts: a map of 2^17 wide
    /// elements has over 4000 chunks.
    chunks: Arc<KVVec<KVVec<T>>>,
}

impl<T> Clone for Chunks<T> {
    fn clone(&self) -> Self {
        Self {
            starts: self.starts.clone(),
            width: self.width,
            chunks: self.chunks.clone(),
        }
    }
}

/// Where a chunk would begin if there were items for all numbers below, too. So the number of an element need not be
/// reduced to its place in the chunk. To be used with wrapping arithmetic only.
struct Start<T>(*const T);

// SAFETY: It is only used to make shared references to items, which may be sent if `T` is `Sync`.
unsafe impl<T: Sync> Send for Start<T> {}
// SAFETY: As above.
unsafe impl<T: Sync> Sync for Start<T> {}

impl<T> Chunks<T> {
    /// `width` items for each of `elements` elements; `alloc` allocates that many of them. Fails with `ENOMEM`.
    pub(super) fn new(
        elements: usize,
        numbering: Numbering,
        width: usize,
        alloc: impl Fn(usize) -> Result<KVVec<T>>,
    ) -> Result<Self> {
        let n = elements.div_ceil(numbering.len());
        let mut starts = KVVec::with_capacity(n, GFP_KERNEL)?;
        let mut chunks = KVVec::with_capacity(n, GFP_KERNEL)?;
        for before in (0..elements).step_by(numbering.len()) {
            let items = numbering.len().min(elements - before).checked_mul(width);
            let chunk = alloc(items.ok_or(ENOMEM)?)?;
            let first = numbering.number(before as u32) as usize;
            // INVARIANT: The chunk begins with the items of the element with number `first`.
            let start = chunk.as_ptr().wrapping_sub(first.wrapping_mul(width));
            starts.push(Start(start), GFP_KERNEL)?;
            chunks.push(chunk, GFP_KERNEL)?;
        }
        Ok(Self {
            starts: Shared::new(starts)?,
            width,
            chunks: Arc::new(chunks, GFP_KERNEL)?,
        })
    }

    /// Items of an element.
    #[inline]
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Bytes of memory that [`Chunks::new`] takes, if the allocation of a chunk takes no more than
    /// its items. `None`: more than there can be.
    pub(super) fn size_bytes(elements: usize, numbering: Numbering, width: usize) -> Option<usize> {
        let chunk = size_of::<Start<T>>() + size_of::<KVVec<T>>();
        let lists = elements.div_ceil(numbering.len()) * chunk;
        let items = elements.checked_mul(width)?.checked_mul(size_of::<T>())?;
        items.checked_add(lists)
    }

    /// Where the only item of the element with this number is: as far behind the first pointer as this says.
    ///
    /// # Safety
    ///
    /// There is such an element, and it has one item.
    #[inline(always)]
    pub(super) unsafe fn only(&self, number: u32) -> (*const T, usize) {
        let number = number as usize;
        debug_assert!(number >> BITS < self.starts.len() && self.width == 1);
        // SAFETY: By the caller and the invariants, there is this chunk.
        let start = unsafe { self.starts.get_unchecked(number >> BITS) };
        (start.0, number)
    }

    /// The items of the element with this number.
    ///
    /// # Safety
    ///
    /// There is such an element.
    #[inline(always)]
    pub(super) unsafe fn of(&self, number: u32) -> &[T] {
        let number = number as usize;
        debug_assert!(number >> BITS < self.starts.len());
        // SAFETY: By the caller and the invariants, the element is in this chunk, and its `width` items are at this
        // place, for as long as `self`.
        unsafe {
            let start = self.starts.get_unchecked(number >> BITS);
            let first = start.0.wrapping_add(number.wrapping_mul(self.width));
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
