// SPDX-License-Identifier: GPL-2.0

//! Entries for the errors of commands, in the `error_log` of each tracing directory.

use crate::{
    engine::Failure,
    filter,
    rust::{
        text,
        tracefs::{
            EventName,
            TracingDir, //
        },
    },
    text::copy,
    trigger::{
        Command,
        Error,
        ErrorLog,
        Hint,
        HintText, //
    },
};
use kernel::{
    prelude::*,
    sync::Mutex, //
};

/// The error logs of the tracing directories in which commands failed. Innermost lock, held only
/// briefly.
pub(super) struct ErrorLogs(Pin<KBox<Mutex<LogsByDir>>>);

type LogsByDir = KVec<(TracingDir, KBox<ErrorLog>)>;

impl ErrorLogs {
    pub(super) fn new() -> Result<Self> {
        Ok(Self(KBox::pin_init(
            kernel::new_mutex!(KVec::new()),
            GFP_KERNEL,
        )?))
    }

    /// Calls `f` with the error log of a tracing directory. Fails with `ENOMEM` if it has to create
    /// the log.
    pub(super) fn with<R>(
        &self,
        dir: &TracingDir,
        f: impl FnOnce(&mut ErrorLog) -> R,
    ) -> Result<R> {
        let mut logs = self.0.lock();
        logs.retain(|(dir, _)| !dir.removed());
        let index = match logs.iter().position(|(of, _)| of == dir) {
            Some(index) => index,
            None => {
                let log = KBox::new(ErrorLog::new(), GFP_KERNEL)?;
                logs.push((dir.clone(), log), GFP_KERNEL)?;
                logs.len() - 1
            }
        };
        Ok(f(&mut logs[index].1))
    }

    /// Logs the failure of a command, and returns the errno for `write(2)`. Each failure gets an
    /// entry, so that an older one is not mistaken for it.
    #[cold]
    #[inline(never)]
    pub(super) fn log(
        &self,
        name: EventName<'_>,
        command: &Command<'_>,
        failure: Failure,
    ) -> kernel::error::Error {
        // If allocating the entry fails, the errno still reaches the user.
        match failure {
            Failure::Command(error, before) => {
                let mut logged = false;
                for error in Iterator::chain(before.iter(), [&error]) {
                    if error.text.is_some() || error.hint.is_some() {
                        let _ = self.log_error(name, command, error);
                        logged = true;
                    }
                }
                if !logged {
                    let text = HintText::of(error.errno).as_str();
                    let _ = self.log_own(name, command, text.as_bytes(), 0);
                }
                error.errno
            }
            Failure::Referenced(by) => {
                let _ = self.log_own(name, command, by.as_bytes(), 0);
                EBUSY
            }
            Failure::Logged(errno) => errno,
            Failure::Filter(error, filter) => {
                let text = error.text.as_str();
                let (text, caret) = (with_hint(text, error.hint), caret(error.caret, error.hint));
                let _ = text
                    .and_then(|text| self.push(name.dir, filter::LOCATION, &filter, &text, caret));
                error.errno
            }
        }
    }

    /// Logs an error with a text of C's, a hint of rhist, or both.
    fn log_error(&self, name: EventName<'_>, command: &Command<'_>, error: &Error) -> Result {
        let caret = caret(error.caret, error.hint);
        match (error.text, error.hint) {
            (Some(text), hint) => {
                let text = with_hint(text.as_str(), hint)?;
                self.push(
                    name.dir,
                    &location(b"hist:", name)?,
                    &command.text()?,
                    &text,
                    caret,
                )
            }
            (None, Some(hint)) => self.log_own(name, command, hint.text.as_str().as_bytes(), caret),
            (None, None) => Ok(()),
        }
    }

    /// Logs a message that C lacks. Its location begins with `rhist:`, so that it cannot be
    /// mistaken for C's.
    #[cold]
    #[inline(never)]
    pub(super) fn log_own(
        &self,
        name: EventName<'_>,
        command: &Command<'_>,
        text: &[u8],
        caret: usize,
    ) -> Result {
        self.push(
            name.dir,
            &location(b"rhist:", name)?,
            &command.text()?,
            text,
            caret,
        )
    }

    fn push(
        &self,
        dir: &TracingDir,
        location: &[u8],
        command: &[u8],
        text: &[u8],
        caret: usize,
    ) -> Result {
        let time = text::local_clock_ns();
        self.with(dir, |log| log.push(time, location, command, text, caret))?
    }
}

/// Returns the location of an entry of the error log: `kind` and the event.
fn location(kind: &[u8], name: EventName<'_>) -> Result<KVec<u8>> {
    let mut location = KVec::new();
    for piece in [kind, name.system.to_bytes(), b":", name.event.to_bytes()] {
        location.extend_from_slice(piece, GFP_KERNEL)?;
    }
    Ok(location)
}

/// Returns a text of C's, followed by the hint of rhist.
fn with_hint(text: &str, hint: Option<Hint>) -> Result<KVec<u8>> {
    let mut line = copy(text.as_bytes())?;
    if let Some(hint) = hint {
        line.extend_from_slice(b": ", GFP_KERNEL)?;
        line.extend_from_slice(hint.text.as_str().as_bytes(), GFP_KERNEL)?;
    }
    Ok(line)
}

/// Returns the position of the caret: C's, unless the hint has a better one.
fn caret(c: usize, hint: Option<Hint>) -> usize {
    hint.map_or(c, |hint| hint.caret)
}
