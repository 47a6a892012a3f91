// SPDX-License-Identifier: GPL-2.0

//! The syntax tree of a hist trigger.

use super::{
    clause::Clauses,
    modifier::ModifierKind,
    text::SourceText,
    Error,
    ErrorText,
    Hint,
    HintText,
    Span, //
};
use crate::text::is_space;
use kernel::prelude::*;

/// A parsed hist trigger: `keys=…[:vals=…][:sort=…]…[ if filter]`.
///
/// It owns its text; the [`Span`]s in the tree refer to it.
pub struct Trigger {
    pub(super) text: SourceText,
    /// Handlers with their actions, in order. At most [`ACTIONS_MAX`](crate::limits::ACTIONS_MAX).
    ///
    /// Checked first. The list also ends with the error of a malformed assignment, which C reports
    /// after it has looked up the events of `onmatch()`.
    pub actions: ParsedList<Action>,
    /// Values, without the first plain `hitcount`, which every histogram has.
    pub vals: ParsedList<Expr>,
    /// Variables, in order of definition.
    pub vars: ParsedList<Assignment>,
    /// Keys. At least one.
    pub keys: ParsedList<Expr>,
    /// Sort keys. Empty: by hitcount, ascending.
    pub sort: ParsedList<SortField>,
    /// Size of the map, if it is given.
    pub size: Option<MapSize>,
    /// The whole token `name=…`, which C stores and prints.
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
    /// The clauses that C lacks.
    pub clauses: KBox<Clauses>,
    /// The filter, from `if` on.
    pub filter: Option<FilterClause>,
}

impl Trigger {
    /// The clock of a trigger without `clock=`.
    pub const CLOCK_DEFAULT: &'static [u8] = b"global";

    /// Parses the parameters of a `hist` command ([`Command::hist`](super::Command::hist)).
    ///
    /// # Errors
    ///
    /// Errors that C reports before any lookup; `ENOMEM`. Other errors stay in the tree.
    pub fn parse(params: &[u8]) -> Result<Self, Error> {
        super::parser::parse(SourceText::new(params)?)
    }

    /// [`Trigger::parse`] for a trigger that was not written, but composed on behalf of one whose
    /// COMMAND is `command`: carets refer to that.
    ///
    /// # Errors
    ///
    /// As [`Trigger::parse`].
    pub fn parse_for(params: &[u8], command: &[u8]) -> Result<Self, Error> {
        super::parser::parse(SourceText::made_for(params, command)?)
    }

    /// The COMMAND of the error log: `hist:` and the parameters as written.
    pub fn command(&self) -> &[u8] {
        self.text.command()
    }

    /// A part of the text as the parser reads it: as written, except that `.sym-offset` is
    /// `.symXoffset`.
    pub fn bytes(&self, piece: Span) -> &[u8] {
        self.text.bytes(piece)
    }

    /// A part of the text as written.
    pub fn typed(&self, piece: Span) -> &[u8] {
        self.text.typed(piece)
    }

    /// An error with the caret under the first occurrence of a part of the text, as in C.
    pub fn error(&self, text: ErrorText, culprit: Span) -> Error {
        self.text.error(text, culprit)
    }

    /// An error with the caret under the first occurrence of `culprit`, which need not be in the
    /// text (the default clock is not).
    pub fn error_at(&self, text: ErrorText, culprit: &[u8]) -> Error {
        Error::new(text, self.text.caret(culprit))
    }

    /// An error that C does not log, with the caret where a part of the text begins.
    pub fn own_error(&self, text: HintText, culprit: Span) -> Error {
        self.text.own(text, culprit)
    }

    /// The error for a name that is not a field.
    pub fn no_field(&self, name: Span) -> Error {
        let error = self.error(ErrorText::FieldNotFound, name);
        let bytes = self.bytes(name);
        match bytes.iter().position(|&byte| is_space(byte)) {
            Some(at) => error.hinted(HintText::FieldBlank, self.text.place(name.skip(at))),
            None if bytes.is_empty() => error.hinted(HintText::FieldMissing, self.text.place(name)),
            None => error,
        }
    }

