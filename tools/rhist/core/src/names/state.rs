// SPDX-License-Identifier: MIT OR Apache-2.0

//! Task states in `prev_state` of `sched_switch`.

/// Letters by bit.
const NAMES: [char; 8] = ['S', 'D', 'T', 't', 'X', 'Z', 'P', 'I'];
/// The task was preempted while runnable.
const PREEMPTED: i128 = 0x100;

/// Formats a state like the event's own print format: letters of all bits, `R` for none, `+` for
/// preempted.
pub(super) fn name(number: i128) -> Option<String> {
    if !(0..PREEMPTED * 2).contains(&number) {
        return None;
    }
    let bits = NAMES.iter().enumerate().filter(|(bit, _)| number >> bit & 1 != 0);
    let mut name: Vec<String> = bits.map(|(_, letter)| letter.to_string()).collect();
    if name.is_empty() {
        name.push("R".to_owned());
    }
    let preempted = if number & PREEMPTED != 0 { "+" } else { "" };
    Some(name.join("|") + preempted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tracefs::Symbols;

    #[test]
    fn states() {
        for (number, expected) in [
            (0, "R"),
            (1, "S"),
            (2, "D"),
            (3, "S|D"),
            (0x80, "I"),
            (256, "R+"),
            (257, "S+"),
        ] {
            assert_eq!(name(number).as_deref(), Some(expected));
        }
        let format = include_str!("../../tests/fixtures/events/sched/sched_switch/format");
        let state = Symbols::parse(format, "prev_state").unwrap();
        for number in 1..256 {
            assert_eq!(state.name(number), name(number));
        }
        assert_eq!(name(512), None);
        assert_eq!(name(-1), None);
    }
}
