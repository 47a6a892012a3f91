// SPDX-License-Identifier: MIT OR Apache-2.0

//! Scans a text in pieces. A piece may span lines, since strings of events may contain newlines.

use std::io::BufRead;

use crate::lines::Lines;
use crate::table::ReadError;
use crate::table::Text;

/// The remaining text. Holds only as many lines in memory as the current piece needs.
pub(super) struct Scanner<R> {
    lines: Lines<R>,
    buf: Vec<u8>,
    at: usize,
    /// Whether `buf` holds the rest of the text.
    ended: bool,
}

/// Longest string that is searched for. Strings of the kernel have at most 256 bytes.
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

    /// Returns the text in memory: at least `len` bytes, or less at the end of the text.
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

    /// Skips `len` bytes that [`Self::peek`] returned.
    fn skip(&mut self, len: usize) {
        self.at = (self.at + len).min(self.buf.len());
    }

    /// Returns whether the text is used up.
    pub(super) fn is_at_end(&mut self) -> Result<bool, ReadError> {
        Ok(self.peek(1)?.is_empty())
    }

    /// Returns whether `literal` comes next.
    pub(super) fn is_at(&mut self, literal: &[u8]) -> Result<bool, ReadError> {
        Ok(self.peek(literal.len())?.starts_with(literal))
    }

    /// Skips `literal` if it comes next. Returns whether it did.
    pub(super) fn take(&mut self, literal: &[u8]) -> Result<bool, ReadError> {
        let found = self.is_at(literal)?;
        if found {
            self.skip(literal.len());
        }
        Ok(found)
    }

    /// Skips `literal`, or fails.
    pub(super) fn expect(&mut self, literal: &[u8]) -> Result<(), ReadError> {
        if self.take(literal)? {
            return Ok(());
        }
        match literal.starts_with(self.peek(literal.len())?) {
            true => Err(self.incomplete()),
            false => Err(self.expected(&format!("\"{}\"", Text::from(literal.trim_ascii())))),
        }
    }

    /// Takes the rest of the line. Returns it without its newline, and whether it had one.
    pub(super) fn line(&mut self) -> Result<(Vec<u8>, bool), ReadError> {
        let rest = self.peek(1)?;
        let end = rest.iter().position(|&byte| byte == b'\n');
        // Lines are read whole, so only the last line of the text lacks a newline.
        let line = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default().to_vec();
        self.skip(line.len() + usize::from(end.is_some()));
        Ok((line, end.is_some()))
    }

    /// Skips `len` bytes within this line. Fails if the line is shorter.
    pub(super) fn columns(&mut self, len: usize) -> Result<(), ReadError> {
        let rest = self.peek(len)?;
        if rest.len() < len || rest.iter().take(len).any(|&byte| byte == b'\n') {
            return Err(self.expected(&format!("{len} characters")));
        }
        self.skip(len);
        Ok(())
    }

    /// Takes bytes as long as `wanted` accepts them, at most to the end of the line.
    pub(super) fn while_in(&mut self, wanted: fn(&u8) -> bool) -> Result<Vec<u8>, ReadError> {
        let rest = self.peek(1)?;
        let end = rest.iter().position(|byte| !wanted(byte)).unwrap_or(rest.len());
        let found = rest.get(..end).unwrap_or_default().to_vec();
        self.skip(end);
        Ok(found)
    }

    /// Takes spaces, then a number of 64 bits in this base.
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

    /// Takes a number printed with `%10llu`, followed by `end`. `None` if something else comes
    /// next.
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

    /// Takes a string padded to `width` with spaces, followed by `end`. Drops trailing spaces, the
    /// string's own as well.
    pub(super) fn padded(&mut self, width: usize, end: &[u8]) -> Result<Text, ReadError> {
        let ends_at = |rest: &[u8], len: usize| rest.get(len..).is_some_and(|rest| rest.starts_with(end));
        let rest = self.peek(width + end.len())?;
        let len = match ends_at(rest, width) {
            true => Some(width),
            // Longer than the width. The string may contain `end` itself.
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

    /// Error: `what` was expected here.
    pub(super) fn expected(&self, what: &str) -> ReadError {
        self.unknown(format!("the entry does not match its trigger: expected {what}"))
    }

    /// Error with this description; or that the text is incomplete, if it ends within the line.
    pub(super) fn unknown(&self, what: impl Into<String>) -> ReadError {
        let rest = self.buf.get(self.at..).unwrap_or_default();
        let rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        match self.ended && !rest.contains(&b'\n') {
            true => self.incomplete(),
            false => self.wrong(what),
        }
    }

    /// Error with this description for the line read last.
    pub(super) fn wrong(&self, what: impl Into<String>) -> ReadError {
        let (line, what) = (self.lines.number(), what.into());
        ReadError::Format { line, what }
    }

    /// Error: the text ends too early.
    pub(super) fn incomplete(&self) -> ReadError {
        ReadError::Incomplete {
            line: self.lines.number(),
        }
    }
}

fn digits_len(text: &[u8], base: u32) -> usize {
    text.iter().take_while(|&&byte| char::from(byte).is_digit(base)).count()
}
