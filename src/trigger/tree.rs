// SPDX-License-Identifier: GPL-2.0

//! The syntax tree of a hist trigger.

use super::text::SourceText;
use super::Error;
use super::ErrorText;
use super::Span;
use super::Unsupported;
use kernel::prelude::*;

/// A hist trigger, taken apart: `keys=…[:vals=…][:sort=…]…[ if filter]`.
///
/// It owns its text; [`Span`]s of the tree are pieces of it.
pub struct Trigger {
    pub(super) text: SourceText,
    /// Handlers with their actions, in order. At most [`ACTIONS_MAX`](super::ACTIONS_MAX).
    ///
    /// The walk starts here: this list also ends in the error of a malformed assignment list,
    /// which C reports after it has looked up the events of `onmatch()`.
    pub actions: ParsedList<Action>,
    /// Values, without the first bare `hitcount`, which is there anyway.
    pub vals: ParsedList<Expr>,
    /// Variables, in order of definition.
    pub vars: ParsedList<Assignment>,
    /// Keys. At least one.
    pub keys: ParsedList<Expr>,
    /// Sort keys. None: by hitcount, ascending.
    pub sort: ParsedList<SortField>,
    /// Size of the map, if it is given.
    pub size: Option<MapSize>,
    /// The whole token `name=…`, which is what C keeps and prints.
    pub name: Option<Span>,
    /// Name of the clock, without white space at its ends. `None`: [`Trigger::CLOCK_DEFAULT`].
    pub clock: Option<Span>,
    /// The word `nohitcount` or `NOHC`.
    pub nohitcount: Option<Span>,
    /// The word `pause`.
    pub pause: Option<Span>,
    /// The word `cont` or `continue`.
    pub cont: Option<Span>,
    /// The word `clear`.
    pub clear: Option<Span>,
    /// The filter.
    pub filter: Option<FilterClause>,
}

impl Trigger {
    /// The clock of a trigger that names none.
    pub const CLOCK_DEFAULT: &'static [u8] = b"global";

    /// Parses the parameters of a `hist` command ([`Command::hist`](super::Command::hist)).
    ///
    /// # Errors
    ///
    /// Mistakes that C reports before it looks anything up; `ENOMEM`. Others stay in the tree.
    pub fn parse(params: &[u8]) -> Result<Self, Error> {
        super::parser::parse(params)
    }

    /// The COMMAND of the error log: `hist:` and the parameters as written.
    pub fn command(&self) -> &[u8] {
        self.text.command()
    }

    /// A piece of the text as the grammar sees it: as typed, but for the `-` of `.sym-offset`, which
    /// is an `X`.
    pub fn bytes(&self, piece: Span) -> &[u8] {
        self.text.bytes(piece)
    }

    /// A piece of the text as typed.
    pub fn typed(&self, piece: Span) -> &[u8] {
        self.text.typed(piece)
    }

    /// An error whose culprit is a piece of the text. Its caret is under the first occurrence of
    /// these bytes, as C has it.
    pub fn error(&self, text: ErrorText, culprit: Span) -> Error {
        self.text.error(text, culprit)
    }

    /// An error whose culprit is not a piece of this text, for example the default clock.
    pub fn error_at(&self, text: ErrorText, culprit: &[u8]) -> Error {
        Error::new(text, self.text.caret(culprit))
    }

    /// The refusal of a construct that rhist does not do yet. Its caret is under the construct.
    pub fn unsupported(&self, what: Unsupported, construct: Span) -> Error {
        Error::new(ErrorText::Unsupported(what), construct.start)
    }

    /// A piece of the text as a field of the event, `name[.modifier]`, with no regard to operators,
    /// qualifiers and `$`: how C reads the definition it puts in place of a `$name`.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a modifier that does not exist or has no business in this place.
    pub fn field(&self, piece: Span, place: Place) -> Result<FieldRef, Error> {
        super::parser::field(&self.text, piece, None, piece, place)
    }

    /// The text that stands for `$name` when `name` is defined in this same trigger: that of the
    /// first definition that is neither an expression nor a reference itself. To be read with
    /// [`Trigger::field`].
    ///
    /// C looks at what it has left of the definition: in `x=a+b,y=$x` it takes `y` for `a`, because
    /// it has cut `a+b` by then. This looks at the definition.
    pub fn substitute(&self, name: &[u8]) -> Option<Span> {
        self.vars
            .items()
            .iter()
            .find(|var| {
                let expr = self.bytes(var.expr.text());
                self.bytes(var.name) == name
                    && !expr.iter().any(|byte| b"+-*/".contains(byte))
                    && !(expr.len() >= 2 && expr.starts_with(b"$"))
            })
            .map(|var| var.expr.text())
    }
}

/// Items in the order in which they are to be looked at, the last of which may be an error.
pub struct ParsedList<T> {
    /// The list as typed, without what introduces it; of actions and of assignments, which may be
    /// many tokens, the last one. `None`: not given.
    pub text: Option<Span>,
    pub(super) items: KVec<T>,
    pub(super) error: Option<Error>,
    /// What is left because of the error.
    pub rest: Option<Span>,
}

