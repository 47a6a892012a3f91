// SPDX-License-Identifier: MIT OR Apache-2.0

//! States of TCP connections (`include/net/tcp_states.h`). Print formats show names of constants
//! instead of their numbers.

/// Names from state 1 on.
const NAMES: [&str; 12] = [
    "ESTABLISHED",
    "SYN_SENT",
    "SYN_RECV",
    "FIN_WAIT1",
    "FIN_WAIT2",
    "TIME_WAIT",
    "CLOSE",
    "CLOSE_WAIT",
    "LAST_ACK",
    "LISTEN",
    "CLOSING",
    "NEW_SYN_RECV",
];

pub(super) fn name(number: i128) -> Option<&'static str> {
    NAMES.get(usize::try_from(number.checked_sub(1)?).ok()?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states() {
        assert_eq!(name(1), Some("ESTABLISHED"));
        assert_eq!(name(12), Some("NEW_SYN_RECV"));
        assert_eq!(name(0), None);
        assert_eq!(name(13), None);
        assert_eq!(name(i128::MIN), None);
    }
}
