// SPDX-License-Identifier: GPL-2.0

//! Inline atomic loads and stores for hits.
//!
//! The ones of the `kernel` crate are calls of C functions, and a hit makes a dozen of them. These compile to
//! the same instructions without the call. On the host the `kernel` crate has what is used, which loom and
//! the tests with interrupts know.

use kernel::sync::atomic::Atomic;

/// An atomic with inline loads. Any context.
pub(crate) trait Load {
    /// The type of its value.
    type Value;

    /// As `load(Relaxed)`.
    fn relaxed(&self) -> Self::Value;

    /// As `load(Acquire)`.
    fn acquire(&self) -> Self::Value;
}

/// An atomic with inline stores. Any context.
pub(crate) trait Store {
    /// As `store(Release)`.
    fn release(&self, value: u64);

    /// As `xchg(value, Acquire)`.
    fn exchange(&self, value: u64) -> u64;
}

#[cfg(not(MODULE))]
impl<T: kernel::sync::atomic::AtomicType> Load for Atomic<T> {
    type Value = T;

    #[inline]
    fn relaxed(&self) -> T {
        self.load(kernel::sync::atomic::Relaxed)
    }

    #[inline]
    fn acquire(&self) -> T {
        self.load(kernel::sync::atomic::Acquire)
    }
}

#[cfg(not(MODULE))]
impl Store for Atomic<u64> {
    #[cfg(not(loom))]
    #[inline]
    fn release(&self, value: u64) {
        self.store(value, kernel::sync::atomic::Release);
    }

    /// An exchange, since loom lets a store come between the load and the store of an exchange
    /// (<https://github.com/tokio-rs/loom/issues/254>). It does not do that to another exchange.
    #[cfg(loom)]
    fn release(&self, value: u64) {
        self.xchg(value, kernel::sync::atomic::Release);
    }

    #[inline]
    fn exchange(&self, value: u64) -> u64 {
        self.xchg(value, kernel::sync::atomic::Acquire)
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

#[cfg(MODULE)]
impl Store for Atomic<u64> {
    #[inline(always)]
    fn release(&self, value: u64) {
        use core::sync::atomic::AtomicU64;
        use core::sync::atomic::Ordering;
        // SAFETY: It is valid memory, and all accesses to it are atomic ones: this store, which is one
        // instruction on the 64-bit CPUs that there are modules for, loads of that kind, and the kernel's xchg()
        // and cmpxchg(), which lose no such store. What it orders is what smp_store_release() orders.
        unsafe { AtomicU64::from_ptr(self.as_ptr()) }.store(value, Ordering::Release);
    }

    #[cfg(CONFIG_X86_64)]
    #[inline(always)]
    fn exchange(&self, value: u64) -> u64 {
        use core::sync::atomic::AtomicU64;
        use core::sync::atomic::Ordering;
        // SAFETY: As above. It is the instruction that xchg() is.
        unsafe { AtomicU64::from_ptr(self.as_ptr()) }.swap(value, Ordering::Acquire)
    }

    // Which instruction is best is known when the kernel has booted.
    #[cfg(not(CONFIG_X86_64))]
    #[inline(always)]
    fn exchange(&self, value: u64) -> u64 {
        self.xchg(value, kernel::sync::atomic::Acquire)
    }
}