impl<T> ParsedList<T> {
    pub(super) fn new(text: Option<Span>) -> Self {
        Self {
            text,
            items: KVec::new(),
            error: None,
            rest: None,
        }
    }

    pub(super) fn fail(&mut self, error: Error, rest: Option<Span>) {
        self.error = Some(error);
        self.rest = rest;
    }

    /// The items, and after them the error that keeps the list from going on, if there is one.
    pub fn iter(&self) -> impl Iterator<Item = Result<&T, Error>> + '_ {
        Iterator::chain(self.items.iter().map(Ok), self.error.map(Err))
    }

    /// The items without the error.
    pub fn items(&self) -> &[T] {
        &self.items
    }

    /// The error.
    pub fn error(&self) -> Option<Error> {
        self.error
    }
}

/// A key, a value, the right side of an assignment, or an operand of one of these.
pub enum Expr {
    /// A number.
    Literal {
        /// As typed: decimal, `0x…` or `0…`.
        text: Span,
        /// The number.
        value: u64,
    },
    /// A field of the event, or one that every event has.
    Field(FieldRef),
    /// A variable.
    Reference(VarRef),
    /// The key that is just the word `stacktrace`: the kernel stack, whatever fields there are.
    Stacktrace {
        /// The word.
        text: Span,
    },
    /// `-(operand)`.
    Negation {
        /// From the minus to the last parenthesis.
        text: Span,
        /// What stands in the parentheses.
        operand: KBox<Expr>,
    },
    /// `left operator right`.
    Binary {
        /// Both operands and what is between them.
        text: Span,
        /// What is done with the operands.
        operator: Operator,
        /// The operand that C looks at first.
        left: KBox<Expr>,
        /// The operand that C looks at if nothing is wrong with the left one.
        right: KBox<Expr>,
    },
    /// Not an expression: the error that is to be reported when the walk gets here.
    Bad {
        /// What is no expression.
        text: Span,
        /// Why it is not one.
        error: Error,
    },
}

impl Expr {
    /// The whole expression as typed: the culprit of errors that are found before its operands are
    /// looked at.
    pub fn text(&self) -> Span {
        match self {
            Self::Field(field) => field.text,
            Self::Reference(reference) => reference.text,
            Self::Literal { text, .. }
            | Self::Stacktrace { text }
            | Self::Negation { text, .. }
            | Self::Binary { text, .. }
            | Self::Bad { text, .. } => *text,
        }
    }

    /// The culprit of errors that are found after the operands have been looked at.
    ///
    /// C cuts the text in place while it goes: at operators, at the closing parenthesis, after the
    /// system of a qualified name. What is left of `a+b` is `a`, of `sched.sched_waking.$ts` is
    /// `sched`, of `-(a+b)` is `-(a`.
    pub fn remnant(&self) -> Span {
        match self {
            Self::Field(FieldRef {
                qualifier: Some(qualifier),
                ..
            })
            | Self::Reference(VarRef {
                qualifier: Some(qualifier),
                ..
            }) => qualifier.system,
            Self::Binary { left, .. } => left.remnant(),
            Self::Negation { text, operand } => Span {
                start: text.start,
                end: operand.remnant().end,
            },
            _ => self.text(),
        }
    }
}

/// A field: `[system.event.]name[.modifier]`.
#[derive(Clone, Copy, Debug)]
pub struct FieldRef {
    /// All of it as typed.
    pub text: Span,
    /// C ignores it: `x.y.prev_pid` is the field `prev_pid` of the event at hand.
    pub qualifier: Option<Qualifier>,
    /// `name[.modifier]`: the culprit if `.stacktrace` does not fit the field.
    pub atom: Span,
    /// Name of the field, possibly empty: the culprit if it does not exist.
    pub name: Span,
    /// What follows the first dot after the name.
    pub modifier: Option<Modifier>,
}

/// What is to be done with a field.
#[derive(Clone, Copy, Debug)]
pub struct Modifier {
    /// As typed, without the dot.
    pub text: Span,
    /// Which one it is.
    pub kind: ModifierKind,
}

/// The modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModifierKind {
    /// `.hex`
    Hex,
    /// `.sym`
    Sym,
    /// `.sym-offset`
    SymOffset,
    /// `.execname`, which stands after `common_pid` only.
    Execname,
    /// `.syscall`
    Syscall,
    /// `.stacktrace`
    Stacktrace,
    /// `.log2`
    Log2,
    /// `.buckets=N` or `.bucket=N`, N not being 0.
    Buckets(usize),
    /// `.usecs`
    Usecs,
    /// `.percent` and whatever starts with it. Never in a [`Place::Key`] or [`Place::Variable`].
    Percent,
    /// `.graph` and whatever starts with it. Never in a [`Place::Key`] or [`Place::Variable`].
    Graph,
}

