// SPDX-License-Identifier: GPL-2.0

//! The commands `enable_hist` and `disable_hist`: a hit of one event resumes or pauses the
//! histograms of another.

use super::{
    number,
    Command,
    Error,
    HintText, //
};
use crate::text::is_space;
use kernel::error::code::ENOMEM;

/// A parsed command, with parameters `SYSTEM:EVENT[:N] [if FILTER]`. Count and filter are checked
/// when they are asked for, as late as in C (`event_enable_trigger_parse()`). C logs none of the
/// errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnableCommand<'a> {
    /// The command is `enable_hist`.
    pub enable: bool,
    /// The event whose histograms are resumed or paused, as `SYSTEM:EVENT`.
    pub target: &'a [u8],
    /// The system of that event.
    pub system: &'a [u8],
    /// Its name.
    pub event: &'a [u8],
    count: Option<&'a [u8]>,
    filter: Option<&'a [u8]>,
    /// Offset of the event from the start of the COMMAND.
    start: usize,
    /// Offset of the command's end, or of its filter, if it has one.
    end: usize,
}

/// The count if none is given: no limit.
pub const UNLIMITED: u64 = u64::MAX;

impl<'a> EnableCommand<'a> {
    /// Parses the parameters of `command`. Fails with `EINVAL` if they lack an event.
    pub fn parse(command: &Command<'a>) -> Result<Self, Error> {
        let no_event = |caret| Error::own(HintText::SwitchEvent, caret);
        let params = command.params.ok_or(no_event(command.name.len()))?;
        let start = command.name.len() + 1;
        let (param, filter) = split(params, |byte| matches!(byte, b' ' | b'\t'));
        let filter = filter.and_then(|filter| {
            let start = filter.iter().position(|&byte| !is_space(byte))?;
            filter.get(start..)
        });
        let (system, rest) = split(param, |byte| byte == b':');
        let no_name = no_event(start + param.len());
        let (event, count) = split(rest.ok_or(no_name)?, |byte| byte == b':');
        Ok(Self {
            enable: command.name == b"enable_hist",
            target: &param[..system.len() + 1 + event.len()],
            system,
            event,
            // Text after another colon is ignored.
            count: count.map(|count| split(count, |byte| byte == b':').0),
            filter,
            start,
            end: start + params.len() - filter.map_or(0, <[u8]>::len),
        })
    }

    /// The error for an event that was not found.
    pub fn no_event(&self, errno: kernel::error::Error) -> Error {
        let text = match errno {
            ENOMEM => HintText::NoMemory,
            _ => HintText::NoEvent,
        };
        Error::own(text, self.start).with(errno)
    }

    /// The number of hits that it acts on. Fails with `EINVAL` or `ERANGE` if the count is not a
    /// number.
    pub fn count(&self) -> Result<u64, Error> {
        let caret = self.start + self.target.len() + 1;
        match self.count {
            Some(count) => {
                number(count).map_err(|errno| Error::own(HintText::SwitchCount, caret).with(errno))
            }
            None => Ok(UNLIMITED),
        }
    }

    /// The text of the filter. Fails with `EINVAL` for text that does not begin with `if`.
    pub fn filter(&self) -> Result<Option<&'a [u8]>, Error> {
        let Some(clause) = self.filter else {
            return Ok(None);
        };
        match split(clause, |byte| matches!(byte, b' ' | b'\t')) {
            (b"if", Some(filter)) => Ok(Some(filter)),
            _ => Err(Error::own(HintText::SwitchFilter, self.end)),
        }
    }
}

/// Splits `text` at the first byte that `is_separator`; the second part is `None` if all bytes are
/// others.
fn split(text: &[u8], is_separator: impl Fn(u8) -> bool) -> (&[u8], Option<&[u8]>) {
    match text.iter().position(|&byte| is_separator(byte)) {
        Some(at) => (&text[..at], text.get(at + 1..)),
        None => (text, None),
    }
}
