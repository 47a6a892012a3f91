// SPDX-License-Identifier: GPL-2.0

//! Inline atomic loads for hits.
//!
//! The loads of the `kernel` crate are calls of C functions, and a hit makes a dozen of them. These compile to
//! the same instructions without the call. On the host those of the `kernel` crate are used, which loom and
//! the tests with interrupts know.

use kernel::sync::atomic::Atomic;

/// An atomic with inline loads. Any context.
pub(crate) trait Load {
    /// The type of its value.
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