    /// The error for a field that cannot have this modifier.
    pub fn unfit(&self, modifier: Modifier) -> Error {
        let error = self.error(ErrorText::BadFieldModifier, modifier.text);
        match modifier.kind.hint() {
            Some(hint) => error.hinted(hint, self.text.place(modifier.text)),
            None => error,
        }
    }

    /// Returns a hint for a trigger that is accepted, but may not have the intended meaning.
    pub fn note(&self) -> Option<Hint> {
        let mut actions = self.actions.items().iter();
        let unclosed = actions.find(|action| action.unclosed)?;
        self.own_error(HintText::ParenAdded, unclosed.text.after())
            .hint
    }

    /// Parses a part of the text as a field of the event, `name[.modifier]`, ignoring operators,
    /// qualifiers and `$`: as C parses the definition that it substitutes for a `$name`.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a modifier that does not exist or is not allowed in `place`.
    pub fn field(&self, piece: Span, place: Place) -> Result<FieldRef, Error> {
        super::parser::field(&self.text, piece, None, piece, place)
    }

    /// The event of the reference `system.event.$name` that defines one of the first `n` variables,
    /// if that reference is `text`.
    pub fn reference_at(&self, text: Span, n: usize) -> Option<Qualifier> {
        let mut vars = self.vars.items().iter().take(n);
        vars.find_map(|var| match &var.expr {
            Expr::Reference(reference) if reference.text == text => reference.qualifier,
            _ => None,
        })
    }

    /// The text that is substituted for `$name` if `name` is defined in the same trigger: its first
    /// definition that is neither an expression nor a reference. To be parsed with
    /// [`Trigger::field`].
    ///
    /// C uses the remains of the definitions after parsing: in `x=a+b,y=$x`, it finds `a`, because
    /// `a+b` was cut at the operator. Here the definitions are intact.
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

/// A list of items in the order in which they are checked. It may end with an error.
pub struct ParsedList<T> {
    /// The list as written, without its keyword. Actions and assignments may be many tokens: the
    /// last one. `None` if it is not given.
    pub text: Option<Span>,
    pub(super) items: KVec<T>,
    pub(super) error: Option<Error>,
    /// The text after the error, which was not parsed.
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

    /// The items, then the error, if the list ends with one.
    pub fn iter(&self) -> impl Iterator<Item = Result<&T, Error>> + '_ {
        Iterator::chain(self.items.iter().map(Ok), self.error.map(Err))
    }

    /// The items without the error.
    pub fn items(&self) -> &[T] {
        &self.items
    }

    /// The error at the end of the list, if any.
    pub fn error(&self) -> Option<Error> {
        self.error
    }
}

/// A key, a value, the right side of an assignment, or an operand of one of these.
pub enum Expr {
    /// A number.
    Literal {
        /// As written: decimal, `0x…` or `0…`.
        text: Span,
        /// The number.
        value: u64,
    },
    /// A field of the event, or a common field.
    Field(FieldRef),
    /// A variable.
    Reference(VarRefText),
    /// The key `stacktrace`: the kernel stack, even if the event has a field of that name.
    Stacktrace {
        /// The word.
        text: Span,
    },
    /// `-(operand)`.
    Negation {
        /// From the minus to the last parenthesis.
        text: Span,
        /// The expression in the parentheses.
        operand: KBox<Expr>,
    },
    /// `left operator right`.
    Binary {
        /// Both operands and the operator.
        text: Span,
        /// The operator between them.
        operator: Operator,
        /// Checked first.
        left: KBox<Expr>,
        /// Checked after the left operand.
        right: KBox<Expr>,
    },
    /// `(operand)` or `(operand).modifier`, as a value.
    Parens {
        /// All of it as written.
        text: Span,
        /// The expression in the parentheses.
        operand: KBox<Expr>,
        /// The modifier behind them.
        modifier: Option<Modifier>,
    },
    /// Not a valid expression: the error is reported when it is checked.
    Bad {
        /// The invalid text.
        text: Span,
        /// Why it is invalid.
        error: Error,
    },
}

