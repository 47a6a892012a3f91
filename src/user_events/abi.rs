// SPDX-License-Identifier: GPL-2.0

//! Arguments of the ioctls: `include/uapi/linux/user_events.h`.
//!
//! The first member of a register request is its size, which tells the interfaces apart: the
//! original one gives the event a bit in a page that all programs share, the current one a bit at
//! an address that the program chooses.

use kernel::prelude::*;

/// `struct user_reg` of the current interface: a request to register an event and its enable bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserReg {
    /// The bit of the value at `addr` that is set while the event is enabled.
    pub bit: u8,
    /// Bytes of that value: 4 or 8.
    pub size: u8,
    /// Keep the event when it is unused (`USER_EVENT_REG_PERSIST`).
    pub persistent: bool,
    /// Allow events with this name and different fields (`USER_EVENT_REG_MULTI_FORMAT`).
    pub multi: bool,
    /// User address of the value; a multiple of its size.
    pub addr: u64,
    /// User address of the description.
    pub description: u64,
}

impl UserReg {
    /// Bytes of the structure.
    pub const SIZE: usize = 28;
    /// Offset of the write index in the structure, a `u32` that is returned.
    pub const WRITE_INDEX: usize = 24;

    /// Parses and checks the structure.
    ///
    /// # Errors
    ///
    /// `EINVAL` for an unknown flag, a value size other than 4 or 8 bytes (8 only on 64-bit), an
    /// address that is not a multiple of it, or a bit outside the value.
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

/// `struct user_reg` of the original interface: a request to register an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserRegOriginal {
    /// User address of the description.
    pub description: u64,
}

impl UserRegOriginal {
    /// Bytes of the structure. Any other size is taken for the current interface.
    pub const SIZE: usize = 20;
    /// Offset of the results in the structure: status bit, then write index, a `u32` each.
    pub const RESULTS: usize = 12;

    /// Parses the structure, in which any value is valid.
    pub fn parse(bytes: &[u8; Self::SIZE]) -> Self {
        let [_, _, _, _, d0, d1, d2, d3, d4, d5, d6, d7, ..] = *bytes;
        Self {
            description: u64::from_ne_bytes([d0, d1, d2, d3, d4, d5, d6, d7]),
        }
    }
}

/// `struct user_unreg`: a request to unregister an enable bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserUnreg {
    /// The bit of the value.
    pub bit: u8,
    /// User address of the value.
    pub addr: u64,
}

impl UserUnreg {
    /// Bytes of the structure.
    pub const SIZE: usize = 16;

    /// Parses the structure.
    ///
    /// # Errors
    ///
    /// `EINVAL` if a reserved member is not zero.
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
