// SPDX-License-Identifier: MIT OR Apache-2.0

//! Room in a histogram: how many entries it has, and how long an idle one stays.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::Deserialize;
use serde::Deserializer;
use serde::de::Error as _;
use serde::de::Visitor;

/// Least number of entries.
pub const LEAST: u32 = 65;

/// Limits of a number of entries that does not grow, and of the first one of a number that does.
const ENTRIES: RangeInclusive<u32> = LEAST..=131_072;

/// Limit of a number of entries that grows.
const MOST: u32 = 1 << 20;

/// Limits of a time, in nanoseconds: a second, and a year of 365 days.
const IDLE: RangeInclusive<u64> = NS_PER_S..=365 * 24 * 3600 * NS_PER_S;

const NS_PER_S: u64 = 1_000_000_000;

/// Units of a time with their nanoseconds, the largest first.
const UNITS: [(&str, u64); 4] = [
    ("h", 3600 * NS_PER_S),
    ("m", 60 * NS_PER_S),
    ("s", NS_PER_S),
    ("ms", 1_000_000),
];

/// Number of entries of a histogram: `2048`, or `2048..131072` if it grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Number of entries at first.
    pub entries: u32,
    /// Number of entries that it may grow to. `None` if it does not grow.
    pub most: Option<u32>,
}

/// A text is not a [`Size`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeError;

/// Time after which an entry without hits is taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idle {
    /// Nanoseconds, whole milliseconds.
    ns: u64,
}

/// A text is not an [`Idle`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleError;

impl Size {
    /// A number of entries that does not grow.
    pub const fn fixed(entries: u32) -> Self {
        Self { entries, most: None }
    }

    /// This number of entries at first, and up to `most` later. The kernel rounds both up to powers
    /// of two: if they are the same then, it does not grow.
    pub fn up_to(self, most: u32) -> Self {
        let most = self.most.unwrap_or(most);
        Self {
            most: (self.entries.next_power_of_two() < most.next_power_of_two()).then_some(most),
            ..self
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.most {
            None => write!(f, "{}", self.entries),
            Some(most) => write!(f, "{}..{most}", self.entries),
        }
    }
}

impl FromStr for Size {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        let (entries, most) = match text.split_once("..") {
            None => (text, None),
            Some((entries, most)) => (entries, Some(most)),
        };
        let size = Self {
            entries: entries.parse().map_err(|_| SizeError)?,
            most: most.map(str::parse).transpose().map_err(|_| SizeError)?,
        };
        let grows = |most| most <= MOST && size.up_to(most).most.is_some();
        match ENTRIES.contains(&size.entries) && size.most.is_none_or(grows) {
            true => Ok(size),
            false => Err(SizeError),
        }
    }
}

impl fmt::Display for SizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (least, most) = (ENTRIES.start(), ENTRIES.end());
        write!(
            f,
            "expected a number from {least} to {most}, or A..B, where A is such a number, and B is above it and at most {MOST}, both rounded up to powers of two"
        )
    }
}

impl std::error::Error for SizeError {}

impl<'de> Deserialize<'de> for Size {
    /// Reads a number, or a text.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Sizes;

        impl Visitor<'_> for Sizes {
            type Value = Size;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size, as in 2048 or \"2048..131072\"")
            }

            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Size, E> {
                self.visit_str(&number.to_string())
            }

            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Size, E> {
                self.visit_str(&number.to_string())
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Size, E> {
                text.parse().map_err(|error| E::custom(format!("size: {error}")))
            }
        }

        deserializer.deserialize_any(Sizes)
    }
}

impl Idle {
    /// An hour.
    pub const HOUR: Self = Self { ns: 3600 * NS_PER_S };

    /// Nanoseconds of the time.
    pub fn ns(self) -> u64 {
        self.ns
    }
}

/// Prints the time in the largest unit of which it is a multiple, as the kernel does.
impl fmt::Display for Idle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = UNITS.iter().find(|(_, ns)| self.ns.is_multiple_of(*ns));
        let (name, ns) = unit.unwrap_or(&UNITS[3]);
        write!(f, "{}{name}", self.ns / ns)
    }
}

impl FromStr for Idle {
    type Err = IdleError;

    fn from_str(text: &str) -> Result<Self, IdleError> {
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let (_, unit) = text.split_at(digits.len());
        let unit = UNITS.iter().find(|(name, _)| *name == unit);
        let (_, ns) = unit.ok_or(IdleError)?;
        // A number may have a sign.
        let number = Some(digits).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()));
        let number = number.and_then(|digits| digits.parse::<u64>().ok());
        let ns = number.and_then(|number| number.checked_mul(*ns));
        let ns = ns.filter(|ns| IDLE.contains(ns)).ok_or(IdleError)?;
        Ok(Self { ns })
    }
}

impl fmt::Display for IdleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected a time from 1s to 8760h, with ms, s, m or h, as in 60s")
    }
}

impl std::error::Error for IdleError {}

impl<'de> Deserialize<'de> for Idle {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse()
            .map_err(|error| D::Error::custom(format!("expire: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let shown = |text: &str| text.parse::<Size>().map(|size| size.to_string());
        for text in ["65", "131072", "65..129", "2048..131072", "131072..1048576", "100..200"] {
            assert_eq!(shown(text).as_deref(), Ok(text));
        }
        for text in [
            "",
            "64",
            "131073",
            "-65",
            "2048..",
            "..2048",
            "64..1000",
            "2048..2048",
            "1025..2048",
            "2048..100",
            "131073..1048576",
            "2048..1048577",
            "2048...4096",
            "2048..4096..8192",
            "0x800",
            "2k",
        ] {
            assert_eq!(shown(text), Err(SizeError), "{text}");
        }
    }

    #[test]
    fn growth() {
        let up_to = |text: &str, most| text.parse::<Size>().unwrap().up_to(most).to_string();
        assert_eq!(up_to("2048", 131_072), "2048..131072");
        assert_eq!(up_to("131072", 131_072), "131072");
        assert_eq!(up_to("2000", 2048), "2000");
        assert_eq!(up_to("100..200", 131_072), "100..200");
    }

    #[test]
    fn times() {
        let shown = |text: &str| text.parse::<Idle>().map(|idle| idle.to_string());
        for (text, expected) in [
            ("1s", "1s"),
            ("1000ms", "1s"),
            ("1500ms", "1500ms"),
            ("60s", "1m"),
            ("90m", "90m"),
            ("120m", "2h"),
            ("8760h", "8760h"),
        ] {
            assert_eq!(shown(text).as_deref(), Ok(expected));
        }
        for text in [
            "",
            "1",
            "s",
            "0s",
            "999ms",
            "8761h",
            "+1s",
            "-1s",
            "1.5s",
            "1 s",
            "1S",
            "1d",
            "1us",
            "0x1s",
            "99999999999999999999s",
            "18446744073709551615h",
        ] {
            assert_eq!(shown(text), Err(IdleError), "{text}");
        }
        assert_eq!(Idle::HOUR.to_string(), "1h");
    }
}
