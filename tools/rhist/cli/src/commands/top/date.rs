// SPDX-License-Identifier: MIT OR Apache-2.0

//! Formats dates for names of files.

use std::time::SystemTime;
use std::time::UNIX_EPOCH;

/// Formats a time in UTC: `20261126-064505`.
pub fn file_name(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (days, seconds) = (seconds / 86400, seconds % 86400);
    // Counts years from March, so that a leap day is the last one; each 400 years have the same
    // number of days.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = era * 400 + year + later;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let name = |seconds| file_name(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(name(0), "19700101-000000");
        assert_eq!(name(951_782_399), "20000228-235959");
        assert_eq!(name(951_782_400), "20000229-000000");
        assert_eq!(name(1_795_675_505), "20261126-064505");
        assert_eq!(name(4_107_542_400), "21000301-000000");
    }
}
