// SPDX-License-Identifier: GPL-2.0

//! Errors of triggers: text and caret for `error_log`, and errno for `write(2)`.
//!
//! C's text is kept apart from the text that rhist adds, a [`Hint`]. C logs nothing for some
//! errors, and for others a text that does not help.

use crate::errno::eloop;
use kernel::{
    alloc::AllocError,
    error::code::*, //
};

/// The error for which a trigger is refused.
///
/// Complete for the error log: `caret` already is a position in its COMMAND.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    /// C's text for the error log. `None`: C logs nothing.
    pub text: Option<ErrorText>,
    /// Bytes before C's caret, from the start of the COMMAND (`hist:` included).
    pub caret: usize,
    /// Text of rhist, where C logs nothing, or to append to C's text.
    pub hint: Option<Hint>,
    /// Error for `write(2)`.
    pub errno: kernel::error::Error,
}

impl Error {
    /// Makes an error without text or hint.
    pub const fn silent(errno: kernel::error::Error) -> Self {
        Self {
            text: None,
            caret: 0,
            hint: None,
            errno,
        }
    }

    /// Makes an error that C logs, too, with the errno for its text.
    pub fn new(text: ErrorText, caret: usize) -> Self {
        Self {
            text: Some(text),
            caret,
            hint: None,
            errno: text.errno(),
        }
    }

    /// Makes an error that C does not log, with the errno for its text.
    pub fn own(text: HintText, caret: usize) -> Self {
        Self::silent(text.errno()).hinted(text, caret)
    }

    /// Adds a hint.
    pub fn hinted(self, text: HintText, caret: usize) -> Self {
        let hint = Some(Hint { text, caret });
        Self { hint, ..self }
    }

    /// Replaces the errno.
    pub fn with(self, errno: kernel::error::Error) -> Self {
        Self { errno, ..self }
    }

    /// Returns whether it has this hint.
    pub fn has_hint(&self, text: HintText) -> bool {
        self.hint.is_some_and(|hint| hint.text == text)
    }
}

/// A sentence of rhist, and where the caret goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hint {
    /// The sentence.
    pub text: HintText,
    /// Bytes before the caret, from the start of the COMMAND.
    pub caret: usize,
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
        }

        impl ErrorText {
            /// All errors, in C's order.
            pub const ALL: &'static [ErrorText] = &[$(ErrorText::$name,)*];

            /// The text in the error log.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(ErrorText::$name => $text,)*
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
            _ => EINVAL,
        }
    }
}

/// Declares [`HintText`]: each name with its sentence.
macro_rules! hint_texts {
    ($($name:ident = $text:literal,)*) => {
        /// Texts of rhist itself. Texts that are appended to a text of C, behind a colon, begin
        /// with a small letter.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum HintText {
            $(#[doc = $text] $name,)*
        }

        impl HintText {
            /// All of them.
            pub const ALL: &'static [HintText] = &[$(HintText::$name,)*];

            /// The sentence.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(HintText::$name => $text,)*
                }
            }
        }
    };
}

