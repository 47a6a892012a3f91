// SPDX-License-Identifier: GPL-2.0

//! One write to a `trigger` file.

use super::{
    text::{
        find,
        strip, //
    },
    Error,
    HintText, //
};
use crate::text::is_space;
use kernel::{
    alloc::AllocError,
    prelude::*, //
};

/// A command as the `trigger` file takes it: `[!]name[(':'|' '|'\t') params]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command<'a> {
    /// The command starts with `!`: remove the trigger.
    pub remove: bool,
    /// The name, without `!`. It may be empty.
    pub name: &'a [u8],
    /// The text after the separator and white space, if any.
    pub params: Option<&'a [u8]>,
}

impl<'a> Command<'a> {
    /// Splits a write into name and parameters. Never fails: the text ends at the first NUL, and
    /// white space at both ends is ignored.
    pub fn parse(written: &'a [u8]) -> Self {
        let text = written.split(|&byte| byte == 0).next().unwrap_or(&[]);
        let mut pieces = strip(text).splitn(2, |byte| matches!(byte, b':' | b' ' | b'\t'));
        let word = pieces.next().unwrap_or(&[]);
        let params = pieces.next().and_then(|rest| {
            let start = rest.iter().position(|&byte| !is_space(byte))?;
            rest.get(start..)
        });
        match word.strip_prefix(b"!") {
            Some(name) => Self {
                remove: true,
                name,
                params,
            },
            None => Self {
                remove: false,
                name: word,
                params,
            },
        }
    }

    /// Returns whether rhist executes the command. All others, known or not, are passed to the
    /// kernel.
    pub fn is_ours(&self) -> bool {
        is_ours(self.name)
    }

    /// The parameters of a `hist` command. Fails with `EINVAL` if it has none.
    pub fn hist(&self) -> Result<&'a [u8], Error> {
        let missing = Error::own(HintText::NoKeys, self.name.len());
        self.params.ok_or(missing)
    }

    /// Returns the error to log if the kernel refuses a command that was passed on, and does not
    /// log why.
    pub fn refused(&self, errno: kernel::error::Error) -> Error {
        let params = self.params.unwrap_or(&[]);
        let in_params = self.name.len() + 1;
        let keys = find(self.name, b"keys=").or_else(|| Some(find(params, b"keys=")? + in_params));
        let (hint, caret) = match keys {
            _ if KERNELS.contains(&self.name) => (HintText::of(errno), 0),
            Some(keys) => (HintText::NoHist, keys),
            None if self.name.is_empty() => (HintText::NoCommand, 0),
            None => (HintText::UnknownCommand, 0),
        };
        Error::own(hint, caret).with(errno)
    }

    /// The COMMAND of the error log: name, colon and parameters as written, filter included.
    pub fn text(&self) -> Result<KVec<u8>, AllocError> {
        let params = self.params.unwrap_or(&[]);
        let mut text = KVec::with_capacity(self.name.len() + 1 + params.len(), GFP_KERNEL)?;
        text.extend_from_slice(self.name, GFP_KERNEL)?;
        if !params.is_empty() {
            text.push(b':', GFP_KERNEL)?;
            text.extend_from_slice(params, GFP_KERNEL)?;
        }
        Ok(text)
    }
}

/// The commands that are passed to the kernel.
const KERNELS: [&[u8]; 6] = [
    b"traceon",
    b"traceoff",
    b"snapshot",
    b"stacktrace",
    b"enable_event",
    b"disable_event",
];

/// Returns whether rhist executes the command `name`.
pub(super) fn is_ours(name: &[u8]) -> bool {
    matches!(name, b"hist" | b"enable_hist" | b"disable_hist")
}
