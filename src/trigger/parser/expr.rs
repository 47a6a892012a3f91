// SPDX-License-Identifier: GPL-2.0

//! Parses expressions of numbers, fields and variables.

use crate::{
    limits::OPERATORS_MAX,
    trigger::{
        expr::{
            Expr,
            FieldRef,
            Operator,
            Qualifier,
            VarRefText, //
        },
        modifier::{
            Modifier,
            ModifierKind,
            Place, //
        },
        number::number,
        text::SourceText,
        Error,
        ErrorText,
        HintText,
        Span, //
    },
};
use kernel::{
    alloc::AllocError,
    prelude::{
        KBox,
        GFP_KERNEL, //
    },
};

/// Parses a value: an expression, or one in parentheses, which C lacks.
pub(super) fn value(text: &SourceText, piece: Span) -> Result<Expr, AllocError> {
    let bytes = text.bytes(piece);
    let close = bytes.iter().rposition(|&byte| byte == b')');
    let (true, Some(close)) = (bytes.starts_with(b"("), close) else {
        return expr(text, piece, Place::Value);
    };
    let behind = piece.skip(close + 1);
    let modifier = match text.bytes(behind) {
        [] => None,
        [b'.', ..] => Some(behind.skip(1)),
        _ => return expr(text, piece, Place::Value),
    };
    let name = piece.first(close + 1);
    let modifier = modifier.map(|modifier| self::modifier(text, name, modifier, Place::Value));
    match modifier.transpose() {
        Ok(modifier) => Ok(Expr::Parens {
            text: piece,
            operand: KBox::new(
                subexpr(text, name.first(close).skip(1), Place::Operand, &mut 0)?,
                GFP_KERNEL,
            )?,
            modifier,
        }),
        Err(error) => Ok(Expr::Bad { text: piece, error }),
    }
}

pub(super) fn expr(text: &SourceText, piece: Span, place: Place) -> Result<Expr, AllocError> {
    subexpr(text, piece, place, &mut 0)
}

/// The operator of an expression that is applied last: the root of its tree.
enum Root {
    Negation,
    Binary(Operator, usize),
}

impl Root {
    /// Finds the last `+` or `-`, or else the last `*` or `/`, for the usual precedence. If the
    /// last `-` is the first byte, it is a unary minus of the whole expression.
    fn find(bytes: &[u8]) -> Option<Self> {
        if bytes.iter().rposition(|&byte| byte == b'-') == Some(0) {
            return Some(Self::Negation);
        }
        let last = |operators: &[u8]| bytes.iter().rposition(|byte| operators.contains(byte));
        let at = last(b"+-").or_else(|| last(b"*/"))?;
        let operator = match bytes.get(at)? {
            b'+' => Operator::Plus,
            b'-' => Operator::Minus,
            b'*' => Operator::Times,
            _ => Operator::Over,
        };
        Some(Self::Binary(operator, at))
    }
}

