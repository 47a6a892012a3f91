// SPDX-License-Identifier: MIT OR Apache-2.0

//! Parses entries: `{ key: …, key: … } hitcount: …  value: …`, followed by the values that actions
//! stored.

use std::io::BufRead;
use std::sync::Arc;

use smallvec::smallvec;

use super::layout::Field;
use super::layout::Layout;
use super::layout::Modifier;
use super::layout::Stored;
use super::scanner::Scanner;
use crate::table::Dist;
use crate::table::Frame;
use crate::table::Key;
use crate::table::Other;
use crate::table::ReadError;
use crate::table::Row;
use crate::table::Text;
use crate::table::Value;
use crate::table::Worst;

/// Indent of each function of a stack.
const INDENT: &[u8] = b"         ";

impl Layout {
    /// Parses an entry.
    pub(super) fn entry<R: BufRead>(&self, text: &mut Scanner<R>) -> Result<Row, ReadError> {
        let keys = self.keys(text)?;
        let row = self.counts(text)?;
        let mut worst = None;
        for (n, stored) in self.stored.iter().enumerate() {
            let label: &[u8] = match stored {
                Stored::Max => b"\n\tmax:",
                Stored::Changed => b"\n\tchanged:",
            };
            // rhist leaves it out for an entry that was taken out during the read.
            if !text.take(label)? {
                continue;
            }
            let value = text.number(10)?;
            let saved = self.saved(text)?.into();
            // 0 is the initial value: the kernel has stored nothing yet.
            if self.worst == Some(n) && value > 0 {
                let value = value.into();
                worst = Some(Worst { value, saved });
            }
        }
        text.expect(b"\n")?;
        Ok(Row {
            keys: keys.into(),
            worst,
            ..row
        })
    }

    /// Parses the counts of keys without a row, after `{ other }`.
    pub(super) fn other<R: BufRead>(&self, text: &mut Scanner<R>) -> Result<Row, ReadError> {
        let row = self.counts(text)?;
        // Actions store nothing there.
        text.expect(b"\n")?;
        Ok(Row {
            keys: smallvec![Key::Other(Other::Folded); self.keys.len()],
            ..row
        })
    }

    fn counts<R: BufRead>(&self, text: &mut Scanner<R>) -> Result<Row, ReadError> {
        text.expect(b" hitcount:")?;
        let hits = text.number(10)?;
        let mut values = Vec::with_capacity(self.values.len());
        for field in &self.values {
            text.expect(b"  ")?;
            values.push(field.value_in(text)?);
        }
        Ok(Row {
            hits,
            values,
            ..Row::default()
        })
    }

    fn keys<R: BufRead>(&self, text: &mut Scanner<R>) -> Result<Vec<Key>, ReadError> {
        text.expect(b"{ ")?;
        let has_stack = |field: &Field| matches!(field.modifier, Some(Modifier::Stack | Modifier::FieldStack));
        // The newline after a stack replaces the space.
        let close: &[u8] = match self.keys.iter().any(has_stack) {
            true => b"} hitcount:",
            false => b" } hitcount:",
        };
        let mut keys = Vec::with_capacity(self.keys.len());
        for (n, field) in self.keys.iter().enumerate() {
            text.expect(&field.name)?;
            let end = match self.keys.get(n + 1) {
                Some(next) => [b", ", &*next.name, next.colon()].concat(),
                None => close.to_vec(),
            };
            keys.push(field.key_in(text, &end)?);
            text.expect(if n + 1 < self.keys.len() { b", " } else { b"" })?;
        }
        let brace = close.strip_suffix(b" hitcount:").unwrap_or(close);
        text.expect(brace)?;
        Ok(keys)
    }

    /// Parses the fields stored by `save()`.
    fn saved<R: BufRead>(&self, text: &mut Scanner<R>) -> Result<Vec<(Arc<str>, Key)>, ReadError> {
        let mut saved = Vec::with_capacity(self.saved.len());
        for (n, name) in self.saved.iter().enumerate() {
            text.expect(&[b"  ", &**name, b": "].concat())?;
            let end = match self.saved.get(n + 1) {
                Some(next) => [b"  ", &**next, b": "].concat(),
                None => b"\n".to_vec(),
            };
            let value = match text.plain_number(&end)? {
                Some(number) => Key::Number(number.into()),
                None => Key::Text(text.padded(32, &end)?),
            };
            saved.push((name.to_lossy().into(), value));
        }
        Ok(saved)
    }
}

