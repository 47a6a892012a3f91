// SPDX-License-Identifier: MIT OR Apache-2.0

//! IPv4 addresses.

use std::net::Ipv4Addr;

/// Formats an address in network byte order that was read as a number of this machine. Fields may
/// be signed.
pub(super) fn name(number: i128) -> Option<String> {
    let bits = u32::try_from(number)
        .or_else(|_| i32::try_from(number).map(i32::cast_unsigned))
        .ok()?;
    Some(Ipv4Addr::from(bits.to_ne_bytes()).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let number = u32::from_ne_bytes([192, 168, 0, 1]);
        assert_eq!(name(number.into()).as_deref(), Some("192.168.0.1"));
        assert_eq!(name(number.cast_signed().into()).as_deref(), Some("192.168.0.1"));
        assert_eq!(name(1 << 32), None);
    }
}
