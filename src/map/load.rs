// SPDX-License-Identifier: GPL-2.0

//! Loads on the way of a hit.
//!
//! Those of the `kernel` crate are calls of C functions; a hit makes a dozen of them, which is a good
//! part of what it costs. These compile to the same instructions without a call. On the host the
//! `kernel` crate's are used, which its tests watch.

use kernel::sync::atomic::Atomic;

/// An atomic that can be loaded from inline. Any context.
pub(crate) trait Load {
    /// What is in it.
    type Value;

    /// As `load(Relaxed)`.
    #[cfg(MODULE)]
    fn relaxed(&self) -> Self::Value;

    /// As `load(Acquire)`.
    fn acquire(&self) -> Self::Value;
}

#[cfg(not(MODULE))]
impl Load for Atomic<u64> {
    type Value = u64;

    #[inline]
    fn acquire(&self) -> u64 {
        self.load(kernel::sync::atomic::Acquire)
    }
}

#[cfg(MODULE)]
macro_rules! load {
    ($([$($generic:ident)?] $value:ty, $core:ident;)*) => {
        $(
            impl$(<$generic>)? Load for Atomic<$value> {
                type Value = $value;

                #[inline(always)]
                fn relaxed(&self) -> $value {
                    use core::sync::atomic::{Ordering, $core};
                    // SAFETY: It is valid memory, and all accesses to it are atomic ones: the
                    // kernel's, whose loads of this size are single instructions, as this one.
                    unsafe { $core::from_ptr(self.as_ptr()) }.load(Ordering::Relaxed)
                }

                #[inline(always)]
                fn acquire(&self) -> $value {
                    use core::sync::atomic::{Ordering, $core};
                    // SAFETY: As above. What it orders is what smp_load_acquire() orders.
                    unsafe { $core::from_ptr(self.as_ptr()) }.load(Ordering::Acquire)
                }
            }
        )*
    };
}

#[cfg(MODULE)]
load! {
    [] u32, AtomicU32;
    [] u64, AtomicU64;
    [T] *mut T, AtomicPtr;
}
