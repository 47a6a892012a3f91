// SPDX-License-Identifier: MIT OR Apache-2.0

//! Numbers in hexadecimal digits.

/// As `.hex` shows it in `hist`: a number below zero as one of 64 bits without a sign.
pub(super) fn name(number: i128) -> Option<String> {
    let bits = u64::try_from(number)
        .or_else(|_| i64::try_from(number).map(i64::cast_unsigned))
        .ok()?;
    Some(format!("{bits:#x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits() {
        let name = |number: i128| name(number).unwrap_or_default();
        assert_eq!(name(0), "0x0");
        assert_eq!(name(0xbeef), "0xbeef");
        assert_eq!(name(-1), "0xffffffffffffffff");
        assert_eq!(name(u64::MAX.into()), "0xffffffffffffffff");
        assert_eq!(name(1 << 64), "");
    }
}
