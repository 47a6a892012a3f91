// SPDX-License-Identifier: GPL-2.0

//! Numbers that need not be aligned.
//!
//! The kernel has Rust for arm64 compiled as if the processor could not read them (`+strict-align` of its target),
//! one byte after the other; C is not. What rhist reads is ordinary memory, of which it can.

/// A number that can be read from anywhere in memory.
pub trait Unaligned: Copy {
    /// Reads the number at `at`.
    ///
    /// # Safety
    ///
    /// `at` must be valid for reads of its size.
    unsafe fn read(at: *const u8) -> Self;
}

macro_rules! unaligned {
    ($($number:ty: $load:literal,)*) => {$(
        impl Unaligned for $number {
            #[cfg(CONFIG_ARM64)]
            #[inline(always)]
            unsafe fn read(at: *const u8) -> Self {
                let number;
                // SAFETY: By the caller the instruction reads what may be read, and nothing else changes.
                unsafe {
                    core::arch::asm!(
                        concat!($load, ", [{at}]"),
                        number = lateout(reg) number,
                        at = in(reg) at,
                        options(pure, readonly, nostack, preserves_flags),
                    );
                }
                number
            }

            #[cfg(not(CONFIG_ARM64))]
            #[inline(always)]
            unsafe fn read(at: *const u8) -> Self {
                // SAFETY: By the caller `at` is valid for reads. All bits are valid for a number.
                unsafe { at.cast::<Self>().read_unaligned() }
            }
        }
    )*};
}

unaligned! {
    u16: "ldrh {number:w}",
    u32: "ldr {number:w}",
    u64: "ldr {number}",
}

impl Unaligned for u8 {
    #[inline(always)]
    unsafe fn read(at: *const u8) -> Self {
        // SAFETY: By the caller `at` is valid for reads.
        unsafe { *at }
    }
}
