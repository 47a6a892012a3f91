// SPDX-License-Identifier: GPL-2.0

//! Errors of triggers: text and caret for `error_log`, and errno for `write(2)`.

use crate::errno::eloop;
use kernel::alloc::AllocError;
use kernel::error::code::*;

/// Why a trigger is refused.
///
/// Complete for the error log: `caret` already is a position in its COMMAND.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    /// Text for the error log. `None`: nothing is logged, `write(2)` only returns the errno.
    pub text: Option<ErrorText>,
    /// Bytes before the caret, from the start of the COMMAND (`hist:` included).
    pub caret: usize,
    /// What `write(2)` returns.
    pub errno: kernel::error::Error,
}

impl Error {
    /// Makes an error that is not logged.
    pub const fn silent(errno: kernel::error::Error) -> Self {
        Self {
            text: None,
            caret: 0,
            errno,
        }
    }

    /// Makes an error that is logged, with the errno that belongs to its text.
    pub fn new(text: ErrorText, caret: usize) -> Self {
        Self {
            text: Some(text),
            caret,
            errno: text.errno(),
        }
    }
}

impl From<AllocError> for Error {
    fn from(_: AllocError) -> Self {
        Self::silent(ENOMEM)
    }
}

impl From<kernel::error::Error> for Error {
    fn from(errno: kernel::error::Error) -> Self {
        Self::silent(errno)
    }
}

impl From<Error> for kernel::error::Error {
    fn from(error: Error) -> Self {
        error.errno
    }
}

/// Declares [`ErrorText`]: each name with its text in the error log.
macro_rules! error_texts {
    ($($name:ident = $text:literal,)*) => {
        /// The errors of hist triggers, with exactly the kernel's texts (`ERRORS` in
        /// `trace_events_hist.c`).
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum ErrorText {
            $(#[doc = $text] $name,)*
            /// A value is a string. C sums up the addresses.
            StringValue,
            /// There is too little memory for the entries. C logs nothing then.
            TooLarge,
            /// Triggers would refer to each other in a circle, so that none could be removed. C accepts it: there,
            /// a trigger has the references of the first one of its name.
            NamedCircle,
        }

        impl ErrorText {
            /// All errors that C has too, in C's order.
            pub const ALL: &'static [ErrorText] = &[$(ErrorText::$name,)*];

            /// The text in the error log.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(ErrorText::$name => $text,)*
                    ErrorText::StringValue => "String used as a value",
                    ErrorText::TooLarge => "Not enough memory for a histogram of this size",
                    ErrorText::NamedCircle => "Histograms of this name would refer to themselves",
                }
            }
        }
    };
}

error_texts! {
    DuplicateVar = "Variable already defined",
    VarNotUnique = "Variable name not unique, need to use fully qualified name (subsys.event.var) for variable",
    TooManyVars = "Too many variables defined",
    MalformedAssignment = "Malformed assignment",
    NamedMismatch = "Named hist trigger doesn't match existing named trigger (includes variables)",
    TriggerEexist = "Hist trigger already exists",
    TriggerEnoentClear = "Can't clear or continue a nonexistent hist trigger",
    SetClockFail = "Couldn't set trace_clock",
    BadFieldModifier = "Invalid field modifier",
    TooManySubexpr = "Too many subexpressions (3 max)",
    TimestampMismatch = "Timestamp units in expression don't match",
    TooManyFieldVars = "Too many field variables defined",
    EventFileNotFound = "Event file not found",
    HistNotFound = "Matching event histogram not found",
    HistCreateFail = "Couldn't create histogram for field",
    SynthVarNotFound = "Couldn't find synthetic variable",
    SynthEventNotFound = "Couldn't find synthetic event",
    SynthTypeMismatch = "Param type doesn't match synthetic event field type",
    SynthCountMismatch = "Param count doesn't match synthetic event field count",
    FieldVarParseFail = "Couldn't parse field variable",
    VarCreateFindFail = "Couldn't create or find variable",
    OnxNotVar = "For onmax(x) or onchange(x), x must be a variable",
    OnxVarNotFound = "Couldn't find onmax or onchange variable",
    OnxVarCreateFail = "Couldn't create onmax or onchange variable",
    FieldVarCreateFail = "Couldn't create field variable",
    TooManyParams = "Too many action params",
    ParamNotFound = "Couldn't find param",
    InvalidParam = "Invalid action param",
    ActionNotFound = "No action found",
    NoSaveParams = "No params found for save()",
    TooManySaveActions = "Can't have more than one save() action per hist",
    ActionMismatch = "Handler doesn't support action",
    NoClosingParen = "No closing paren found",
    SubsysNotFound = "Missing subsystem",
    InvalidSubsysEvent = "Invalid subsystem or event name",
    InvalidRefKey = "Using variable references in keys not supported",
    VarNotFound = "Couldn't find variable",
    FieldNotFound = "Couldn't find field",
    EmptyAssignment = "Empty assignment",
    InvalidSortModifier = "Invalid sort modifier",
    EmptySortField = "Empty sort field",
    TooManySortFields = "Too many sort fields (Max = 2)",
    InvalidSortField = "Sort field must be a key or a val",
    InvalidStrOperand = "String type can not be an operand in expression",
    ExpectNumber = "Expecting numeric literal",
    UnaryMinusSubexpr = "Unary minus not supported in sub-expressions",
    DivisionByZero = "Division by zero",
    NeedNohcVal = "Non-hitcount value is required for 'nohitcount'",
}

impl ErrorText {
    /// The errno that C returns with this text, or without one.
    pub fn errno(self) -> kernel::error::Error {
        match self {
            Self::TriggerEexist | Self::TooManySaveActions => EEXIST,
            Self::TriggerEnoentClear | Self::NeedNohcVal => ENOENT,
            Self::DivisionByZero => EDOM,
            Self::TooLarge => ENOMEM,
            Self::NamedCircle => eloop(),
            _ => EINVAL,
        }
    }
}