impl Expr {
    /// The whole expression as written, where the caret goes for errors that are found before its
    /// operands are checked.
    pub fn text(&self) -> Span {
        match self {
            Self::Field(field) => field.text,
            Self::Reference(reference) => reference.text,
            Self::Literal { text, .. }
            | Self::Stacktrace { text }
            | Self::Negation { text, .. }
            | Self::Binary { text, .. }
            | Self::Parens { text, .. }
            | Self::Bad { text, .. } => *text,
        }
    }

    /// The text for the caret of errors that are found after the operands were checked.
    ///
    /// C cuts the text in place while it parses: at operators, at the closing parenthesis, after
    /// the system of a qualified name. Of `a+b` it reports `a`, of `sched.sched_waking.$ts` it
    /// reports `sched`, and of `-(a+b)` it reports `-(a`.
    pub fn remnant(&self) -> Span {
        match self {
            Self::Field(FieldRef {
                qualifier: Some(qualifier),
                ..
            })
            | Self::Reference(VarRefText {
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

/// A reference to a field as written: `[system.event.]name[.modifier]`.
#[derive(Clone, Copy, Debug)]
pub struct FieldRef {
    /// All of it as written.
    pub text: Span,
    /// C ignores it: `x.y.prev_pid` is the field `prev_pid` of the trigger's own event.
    pub qualifier: Option<Qualifier>,
    /// `name[.modifier]`, where the caret goes if `.stacktrace` is not allowed for the field.
    pub atom: Span,
    /// The name, possibly empty, where the caret goes if the event lacks the field.
    pub name: Span,
    /// The modifier after the first dot.
    pub modifier: Option<Modifier>,
}

/// The modifier of a field.
#[derive(Clone, Copy, Debug)]
pub struct Modifier {
    /// As written, without the dot.
    pub text: Span,
    /// The kind of modifier.
    pub kind: ModifierKind,
}

/// The place of an expression in a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A field in `keys=` or `on(…)`.
    Key,
    /// A field in `vals=`.
    Value,
    /// The right side of an assignment, or a parameter of an action other than `save()`.
    Variable,
    /// A parameter of `save()`.
    Saved,
    /// Inside another expression.
    Operand,
}

/// A reference to a variable: `[system.event.]$name`.
#[derive(Clone, Copy, Debug)]
pub struct VarRefText {
    /// All of it as written.
    pub text: Span,
    /// The event whose variable it is.
    pub qualifier: Option<Qualifier>,
    /// `$name`. If the variable does not exist, C reports that and then parses this as a field: see
    /// [`Trigger::field`].
    pub atom: Span,
    /// The name of the variable, never empty, where the caret goes if the variable does not exist.
    pub name: Span,
}

/// The event in a qualified name.
#[derive(Clone, Copy, Debug)]
pub struct Qualifier {
    /// The system of the event.
    pub system: Span,
    /// Its name.
    pub event: Span,
}

/// Binary operators.
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

impl Operator {
    /// The result of the operator on two numbers. A division by zero yields all ones.
    #[inline]
    pub fn apply(self, left: u64, right: u64) -> u64 {
        match self {
            Self::Plus => left.wrapping_add(right),
            Self::Minus => left.wrapping_sub(right),
            Self::Times => left.wrapping_mul(right),
            Self::Over => left.checked_div(right).unwrap_or(u64::MAX),
        }
    }
}

/// The definition of a variable: `name=expr`.
pub struct Assignment {
    /// All of it as written.
    pub text: Span,
    /// The name, possibly empty, where the caret goes if the event already has such a variable.
    pub name: Span,
    /// The value.
    pub expr: Expr,
}

/// One field of `sort=`.
#[derive(Clone, Copy, Debug)]
pub struct SortField {
    /// All of it as written.
    pub text: Span,
    /// `hitcount`, or the display name of a value or a key. Never empty. The caret goes here if no
    /// value or key has this name.
    pub name: Span,
    /// The order. Checked after the name was found.
    pub order: Result<Order, Error>,
    /// Set if the text after the name is more than an order: the text without the order, which may
    /// name a statistic of a value, as in `bytes_req.max`, and the order. C knows none of these.
    pub number: Option<(Span, Order)>,
}

/// Sort order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The default.
    Ascending,
    /// The biggest first.
    Descending,
}

/// `size=`: the size of the map.
#[derive(Clone, Copy, Debug, Default)]
pub struct MapSize {
    /// The number as written.
    pub text: Span,
    /// The map has 2^bits entries, the size rounded up. At least
    /// [`MAP_BITS_MIN`](crate::limits::MAP_BITS_MIN), at most
    /// [`MAP_BITS_MAX`](crate::limits::MAP_BITS_MAX).
    pub bits: u32,
}

/// The filter as written.
#[derive(Clone, Copy, Debug)]
pub struct FilterClause {
    /// From `if` to the end.
    pub clause: Span,
    /// The text after `if` and one blank. This is stored, compared and printed.
    pub text: Span,
}

/// An action and its handler: `handler.act`.
pub struct Action {
    /// The token as written.
    pub text: Span,
    /// When the action is done.
    pub handler: ActionHandler,
    /// Whether the parenthesis of its parameters is not closed.
    pub unclosed: bool,
    /// The call behind the handler. Checked after the event of the handler was looked up.
    pub act: Result<Act, Error>,
}

/// When an action is done (`enum handler_id`).
#[derive(Clone, Copy, Debug)]
pub enum ActionHandler {
    /// `onmatch(system.event)`
    OnMatch {
        /// System of the event.
        system: Span,
        /// Name of the event, where the caret goes if it does not exist.
        event: Span,
    },
    /// `onmax(variable)`
    OnMax {
        /// The text in the parentheses, with its `$`. Not checked yet, may be empty.
        var: Span,
    },
    /// `onchange(variable)`
    OnChange {
        /// As for `onmax`.
        var: Span,
    },
}

impl Action {
    /// The parameters, without the synthetic event.
    pub fn params(&self) -> &[Param] {
        match &self.act {
            Ok(Act::Save { params, .. } | Act::Trace { params, .. }) => params,
            Ok(Act::Snapshot { .. }) | Err(_) => &[],
        }
    }
}

/// The call of an action (`enum action_id`).
pub enum Act {
    /// `save(params)`
    Save {
        /// The name, which starts with `save`.
        name: Span,
        /// Fields to save. At least one.
        params: KVec<Param>,
    },
    /// `snapshot()`, without parameters.
    Snapshot {
        /// The name, which starts with `snapshot`.
        name: Span,
    },
    /// `trace(event,params)` or `event(params)`
    Trace {
        /// The name of the synthetic event, or a word that begins with `trace`.
        name: Span,
        /// The synthetic event, where the caret goes if it does not exist or has other fields.
        event: Span,
        /// The parameters. With `trace` the list may be empty.
        params: KVec<Param>,
    },
}

/// A parameter of an action.
pub struct Param {
    /// All of it as written, without white space at its ends; at least two bytes.
    pub text: Span,
    /// The event of the field or variable. Always `None` for `save`, which parses the text as one
    /// field. The error is for a name with one dot, reported when the action is created.
    pub qualifier: Result<Option<Qualifier>, Error>,
    /// The text after the qualifier. For `trace` it is a variable if it starts with `$`, even if
    /// that is all, and a field otherwise.
    pub rest: Span,
    /// [`Param::rest`] parsed as a field, a reference or a number; never an expression.
    pub atom: Expr,
}