/// Parses an expression. `operators` counts the operators so far and limits the recursion: it ends
/// after more than [`OPERATORS_MAX`].
fn subexpr(
    text: &SourceText,
    piece: Span,
    place: Place,
    operators: &mut usize,
) -> Result<Expr, AllocError> {
    let bad = |error| Ok(Expr::Bad { text: piece, error });
    let too_many = || bad(text.error(ErrorText::TooManySubexpr, piece));

    if *operators > OPERATORS_MAX {
        return too_many();
    }
    match Root::find(text.bytes(piece)) {
        None => atom(text, piece, place),
        Some(Root::Negation) => {
            *operators += 1;
            if *operators > OPERATORS_MAX {
                return too_many();
            }
            // As in C: a parenthesis anywhere is enough, and the byte after the minus is skipped
            // unchecked.
            if !text.bytes(piece.skip(1)).contains(&b'(') {
                return bad(text.own(HintText::UnaryMinus, piece));
            }
            let inside = piece.skip(2);
            let bytes = text.bytes(inside);
            let Some(close) = bytes.iter().rposition(|&byte| byte == b')') else {
                return bad(text.own(HintText::UnaryMinus, piece));
            };
            if close + 1 != bytes.len() {
                return bad(text.error(ErrorText::UnaryMinusSubexpr, inside));
            }
            let operand = subexpr(text, inside.first(close), Place::Operand, operators)?;
            Ok(Expr::Negation {
                text: piece,
                operand: KBox::new(operand, GFP_KERNEL)?,
            })
        }
        Some(Root::Binary(operator, at)) => {
            *operators += 1;
            let (left, right) = (piece.first(at), piece.skip(at + 1));
            if left.is_empty() || right.is_empty() {
                return bad(text.own(HintText::NoOperand, piece.skip(at)));
            }
            let left = KBox::new(subexpr(text, left, Place::Operand, operators)?, GFP_KERNEL)?;
            let right = KBox::new(subexpr(text, right, Place::Operand, operators)?, GFP_KERNEL)?;
            Ok(Expr::Binary {
                text: piece,
                operator,
                left,
                right,
            })
        }
    }
}

/// Parses an operand: a number, a field or a variable reference. Does not look for operators in it.
pub(super) fn atom(text: &SourceText, piece: Span, place: Place) -> Result<Expr, AllocError> {
    let bytes = text.bytes(piece);
    if bytes.first().is_some_and(u8::is_ascii_digit) {
        return Ok(match number(bytes) {
            Ok(value) => Expr::Literal { text: piece, value },
            Err(_) => Expr::Bad {
                text: piece,
                error: text.error(ErrorText::ExpectNumber, piece),
            },
        });
    }

    let (qualifier, rest) = qualified(text, piece).unwrap_or((None, piece));
    let bytes = text.bytes(rest);
    if bytes.starts_with(b"$") && bytes.len() >= 2 {
        return Ok(Expr::Reference(VarRefText {
            text: piece,
            qualifier,
            atom: rest,
            name: rest.skip(1),
        }));
    }
    Ok(match field(text, piece, qualifier, rest, place) {
        Ok(field) => Expr::Field(field),
        Err(error) => Expr::Bad { text: piece, error },
    })
}

/// Splits `system.event.` off a name. `None` if it has a single dot.
pub(super) fn qualified(text: &SourceText, name: Span) -> Option<(Option<Qualifier>, Span)> {
    let mut rest = Some(name);
    let system = text.next(&mut rest, b'.')?;
    if rest.is_none() {
        return Some((None, name));
    }
    let event = text.next(&mut rest, b'.')?;
    Some((Some(Qualifier { system, event }), rest?))
}

/// Parses `name[.modifier]`.
pub(in crate::trigger) fn field(
    text: &SourceText,
    whole: Span,
    qualifier: Option<Qualifier>,
    atom: Span,
    place: Place,
) -> Result<FieldRef, Error> {
    let mut modifier = Some(atom);
    let name = text.next(&mut modifier, b'.').unwrap_or(atom);
    let modifier = match modifier {
        Some(modifier) => Some(self::modifier(text, name, modifier, place)?),
        None => None,
    };
    Ok(FieldRef {
        text: whole,
        qualifier,
        atom,
        name,
        modifier,
    })
}

/// Parses the modifier of the field `name`.
fn modifier(
    text: &SourceText,
    name: Span,
    modifier: Span,
    place: Place,
) -> Result<Modifier, Error> {
    match ModifierKind::parse(text, name, modifier, place) {
        Ok(kind) => Ok(Modifier {
            text: modifier,
            kind,
        }),
        Err((culprit, hint)) => {
            let error = text.error(ErrorText::BadFieldModifier, culprit);
            Err(match hint {
                Some(hint) => error.hinted(hint, text.place(culprit)),
                None => error,
            })
        }
    }
}
