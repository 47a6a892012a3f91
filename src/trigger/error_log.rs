// SPDX-License-Identifier: GPL-2.0

//! What the `error_log` file shows: the latest mistakes, each with a caret under it.
//!
//! Source: `tracing_log_err()` and `tracing_err_log_seq_show()` in `kernel/trace/trace.c`.

use core::fmt;
use core::fmt::Write;
use kernel::prelude::*;

/// Entries that are kept (`TRACING_LOG_ERRS_MAX`).
const ENTRIES: usize = 8;

/// Bytes of a location that are kept, what is put after it included (`TRACING_LOG_LOC_MAX`).
const LOCATION_MAX: usize = 127;

const AFTER_LOCATION: &[u8] = b": error: ";

const BEFORE_COMMAND: &[u8] = b"  Command: ";

const NSEC_PER_SEC: u64 = 1_000_000_000;
const NSEC_PER_USEC: u64 = 1_000;

/// One mistake.
struct Entry {
    /// When it was made, in nanoseconds of the local clock.
    time: u64,
    /// Where it was made, with [`AFTER_LOCATION`], cut.
    location: KVec<u8>,
    command: KVec<u8>,
    text: &'static str,
    /// Blanks before the caret, from the start of the command.
    caret: usize,
}

/// The latest entries.
pub struct ErrorLog {
    /// Oldest first, the free ones before it.
    entries: [Option<Entry>; ENTRIES],
}

impl ErrorLog {
    /// An empty log.
    pub const fn new() -> Self {
        Self {
            entries: [const { None }; ENTRIES],
        }
    }

    /// Adds an entry, in place of the oldest if there are eight already.
    ///
    /// `time` is in nanoseconds of the local clock. `location` is `hist:<system>:<event>` for hist
    /// triggers. `command` is copied as it is. `caret` is the index of the byte of the command that
    /// the caret goes under.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, and the log is as it was.
    pub fn push(
        &mut self,
        time: u64,
        location: &[u8],
        command: &[u8],
        text: &'static str,
        caret: usize,
    ) -> Result {
        let mut place = KVec::new();
        place.extend_from_slice(location, GFP_KERNEL)?;
        place.extend_from_slice(AFTER_LOCATION, GFP_KERNEL)?;
        place.truncate(LOCATION_MAX);
        let mut copy = KVec::new();
        copy.extend_from_slice(command, GFP_KERNEL)?;

        self.entries.rotate_left(1);
        if let Some(last) = self.entries.last_mut() {
            *last = Some(Entry {
                time,
                location: place,
                command: copy,
                text,
                caret,
            });
        }
        Ok(())
    }

    /// Appends the entries to `out`, oldest first.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn render(&self, out: &mut KVVec<u8>) -> Result {
        for entry in self.entries.iter().flatten() {
            let (seconds, rest) = (entry.time / NSEC_PER_SEC, entry.time % NSEC_PER_SEC);
            let microseconds = rest / NSEC_PER_USEC;
            write!(Sink(out), "[{seconds:5}.{microseconds:06}] ").map_err(|fmt::Error| ENOMEM)?;
            for bytes in [
                &entry.location,
                entry.text.as_bytes(),
                b"\n",
                BEFORE_COMMAND,
                &entry.command,
                b"\n",
            ] {
                out.extend_from_slice(bytes, GFP_KERNEL)?;
            }
            out.extend_with(BEFORE_COMMAND.len() + entry.caret, b' ', GFP_KERNEL)?;
            out.extend_from_slice(b"^\n", GFP_KERNEL)?;
        }
        Ok(())
    }

    /// Forgets all entries.
    pub fn clear(&mut self) {
        *self = Self::new();
    }
}

impl Default for ErrorLog {
    fn default() -> Self {
        Self::new()
    }
}

/// What numbers are formatted into.
struct Sink<'a>(&'a mut KVVec<u8>);

impl fmt::Write for Sink<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let grown = self.0.extend_from_slice(text.as_bytes(), GFP_KERNEL);
        grown.map_err(|_| fmt::Error)
    }
}
