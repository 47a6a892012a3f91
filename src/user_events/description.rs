// SPDX-License-Identifier: GPL-2.0

//! What a program says of an event: `name type field;type field;…`.
//!
//! The rules are those of the kernel's own user events (`kernel/trace/trace_events_user.c`); what
//! differs from them is said at the item.

use super::field::UserFields;
use kernel::prelude::*;

/// The name and the fields of an event, as they were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description<'a> {
    /// The registered name.
    pub name: &'a [u8],
    /// What follows the blank after the name, if there is one.
    pub fields: &'a [u8],
}

impl<'a> Description<'a> {
    /// Splits a text without NUL.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there are flags behind the name, of which there are none yet; or if the name
    /// could not be that of a directory, or not be told from its neighbours in a list: it is
    /// empty, `.` or `..`, or has a slash, white space or a control character in it. The kernel's
    /// own user events take such names, and get directories that cannot be reached.
    pub fn parse(text: &'a [u8]) -> Result<Self> {
        let (name, fields) = split(text);
        Self::new(name, fields)
    }

    /// As [`Description::parse`], but flags are ignored, as the original interface does.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a name that could not be that of a directory.
    pub fn parse_original(text: &'a [u8]) -> Result<Self> {
        let (name, fields) = split(text);
        let flags = name.iter().position(|&byte| byte == b':');
        Self::new(&name[..flags.unwrap_or(name.len())], fields)
    }

    fn new(name: &'a [u8], fields: &'a [u8]) -> Result<Self> {
        let unfit = |&byte: &u8| matches!(byte, 0..=b' ' | b':' | b'/' | 0x7f);
        if matches!(name, b"" | b"." | b"..") || name.iter().any(unfit) {
            return Err(EINVAL);
        }
        Ok(Self { name, fields })
    }

    /// The fields.
    ///
    /// # Errors
    ///
    /// Those of [`UserFields::parse`].
    pub fn parse_fields(&self) -> Result<UserFields> {
        UserFields::parse(self.fields)
    }
}

/// The name with its flags, and what is behind the blank that ends it.
fn split(text: &[u8]) -> (&[u8], &[u8]) {
    match text.iter().position(|&byte| byte == b' ') {
        Some(blank) => (&text[..blank], &text[blank + 1..]),
        None => (text, &[]),
    }
}
