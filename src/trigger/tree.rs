// SPDX-License-Identifier: GPL-2.0

//! The syntax tree of a hist trigger.

use super::{
    clause::Clauses,
    error::{
        Error,
        ErrorText,
        Hint,
        HintText, //
    },
    expr::{
        Expr,
        Qualifier, //
    },
    list::ParsedList,
    modifier::Modifier,
    text::{
        SourceText,
        Span, //
    },
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
    /// The number as written, or `A..B`.
    pub text: Span,
    /// The map has 2^bits entries, the size rounded up. At least
    /// [`MAP_BITS_MIN`](crate::limits::MAP_BITS_MIN), at most
    /// [`MAP_BITS_MAX`](crate::limits::MAP_BITS_MAX).
    pub bits: u32,
    /// `..B`: the map may grow to 2^bits_max entries, which are more. At most
    /// [`MAP_BITS_GROWN`](crate::limits::MAP_BITS_GROWN).
    pub bits_max: Option<u32>,
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
