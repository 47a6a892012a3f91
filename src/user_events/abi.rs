// SPDX-License-Identifier: GPL-2.0

//! What programs pass to the ioctls: `include/uapi/linux/user_events.h`.
//!
//! A request to register begins with its size, which says what kind of program it is: the original
//! interface has a bit in a page that all programs share, and the current one a bit wherever the
//! program wants it.

use kernel::prelude::*;

/// `struct user_reg` of the current kind: what a program wants to write, and be told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserReg {
    /// The bit of the value at `addr` that is set while the event is enabled.
    pub bit: u8,
    /// Bytes of that value: 4 or 8.
    pub size: u8,
    /// The event stays when nobody has it any more.
    pub persistent: bool,
    /// Events of one name with different fields stand beside each other.
    pub multi: bool,
    /// Where the value is; a multiple of its size.
    pub addr: u64,
    /// Where the description is.
    pub description: u64,
}

impl UserReg {
    /// Bytes of the structure.
    pub const SIZE: usize = 28;
    /// Where in the structure the index for writing goes: a `u32`.
    pub const WRITE_INDEX: usize = 24;

    /// Reads the structure.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a flag that does not exist, a value that is neither of 4 bytes nor of 8 (those
    /// only where a word has as many), an address that is not aligned to it, or a bit that it has
    /// not.
    pub fn parse(bytes: &[u8; Self::SIZE]) -> Result<Self> {
        let [_, _, _, _, bit, size, flags_0, flags_1, rest @ ..] = bytes;
        let flags = u16::from_ne_bytes([*flags_0, *flags_1]);
        let (addr, rest) = rest.split_first_chunk().ok_or(EINVAL)?;
        let (description, _) = rest.split_first_chunk().ok_or(EINVAL)?;
        let (persistent, multi) = (1, 2);
        let register = Self {
            bit: *bit,
            size: *size,
            persistent: flags & persistent != 0,
            multi: flags & multi != 0,
            addr: u64::from_ne_bytes(*addr),
            description: u64::from_ne_bytes(*description),
        };
        let (misaligned, last_bit) = match register.size {
            4 => (register.addr & 3 != 0, 31),
            8 if size_of::<usize>() >= 8 => (register.addr & 7 != 0, 63),
            _ => return Err(EINVAL),
        };
        if flags & !(persistent | multi) != 0 || misaligned || register.bit > last_bit {
            return Err(EINVAL);
        }
        Ok(register)
    }
}

/// `struct user_reg_original`: what a program of the original interface wants to write, and be told
/// of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserRegOriginal {
    /// Where the description is.
    pub description: u64,
}

impl UserRegOriginal {
    /// Bytes of the structure. One that is longer is of the current kind, or of none.
    pub const SIZE: usize = 20;
    /// Where in the structure the bit of the page goes, and the index for writing: a `u32` each.
    pub const RESULTS: usize = 12;

    /// Reads the structure.
    pub fn parse(bytes: &[u8; Self::SIZE]) -> Self {
        let [_, _, _, _, d0, d1, d2, d3, d4, d5, d6, d7, ..] = *bytes;
        Self {
            description: u64::from_ne_bytes([d0, d1, d2, d3, d4, d5, d6, d7]),
        }
    }
}

/// `struct user_unreg`: a bit to unregister.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserUnreg {
    /// The bit of the value.
    pub bit: u8,
    /// Where the value is.
    pub addr: u64,
}

impl UserUnreg {
    /// Bytes of the structure.
    pub const SIZE: usize = 16;

    /// Reads the structure.
    ///
    /// # Errors
    ///
    /// `EINVAL` if what is reserved is not zero.
    pub fn parse(bytes: &[u8; Self::SIZE]) -> Result<Self> {
        match bytes {
            [_, _, _, _, bit, 0, 0, 0, addr @ ..] => Ok(Self {
                bit: *bit,
                addr: u64::from_ne_bytes(*addr),
            }),
            _ => Err(EINVAL),
        }
    }
}
