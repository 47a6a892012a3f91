// SPDX-License-Identifier: MIT OR Apache-2.0

//! Formats numbers for narrow columns.

use rhist_core::quantity::Quantity;
use rhist_core::table::Unit;

/// A number with its unit, in at most 9 cells unless it is negative.
pub fn short(value: f64, unit: Unit) -> String {
    format!("{:#}", Quantity { value, unit })
}

/// A difference, with its sign.
pub fn signed(value: f64, unit: Unit) -> String {
    match value > 0.0 {
        true => format!("+{}", short(value, unit)),
        false => short(value, unit),
    }
}

/// A share, as a percentage.
pub fn percent(part: f64) -> String {
    let percent = part * 100.0;
    match percent.abs() {
        ..0.1 => format!("{percent:.3} %"),
        ..10.0 => format!("{percent:.2} %"),
        ..100.0 => format!("{percent:.1} %"),
        _ => format!("{percent:.0} %"),
    }
}

/// A change in at most 6 cells: a percentage, or the factor if it is large.
pub fn change(part: f64) -> String {
    match part + 1.0 {
        f64::INFINITY => "new".into(),
        1000.0.. => "x>999".into(),
        10.0.. => format!("x{:.0}", part + 1.0),
        _ if part.abs() < 0.005 => "0%".into(),
        _ => format!("{:+.0}%", part * 100.0),
    }
}

/// Seconds, with a unit.
pub fn seconds(seconds: f64) -> String {
    match seconds {
        ..0.1 => format!("{:.0} ms", seconds * 1e3),
        ..10.0 => format!("{seconds:.1} s"),
        _ => format!("{seconds:.0} s"),
    }
}

/// Seconds as hours, minutes and seconds.
pub fn clock(seconds: f64) -> String {
    let seconds = seconds as u64;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes:02}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_fit() {
        let changes = [-1.0, -0.126, 0.0, 0.004, 0.5, 8.99, 9.0, 998.9, 1e9, f64::INFINITY];
        let texts = [
            "-100%", "-13%", "0%", "0%", "+50%", "+899%", "x10", "x1000", "x>999", "new",
        ];
        assert_eq!(changes.map(change), texts);
    }

    #[test]
    fn times_are_as_on_a_clock() {
        assert_eq!(
            [0.0, 59.9, 60.0, 3600.0, 1e30].map(clock)[..4],
            ["00:00", "00:59", "01:00", "1:00:00"]
        );
    }
}
