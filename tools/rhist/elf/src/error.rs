// SPDX-License-Identifier: MIT OR Apache-2.0

//! Reasons why a file is not a program or library that can be read.

use std::fmt;

/// Reason why a file is not a program or library that can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The file does not begin as an ELF file.
    NotElf,
    /// An ELF file of 32 bits, or with the most significant byte first.
    Abi,
    /// Code of another architecture: its number in the ELF header (`e_machine`).
    Machine(u16),
    /// Neither a program nor a library, such as an object file: its number (`e_type`).
    Kind(u16),
    /// A part of the file, named here, is not where the headers say.
    Header(&'static str),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotElf => f.write_str("not an ELF file"),
            Self::Abi => f.write_str("not an ELF file of 64 bits, little-endian"),
            Self::Machine(number) => write!(f, "code of another architecture (e_machine {number})"),
            Self::Kind(number) => write!(f, "neither a program nor a library (e_type {number})"),
            Self::Header(part) => write!(f, "{part} is not in the file"),
        }
    }
}

impl std::error::Error for Error {}
