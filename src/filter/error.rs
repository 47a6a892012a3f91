// SPDX-License-Identifier: GPL-2.0

//! Errors of filters: text and caret for `error_log`, and errno for `write(2)`.

use kernel::{
    alloc::AllocError,
    error::{
        code::*,
        Error, //
    },
};

use crate::trigger::{
    Hint,
    HintText, //
};

/// The location of filter errors in the error log.
pub const LOCATION: &[u8] = b"event filter parse error";

/// Why a filter is refused.
///
/// Every error is logged, with [`LOCATION`] and the text of the filter as COMMAND
/// (`append_filter_err()`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterError {
    /// Text for the error log.
    pub text: FilterErrorText,
    /// Bytes before the caret, from the start of the filter's text. It may be beyond its end, by
    /// two bytes at most.
    pub caret: usize,
    /// Hint that rhist appends to the text. It has its own caret.
    pub hint: Option<Hint>,
    /// Error for `write(2)`.
    pub errno: Error,
}

impl FilterError {
    pub(super) fn new(text: FilterErrorText, caret: usize) -> Self {
        Self {
            text,
            caret,
            hint: None,
            errno: EINVAL,
        }
    }

    /// Adds a hint.
    pub(super) fn hinted(self, text: HintText, caret: usize) -> Self {
        let hint = Some(Hint { text, caret });
        Self { hint, ..self }
    }

    /// Replaces the errno.
    pub(super) fn with(self, errno: Error) -> Self {
        Self { errno, ..self }
    }
}

/// An error without a text in C.
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

/// Declares [`FilterErrorText`]: each name with its text in the error log.
macro_rules! error_texts {
    ($($name:ident = $text:literal,)*) => {
        /// The errors of filters, with exactly the kernel's texts (`ERRORS` in
        /// `trace_events_filter.c`).
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum FilterErrorText {
            $(#[doc = $text] $name,)*
        }

        impl FilterErrorText {
            /// All errors, in C's order.
            pub const ALL: &'static [FilterErrorText] = &[$(FilterErrorText::$name,)*];

            /// The text in the error log.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(FilterErrorText::$name => $text,)*
                }
            }
        }
    };
}

// C's other errors cannot happen for triggers: they concern filters of a whole subsystem and of
// function trace events.
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
