// SPDX-License-Identifier: MIT OR Apache-2.0

//! Reasons why the symbols of a file cannot be read.

use crate::limits::MOST_SYMBOLS;
use std::fmt;

/// Reason why the symbols of a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// It is not a program or library that can be read.
    File(rhist_elf::Error),
    /// More than [`MOST_SYMBOLS`] symbols.
    TooManySymbols,
    /// Tables of names with more than 4 GiB.
    TooLarge,
    /// The file with debugging information belongs to another build, or one of both lacks a build
    /// id.
    OtherBuild,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(error) => error.fmt(f),
            Self::TooManySymbols => write!(f, "more than {MOST_SYMBOLS} symbols"),
            Self::TooLarge => f.write_str("more than 4 GiB of names"),
            Self::OtherBuild => f.write_str("the debugging information has not the build id of the file"),
        }
    }
}

impl std::error::Error for Error {}

impl From<rhist_elf::Error> for Error {
    fn from(error: rhist_elf::Error) -> Self {
        Self::File(error)
    }
}
