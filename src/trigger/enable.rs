// SPDX-License-Identifier: GPL-2.0

//! `enable_hist` and `disable_hist`: one event lets the histograms of another go on, or pauses them.

use super::number;
use super::text::is_space;
use super::Command;
use super::Error;
use kernel::error::code::*;

/// The parameters `SYSTEM:EVENT[:N] [if FILTER]`, each piece looked at as late as C does
/// (`event_enable_trigger_parse()`). All errors are silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnableCommand<'a> {
    /// `enable_hist`.
    pub enable: bool,
    /// The event whose histograms are meant, as `SYSTEM:EVENT`.
    pub target: &'a [u8],
    /// The system of that event.
    pub system: &'a [u8],
    /// Its name.
    pub event: &'a [u8],
    count: Option<&'a [u8]>,
    filter: Option<&'a [u8]>,
}

/// The count of a switch that always works.
pub const UNLIMITED: u64 = u64::MAX;

impl<'a> EnableCommand<'a> {
    /// Takes the parameters of `command` apart. Fails with `EINVAL` if no event is named.
    pub fn parse(command: &Command<'a>) -> Result<Self, Error> {
        let invalid = Error::silent(EINVAL);
        let params = command.params.ok_or(invalid)?;
        let (param, filter) = split(params, |byte| matches!(byte, b' ' | b'\t'));
        let filter = filter.and_then(|filter| {
            let start = filter.iter().position(|&byte| !is_space(byte))?;
            filter.get(start..)
        });
        let (system, rest) = split(param, |byte| byte == b':');
        let (event, count) = split(rest.ok_or(invalid)?, |byte| byte == b':');
        Ok(Self {
            enable: command.name == b"enable_hist",
            target: &param[..system.len() + 1 + event.len()],
            system,
            event,
            // What follows a further colon does not count.
            count: count.map(|count| split(count, |byte| byte == b':').0),
            filter,
        })
    }

    /// How often it works. Fails with `EINVAL` or `ERANGE` for what is no number.
    pub fn count(&self) -> Result<u64, Error> {
        match self.count {
            Some(count) => number(count).map_err(Error::silent),
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
            _ => Err(Error::silent(EINVAL)),
        }
    }
}

/// What stands before the first byte that `is_separator`, and what behind it, if there is one.
fn split(text: &[u8], is_separator: impl Fn(u8) -> bool) -> (&[u8], Option<&[u8]>) {
    match text.iter().position(|&byte| is_separator(byte)) {
        Some(at) => (&text[..at], text.get(at + 1..)),
        None => (text, None),
    }
}
