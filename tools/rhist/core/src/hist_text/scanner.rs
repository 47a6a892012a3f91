// SPDX-License-Identifier: MIT OR Apache-2.0

//! Reads a text piece by piece. A piece may have newlines, since strings of events may.

use std::io::BufRead;

use crate::lines::Lines;
use crate::table::ReadError;
use crate::table::Text;

/// The rest of a text, of which as many lines are in memory as it takes.
pub(super) struct Scanner<R> {
    lines: Lines<R>,
    buf: Vec<u8>,
    at: usize,
    /// Whether there are no more lines than those in memory.
    ended: bool,
}

/// The longest string that is looked for: the kernel's have 256 bytes.
const STRING_MAX: usize = 512;

impl<R: BufRead> Scanner<R> {
    pub(super) fn new(reader: R) -> Self {
        Scanner {
            lines: Lines::new(reader),
            buf: Vec::new(),
            at: 0,
            ended: false,
        }
    }

    /// What is in memory, with at least `len` bytes if there are so many.
    fn peek(&mut self, len: usize) -> Result<&[u8], ReadError> {
        while self.buf.len() - self.at < len {
            self.buf.drain(..self.at);
            self.at = 0;
            match self.lines.next()? {
                Some((_, line)) => self.buf.extend(line),
                None => {
                    self.ended = true;
                    break;
                }
            }
        }
        Ok(self.buf.get(self.at..).unwrap_or_default())
    }

    /// Goes on behind `len` bytes that were seen.
    fn skip(&mut self, len: usize) {
        self.at = (self.at + len).min(self.buf.len());
    }

    /// Whether the text is at its end.
    pub(super) fn is_at_end(&mut self) -> Result<bool, ReadError> {
        Ok(self.peek(1)?.is_empty())
    }

    /// Whether this comes next.
    pub(super) fn is_at(&mut self, literal: &[u8]) -> Result<bool, ReadError> {
        Ok(self.peek(literal.len())?.starts_with(literal))
    }

    /// Goes on behind this if it comes next, and returns whether it did.
    pub(super) fn take(&mut self, literal: &[u8]) -> Result<bool, ReadError> {
        let found = self.is_at(literal)?;
        if found {
            self.skip(literal.len());
        }
        Ok(found)
    }

    /// Goes on behind this. Fails if it does not come next.
    pub(super) fn expect(&mut self, literal: &[u8]) -> Result<(), ReadError> {
        if self.take(literal)? {
            return Ok(());
        }
        match literal.starts_with(self.peek(literal.len())?) {
            true => Err(self.incomplete()),
            false => Err(self.expected(&format!("\"{}\"", Text::from(literal.trim_ascii())))),
        }
    }

    /// The rest of the line without its newline, and whether it had one.
    pub(super) fn line(&mut self) -> Result<(Vec<u8>, bool), ReadError> {
        let rest = self.peek(1)?;
        let end = rest.iter().position(|&byte| byte == b'\n');
        // All lines in memory are whole, but for the last one of the text.
        let line = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default().to_vec();
        self.skip(line.len() + usize::from(end.is_some()));
        Ok((line, end.is_some()))
    }

    /// Goes on behind `len` bytes of this line. Fails if it has not so many.
    pub(super) fn columns(&mut self, len: usize) -> Result<(), ReadError> {
        let rest = self.peek(len)?;
        if rest.len() < len || rest.iter().take(len).any(|&byte| byte == b'\n') {
            return Err(self.expected(&format!("{len} characters")));
        }
        self.skip(len);
        Ok(())
    }

    /// The bytes before the next one that is not of these, up to the end of the line.
    pub(super) fn while_in(&mut self, wanted: fn(&u8) -> bool) -> Result<Vec<u8>, ReadError> {
        let rest = self.peek(1)?;
        let end = rest.iter().position(|byte| !wanted(byte)).unwrap_or(rest.len());
        let found = rest.get(..end).unwrap_or_default().to_vec();
        self.skip(end);
        Ok(found)
    }

