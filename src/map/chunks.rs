// SPDX-License-Identifier: GPL-2.0

//! Storage for the parts of elements, indexed by element number.
//!
//! Storage is allocated in chunks, so that more can be added without moving what exists. The number
//! of an element consists of its chunk's number and, in the lower [`BITS`] bits, its place in the
//! chunk. So a hit finds the chunk by a constant shift, although the number of elements in a chunk
//! varies: it depends on the widest part of the map's elements ([`Numbering`]).
//!
//! A chunk has up to [`BYTES_MAX`] bytes: kmalloc() provides blocks of that size even if memory is
//! fragmented, and they need fewer TLB entries than memory from vmalloc(). Keys and columns of one
//! word, as most histograms have, are in chunks of 2048 elements, 16 KiB each. With a key of 504
//! bytes, a chunk has 64 elements: 31.5 KiB. With 33 columns it is 64 elements, too: 16.5 KiB,
//! where 2048 would take 528 KiB.

use core::{
    iter,
    slice, //
};

use kernel::{
    alloc::{
        Flags,
        NumaNode, //
    },
    prelude::*,
    sync::{
        atomic::Atomic,
        Arc, //
    },
};

use super::shared::Shared;

/// Number of bits of an element's number for its place in the chunk.
const BITS: u32 = 11;

/// Maximum number of elements in a chunk: as many as a histogram has by default.
const LEN_MAX: usize = 1 << BITS;

/// Minimum number of elements in a chunk, however wide they are, so that the numbers of 2^17
/// elements and the spares of all CPUs are below 2^24. Elements of more than 1 KiB take chunks of
/// more than [`BYTES_MAX`].
const LEN_MIN: usize = 32;

/// Maximum size of a chunk in bytes: eight pages (`PAGE_ALLOC_COSTLY_ORDER`), if they have 4 KiB.
/// Up to that size, the page allocator reclaims and compacts memory; above, it soon gives up.
const BYTES_MAX: usize = 32 << 10;

/// How elements are numbered.
#[derive(Clone, Copy)]
pub(super) struct Numbering {
    /// log2 of the number of elements in a chunk.
    bits: u32,
}

impl Numbering {
    /// Returns the numbering for elements whose widest part has `widest` words.
    pub(super) fn new(widest: usize) -> Self {
        let len = (BYTES_MAX / size_of::<u64>()) / widest.max(1);
        Self {
            bits: len.clamp(LEN_MIN, LEN_MAX).ilog2(),
        }
    }

    /// Returns the number of the `n`th element, counted from 0. Numbers grow with `n`.
    pub(super) fn number(self, n: u32) -> u32 {
        let place = n & ((1 << self.bits) - 1);
        n >> self.bits << BITS | place
    }

    /// Returns the index of the element with this number; `None` if a chunk does not have so many
    /// places.
    #[inline]
    pub(super) fn nth(self, number: u32) -> Option<u32> {
        let place = number & (LEN_MAX as u32 - 1);
        (place >> self.bits == 0).then_some(number >> BITS << self.bits | place)
    }

    /// Returns whether the numbers of this many elements are all below `end`.
    pub(super) fn fits(self, elements: u32, end: u32) -> bool {
        elements.div_ceil(1 << self.bits) <= end >> BITS
    }

    /// Number of elements in a chunk.
    pub(super) fn len(self) -> usize {
        1 << self.bits
    }
}

/// An array that holds the same number of items, `width`, for each element.
///
/// # Invariants
///
/// All items of an element are in one chunk. They start at `starts[n >> BITS]` plus `n * width`
/// items, where n is the number of the element.
pub(super) struct Chunks<T> {
    starts: Shared<Start<T>>,
    /// Number of items of an element.
    width: usize,
    /// The chunks that `starts` point into.
    chunks: Arc<List<T>>,
}

