// SPDX-License-Identifier: GPL-2.0

//! Parsing of event descriptions: `name type field;type field;…`.
//!
//! The rules follow `kernel/trace/trace_events_user.c`; each difference is documented at the item.

use super::field::UserFields;
use kernel::prelude::*;

/// Names that the directory of an event cannot have: the first three are not file names, the others
/// are the control files of its parent directory.
const RESERVED: [&[u8]; 5] = [b"", b".", b"..", b"enable", b"filter"];

/// A description split into name and fields, which are not parsed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description<'a> {
    /// The registered name.
    pub name: &'a [u8],
    /// The text after the space that ends the name; may be empty.
    pub fields: &'a [u8],
}

impl<'a> Description<'a> {
    /// Splits a text without NUL and checks the name.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the name is followed by flags (`:`), none of which is defined yet; or if it is
    /// unfit for a directory or a list: empty, `.`, `..`, `enable`, `filter`, or with a slash,
    /// white space, a control character or `#` in it. The kernel's own user events accept such
    /// names, and get directories that cannot be reached or that hide the control files of their
    /// system, and lines of `dynamic_events` that are read back as something else: `#` begins a
    /// comment there.
    pub fn parse(text: &'a [u8]) -> Result<Self> {
        let (name, fields) = split(text);
        Self::new(name, fields)
    }

    /// As [`Description::parse`], but ignores flags, as the original interface does.
    ///
    /// # Errors
    ///
    /// `EINVAL` for an invalid name, as in [`Description::parse`].
    pub fn parse_original(text: &'a [u8]) -> Result<Self> {
        let (name, fields) = split(text);
        let flags = name.iter().position(|&byte| byte == b':');
        Self::new(&name[..flags.unwrap_or(name.len())], fields)
    }

    fn new(name: &'a [u8], fields: &'a [u8]) -> Result<Self> {
        let unfit = |&byte: &u8| matches!(byte, 0..=b' ' | b'#' | b':' | b'/' | 0x7f);
        if RESERVED.contains(&name) || name.iter().any(unfit) {
            return Err(EINVAL);
        }
        Ok(Self { name, fields })
    }

    /// Parses the fields.
    ///
    /// # Errors
    ///
    /// The errors of [`UserFields::parse`].
    pub fn parse_fields(&self) -> Result<UserFields> {
        UserFields::parse(self.fields)
    }
}

/// Splits a text at the first space: the name with its flags, and the fields.
fn split(text: &[u8]) -> (&[u8], &[u8]) {
    match text.iter().position(|&byte| byte == b' ') {
        Some(blank) => (&text[..blank], &text[blank + 1..]),
        None => (text, &[]),
    }
}