    /// A number of 64 bits in digits to this base, behind spaces.
    pub(super) fn number(&mut self, base: u32) -> Result<u64, ReadError> {
        while self.take(b" ")? {}
        let rest = self.peek(1)?;
        let digits = rest.get(..digits_len(rest, base)).unwrap_or_default();
        let number = std::str::from_utf8(digits).ok();
        match number.and_then(|digits| u64::from_str_radix(digits, base).ok()) {
            Some(number) => {
                let len = digits.len();
                self.skip(len);
                Ok(number)
            }
            None => Err(self.expected("a number of 64 bits")),
        }
    }

    /// A number as `%10llu` shows it, before `end`. `None`: something else comes next.
    pub(super) fn plain_number(&mut self, end: &[u8]) -> Result<Option<u64>, ReadError> {
        let rest = self.peek(20 + end.len())?;
        let spaces = rest.iter().take_while(|&&byte| byte == b' ').count();
        let digits = digits_len(rest.get(spaces..).unwrap_or_default(), 10);
        let len = spaces + digits;
        let is_number = digits > 0 && len >= 10 && (spaces == 0 || len == 10);
        if !is_number || !rest.get(len..).unwrap_or_default().starts_with(end) {
            return Ok(None);
        }
        let number = std::str::from_utf8(rest.get(spaces..len).unwrap_or_default());
        let number = number.ok().and_then(|digits| digits.parse().ok());
        if number.is_some() {
            self.skip(len);
        }
        Ok(number)
    }

    /// A string that is padded to `width` with spaces, before `end`. Trailing spaces are left out, also its own.
    pub(super) fn padded(&mut self, width: usize, end: &[u8]) -> Result<Text, ReadError> {
        let ends_at = |rest: &[u8], len: usize| rest.get(len..).is_some_and(|rest| rest.starts_with(end));
        let rest = self.peek(width + end.len())?;
        let len = match ends_at(rest, width) {
            true => Some(width),
            // A longer one. It may have what looks like its end.
            false => {
                let rest = self.peek(STRING_MAX)?;
                (width..STRING_MAX).find(|&len| ends_at(rest, len))
            }
        };
        let Some(len) = len else {
            let rest = self.peek(STRING_MAX)?;
            if rest.len() < STRING_MAX && end.starts_with(rest.get(width..).unwrap_or_default()) {
                return Err(self.incomplete());
            }
            return Err(self.expected(&format!("a string and then \"{}\"", Text::from(end.trim_ascii()))));
        };
        let string = self.peek(len)?.get(..len).unwrap_or_default();
        let string = Text::from(string.trim_ascii_end());
        self.skip(len);
        Ok(string)
    }

    /// Says what should be here.
    pub(super) fn expected(&self, what: &str) -> ReadError {
        self.unknown(format!(
            "the entry is not as its trigger has it: there should be {what}"
        ))
    }

    /// Says why this is not understood; or, where the text ends within the line, that it is not complete.
    pub(super) fn unknown(&self, what: impl Into<String>) -> ReadError {
        let rest = self.buf.get(self.at..).unwrap_or_default();
        let rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        match self.ended && !rest.contains(&b'\n') {
            true => self.incomplete(),
            false => self.wrong(what),
        }
    }

    /// Says what is wrong with the line that was read last.
    pub(super) fn wrong(&self, what: impl Into<String>) -> ReadError {
        let (line, what) = (self.lines.number(), what.into());
        ReadError::Format { line, what }
    }

    /// Says that the text ends too early.
    pub(super) fn incomplete(&self) -> ReadError {
        ReadError::Incomplete {
            line: self.lines.number(),
        }
    }
}

fn digits_len(text: &[u8], base: u32) -> usize {
    text.iter().take_while(|&&byte| char::from(byte).is_digit(base)).count()
}
