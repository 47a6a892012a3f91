// SPDX-License-Identifier: MIT OR Apache-2.0

use proptest::prelude::*;

use super::*;
use crate::table::Dist;

fn shown(value: f64, unit: Unit) -> String {
    Quantity { value, unit }.to_string()
}

#[test]
fn one_thing_or_many() {
    for (count, noun, text) in [
        (0, "waits", "0 waits"),
        (1, "waits", "1 wait"),
        (12_345, "waits", "12,345 waits"),
        (1, "idle periods", "1 idle period"),
        (1, "expiries", "1 expiry"),
        (1, "switches", "1 switch"),
        (1, "times", "1 time"),
        (1, "s", "1 "),
        (1, "é", "1 é"),
    ] {
        assert_eq!(things(count, noun), text);
    }
}

#[test]
fn three_digits() {
    let time = |ns| shown(ns, Unit::Nanoseconds);
    let shown: Vec<String> = [
        0.0,
        0.5,
        2.4,
        999.0,
        999.4,
        999.5,
        1000.0,
        1234.0,
        999_499.0,
        999_500.0,
        31_812_345.0,
        1e9,
        59.94e9,
        59.96e9,
        90e9,
        3600e9,
        1e18,
        -1500.0,
    ]
    .map(time)
    .into();
    insta::assert_snapshot!(shown.join(", "), @"0 ns, 0.5 ns, 2.4 ns, 999 ns, 999 ns, 1 µs, 1 µs, 1.23 µs, 999 µs, 1 ms, 31.8 ms, 1 s, 59.9 s, 1 min, 1.5 min, 1 h, 11,574 d, -1.5 µs");
}

#[test]
fn other_units() {
    assert_eq!(shown(31_812.0, Unit::Microseconds), "31.8 ms");
    assert_eq!(shown(1023.0, Unit::Bytes), "1,023 B");
    assert_eq!(shown(1024.0 * 1023.7, Unit::Bytes), "1 MiB");
    assert_eq!(shown(1.5 * 1073741824.0, Unit::Bytes), "1.5 GiB");
    assert_eq!(shown(12_345.0, Unit::Plain), "12,345");
    assert_eq!(shown(12.345, Unit::Plain), "12.3");
    assert_eq!(shown(999.9, Unit::Plain), "1,000");
    assert_eq!(
        format!(
            "{:#}",
            Quantity {
                value: 12_345.0,
                unit: Unit::Plain
            }
        ),
        "12.3 k"
    );
    assert_eq!(shown(f64::NAN, Unit::Bytes), "?");
    assert_eq!(
        format!(
            "{:>9}|",
            Quantity {
                value: 1.0,
                unit: Unit::Microseconds
            }
        ),
        "     1 µs|"
    );
    let counts = [0, 999, 1000, -1_234_567, u64::MAX.into()].map(|count| Count(count).to_string());
    assert_eq!(
        counts,
        ["0", "999", "1,000", "-1,234,567", "18,446,744,073,709,551,615"]
    );
}

#[test]
fn estimates() {
    let estimate = |value, low, high| {
        let quantile = Quantile { value, low, high };
        let unit = Unit::Nanoseconds;
        Estimate { quantile, unit }.to_string()
    };
    assert_eq!(estimate(4_200_000.0, 4_022_000.0, 4_386_000.0), "4.2 ms ±5 %");
    assert_eq!(estimate(90.5, 64.0, 128.0), "90.5 ns ±42 %");
    assert_eq!(estimate(7.0, 7.0, 7.0), "7 ns");
    assert_eq!(estimate(0.5, 0.0, 1.0), "0 ns to 1 ns");
    assert_eq!(estimate(0.0, 0.0, 0.0), "0 ns");
}

#[test]
fn reads_what_people_write() {
    let ns = |text| parse(text, Unit::Nanoseconds);
    assert_eq!(ns("10ms"), Ok(10_000_000));
    assert_eq!(ns(" 1.5 s "), Ok(1_500_000_000));
    assert_eq!(ns("1_000µs"), Ok(1_000_000));
    assert_eq!(ns("1,000μs"), Ok(1_000_000));
    assert_eq!(parse("10ms", Unit::Microseconds), Ok(10_000));
    assert_eq!(parse("64KiB", Unit::Bytes), Ok(65_536));
    assert_eq!(parse("4096", Unit::Bytes), Ok(4096));
    assert_eq!(parse("12", Unit::Plain), Ok(12));
    assert_eq!(parse("18446744073709551615", Unit::Plain), Ok(u64::MAX.into()));
}

