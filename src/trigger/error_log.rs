// SPDX-License-Identifier: GPL-2.0

//! The `error_log` file: the latest errors, each with a caret under its command.
//!
//! Source: `tracing_log_err()` and `tracing_err_log_seq_show()` in `kernel/trace/trace.c`.

use super::text::contains;
use crate::limits::{
    LOG_ENTRIES_MAX,
    LOG_LOCATION_MAX, //
};
use core::fmt::{
    self,
    Write, //
};
use kernel::prelude::*;

/// Maximum number of bytes of a text that are kept: it may contain the line of a trigger.
const TEXT_MAX: usize = 511;

const AFTER_LOCATION: &[u8] = b": error: ";

const BEFORE_COMMAND: &[u8] = b"  Command: ";

const NSEC_PER_SEC: u64 = 1_000_000_000;
const NSEC_PER_USEC: u64 = 1_000;

/// One error.
struct LogEntry {
    /// When the error was logged, in nanoseconds of the local clock.
    time: u64,
    /// Where the error comes from, followed by [`AFTER_LOCATION`], cut to [`LOG_LOCATION_MAX`].
    location: KVec<u8>,
    command: KVec<u8>,
    text: KVec<u8>,
    /// Blanks before the caret, from the start of the command.
    caret: usize,
}

impl LogEntry {
    fn render(&self, out: &mut KVVec<u8>) -> Result {
        let (seconds, rest) = (self.time / NSEC_PER_SEC, self.time % NSEC_PER_SEC);
        let microseconds = rest / NSEC_PER_USEC;
        write!(FmtSink(out), "[{seconds:5}.{microseconds:06}] ").map_err(|fmt::Error| ENOMEM)?;
        for bytes in [
            &self.location[..],
            &self.text,
            b"\n",
            BEFORE_COMMAND,
            &self.command,
            b"\n",
        ] {
            out.extend_from_slice(bytes, GFP_KERNEL)?;
        }
        out.extend_with(BEFORE_COMMAND.len() + self.caret, b' ', GFP_KERNEL)?;
        Ok(out.extend_from_slice(b"^\n", GFP_KERNEL)?)
    }
}

/// An entry of the kernel's `error_log`.
#[derive(Clone, Copy)]
struct KernelLogEntry<'a> {
    /// When the error was logged, in microseconds of the local clock.
    time: u64,
    /// All lines of it.
    text: &'a [u8],
}

/// Iterates over the entries in the text of a kernel `error_log`.
///
/// A command may hold newlines, so an entry may take more than three lines. It ends with a caret
/// line that is followed by the end of the text or by the first line of another entry.
struct KernelLogEntries<'a>(&'a [u8]);

impl<'a> Iterator for KernelLogEntries<'a> {
    type Item = KernelLogEntry<'a>;

    fn next(&mut self) -> Option<KernelLogEntry<'a>> {
        let time = time_of(self.0)?;
        let mut end = 0;
        for line in self.0.split_inclusive(|&byte| byte == b'\n') {
            end += line.len();
            let rest = &self.0[end..];
            if is_caret(line) && (rest.is_empty() || time_of(rest).is_some()) {
                break;
            }
        }
        let (text, rest) = self.0.split_at(end);
        self.0 = rest;
        Some(KernelLogEntry { time, text })
    }
}

/// Returns whether the text of a kernel `error_log` has an entry for `command` or a part of it that
/// is not older than `time`, in nanoseconds of the local clock. Compares the commands because other
/// tasks may have caused errors at the same time.
pub fn has_entry_since(kernel: &[u8], time: u64, command: &[u8]) -> bool {
    KernelLogEntries(kernel).any(|entry| {
        entry.time >= time / NSEC_PER_USEC
            && command_of(entry.text).is_some_and(|part| contains(command, part))
    })
}

/// Returns the command in an entry; it may hold newlines.
fn command_of(entry: &[u8]) -> Option<&[u8]> {
    let start = entry.iter().position(|&byte| byte == b'\n')? + 1;
    let caret = entry.strip_suffix(b"^\n")?;
    let end = caret.iter().rposition(|&byte| byte == b'\n')?;
    entry.get(start..end)?.strip_prefix(BEFORE_COMMAND)
}