impl Field {
    /// Text between the name and the value.
    fn colon(&self) -> &'static [u8] {
        match self.modifier {
            Some(Modifier::Stack) => b":\n",
            Some(Modifier::FieldStack) => b".stacktrace",
            _ => b": ",
        }
    }

    /// Parses the value of a key after its name. `end` is the text that follows.
    fn key_in<R: BufRead>(&self, text: &mut Scanner<R>, end: &[u8]) -> Result<Key, ReadError> {
        text.expect(self.colon())?;
        let width = |modifier| if modifier == Modifier::Sym { 45 } else { 55 };
        match self.modifier {
            Some(Modifier::Hex) => Ok(Key::Number(text.number(16)?.into())),
            Some(modifier @ (Modifier::Sym | Modifier::SymOffset)) => {
                text.expect(b"[")?;
                let address = text.number(16)?;
                text.expect(b"] ")?;
                let symbol = text.padded(width(modifier), end)?;
                Ok(Key::Address(Frame {
                    address: Some(address),
                    ..frame(&symbol)
                }))
            }
            Some(Modifier::Execname) => {
                let comm = text.padded(16, b"[")?;
                text.expect(b"[")?;
                let pid = text.number(10)?;
                text.expect(b"]")?;
                // The kernel prints a negative pid unsigned.
                let pid = pid as i64;
                Ok(Key::Task { pid, comm })
            }
            Some(Modifier::Syscall) => {
                let name = text.padded(30, b"[")?.to_lossy();
                text.expect(b"[")?;
                let number = text.number(10)? as i64;
                text.expect(b"]")?;
                let name = match name.strip_prefix("sys_") {
                    Some(name) => Some(name.to_owned()),
                    None => Some(name).filter(|name| name != "unknown_syscall"),
                };
                Ok(Key::Syscall { number, name })
            }
            Some(Modifier::Stack | Modifier::FieldStack) => {
                let mut frames = Vec::new();
                while text.take(INDENT)? {
                    let (line, _) = text.line()?;
                    frames.push(frame(&line));
                }
                Ok(Key::Stack(frames))
            }
            Some(Modifier::Range) => range(text),
            _ => match text.plain_number(end)? {
                Some(number) => Ok(Key::Number(number.into())),
                None => Ok(Key::Text(text.padded(50, end)?)),
            },
        }
    }

    /// Parses a value with its name.
    fn value_in<R: BufRead>(&self, text: &mut Scanner<R>) -> Result<Value, ReadError> {
        text.expect(&self.name)?;
        match self.modifier {
            Some(Modifier::Percent) => {
                text.expect(b" (%):")?;
                if !text.take(b"[ERROR]")? {
                    decimal(text)?;
                }
                Ok(Value::Unknown)
            }
            Some(Modifier::Graph) => {
                text.expect(b": ")?;
                text.columns(20)?;
                Ok(Value::Unknown)
            }
            Some(Modifier::Hex) => {
                text.expect(b":")?;
                Ok(Value::Number(text.number(16)?.into()))
            }
            Some(Modifier::Min) => statistic(text, b".min:").map(Value::Number),
            Some(Modifier::Max) => statistic(text, b".max:").map(Value::Number),
            Some(Modifier::Avg) => statistic(text, b".avg:").map(|_| Value::Unknown),
            Some(Modifier::Dist) => {
                text.expect(b".dist:")?;
                let count = statistic(text, b"  count:")?;
                let min = statistic(text, b"  min:")?;
                while text.take(b"  p")? {
                    decimal(text)?;
                    text.expect(b":")?;
                    decimal(text)?;
                }
                let max = statistic(text, b"  max:")?;
                statistic(text, b"  avg:")?;
                if text.is_at(b"  without bucket:")? {
                    statistic(text, b"  without bucket:")?;
                }
                Ok(Value::Dist(Dist {
                    count: u64::try_from(count).unwrap_or(0),
                    min: (count > 0).then_some(min),
                    max: (count > 0).then_some(max),
                    ..Dist::default()
                }))
            }
            _ => {
                text.expect(b":")?;
                Ok(Value::Number(text.number(10)?.into()))
            }
        }
    }
}

/// Parses a name and a number that may be negative.
fn statistic<R: BufRead>(text: &mut Scanner<R>, name: &[u8]) -> Result<i128, ReadError> {
    text.expect(name)?;
    text.while_in(|&byte| byte == b' ')?;
    let sign = if text.take(b"-")? { -1 } else { 1 };
    Ok(i128::from(text.number(10)?) * sign)
}

/// Skips a number that is not needed. It may have a fraction, or be `-`.
fn decimal<R: BufRead>(text: &mut Scanner<R>) -> Result<(), ReadError> {
    text.while_in(|&byte| byte == b' ')?;
    text.while_in(|byte| b"0123456789.-".contains(byte))?;
    Ok(())
}

/// Parses a range: `~ 2^7 `, which begins at 65, or `~ 8-15`, or `~ -15 - -8`. C scales numbers as
/// unsigned, so negative ones are in the ranges of large ones.
fn range<R: BufRead>(text: &mut Scanner<R>) -> Result<Key, ReadError> {
    text.expect(b"~")?;
    if !text.take(b" 2^")? {
        if !text.is_at(b" -")? && !text.is_at(b" ")? {
            return Ok(Key::UNKNOWN);
        }
        let first = statistic(text, b"")?;
        text.take(b" ")?;
        text.expect(b"-")?;
        // The end of the very last bucket overflows.
        let last = match statistic(text, b"")? {
            last if last < first => u64::MAX.into(),
            last => last,
        };
        return Ok(Key::Range { first, last });
    }
    let power = text.number(10)?;
    if power < 10 {
        text.expect(b" ")?;
    }
    match power {
        0 => Ok(Key::Range { first: 0, last: 1 }),
        1..=64 => Ok(Key::Range {
            first: (1 << (power - 1)) + 1,
            last: (1i128 << power).min(u64::MAX.into()),
        }),
        _ => Err(text.expected("a power of two up to 2^64")),
    }
}

/// Parses a function: a symbol, or the address of a function whose symbol is unknown.
fn frame(shown: &[u8]) -> Frame {
    let shown = Text::from(shown).to_lossy();
    let digits = shown.strip_prefix("0x");
    let address = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    Frame {
        symbol: address.is_none().then_some(shown),
        address,
    }
}
