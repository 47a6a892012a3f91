// SPDX-License-Identifier: MIT OR Apache-2.0

//! Numbers with units, as people read and write them: `31.8 ms`, `1.5 GiB`, `12,345`.

use std::fmt;

use crate::table::Quantile;
use crate::table::Text;
use crate::table::Unit;

/// A number with its unit, printed with three significant digits: `31.8 ms`. Plain numbers are
/// whole from 1,000 on; with `{:#}` they also have three digits: `12.3 k`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantity {
    /// Number in this unit.
    pub value: f64,
    /// Unit of the number.
    pub unit: Unit,
}

/// A plain number, printed with all its digits: `12,345`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count(pub i128);

/// A quantile with its error bound: `4.2 ms ±5 %`. The bound includes the rounding to the printed
/// digits. An exact quantile has none; if the true value may be twice or half as large, only the
/// two ends are printed: `0 ns to 1 µs`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Estimated quantile.
    pub quantile: Quantile,
    /// Unit of its numbers.
    pub unit: Unit,
}

/// A text does not parse as a quantity. Prints as a sentence without a full stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuantityError(String);

/// A multiple of a unit: its name, and its size in the smallest unit.
type Step = (&'static str, f64);

const TIME: &[Step] = &[
    ("ns", 1.0),
    ("µs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("min", 60e9),
    ("h", 3600e9),
    ("d", 86400e9),
];
const BYTES: &[Step] = &[
    ("B", 1.0),
    ("KiB", 1024.0),
    ("MiB", 1048576.0),
    ("GiB", 1073741824.0),
    ("TiB", 1099511627776.0),
    ("PiB", 1125899906842624.0),
];
const THINGS: &[Step] = &[("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12)];

/// Units of time that the parser accepts, in nanoseconds.
const TIME_NAMES: &[(&str, i128)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Units of memory that the parser accepts, in bytes.
const BYTES_NAMES: &[(&str, i128)] = &[
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("K", 1 << 10),
    ("M", 1 << 20),
    ("G", 1 << 30),
    ("T", 1 << 40),
];

/// Formats a count with a noun, which is given in the plural: `1 wait`, `12 waits`.
pub fn things(count: u64, noun: &str) -> String {
    let one = match noun.strip_suffix("ies") {
        Some(stem) => format!("{stem}y"),
        None => {
            let is_long = ["sses", "ches", "shes", "xes"].iter().any(|end| noun.ends_with(end));
            let end = if is_long { "es" } else { "s" };
            noun.strip_suffix(end).unwrap_or(noun).to_owned()
        }
    };
    format!("{} {}", Count(count.into()), if count == 1 { &one } else { noun })
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (steps, value) = match self.unit {
            Unit::Nanoseconds => (TIME, self.value),
            Unit::Microseconds => (TIME, self.value * 1e3),
            Unit::Bytes => (BYTES, self.value),
            Unit::Plain if f.alternate() => (THINGS, self.value),
            Unit::Plain => (&THINGS[..1], self.value),
        };
        f.pad(&in_steps(value, steps))
    }
}

/// Formats `value` in the largest unit in which it is at least 1.
fn in_steps(value: f64, steps: &[Step]) -> String {
    if !value.is_finite() {
        return "?".to_owned();
    }
    let fits = |&&(_, size): &&Step| rounded(value.abs() / size).0 >= 1.0;
    let step = steps.iter().rev().find(fits).or(steps.first());
    let Some(&(name, size)) = step else {
        return value.to_string();
    };
    // 999.9 µs would round to 1000 µs: print 1 ms.
    let next = steps.iter().find(|&&(_, next)| next > size);
    let (number, decimals) = rounded(value.abs() / size);
    let (number, decimals, name) = match next {
        Some(&(next_name, next_size)) if number >= (next_size / size).round() => (1.0, 0, next_name),
        _ => (number, decimals, name),
    };
    let sign = if value < 0.0 && number > 0.0 { "-" } else { "" };
    let digits = match decimals {
        0 => Count(number as i128).to_string(),
        decimals => {
            let digits = format!("{number:.decimals$}");
            digits.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
    };
    let space = if name.is_empty() { "" } else { " " };
    format!("{sign}{digits}{space}{name}")
}

/// Rounds to three significant digits, or to a whole number. Returns the number of decimals as
/// well.
fn rounded(value: f64) -> (f64, usize) {
    let decimals = match value {
        99.95.. => 0,
        9.995.. => 1,
        0.9995.. => 2,
        _ => 3,
    };
    let tens = 10f64.powi(decimals);
    ((value * tens).round() / tens, decimals as usize)
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.unsigned_abs().to_string();
        let mut grouped = String::with_capacity(digits.len() * 4 / 3 + 1);
        if self.0 < 0 {
            grouped.push('-');
        }
        for (n, digit) in digits.chars().enumerate() {
            if n > 0 && (digits.len() - n).is_multiple_of(3) {
                grouped.push(',');
            }
            grouped.push(digit);
        }
        f.pad(&grouped)
    }
}

impl Estimate {
    /// Maximum deviation of the true value from the printed number, in per cent. `None` if the
    /// number is exact except for rounding.
    pub fn percent(&self) -> Option<f64> {
        // Rounding to three digits adds at most half a per cent.
        let error = self.quantile.error();
        (error > 0.0).then(|| (error * 100.0 + 0.5).ceil())
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Quantile { value, low, high } = self.quantile;
        let show = |value| Quantity { value, unit: self.unit };
        match self.percent() {
            None => f.pad(&show(value).to_string()),
            Some(percent) if percent < 100.0 => f.pad(&format!("{} ±{percent} %", show(value))),
            Some(_) => f.pad(&format!("{} to {}", show(low), show(high))),
        }
    }
}

/// Parses a quantity, and returns it in `unit`, rounded to a whole number: `10ms`, `1.5s`, `64KiB`,
/// `1000`. A time needs its unit; bytes and plain numbers do not.
///
/// Fails with a sentence if the text is not a number, has another kind of unit, is negative, or is
/// too large for 64 bits.
pub fn parse(text: &str, unit: Unit) -> Result<i128, QuantityError> {
    let text = text.trim();
    let shown = Text::from(text);
    let fail = |what: String| Err(QuantityError(what));
    let at = text.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '_' | ','));
    let (number, name) = text.split_at(at.unwrap_or(text.len()));
    let name = name.trim_start().replace('μ', "µ");
    let (names, each, least, example) = match unit {
        Unit::Nanoseconds => (TIME_NAMES, 1, "1 ns", "10ms"),
        Unit::Microseconds => (TIME_NAMES, 1_000, "1 µs", "10ms"),
        Unit::Bytes => (BYTES_NAMES, 1, "1 B", "64KiB"),
        Unit::Plain => (&[][..], 1, "1", "1000"),
    };
    let Some((digits, decimals)) = decimal(number) else {
        return fail(format!("\"{shown}\" is not a number such as {example}"));
    };
    let size = match names.iter().find(|&&(known, _)| known == name) {
        Some(&(_, size)) => size,
        None if name.is_empty() && !matches!(unit, Unit::Nanoseconds | Unit::Microseconds) => 1,
        None if name.is_empty() => return fail(format!("\"{shown}\" needs a unit, as in {shown}ms")),
        None if names.is_empty() => return fail(format!("\"{shown}\" has a unit, but this is a number of things")),
        None => {
            let known: Vec<&str> = names.iter().map(|&(known, _)| known).collect();
            let (name, known) = (Text::from(name.as_str()), known.join(", "));
            return fail(format!(
                "\"{name}\" is not a unit that fits here; possible units: {known}"
            ));
        }
    };
    let divisor = 10i128.pow(decimals) * each;
    let Some(whole) = digits
        .checked_mul(size)
        .map(|product| (product + divisor / 2) / divisor)
    else {
        return fail(format!("\"{shown}\" is too large"));
    };
    if whole > u64::MAX.into() {
        return fail(format!("\"{shown}\" is too large"));
    }
    if whole == 0 && digits > 0 {
        return fail(format!("\"{shown}\" is less than {least}"));
    }
    Ok(whole)
}

/// Digits of a decimal number as an integer, and the number of decimals, at most 9.
fn decimal(number: &str) -> Option<(i128, u32)> {
    let (whole, behind) = number.split_once('.').unwrap_or((number, ""));
    let digits: String = whole.chars().filter(|c| !matches!(c, '_' | ',')).collect();
    if digits.is_empty() || digits.len() > 20 || behind.len() > 9 || behind.contains(['.', '_', ',']) {
        return None;
    }
    let decimals = behind.len() as u32;
    Some(((digits + behind).parse().ok()?, decimals))
}

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for QuantityError {}

#[cfg(test)]
mod tests;
