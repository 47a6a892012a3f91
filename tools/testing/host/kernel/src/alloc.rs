// SPDX-License-Identifier: GPL-2.0

//! Memory: fallible containers.

pub mod kbox;
pub mod kvec;

pub use kbox::Box;
pub use kbox::KBox;
pub use kbox::KVBox;
pub use kbox::VBox;
pub use kvec::IntoIter;
pub use kvec::KVVec;
pub use kvec::KVec;
pub use kvec::VVec;
pub use kvec::Vec;

/// An allocation failed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct AllocError;

/// How to allocate. The host ignores it.
#[derive(Clone, Copy, PartialEq)]
pub struct Flags(u32);

impl Flags {
    /// Whether all of `flags` are set.
    pub fn contains(self, flags: Flags) -> bool {
        (self & flags) == flags
    }
}

impl core::ops::BitOr for Flags {
    type Output = Self;
    fn bitor(self, rhs: Self) -> Self {
        Self(self.0 | rhs.0)
    }
}

impl core::ops::BitAnd for Flags {
    type Output = Self;
    fn bitand(self, rhs: Self) -> Self {
        Self(self.0 & rhs.0)
    }
}

impl core::ops::Not for Flags {
    type Output = Self;
    fn not(self) -> Self {
        Self(!self.0)
    }
}

/// Values of [`Flags`].
pub mod flags {
    use super::Flags;

    /// Zero the memory.
    pub const __GFP_ZERO: Flags = Flags(1);
    /// May not sleep.
    pub const GFP_ATOMIC: Flags = Flags(2);
    /// May sleep.
    pub const GFP_KERNEL: Flags = Flags(4);
    /// May sleep; accounted to the memory control group.
    pub const GFP_KERNEL_ACCOUNT: Flags = Flags(8);
    /// May not sleep nor use reserves.
    pub const GFP_NOWAIT: Flags = Flags(16);
    /// No report of a failure.
    pub const __GFP_NOWARN: Flags = Flags(32);
}

/// A NUMA node.
#[derive(Clone, Copy, PartialEq)]
pub struct NumaNode(i32);

impl NumaNode {
    /// Any.
    pub const NO_NODE: NumaNode = NumaNode(-1);
}

/// Where memory comes from.
pub trait Allocator {
    /// Bytes of the largest allocation.
    const MAX: usize;
}

/// The kernel's allocators; they differ in the largest size of an allocation only.
pub mod allocator {
    use super::Allocator;

    /// `kmalloc`: physically contiguous. `KMALLOC_MAX_SIZE` with pages of 4 KiB.
    pub struct Kmalloc;
    /// Pages that are contiguous in virtual memory only.
    pub struct Vmalloc;
    /// `kmalloc`, or `vmalloc` if that fails.
    pub struct KVmalloc;

    impl Allocator for Kmalloc {
        const MAX: usize = 4 << 20;
    }
    impl Allocator for Vmalloc {
        const MAX: usize = isize::MAX as usize;
    }
    impl Allocator for KVmalloc {
        const MAX: usize = i32::MAX as usize;
    }
}

/// Types for which all-zero memory is a value.
///
/// # Safety
///
/// It is.
pub unsafe trait Zeroable {}

macro_rules! zeroable {
    ($($ty:ty)*) => {
        $(
            // SAFETY: Zero is an integer, and `false`.
            unsafe impl Zeroable for $ty {}
        )*
    };
}
zeroable!(bool u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize);

// SAFETY: Each element is zeroable.
unsafe impl<T: Zeroable, const N: usize> Zeroable for [T; N] {}