hint_texts! {
    // No command, or one that is not for a histogram.
    NoCommand = "No command found",
    UnknownCommand = "Unknown command",
    NoHist = "No command found, hist: has to come before keys=",
    TooLong = "Command too long, it has to be shorter than a page",
    Unreadable = "Memory of the command cannot be read",
    SwitchEvent = "Expecting SYSTEM:EVENT",
    SwitchCount = "Expecting a number of hits",
    SwitchFilter = "Expecting if and a filter",
    // Tokens of a histogram.
    NoKeys = "No keys found, keys=FIELD is needed",
    NoFilter = "No filter found after if",
    EmptyAttribute = "Empty attribute: nothing between two colons, or behind the last one",
    UnknownAttribute = "Unknown attribute, expecting pause, cont, clear, nohitcount, a handler or NAME=VALUE",
    AttributeComma = "Attributes have to be separated by colons",
    UnknownHandler = "Unknown handler, expecting onmatch(SYSTEM.EVENT), onmax($VAR) or onchange($VAR)",
    NoHandler = "No handler found, an action needs onmatch(SYSTEM.EVENT), onmax($VAR) or onchange($VAR) before it",
    TooManyActions = "Too many actions (8 max)",
    BadSize = "Size has to be a number from 65 to 131072",
    BadRange = "Expecting size=A..B, A from 65 to 131072, B above A and up to 1048576, both rounded up to powers of two",
    TooManyKeys = "Too many keys (8 max)",
    TooManyVals = "Too many values (8 max, hitcount left out)",
    BadQuantiles = "Expecting 1 to 8 different percentages between 0 and 100, with at most 3 decimals, as in quantiles(50,99.9)",
    BadUnit = "Unknown unit, expecting s, ms or us",
    BadBuckets = "Expecting a number of buckets from 1 to 1024",
    BadLimit = "Expecting a number of entries, at least 1",
    BadUserStack = "Expecting a number of functions from 1 to 127",
    BadExpire = "Expecting taken, or a time from 1s to 8760h with ms, s, m or h, as in expire(60s)",
    BadFull = "Expecting other or recycle, as in full(other)",
    ExpireTaken = "expire(taken) needs a variable that is a number",
    ClauseNotClosed = "No closing paren found at the end of the clause",
    NoUserStack = "Needs common_ustack",
    NoDistribution = "Needs a value with .dist",
    UnitOfUsecs = "unit() is for values in nanoseconds, without .usecs",
    OnWithoutReference = "on() needs a reference to a variable of another trigger",
    // Expressions and fields.
    NoOperand = "Operand missing on one side of the operator",
    UnaryMinus = "Unary minus needs parentheses: -(EXPRESSION)",
    TooManyRefs = "Too many variable references (16 max)",
    ChainTooLong = "Too many histograms refer to each other in a row (16 max)",
    ExprTooLong = "Expression too long (255 bytes max)",
    StringValue = "String used as a value",
    NoFunction = "Field of a type that is not supported: no string or stack, and not a number of 1, 2, 4 or 8 bytes",
    UserStackValue = "Stack of a program used as a number",
    UserStackParam = "Stack of a program used for a field of a synthetic event, which would be shown by names of the kernel",
    GroupValue = "Control group used as a number",
    KeysTooLong = "Keys too long together (504 bytes max)",
    StackNeedsModifier = "Keys too long together, a stack is shorter with .stacktrace",
    // Actions.
    HandlerNotClosed = "No closing paren found behind the variable of the handler",
    ParamEvent = "Field of another event has to be SYSTEM.EVENT.FIELD",
    HelperTooLong = "Trigger for a field of another event would be too long (255 bytes max)",
    SnapshotBusy = "Another trigger has a snapshot() action already",
    // The command succeeded, but may not have the intended meaning.
    ParenAdded = "No closing paren found, taken as if it were at the end",
    // The histogram as a whole.
    TooLarge = "Not enough memory for a histogram of this size",
    TooWide = "Entries of this trigger are too wide for so many, expecting a smaller B in size=A..B",
    NamedCircle = "Histograms of this name would refer to themselves",
    // For errors without another text, by errno.
    Exists = "Such a trigger exists already",
    NoMemory = "Not enough memory",
    NoEvent = "Event not found, or it cannot have triggers",
    Busy = "Something that it needs is in use",
    Invalid = "Invalid command or parameter",
    Other = "Command cannot be carried out",
    // Added to C's texts.
    FieldBlank = "a blank is part of the name",
    FieldMissing = "the name is missing",
    BucketWidth = "expecting a width, as in .buckets=10",
    Address = "keys and parameters of save() can be addresses, of unsigned fields with 4 or 16 bytes, or with a socket address",
    PointedText = "keys, variables and parameters of save() can be strings, of fields with the type const char *",
    TaskComm = "keys, variables and parameters of save() can be names of tasks, of fields with a process id of 4 bytes",
    TaskGroup = "keys, variables and parameters of save() can be control groups of tasks, of fields with a process id of 4 bytes",
    ScaleNumber = "expecting a scale from 0 to 5, as in .dist=3",
    NamedRoom = "expecting the same size=A..B, expire() and full(), or none of them",
    FilterOperator = "expecting && or || between two terms",
    FilterQuote = "the string that begins here has no end",
    FilterAddress = "expecting an address, or a network as in 10.0.0.0/8 or 2001:db8::/32",
    FilterGroup = "expecting the path of a control group that exists, in quotes, as in \"/a/b\"",
    FilterGroupPattern = "a path has no wildcards here: ~ \"/a\" is /a and all control groups below it",
    FilterTerm = "expecting a term that begins with the name of a field",
}

impl HintText {
    /// Returns the text for an error without text or hint, by its errno.
    pub fn of(errno: kernel::error::Error) -> Self {
        match errno {
            EEXIST => Self::Exists,
            ENOMEM => Self::NoMemory,
            ENODEV | ENOENT => Self::NoEvent,
            EBUSY => Self::Busy,
            EINVAL => Self::Invalid,
            EFAULT => Self::Unreadable,
            _ => Self::Other,
        }
    }

    /// The errno that C returns; rhist's own for commands that C accepts.
    pub fn errno(self) -> kernel::error::Error {
        match self {
            Self::TooLarge | Self::NoFunction | Self::TooManyRefs | Self::NoMemory => ENOMEM,
            Self::NamedCircle | Self::ChainTooLong => eloop(),
            Self::ExprTooLong => E2BIG,
            Self::SnapshotBusy => EBUSY,
            _ => EINVAL,
        }
    }
}
