// SPDX-License-Identifier: MIT OR Apache-2.0

//! Names of softirqs, as in `/proc/softirqs`.

const NAMES: [&str; 10] = [
    "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU",
];

pub(super) fn name(number: i128) -> Option<&'static str> {
    NAMES.get(usize::try_from(number).ok()?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn softirqs() {
        assert_eq!(name(3), Some("NET_RX"));
        assert_eq!(name(9), Some("RCU"));
        assert_eq!(name(10), None);
        assert_eq!(name(-1), None);
    }
}