/// Chunks, and a list of the older ones, which storage shares with the storage that it extends. A
/// map grows a few times, so the chain of lists is short, and dropping it takes little of the
/// kernel's stack.
struct List<T> {
    before: Option<Arc<List<T>>>,
    /// Like the starts, it may be too long for kmalloc(): a map of 2^17 wide elements has over 4000
    /// chunks.
    chunks: KVVec<KVVec<T>>,
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

/// Address where a chunk would begin if it had items for all lower numbers, too. So the number of
/// an element need not be reduced to its place in the chunk. For wrapping arithmetic only.
struct Start<T>(*const T);

impl<T> Clone for Start<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Start<T> {}

// SAFETY: It is only used to make shared references to items, which may be sent if `T` is `Sync`.
unsafe impl<T: Sync> Send for Start<T> {}
// SAFETY: It is only used to make shared references to items, which may be shared if `T` is `Sync`.
unsafe impl<T: Sync> Sync for Start<T> {}

impl<T> Chunks<T> {
    /// Creates storage with `width` items for each of `elements` elements; `alloc` allocates a
    /// given number of items. Fails with `ENOMEM`.
    pub(super) fn new(
        elements: usize,
        numbering: Numbering,
        width: usize,
        alloc: impl Fn(usize) -> Result<KVVec<T>>,
    ) -> Result<Self> {
        Self::with(None, elements, numbering, width, GFP_KERNEL, alloc)
    }

    /// Storage for `elements` elements, with the chunks of this one, which are whole. `alloc`
    /// allocates a given number of items. Fails with `ENOMEM`.
    pub(super) fn extended(
        &self,
        elements: usize,
        numbering: Numbering,
        flags: Flags,
        alloc: impl Fn(usize) -> Result<KVVec<T>>,
    ) -> Result<Self> {
        let last = self.chunks.chunks.last();
        debug_assert!(last.is_none_or(|chunk| chunk.len() == numbering.len() * self.width));
        Self::with(Some(self), elements, numbering, self.width, flags, alloc)
    }

    /// Storage that begins with the chunks of `former`.
    fn with(
        former: Option<&Self>,
        elements: usize,
        numbering: Numbering,
        width: usize,
        flags: Flags,
        alloc: impl Fn(usize) -> Result<KVVec<T>>,
    ) -> Result<Self> {
        let n = elements.div_ceil(numbering.len());
        let before = former.map(|former| former.chunks.clone());
        let former = former.map_or(&[][..], |former| &former.starts);
        let mut starts = KVVec::with_capacity(n.max(former.len()), flags)?;
        for &start in former {
            starts.push(start, flags)?;
        }
        let mut chunks = KVVec::with_capacity(n.saturating_sub(former.len()), flags)?;
        for chunk in former.len()..n {
            let first = chunk * numbering.len();
            let items = numbering.len().min(elements - first).checked_mul(width);
            let chunk = alloc(items.ok_or(ENOMEM)?)?;
            let first = numbering.number(first as u32) as usize;
            // INVARIANT: The chunk begins with the items of the element with number `first`.
            let start = chunk.as_ptr().wrapping_sub(first.wrapping_mul(width));
            starts.push(Start(start), flags)?;
            chunks.push(chunk, flags)?;
        }
        // INVARIANT: The former starts point into chunks of `before`.
        Ok(Self {
            starts: Shared::new(starts)?,
            width,
            chunks: Arc::new(List { before, chunks }, GFP_KERNEL)?,
        })
    }

    /// Bytes of memory that [`Chunks::extended`] takes. `None`: the size overflows.
    pub(super) fn step_bytes(&self, elements: usize, numbering: Numbering) -> Option<usize> {
        let former = self.starts.len();
        let new = elements.saturating_sub(former * numbering.len());
        let starts = former * size_of::<Start<T>>();
        Self::size_bytes(new, numbering, self.width)?.checked_add(starts)
    }

