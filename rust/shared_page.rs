// SPDX-License-Identifier: GPL-2.0

//! A page of bits that the kernel writes and programs map read-only.

use super::bindings;
use kernel::{
    alloc::flags::__GFP_ZERO,
    mm::virt::VmaNew,
    page::{
        Page,
        PAGE_SIZE, //
    },
    prelude::*, //
};

/// The page. Each mapping has its own reference on it.
pub(crate) struct SharedPage(Page);

impl SharedPage {
    /// Number of bits in the page.
    pub(crate) const BITS: u32 = 8 * PAGE_SIZE as u32;

    /// Allocates a page of zeros.
    pub(crate) fn new() -> Result<Self> {
        Ok(Self(Page::alloc_page(GFP_KERNEL | __GFP_ZERO)?))
    }

    /// Sets or clears a bit: mask `1 << bit % 8` of byte `bit / 8`. Ignores bits beyond
    /// [`Self::BITS`]. Any context.
    pub(crate) fn set(&self, bit: u32, on: bool) {
        if bit < Self::BITS {
            // SAFETY: `self` owns the page, and `bit` is in it. All writes to the page are atomic
            // operations.
            unsafe { bindings::rhist_set_page_bit(self.0.as_ptr().cast(), bit, on) }
        }
    }

    /// Maps the page read-only. Called in `mmap`, with mmap_lock held for writing.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the VMA is not one page long, `EPERM` if it is writable, `ENOMEM`.
    pub(crate) fn map(&self, vma: &VmaNew) -> Result {
        if vma.end() - vma.start() != PAGE_SIZE {
            return Err(EINVAL);
        }
        vma.try_clear_maywrite().map_err(|_| EPERM)?;
        vma.set_dontexpand();
        vma.set_mixedmap().vm_insert_page(vma.start(), &self.0)
    }
}