/// Parses the time at the beginning of an entry, in microseconds.
fn time_of(text: &[u8]) -> Option<u64> {
    let end = text.iter().position(|&byte| byte == b']')?;
    let time = text.get(..end)?.strip_prefix(b"[")?;
    let mut parts = core::str::from_utf8(time).ok()?.trim_start().split('.');
    let (seconds, microseconds) = (parts.next()?, parts.next()?);
    let seconds: u64 = seconds.parse().ok()?;
    let microseconds: u64 = microseconds.parse().ok()?;
    seconds
        .checked_mul(NSEC_PER_SEC / NSEC_PER_USEC)?
        .checked_add(microseconds)
}

/// Returns whether it is a line with a caret under a command.
fn is_caret(line: &[u8]) -> bool {
    let blanks = line.iter().take_while(|&&byte| byte == b' ').count();
    blanks >= BEFORE_COMMAND.len() && line.get(blanks..) == Some(b"^\n")
}

/// The error log of a tracing directory: its latest entries.
pub struct ErrorLog {
    /// Oldest first, after the free slots.
    entries: [Option<LogEntry>; LOG_ENTRIES_MAX],
}

impl ErrorLog {
    /// An empty log.
    pub const fn new() -> Self {
        Self {
            entries: [const { None }; LOG_ENTRIES_MAX],
        }
    }

    /// Adds an entry; replaces the oldest one if the log is full.
    ///
    /// `time` is in nanoseconds of the local clock. `location` is `hist:<system>:<event>` for hist
    /// triggers. `command` is copied as it is. `text` is one line: control characters become
    /// blanks. `caret` is the index of the byte of the command that the caret goes under.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; the log is unchanged then.
    pub fn push(
        &mut self,
        time: u64,
        location: &[u8],
        command: &[u8],
        text: &[u8],
        caret: usize,
    ) -> Result {
        let mut place = KVec::new();
        place.extend_from_slice(location, GFP_KERNEL)?;
        place.extend_from_slice(AFTER_LOCATION, GFP_KERNEL)?;
        place.truncate(LOG_LOCATION_MAX);
        let mut copy = KVec::new();
        copy.extend_from_slice(command, GFP_KERNEL)?;
        let mut line = KVec::new();
        for &byte in text.iter().take(TEXT_MAX) {
            let byte = if byte.is_ascii_control() { b' ' } else { byte };
            line.push(byte, GFP_KERNEL)?;
        }

        self.entries.rotate_left(1);
        if let Some(last) = self.entries.last_mut() {
            *last = Some(LogEntry {
                time,
                location: place,
                command: copy,
                text: line,
                caret,
            });
        }
        Ok(())
    }

    /// Appends the latest eight entries to `out`, oldest first: this log's own, merged with those
    /// of `kernel`, the text of the kernel's `error_log`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn render(&self, kernel: &[u8], out: &mut KVVec<u8>) -> Result {
        let mut theirs = KVec::new();
        for entry in KernelLogEntries(kernel) {
            theirs.push(entry, GFP_KERNEL)?;
        }
        let mut surplus =
            (theirs.len() + self.entries.iter().flatten().count()).saturating_sub(LOG_ENTRIES_MAX);
        let mut theirs = theirs.iter().peekable();
        let mut ours = self.entries.iter().flatten().peekable();
        loop {
            let from_kernel = match (theirs.peek(), ours.peek()) {
                (Some(theirs), Some(ours)) => theirs.time <= ours.time / NSEC_PER_USEC,
                (theirs, ours) => {
                    if theirs.is_none() && ours.is_none() {
                        return Ok(());
                    }
                    theirs.is_some()
                }
            };
            let (theirs, ours) = match from_kernel {
                true => (theirs.next(), None),
                false => (None, ours.next()),
            };
            if surplus > 0 {
                surplus -= 1;
                continue;
            }
            if let Some(entry) = theirs {
                out.extend_from_slice(entry.text, GFP_KERNEL)?;
            }
            if let Some(entry) = ours {
                entry.render(out)?;
            }
        }
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        *self = Self::new();
    }
}

impl Default for ErrorLog {
    fn default() -> Self {
        Self::new()
    }
}

/// Adapter for `write!`.
struct FmtSink<'a>(&'a mut KVVec<u8>);

impl fmt::Write for FmtSink<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let grown = self.0.extend_from_slice(text.as_bytes(), GFP_KERNEL);
        grown.map_err(|_| fmt::Error)
    }
}