    /// Bytes of memory that it takes: see [`Chunks::size_bytes`].
    pub(super) fn bytes(&self) -> usize {
        let starts = self.starts.len() * size_of::<Start<T>>();
        let lists = iter::successors(Some(&self.chunks), |list| list.before.as_ref());
        let chunks = lists.flat_map(|list| list.chunks.iter());
        let bytes = chunks.map(|chunk| size_of::<KVVec<T>>() + size_of_val(&chunk[..]));
        starts + bytes.sum::<usize>()
    }

    /// Number of items of an element.
    #[inline]
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Bytes of memory that [`Chunks::new`] takes, if the allocation of a chunk takes no more than
    /// its items. `None`: the size overflows.
    pub(super) fn size_bytes(elements: usize, numbering: Numbering, width: usize) -> Option<usize> {
        let chunk = size_of::<Start<T>>() + size_of::<KVVec<T>>();
        let lists = elements.div_ceil(numbering.len()) * chunk;
        let items = elements.checked_mul(width)?.checked_mul(size_of::<T>())?;
        items.checked_add(lists)
    }

    /// Returns the position of the only item of the element with this number: a start, and the
    /// item's index from there.
    ///
    /// # Safety
    ///
    /// An element has this number, and elements have one item.
    #[inline(always)]
    pub(super) unsafe fn only(&self, number: u32) -> (*const T, usize) {
        let number = number as usize;
        debug_assert!(number >> BITS < self.starts.len() && self.width == 1);
        // SAFETY: The caller guarantees that the element exists, so by the invariants its chunk
        // does.
        let start = unsafe { self.starts.get_unchecked(number >> BITS) };
        (start.0, number)
    }

    /// Returns the items of the element with this number.
    ///
    /// # Safety
    ///
    /// An element has this number.
    #[inline(always)]
    pub(super) unsafe fn of(&self, number: u32) -> &[T] {
        let number = number as usize;
        debug_assert!(number >> BITS < self.starts.len());
        // SAFETY: The caller guarantees that the element exists. By the invariants it is in this
        // chunk, and its `width` items start here and live as long as `self`.
        unsafe {
            let start = self.starts.get_unchecked(number >> BITS);
            let first = start.0.wrapping_add(number.wrapping_mul(self.width));
            slice::from_raw_parts(first, self.width)
        }
    }
}

impl Chunks<Atomic<u64>> {
    /// [`Chunks::extended`] by zeros, in memory of any node.
    pub(super) fn extended_by_zeros(
        &self,
        elements: usize,
        numbering: Numbering,
        flags: Flags,
    ) -> Result<Self> {
        self.extended(elements, numbering, flags, |n| {
            zeroed(n, NumaNode::NO_NODE, flags)
        })
    }
}

/// Allocates `n` zeros in memory of `node`. Fails with `ENOMEM`.
#[cfg(MODULE)]
pub(super) fn zeroed(n: usize, node: NumaNode, flags: Flags) -> Result<KVVec<Atomic<u64>>> {
    use kernel::alloc::allocator::KVmalloc;
    use kernel::alloc::layout::ArrayLayout;
    use kernel::alloc::Allocator;

    let layout = ArrayLayout::<Atomic<u64>>::new(n).map_err(|_| ENOMEM)?;
    let zeros = KVmalloc::alloc(layout.into(), flags | __GFP_ZERO, node)?;
    // SAFETY: It is memory of the allocator of `KVVec` for `n` items, which are integers: zeros are
    // valid ones.
    Ok(unsafe { KVVec::from_raw_parts(zeros.as_ptr().cast(), n, n) })
}

/// Allocates `n` zeros. Fails with `ENOMEM`.
#[cfg(not(MODULE))]
pub(super) fn zeroed(n: usize, _node: NumaNode, flags: Flags) -> Result<KVVec<Atomic<u64>>> {
    let mut zeros = KVVec::with_capacity(n, flags)?;
    for _ in 0..n {
        zeros.push_within_capacity(Atomic::new(0))?;
    }
    Ok(zeros)
}