#[test]
fn says_what_is_wrong() {
    let wrong = [
        ("10", Unit::Nanoseconds),
        ("", Unit::Nanoseconds),
        ("-1ms", Unit::Nanoseconds),
        ("1.2.3ms", Unit::Nanoseconds),
        ("10MiB", Unit::Nanoseconds),
        ("10\u{1b}[31m", Unit::Nanoseconds),
        ("500ns", Unit::Microseconds),
        ("499ns", Unit::Microseconds),
        ("0.4ns", Unit::Nanoseconds),
        ("0.4", Unit::Bytes),
        ("0.4", Unit::Plain),
        ("10ms", Unit::Plain),
        ("99999999999999999999", Unit::Plain),
        ("9999999999999T", Unit::Bytes),
    ];
    let said: Vec<String> = wrong
        .map(|(text, unit)| parse(text, unit).map_or_else(|error| error.to_string(), |number| number.to_string()))
        .into();
    insta::assert_snapshot!(said.join("\n"), @r#"
    "10" needs a unit, as in 10ms
    "" is not a number such as 10ms
    "-1ms" is not a number such as 10ms
    "1.2.3ms" is not a number such as 10ms
    "MiB" is not a unit that fits here; possible units: ns, us, µs, ms, s, min, h
    "\u{1b}[31m" is not a unit that fits here; possible units: ns, us, µs, ms, s, min, h
    1
    "499ns" is less than 1 µs
    "0.4ns" is less than 1 ns
    "0.4" is less than 1 B
    "0.4" is less than 1
    "10ms" has a unit, but this is a number of things
    "99999999999999999999" is too large
    "9999999999999T" is too large
    "#);
}

proptest! {
    #[test]
    fn never_a_thousand(value in 0.0..1e19f64) {
        for unit in [Unit::Nanoseconds, Unit::Microseconds] {
            let shown = shown(value, unit);
            prop_assert!(shown.chars().filter(char::is_ascii_digit).count() <= 3 || shown.ends_with(" d"), "{}", shown);
        }
    }

    #[test]
    fn three_digits_are_off_by_half_a_per_cent(value in 1..1u64 << 62) {
        let shown = shown(value as f64, Unit::Bytes);
        if let Some((number, "PiB")) = shown.split_once(' ') {
            let read: f64 = number.replace(',', "").parse().unwrap();
            let value = value as f64 / (1u64 << 50) as f64;
            prop_assert!((read - value).abs() <= 0.00501 * value, "{}", shown);
        } else {
            let read = parse(&shown, Unit::Bytes).unwrap() as f64;
            prop_assert!((read - value as f64).abs() <= 0.00501 * value as f64 , "{}", shown);
        }
    }

    #[test]
    fn shown_bound_holds_for_shown_number(values in prop::collection::vec(1..1u64 << 40, 1..9), scale in 0..=5u8) {
        let mut dist = Dist::new(scale);
        values.iter().for_each(|&value| dist.record(value.into(), 1));
        let mut sorted = values.clone();
        sorted.sort_unstable();
        let truth = sorted[values.len().div_ceil(2) - 1] as f64;
        let quantile = dist.quantile(0.5).unwrap();
        let estimate = Estimate { quantile, unit: Unit::Bytes };
        let read = parse(&shown(quantile.value, Unit::Bytes), Unit::Bytes).unwrap() as f64;
        let percent = estimate.percent().unwrap_or(0.5);
        // parse() rounds to whole bytes.
        prop_assert!((read - truth).abs() <= percent / 100.0 * truth + 0.5, "{} {}", estimate, truth);
    }

    #[test]
    fn any_text_is_read_or_refused(text: String) {
        for unit in [Unit::Plain, Unit::Nanoseconds, Unit::Microseconds, Unit::Bytes] {
            if let Err(error) = parse(&text, unit) {
                prop_assert!(!error.to_string().contains(char::is_control));
            }
        }
    }
}
