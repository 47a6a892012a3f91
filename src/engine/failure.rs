// SPDX-License-Identifier: GPL-2.0

//! Failures of commands.

use crate::{
    filter::FilterError,
    text::Text,
    trigger::Error, //
};
use kernel::prelude::*;

/// The cause of a command's failure.
pub enum Failure {
    /// The command is invalid, or could not be executed. With the errors to log before, after which
    /// it was continued.
    Command(Error, KVec<Error>),
    /// Another trigger refers to the one to be removed: `EBUSY`, and a text that names the other.
    Referenced(Text),
    /// The kernel has refused the command, and has logged the cause.
    Logged(kernel::error::Error),
    /// The filter is invalid. With its text, for the error log.
    Filter(FilterError, KVec<u8>),
}

impl Failure {
    /// The error of a command that was executed for another one.
    pub fn error(self) -> Error {
        match self {
            Self::Command(error, _) => error,
            Self::Referenced(_) => EBUSY.into(),
            Self::Logged(errno) => errno.into(),
            Self::Filter(error, _) => error.errno.into(),
        }
    }

    /// Adds errors to be logged before this one.
    pub(super) fn after(self, errors: KVec<Error>) -> Self {
        match self {
            Self::Command(error, _) => Self::Command(error, errors),
            Self::Referenced(_) | Self::Logged(_) | Self::Filter(..) => self,
        }
    }
}

impl<E: Into<Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Command(error.into(), KVec::new())
    }
}
