// SPDX-License-Identifier: GPL-2.0

//! What is wrong with a filter, where, and what the writer of it gets.

use kernel::alloc::AllocError;
use kernel::error::code::*;
use kernel::error::Error;

/// Where the error log says that a filter's errors come from.
pub const LOCATION: &[u8] = b"event filter parse error";

/// Why a filter is refused.
///
/// Every refusal is logged, with [`LOCATION`] and the text of the filter as COMMAND
/// (`append_filter_err()`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterError {
    /// Sentence for the error log.
    pub text: FilterErrorText,
    /// Bytes before the caret, from the start of the filter's text. It may be beyond its end, by two
    /// bytes at most.
    pub caret: usize,
    /// What the write fails with.
    pub errno: Error,
}

impl FilterError {
    pub(super) fn new(text: FilterErrorText, caret: usize) -> Self {
        Self {
            text,
            caret,
            errno: EINVAL,
        }
    }

    /// The same with another errno.
    pub(super) fn with(self, errno: Error) -> Self {
        Self { errno, ..self }
    }
}

/// An error that C has no sentence for.
impl From<Error> for FilterError {
    fn from(errno: Error) -> Self {
        Self::new(FilterErrorText::Errno, 0).with(errno)
    }
}

impl From<AllocError> for FilterError {
    fn from(_: AllocError) -> Self {
        ENOMEM.into()
    }
}

impl From<FilterError> for Error {
    fn from(error: FilterError) -> Self {
        error.errno
    }
}

/// Declares [`FilterErrorText`]: each name with the sentence users, tests and tools know it by.
macro_rules! error_texts {
    ($($name:ident = $text:literal,)*) => {
        /// The errors of filters: the sentences are the kernel's, letter by letter.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum FilterErrorText {
            $(#[doc = $text] $name,)*
        }

        impl FilterErrorText {
            /// All errors, in C's order.
            pub const ALL: &'static [FilterErrorText] = &[$(FilterErrorText::$name,)*];

            /// The sentence.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(FilterErrorText::$name => $text,)*
                }
            }
        }
    };
}

// What C has beyond these is not for triggers: filters of a whole subsystem, and of function trace
// events, which have no triggers.
error_texts! {
    InvalidOp = "Invalid operator",
    TooManyOpen = "Too many '('",
    TooManyClose = "Too few '('",
    MissingQuote = "Missing matching quote",
    MissingBraceOpen = "Missing '{'",
    MissingBraceClose = "Missing '}'",
    OperandTooLong = "Operand too long",
    ExpectString = "Expecting string field",
    ExpectDigit = "Expecting numeric field",
    IllegalFieldOp = "Illegal operation for field type",
    FieldNotFound = "Field not found",
    IllegalIntval = "Illegal integer value",
    TooManyPreds = "Too many terms in predicate expression",
    InvalidFilter = "Meaningless filter expression",
    InvalidCpulist = "Invalid cpulist",
    InvalidValue = "Invalid value (did you forget quotes)?",
    NoFunction = "Function not found",
    Errno = "Error",
    NoFilter = "No filter found",
}
