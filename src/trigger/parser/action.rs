// SPDX-License-Identifier: GPL-2.0

//! Parses actions: `onmatch(...)`, `onmax(...)` and `onchange(...)`, and the calls after them.

use super::expr::{
    atom,
    qualified, //
};
use crate::{
    limits::PARAMS_MAX,
    trigger::{
        list::ParsedList,
        modifier::Place,
        text::SourceText,
        tree::{
            Act,
            Action,
            ActionHandler,
            Param, //
        },
        Error,
        ErrorText,
        HintText,
        Span, //
    },
};
use kernel::{
    alloc::AllocError,
    prelude::{
        KVec,
        GFP_KERNEL, //
    },
};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum HandlerName {
    Match,
    Max,
    Change,
}

impl HandlerName {
    /// The handler that a token starts with, and the length of its name and parenthesis.
    pub(super) fn of(bytes: &[u8]) -> Option<(Self, usize)> {
        [
            ("onmatch(", Self::Match),
            ("onmax(", Self::Max),
            ("onchange(", Self::Change),
        ]
        .into_iter()
        .find(|(word, _)| bytes.starts_with(word.as_bytes()))
        .map(|(word, handler)| (handler, word.len()))
    }
}

/// Parses the actions up to the first invalid one.
pub(super) fn actions(
    text: &SourceText,
    tokens: &[Span],
) -> Result<ParsedList<Action>, AllocError> {
    let mut actions = ParsedList::new(tokens.last().copied());
    for &token in tokens {
        match action(text, token)? {
            Ok(action) => {
                let ends = action.act.is_err();
                actions.items.push(action, GFP_KERNEL)?;
                if ends {
                    break;
                }
            }
            Err(error) => {
                actions.fail(error, Some(token));
                break;
            }
        }
    }
    Ok(actions)
}

fn action(text: &SourceText, token: Span) -> Result<Result<Action, Error>, AllocError> {
    let Some((word, length)) = HandlerName::of(text.bytes(token)) else {
        return Ok(Err(text.own(HintText::UnknownHandler, token)));
    };
    let mut rest = Some(token.skip(length));
    let inside = text.next(&mut rest, b')').unwrap_or(token);
    let handler = match (word, rest) {
        (HandlerName::Match, None) => {
            return Ok(Err(text.error(ErrorText::NoClosingParen, inside)));
        }
        (_, None) => return Ok(Err(text.own(HintText::HandlerNotClosed, token.after()))),
        (HandlerName::Match, Some(_)) => {
            let mut event = Some(inside);
            let system = text.next(&mut event, b'.').unwrap_or(inside);
            match event {
                Some(event) => ActionHandler::OnMatch { system, event },
                None => return Ok(Err(text.error(ErrorText::SubsysNotFound, system))),
            }
        }
        (HandlerName::Max, Some(_)) => ActionHandler::OnMax { var: inside },
        (HandlerName::Change, Some(_)) => ActionHandler::OnChange { var: inside },
    };
    let act = act(text, &mut rest, word == HandlerName::Match)?;
    Ok(Ok(Action {
        text: token,
        handler,
        unclosed: rest.is_none(),
        act,
    }))
}

/// Parses the call after the parenthesis of a handler. Leaves the text after the parameters in
/// `rest`, if they are closed.
fn act(
    text: &SourceText,
    rest: &mut Option<Span>,
    on_match: bool,
) -> Result<Result<Act, Error>, AllocError> {
    text.next(rest, b'.');
    let (Some(name), Some(_)) = (text.next(rest, b'('), *rest) else {
        return Ok(Err(Error::new(ErrorText::ActionNotFound, 0)));
    };
    let mismatch = || text.error(ErrorText::ActionMismatch, name);
    let inside = text.next(rest, b')').unwrap_or(name);
    let word = text.bytes(name);

    Ok(if word.starts_with(b"save") {
        match params(text, inside, ParamForm::Save)? {
            Ok(_) if on_match => Err(mismatch()),
            Ok((_, params)) => Ok(Act::Save { name, params }),
            Err(error) => Err(error),
        }
    } else if word.starts_with(b"snapshot") {
        if rest.is_none() {
            Err(text.error(ErrorText::NoClosingParen, inside))
        } else if on_match {
            Err(mismatch())
        } else {
            Ok(Act::Snapshot { name })
        }
    } else {
        let form = if word.starts_with(b"trace") {
            ParamForm::Trace
        } else {
            ParamForm::Event
        };
        params(text, inside, form)?.map(|(event, params)| Act::Trace {
            name,
            event: event.unwrap_or(name),
            params,
        })
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ParamForm {
    Save,
    Trace,
    Event,
}

/// The synthetic event in `trace(event,params)`, and the parameters.
type Params = (Option<Span>, KVec<Param>);

fn params(
    text: &SourceText,
    list: Span,
    form: ParamForm,
) -> Result<Result<Params, Error>, AllocError> {
    let mut event = None;
    let mut params = KVec::new();
    let mut rest = Some(list);
    while rest.is_some() {
        if params.len() >= PARAMS_MAX {
            return Ok(Err(Error::new(ErrorText::TooManyParams, 0)));
        }
        let Some(piece) = text.next(&mut rest, b',') else {
            break;
        };
        let piece = text.strip(piece);
        if text.bytes(piece).len() < 2 {
            return Ok(Err(text.error(ErrorText::InvalidParam, piece)));
        }
        if form == ParamForm::Trace && event.is_none() {
            event = Some(piece);
            continue;
        }
        params.push(param(text, piece, form)?, GFP_KERNEL)?;
    }
    Ok(Ok((event, params)))
}

fn param(text: &SourceText, piece: Span, form: ParamForm) -> Result<Param, AllocError> {
    let (place, (qualifier, rest)) = match form {
        ParamForm::Save => (Place::Saved, (Ok(None), piece)),
        ParamForm::Trace | ParamForm::Event => (
            Place::Variable,
            match qualified(text, piece) {
                Some((qualifier, rest)) => (Ok(qualifier), rest),
                None => (Err(text.own(HintText::ParamEvent, piece)), piece),
            },
        ),
    };
    Ok(Param {
        text: piece,
        qualifier,
        rest,
        atom: atom(text, rest, place)?,
    })
}