impl ModifierKind {
    /// The word for it, without the width of buckets.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Hex => "hex",
            Self::Sym => "sym",
            Self::SymOffset => "sym-offset",
            Self::Execname => "execname",
            Self::Syscall => "syscall",
            Self::Stacktrace => "stacktrace",
            Self::Log2 => "log2",
            Self::Buckets(_) => "buckets",
            Self::Usecs => "usecs",
            Self::Percent => "percent",
            Self::Graph => "graph",
        }
    }
}

/// Where an expression stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A key.
    Key,
    /// A value.
    Value,
    /// The right side of an assignment, or a parameter of an action.
    Variable,
    /// Inside another expression.
    Operand,
}

/// A reference to a variable: `[system.event.]$name`.
#[derive(Clone, Copy, Debug)]
pub struct VarRef {
    /// All of it as typed.
    pub text: Span,
    /// The event whose variable it is.
    pub qualifier: Option<Qualifier>,
    /// `$name`. If there is no such variable, C reports that and then tries this as a field:
    /// [`Trigger::field`].
    pub atom: Span,
    /// The name of the variable, never empty: the culprit if it does not exist.
    pub name: Span,
}

/// The event that a name belongs to.
#[derive(Clone, Copy, Debug)]
pub struct Qualifier {
    /// Its system.
    pub system: Span,
    /// Its name.
    pub event: Span,
}

/// The operators with two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `+`
    Plus,
    /// `-`
    Minus,
    /// `*`
    Times,
    /// `/`
    Over,
}

/// A variable and what it holds: `name=expr`.
pub struct Assignment {
    /// All of it as typed.
    pub text: Span,
    /// The name, possibly empty: the culprit if the event already has such a variable.
    pub name: Span,
    /// What it holds.
    pub expr: Expr,
}

/// One field of `sort=`.
#[derive(Clone, Copy, Debug)]
pub struct SortField {
    /// All of it as typed.
    pub text: Span,
    /// `hitcount`, or the display name of a value or a key; the culprit if there is none. Never empty.
    pub name: Span,
    /// Which end is first. C looks at it after it has found what the name means.
    pub order: Result<Order, Error>,
}

/// Which end of a sorted list is first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The smallest, also if nothing is said.
    Ascending,
    /// The biggest.
    Descending,
}

/// Size of the map.
#[derive(Clone, Copy, Debug, Default)]
pub struct MapSize {
    /// The number as typed.
    pub text: Span,
    /// The map has 2^bits entries, at least as many as asked for:
    /// [`MAP_BITS_MIN`](super::MAP_BITS_MIN)..=[`MAP_BITS_MAX`](super::MAP_BITS_MAX).
    pub bits: u32,
}

/// The filter, `if` and all.
#[derive(Clone, Copy, Debug)]
pub struct FilterClause {
    /// From `if` to the end.
    pub clause: Span,
    /// What follows `if` and one blank: what is stored, compared and printed.
    pub text: Span,
}

/// A handler and what it does: `handler.act`.
pub struct Action {
    /// The token as typed.
    pub text: Span,
    /// When something is done.
    pub handler: ActionHandler,
    /// What is done. C looks at it after it has looked up the event of the handler.
    pub act: Result<Act, Error>,
}

/// When an action takes place.
#[derive(Clone, Copy, Debug)]
pub enum ActionHandler {
    /// `onmatch(system.event)`
    OnMatch {
        /// System of the event.
        system: Span,
        /// Name of the event: the culprit if it does not exist.
        event: Span,
    },
    /// `onmax(variable)`
    OnMax {
        /// What stands in the parentheses, `$` and all. Nothing is known of it yet: it may be empty.
        var: Span,
    },
    /// `onchange(variable)`
    OnChange {
        /// As for `onmax`.
        var: Span,
    },
}

/// What an action does.
pub enum Act {
    /// `save(params)`
    Save {
        /// The word, which starts with `save`.
        name: Span,
        /// Fields that are kept. At least one.
        params: KVec<Param>,
    },
    /// `snapshot()`
    Snapshot {
        /// The word, which starts with `snapshot`.
        name: Span,
    },
    /// `trace(event,params)` or `event(params)`
    Trace {
        /// The word: the synthetic event itself, or one that starts with `trace`.
        name: Span,
        /// The synthetic event: the culprit if it does not exist, or has other fields.
        event: Span,
        /// What it is given. May be none in the long form.
        params: KVec<Param>,
    },
}

/// A parameter of an action.
pub struct Param {
    /// All of it as typed, without white space at its ends; at least two bytes.
    pub text: Span,
    /// The event it belongs to. Always `None` for `save`, which reads the text as one field.
    /// The error is that of a name with one dot, met when the action is created.
    pub qualifier: Result<Option<Qualifier>, Error>,
    /// The text after the qualifier. For `trace` it is a variable if it starts with `$`, even if
    /// nothing follows, and a field otherwise.
    pub rest: Span,
    /// [`Param::rest`] read as a field, a reference or a number; never an expression.
    pub atom: Expr,
}
