// SPDX-License-Identifier: MIT OR Apache-2.0

//! Operations of requests to block devices (`enum req_op`).

pub(super) fn name(number: i128) -> Option<&'static str> {
    Some(match number {
        0 => "read",
        1 => "write",
        2 => "flush",
        3 => "discard",
        5 => "secure erase",
        7 => "zone append",
        9 => "write zeroes",
        11 => "zone open",
        13 => "zone close",
        15 => "zone finish",
        17 => "zone reset",
        19 => "zone reset all",
        34 => "driver in",
        35 => "driver out",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations() {
        assert_eq!(name(0), Some("read"));
        assert_eq!(name(1), Some("write"));
        assert_eq!(name(4), None);
        assert_eq!(name(-1), None);
    }
}
