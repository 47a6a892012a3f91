// SPDX-License-Identifier: GPL-2.0

//! Inline atomic loads and stores for hits.
//!
//! The kernel crate's atomics call C functions, and a hit does a dozen of these operations. The
//! ones here compile to the same instructions without the call. On the host they use the crate's
//! atomics, which loom and the tests with interrupts know.

use kernel::sync::atomic::Atomic;

/// An atomic with inline loads. Any context.
pub(crate) trait Load {
    /// The type of its value.
    type Value;

    /// Like `load(Relaxed)`.
    fn relaxed(&self) -> Self::Value;

    /// Like `load(Acquire)`.
    fn acquire(&self) -> Self::Value;
}

/// An atomic with inline stores. Any context.
pub(crate) trait Store {
    /// Like `store(Release)`.
    fn release(&self, value: u64);

    /// Like `xchg(value, Acquire)`.
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

    /// Uses an exchange, since loom lets a store come between the load and the store of an exchange
    /// (<https://github.com/tokio-rs/loom/issues/254>), but not another exchange.
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
                    // SAFETY: The memory is valid, and all accesses to it are atomic: this load,
                    // and the kernel's, whose loads of this size are single instructions, too.
                    unsafe { $core::from_ptr(self.as_ptr()) }.load(Ordering::Relaxed)
                }

                #[inline(always)]
                fn acquire(&self) -> $value {
                    use core::sync::atomic::{Ordering, $core};
                    // SAFETY: The memory is valid, and all accesses to it are atomic, as for
                    // `relaxed()`. The load has the ordering of smp_load_acquire().
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
        // SAFETY: The memory is valid, and all accesses to it are atomic: this store, which is one
        // instruction on the supported 64-bit CPUs, loads of that kind, and the kernel's xchg() and
        // cmpxchg(), which lose no such store. The store has the ordering of smp_store_release().
        unsafe { AtomicU64::from_ptr(self.as_ptr()) }.store(value, Ordering::Release);
    }

    #[cfg(CONFIG_X86_64)]
    #[inline(always)]
    fn exchange(&self, value: u64) -> u64 {
        use core::sync::atomic::AtomicU64;
        use core::sync::atomic::Ordering;
        // SAFETY: The memory is valid, and all accesses to it are atomic. The swap compiles to the
        // instruction of xchg().
        unsafe { AtomicU64::from_ptr(self.as_ptr()) }.swap(value, Ordering::Acquire)
    }

    // The kernel patches in the best instruction when it boots, so call its function.
    #[cfg(not(CONFIG_X86_64))]
    #[inline(always)]
    fn exchange(&self, value: u64) -> u64 {
        self.xchg(value, kernel::sync::atomic::Acquire)
    }
}
