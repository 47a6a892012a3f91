// SPDX-License-Identifier: GPL-2.0

//! Numbers as names of folders: decimal, without a sign, and without zeros in front.

/// Digits of the largest number.
const DIGITS: usize = u32::MAX.ilog10() as usize + 1;

/// The name of a number.
pub(super) struct NumberName {
    /// The digits, at the end.
    digits: [u8; DIGITS],
    len: usize,
}

impl NumberName {
    pub(super) fn of(number: u32) -> Self {
        let mut name = Self {
            digits: [0; DIGITS],
            len: 0,
        };
        let mut rest = number;
        for digit in name.digits.iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            name.len += 1;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        name
    }

    /// Returns the number with this name, if it is the name of one.
    pub(super) fn parse(name: &[u8]) -> Option<u32> {
        let number = core::str::from_utf8(name).ok()?.parse().ok()?;
        (Self::of(number).as_bytes() == name).then_some(number)
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.digits[DIGITS - self.len..]
    }
}
