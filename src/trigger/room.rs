// SPDX-License-Identifier: GPL-2.0

//! The arguments of `expire(…)` and `full(…)`: how a map makes room for new keys.

use core::{
    fmt,
    mem::replace, //
};

use crate::limits::{
    EXPIRE_MAX_NS,
    EXPIRE_MIN_NS, //
};

/// The units of a time: names and nanoseconds, the largest first.
const UNITS: [(&str, u64); 4] = [
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
];

/// `expire(…)`: idle entries that are taken out. By default none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expire {
    /// The nanoseconds without a hit after which an entry is idle.
    pub idle_ns: Option<u64>,
    /// An entry with a number variable that is not set, since it was taken, is idle at once.
    pub taken: bool,
}

impl Expire {
    /// Parses `taken`, a time such as `60s`, or both with a comma between. `None`: it is invalid.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut expire = Self::default();
        for piece in text.split(|&byte| byte == b',') {
            let repeated = match piece {
                b"taken" => replace(&mut expire.taken, true),
                time => expire.idle_ns.replace(nanoseconds(time)?).is_some(),
            };
            if repeated {
                return None;
            }
        }
        Some(expire)
    }
}

impl fmt::Display for Expire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let taken = if self.taken { "taken" } else { "" };
        let Some(ns) = self.idle_ns else {
            return f.write_str(taken);
        };
        let comma = if self.taken { "," } else { "" };
        let mut units = UNITS.into_iter();
        // The time is a multiple of the smallest unit.
        let unit = units.find(|(_, unit)| ns % unit == 0);
        let (name, unit) = unit.unwrap_or(("ns", 1));
        write!(f, "{taken}{comma}{}{name}", ns / unit)
    }
}

/// Reads decimal digits and a unit. `None`: they are not, or the time is too short or too long.
fn nanoseconds(text: &[u8]) -> Option<u64> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, unit) = text.split_at(digits);
    let mut number = 0u64;
    for &digit in digits {
        number = number.checked_mul(10)?.checked_add((digit - b'0').into())?;
    }
    let mut units = UNITS.into_iter();
    let (_, unit) = units.find(|(name, _)| name.as_bytes() == unit)?;
    let ns = number.checked_mul(unit)?;
    (EXPIRE_MIN_NS..=EXPIRE_MAX_NS).contains(&ns).then_some(ns)
}

/// `full(…)`: how new keys are treated while the map is full. By default their hits are dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Full {
    /// An eighth of the map is kept free, by taking out the entries that were idle the longest.
    pub recycle: bool,
    /// Their hits are summed in the entry `other`.
    pub other: bool,
}

impl Full {
    /// Parses `recycle`, `other`, or both with a comma between. `None`: it is invalid.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut full = Self::default();
        for piece in text.split(|&byte| byte == b',') {
            let repeated = match piece {
                b"recycle" => replace(&mut full.recycle, true),
                b"other" => replace(&mut full.other, true),
                _ => return None,
            };
            if repeated {
                return None;
            }
        }
        Some(full)
    }

    /// The words that are set, in the order in which they are printed.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        let words = [("recycle", self.recycle), ("other", self.other)];
        words
            .into_iter()
            .filter_map(|(word, set)| set.then_some(word))
    }
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, word) in self.words().enumerate() {
            let comma = if n > 0 { "," } else { "" };
            write!(f, "{comma}{word}")?;
        }
        Ok(())
    }
}
