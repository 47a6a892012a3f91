// SPDX-License-Identifier: GPL-2.0

//! The syntax tree of an expression.

use super::{
    error::Error,
    modifier::Modifier,
    text::Span, //
};
use kernel::prelude::*;

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
