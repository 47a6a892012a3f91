// SPDX-License-Identifier: GPL-2.0

//! A page of bits that programs map and read, and only the kernel writes.

use super::bindings;
use kernel::alloc::flags::__GFP_ZERO;
use kernel::mm::virt::VmaNew;
use kernel::page::Page;
use kernel::page::PAGE_SIZE;
use kernel::prelude::*;

/// The page. A mapping has a reference on it of its own.
pub(crate) struct SharedPage(Page);

impl SharedPage {
    /// Bits in it.
    pub(crate) const BITS: u32 = 8 * PAGE_SIZE as u32;

    /// Allocates a page of zeros.
    pub(crate) fn new() -> Result<Self> {
        Ok(Self(Page::alloc_page(GFP_KERNEL | __GFP_ZERO)?))
    }

    /// Sets or clears a bit: that of the mask `1 << bit % 8` in byte `bit / 8`. Any context.
    pub(crate) fn set(&self, bit: u32, on: bool) {
        if bit < Self::BITS {
            // SAFETY: The page is there, and has the bit. It is changed by atomic operations only.
            unsafe { bindings::rhist_set_page_bit(self.0.as_ptr().cast(), bit, on) }
        }
    }

    /// Maps it into a program, for reading.
    ///
    /// # Errors
    ///
    /// `EINVAL` if not exactly a page is to be mapped, `EPERM` if it is to be written to.
    pub(crate) fn map(&self, vma: &VmaNew) -> Result {
        if vma.end() - vma.start() != PAGE_SIZE {
            return Err(EINVAL);
        }
        vma.try_clear_maywrite().map_err(|_| EPERM)?;
        vma.set_dontexpand();
        vma.set_mixedmap().vm_insert_page(vma.start(), &self.0)
    }
}
