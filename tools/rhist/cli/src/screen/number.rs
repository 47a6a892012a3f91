// SPDX-License-Identifier: MIT OR Apache-2.0

//! Formats numbers for tables.

use rhist_core::quantity::Count;
use rhist_core::quantity::Quantity;
use rhist_core::table::Unit;

/// From this number on, the ends of ranges are rounded.
const ROUNDED_FROM: i128 = 1000;

/// A plain number, with all its digits.
pub(super) fn count(count: u64) -> String {
    Count(count.into()).to_string()
}

/// A number with three digits, and its unit.
pub(super) fn quantity(value: f64, unit: Unit) -> String {
    Quantity { value, unit }.to_string()
}

/// A rate per second.
pub(crate) fn rate(rate: f64) -> String {
    match rate {
        0.05..9.95 => format!("{rate:.1}"),
        9.95.. => quantity(rate.round(), Unit::Plain),
        _ => quantity(rate, Unit::Plain),
    }
}

/// A duration.
pub(super) fn seconds(seconds: f64) -> String {
    quantity(seconds * 1e9, Unit::Nanoseconds)
}

/// Duration of a measurement, as the end of a sentence.
pub(crate) fn until(duration: Option<f64>) -> String {
    match duration {
        Some(duration) => format!("for {}", seconds(duration)),
        None => "until Ctrl-C".to_owned(),
    }
}

/// A share, in per cent.
pub(crate) fn percent(part: f64) -> String {
    match part * 100.0 {
        percent if percent > 0.0 && percent < 0.01 => "less than 0.01 %".to_owned(),
        percent if percent < 10.0 => format!("{percent:.2} %"),
        percent => format!("{percent:.0} %"),
    }
}

/// Lower end of a range. From [`ROUNDED_FROM`] on, prints the end of the previous range, so that
/// adjacent ranges match after rounding.
pub(super) fn low(low: i128, unit: Unit) -> String {
    match low {
        0 => "0".to_owned(),
        ROUNDED_FROM.. if unit != Unit::Plain => quantity((low - 1) as f64, unit),
        _ => quantity(low as f64, unit),
    }
}

/// A range of values, with both ends.
pub(super) fn range(first: i128, last: i128, unit: Unit) -> String {
    let end = quantity(last as f64, unit);
    match first == last {
        true => end,
        false => format!("{} – {end}", low(first, unit)),
    }
}

/// Time of day in UTC, from nanoseconds since 1970. `None` if the time is 0, which means unknown.
pub(super) fn clock(realtime_ns: u64) -> Option<String> {
    let seconds = realtime_ns / 1_000_000_000 % 86_400;
    let text = format!("{:02}:{:02}:{:02}Z", seconds / 3600, seconds / 60 % 60, seconds % 60);
    (realtime_ns > 0).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        assert_eq!(range(1025, 2048, Unit::Nanoseconds), "1.02 µs – 2.05 µs");
        assert_eq!(range(513, 1024, Unit::Bytes), "513 B – 1 KiB");
        assert_eq!(range(1025, 2048, Unit::Plain), "1,025 – 2,048");
        assert_eq!(range(1, 1, Unit::Plain), "1");
        assert_eq!(range(0, 0, Unit::Nanoseconds), "0 ns");
        assert_eq!(range(0, 1, Unit::Nanoseconds), "0 – 1 ns");
    }

    #[test]
    fn rates() {
        for (number, expected) in [
            (0.0, "0"),
            (0.012, "0.012"),
            (0.9951, "1.0"),
            (9.94, "9.9"),
            (9.96, "10"),
            (87.6, "88"),
            (9642.2, "9,642"),
        ] {
            assert_eq!(rate(number), expected);
        }
    }

    #[test]
    fn parts() {
        assert_eq!(percent(0.0008), "0.08 %");
        assert_eq!(percent(0.000_000_1), "less than 0.01 %");
        assert_eq!(percent(0.0), "0.00 %");
        assert_eq!(percent(1.234), "123 %");
    }

    #[test]
    fn clocks() {
        assert_eq!(clock(1_795_621_132_746_544_322).as_deref(), Some("15:38:52Z"));
        assert_eq!(clock(0), None);
    }
}
