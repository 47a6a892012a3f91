// SPDX-License-Identifier: GPL-2.0

//! Memory barriers between accesses to several atomics.

#[cfg(not(MODULE))]
pub use kernel::sync::barrier::{
    smp_rmb,
    smp_wmb, //
};

/// Orders stores: a reader that loads a value stored after this, and then passes [`smp_rmb()`],
/// also loads the values stored before. Any context. No instruction on x86.
#[cfg(MODULE)]
#[inline(always)]
pub fn smp_wmb() {
    core::sync::atomic::fence(core::sync::atomic::Ordering::Release);
}

/// The other side of [`smp_wmb()`]. Any context. No instruction on x86.
#[cfg(MODULE)]
#[inline(always)]
pub fn smp_rmb() {
    core::sync::atomic::fence(core::sync::atomic::Ordering::Acquire);
}
