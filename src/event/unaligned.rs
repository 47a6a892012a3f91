// SPDX-License-Identifier: GPL-2.0

//! Numbers that need not be aligned.
//!
//! The kernel has Rust for arm64 compiled as if the processor could not read them (`+strict-align`
//! of its target), so byte by byte; C is not. rhist reads ordinary memory, where the processor can.

/// A number that can be read from anywhere in memory.
pub trait Unaligned: Copy {
    /// An array of as many bytes as the number has.
    type Bytes;

    /// Returns the number that these bytes are.
    fn of(bytes: &Self::Bytes) -> Self;
}

macro_rules! unaligned {
    ($($number:ty: $load:literal,)*) => {$(
        impl Unaligned for $number {
            type Bytes = [u8; size_of::<$number>()];

            #[cfg(CONFIG_ARM64)]
            #[inline(always)]
            fn of(bytes: &Self::Bytes) -> Self {
                let number;
                // SAFETY: The instruction only reads the bytes.
                unsafe {
                    core::arch::asm!(
                        concat!($load, ", [{bytes}]"),
                        number = lateout(reg) number,
                        bytes = in(reg) bytes.as_ptr(),
                        options(pure, readonly, nostack, preserves_flags),
                    );
                }
                number
            }

            #[cfg(not(CONFIG_ARM64))]
            #[inline(always)]
            fn of(bytes: &Self::Bytes) -> Self {
                Self::from_ne_bytes(*bytes)
            }
        }
    )*};
}

unaligned! {
    u8: "ldrb {number:w}",
    u16: "ldrh {number:w}",
    u32: "ldr {number:w}",
    u64: "ldr {number}",
}
