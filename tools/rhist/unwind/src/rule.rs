// SPDX-License-Identifier: MIT OR Apache-2.0

//! Rules: how the registers of a caller are found.

/// Size of a rule in a table, in bytes.
pub(crate) const SIZE: usize = 12;

/// How the registers of a caller are found at an instruction.
///
/// The *frame address* is the stack pointer before the call (DWARF's CFA). `sp` is `rsp` on x86-64,
/// `fp` is `rbp` on x86-64 and `x29` on AArch64. Addresses in the frame are relative to the frame
/// address, in words of 8 bytes, and negative; 0 means that the register is not saved: the caller's
/// `fp` is the present one, and the return address (`ra`) is in the link register. x86-64 has
/// `rdi` for that, only with [`Rule::Sp`]: glibc's `vfork()` keeps it there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Rule {
    /// Nothing is known here.
    #[default]
    None,
    /// The outermost frame, which lacks a return address.
    End,
    /// The frame address is `sp + cfa`.
    Sp {
        /// In bytes.
        cfa: i32,
        /// Where the caller's `fp` is.
        fp: i16,
        /// Where the return address is.
        ra: i16,
    },
    /// The frame address is `fp + cfa`.
    Fp {
        /// In bytes.
        cfa: i32,
        /// Where the caller's `fp` is.
        fp: i16,
        /// Where the return address is.
        ra: i16,
    },
    /// The frame address is the word at `fp + cfa`, and the caller's `fp` the word at `fp`:
    /// functions of GCC that align their stack.
    Deref {
        /// In bytes.
        cfa: i32,
        /// Where the return address is.
        ra: i16,
    },
    /// An entry of the procedure linkage table of x86-64, 16 bytes long, which pushes a word: the
    /// frame address is `sp + 16` from its byte `from` on, `sp + 8` before.
    Plt {
        /// From 1 to 15.
        from: u8,
        /// Where the caller's `fp` is.
        fp: i16,
        /// Where the return address is.
        ra: i16,
    },
    /// The code that a signal handler returns to: all registers are in the `ucontext` of the
    /// kernel.
    Sigreturn,
    /// A rule that lacks a variant.
    Other,
    /// The frame address is 8 more than the word at `sp + cfa`: functions of OpenSSL that align
    /// their stack.
    DerefSp {
        /// In bytes, not negative.
        cfa: i32,
        /// Where the caller's `fp` is.
        fp: i16,
        /// Where the return address is.
        ra: i16,
    },
    /// The caller's `fp` is the word at `fp`, the return address the next one: code with frame
    /// pointers.
    Frame,
}

impl Rule {
    /// The rule as in a table: `u16 kind, i16 fp, i16 ra, u16 zero, i32 cfa`, little-endian.
    pub(crate) fn to_bytes(self) -> [u8; SIZE] {
        let (kind, fp, ra, cfa) = match self {
            Self::None => (0_u16, 0, 0, 0),
            Self::End => (1, 0, 0, 0),
            Self::Sp { cfa, fp, ra } => (2, fp, ra, cfa),
            Self::Fp { cfa, fp, ra } => (3, fp, ra, cfa),
            Self::Deref { cfa, ra } => (4, 0, ra, cfa),
            Self::Plt { from, fp, ra } => (5, fp, ra, from.into()),
            Self::Sigreturn => (6, 0, 0, 0),
            Self::Other => (7, 0, 0, 0),
            Self::DerefSp { cfa, fp, ra } => (8, fp, ra, cfa),
            Self::Frame => (9, 0, 0, 0),
        };
        let mut bytes = [0; SIZE];
        bytes[..2].copy_from_slice(&kind.to_le_bytes());
        bytes[2..4].copy_from_slice(&fp.to_le_bytes());
        bytes[4..6].copy_from_slice(&ra.to_le_bytes());
        bytes[8..].copy_from_slice(&cfa.to_le_bytes());
        bytes
    }
}
