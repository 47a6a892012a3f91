// SPDX-License-Identifier: MIT OR Apache-2.0

//! Parses `Retry-After` of HTTP.

use std::time::Duration;

/// Limit of a pause, whatever the receiver asks for.
const LONGEST: Duration = Duration::from_secs(3600);

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// Parses a pause: a number of seconds, however large, or a date, which may be in the past. `now`
/// is in seconds since 1970.
pub fn parse(value: &str, now: u64) -> Option<Duration> {
    let value = value.trim();
    let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    let wait = match is_number {
        true => value.parse().map_or(LONGEST, Duration::from_secs),
        false => Duration::from_secs(date(value)?.saturating_sub(now)),
    };
    Some(wait.min(LONGEST))
}

/// Seconds since 1970 of a date such as `Sun, 06 Nov 1994 08:49:37 GMT`, the form that servers must
/// send. Does not accept the obsolete forms that were allowed until 1999.
fn date(text: &str) -> Option<u64> {
    let words: Vec<&str> = text.split(' ').collect();
    let [_, day, month, year, time, "GMT"] = *words.as_slice() else {
        return None;
    };
    let month = MONTHS.iter().position(|name| *name == month)? as u64 + 1;
    let (day, year): (u64, u64) = (day.parse().ok()?, year.parse().ok()?);
    let clock: Vec<u64> = time.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let [hours, minutes, seconds] = *clock.as_slice() else {
        return None;
    };
    if !((1970..10_000).contains(&year) && (1..=31).contains(&day) && hours < 24 && minutes < 60 && seconds <= 60) {
        return None;
    }
    // Years that begin with March have the leap day at their end.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    // Days from 1 March of the year 0 to 1970.
    Some(((days - 719_468) * 24 + hours) * 3600 + minutes * 60 + seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_dates() {
        let seconds = |value, now| parse(value, now).map(|wait| wait.as_secs());
        assert_eq!(seconds("7", 0), Some(7));
        assert_eq!(seconds(" 0 ", 0), Some(0));
        assert_eq!(seconds("86400", 0), Some(3600));
        assert_eq!(seconds("18446744073709551615", 0), Some(3600));
        assert_eq!(seconds("99999999999999999999999", 0), Some(3600));
        // `date -u -d '1994-11-06 08:49:37' +%s`
        assert_eq!(date("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(date("Thu, 29 Feb 2024 23:59:59 GMT"), Some(1_709_251_199));
        assert_eq!(date("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(seconds("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_770), Some(7));
        assert_eq!(seconds("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_800), Some(0));
        for bad in [
            "",
            "-1",
            "+1",
            "soon",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "1.5",
            "06 Nov 1994",
            "Sun, 99 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 0 08:49:37 GMT",
        ] {
            assert_eq!(parse(bad, 0), None, "{bad}");
        }
    }
}
