// SPDX-License-Identifier: GPL-2.0

//! What is wrong with a trigger, where, and what the writer of it gets.

use kernel::alloc::AllocError;
use kernel::error::code::*;

/// Why a trigger is refused.
///
/// It needs nothing else to be reported: `caret` already is the position in the COMMAND of the
/// error log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    /// Sentence for the error log. `None`: nothing is logged, the writer only gets the errno.
    pub text: Option<ErrorText>,
    /// Bytes before the caret, from the start of the COMMAND (`hist:` included).
    pub caret: usize,
    /// What the write fails with.
    pub errno: kernel::error::Error,
    /// What is logged before it, with its caret.
    pub before: Option<(ErrorText, usize)>,
}

impl Error {
    /// An error that leaves no trace but its errno.
    pub const fn silent(errno: kernel::error::Error) -> Self {
        Self {
            text: None,
            caret: 0,
            errno,
            before: None,
        }
    }

    /// An error that is logged, with the errno that belongs to its text.
    pub fn new(text: ErrorText, caret: usize) -> Self {
        Self {
            text: Some(text),
            caret,
            errno: text.errno(),
            before: None,
        }
    }

    /// The same, which is logged after another one.
    pub fn after(self, before: Self) -> Self {
        Self {
            before: before.text.map(|text| (text, before.caret)),
            ..self
        }
    }

    /// Is it no mistake, but something that rhist does not do yet?
    pub fn is_refusal(&self) -> bool {
        matches!(self.text, Some(ErrorText::Unsupported(_)))
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

/// Declares [`ErrorText`]: each name with the sentence users, tests and tools know it by.
macro_rules! error_texts {
    ($($name:ident = $text:literal,)*) => {
        /// The errors of hist triggers: the sentences are the kernel's, letter by letter.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum ErrorText {
            $(#[doc = $text] $name,)*
            /// Correct in C, and not there yet in rhist.
            Unsupported(Unsupported),
        }

        impl ErrorText {
            /// All errors that C has too, in C's order.
            pub const ALL: &'static [ErrorText] = &[$(ErrorText::$name,)*];

            /// The sentence.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(ErrorText::$name => $text,)*
                    ErrorText::Unsupported(what) => what.as_str(),
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
    /// The errno C returns together with this sentence, where it is always the same one.
    pub fn errno(self) -> kernel::error::Error {
        match self {
            Self::TriggerEexist | Self::TooManySaveActions => EEXIST,
            Self::TriggerEnoentClear | Self::NeedNohcVal => ENOENT,
            Self::DivisionByZero => EDOM,
            _ => EINVAL,
        }
    }
}

/// Declares [`Unsupported`]: each construct with the word users know it by.
macro_rules! unsupported {
    ($($name:ident = $what:literal,)*) => {
        /// What the grammar has and rhist does not do yet.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Unsupported {
            $(#[doc = $what] $name,)*
        }

        impl Unsupported {
            /// All constructs that are refused with a sentence of their own.
            pub const ALL: &'static [Unsupported] = &[$(Unsupported::$name,)*];

            /// The sentence.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Unsupported::$name => concat!("Not supported by rhist yet: ", $what),)*
                }
            }
        }
    };
}

unsupported! {
    Values = "strings as values",
    Variables = "variables ('name=expression')",
    Actions = "actions ('onmatch', 'onmax', 'onchange')",
}
