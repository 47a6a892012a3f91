// SPDX-License-Identifier: GPL-2.0

//! Parses the parameters of a `hist` command.
//!
//! The functions fail in two ways: `Err` ends the parse; an [`Error`] inside the result is stored
//! in the tree, to be reported when the tree is checked.

mod action;
mod expr;

use super::{
    clause::Clauses,
    expr::{
        Expr,
        FieldRef, //
    },
    list::ParsedList,
    modifier::Place,
    number::number,
    text::{
        contains,
        find,
        SourceText,
        Span, //
    },
    tree::*,
    Error,
    ErrorText,
    HintText, //
};
use crate::limits::{
    ACTIONS_MAX,
    C_VALS_MAX,
    KEYS_MAX,
    MAP_BITS_GROWN,
    MAP_BITS_MAX,
    MAP_BITS_MIN,
    SORT_KEYS_MAX,
    VALS_MAX,
    VARS_MAX, //
};
use core::mem::replace;
use kernel::{
    alloc::AllocError,
    prelude::{
        KBox,
        KVec,
        GFP_KERNEL, //
    },
};

use action::{
    actions,
    HandlerName, //
};
use expr::{
    expr,
    value, //
};

impl Trigger {
    /// Parses the parameters of a `hist` command ([`Command::hist`](super::Command::hist)).
    ///
    /// # Errors
    ///
    /// Errors that C reports before any lookup; `ENOMEM`. Other errors stay in the tree.
    pub fn parse(params: &[u8]) -> Result<Self, Error> {
        parse(SourceText::new(params)?)
    }

    /// [`Trigger::parse`] for a trigger that was not written, but composed on behalf of one whose
    /// COMMAND is `command`: carets refer to that.
    ///
    /// # Errors
    ///
    /// As [`Trigger::parse`].
    pub fn parse_for(params: &[u8], command: &[u8]) -> Result<Self, Error> {
        parse(SourceText::made_for(params, command)?)
    }

    /// Parses a part of the text as a field of the event, `name[.modifier]`, ignoring operators,
    /// qualifiers and `$`: as C parses the definition that it substitutes for a `$name`.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a modifier that does not exist or is not allowed in `place`.
    pub fn field(&self, piece: Span, place: Place) -> Result<FieldRef, Error> {
        expr::field(&self.text, piece, None, piece, place)
    }
}

fn parse(mut text: SourceText) -> Result<Trigger, Error> {
    let (attributes, filter) = split_filter(&text)?;
    text.hide_sym_offset(attributes);
    let tokens = Tokens::split(&text, attributes)?;

    let mut actions = actions(&text, &tokens.actions)?;
    let (vars, malformed) = vars(&text, &tokens.assignments)?;
    let mistake = actions.error.or(malformed);
    let bad_act = actions
        .items
        .last()
        .and_then(|action| action.act.as_ref().err().copied());
    let looks_up = |action: &Action| matches!(action.handler, ActionHandler::OnMatch { .. });
    if let (Some(error), false) = (bad_act.or(mistake), actions.items.iter().any(looks_up)) {
        return Err(error);
    }
    actions.error = mistake;

    Ok(Trigger {
        vals: vals(&text, tokens.vals, tokens.nohitcount.is_some())?,
        keys: keys(&text, tokens.keys)?,
        sort: sort(&text, tokens.sort)?,
        size: tokens.size,
        name: tokens.name,
        clock: tokens.clock,
        nohitcount: tokens.nohitcount,
        pause: tokens.pause,
        cont: tokens.cont,
        clear: tokens.clear,
        clauses: clauses(&text, tokens.clauses)?,
        actions,
        vars,
        filter,
        text,
    })
}

/// Splits the parameters at the ` if ` between attributes and filter.
fn split_filter(text: &SourceText) -> Result<(Span, Option<FilterClause>), Error> {
    const IF: &[u8] = b"if";
    let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let params = text.params();
    let bytes = text.typed(params);

    let mut from = 0;
    while let Some(next) = bytes.get(from..).and_then(|rest| find(rest, IF)) {
        let at = from + next;
        let Some(before) = at.checked_sub(1) else {
            return Err(text.own(HintText::NoKeys, params));
        };
        if is_blank(bytes.get(before)) {
            // C requires a filter here even if the text is not the word `if`, but only begins with
            // it.
            if at + IF.len() + 1 >= bytes.len() {
                return Err(text.own(HintText::NoFilter, params.skip(at)));
            }
            if is_blank(bytes.get(at + IF.len())) {
                let clause = text.strip(params.skip(at));
                return Ok((
                    text.strip(params.first(before)),
                    Some(FilterClause {
                        clause,
                        text: clause.skip(IF.len() + 1),
                    }),
                ));
            }
        }
        from = at + 1;
    }
    Ok((params, None))
}

/// The attributes by kind. If one is given several times, the last one counts.
#[derive(Default)]
struct Tokens {
    keys: Span,
    vals: Option<Span>,
    sort: Option<Span>,
    size: Option<MapSize>,
    name: Option<Span>,
    clock: Option<Span>,
    nohitcount: Option<Span>,
    pause: Option<Span>,
    cont: Option<Span>,
    clear: Option<Span>,
    clauses: Option<KBox<Clauses>>,
    actions: KVec<Span>,
    assignments: KVec<Span>,
}

impl Tokens {
    fn split(text: &SourceText, attributes: Span) -> Result<Self, Error> {
        let mut tokens = Self::default();
        let mut rest = Some(attributes);
        while let Some(token) = text.next(&mut rest, b':') {
            let bytes = text.bytes(token);
            match bytes.iter().position(|&byte| byte == b'=') {
                Some(at) if at + 1 == bytes.len() => {
                    return Err(text.error(ErrorText::EmptyAssignment, token));
                }
                Some(_) => tokens.assign(text, token)?,
                None => tokens.word(text, token)?,
            }
        }
        // `keys=` is missing: an empty one has failed above.
        if tokens.keys.is_empty() {
            return Err(text.own(HintText::NoKeys, attributes.after()));
        }
        Ok(tokens)
    }

    /// Stores a token with a `=`.
    fn assign(&mut self, text: &SourceText, token: Span) -> Result<(), Error> {
        let bytes = text.bytes(token);
        let after = |prefixes: &[&str]| {
            prefixes
                .iter()
                .find(|prefix| bytes.starts_with(prefix.as_bytes()))
                .map(|prefix| token.skip(prefix.len()))
        };
        if let Some(keys) = after(&["key=", "keys="]) {
            self.keys = keys;
        } else if let Some(vals) = after(&["val=", "vals=", "values="]) {
            self.vals = Some(vals);
        } else if let Some(sort) = after(&["sort="]) {
            self.sort = Some(sort);
        } else if after(&["name="]).is_some() {
            self.name = Some(token);
        } else if let Some(clock) = after(&["clock="]) {
            self.clock = Some(text.strip(clock));
        } else if let Some(size) = after(&["size="]) {
            self.size = Some(map_size(text, size)?);
        } else if self.assignments.len() >= VARS_MAX {
            return Err(text.error(ErrorText::TooManyVars, token));
        } else {
            self.assignments.push(token, GFP_KERNEL)?;
        }
        Ok(())
    }

    /// Stores a token without a `=`.
    fn word(&mut self, text: &SourceText, token: Span) -> Result<(), Error> {
        match text.bytes(token) {
            b"nohitcount" | b"NOHC" => self.nohitcount = Some(token),
            b"pause" => self.pause = Some(token),
            b"cont" | b"continue" => self.cont = Some(token),
            b"clear" => self.clear = Some(token),
            bytes if self.actions.len() < ACTIONS_MAX && HandlerName::of(bytes).is_some() => {
                self.actions.push(token, GFP_KERNEL)?;
            }
            bytes => {
                let clauses = match &mut self.clauses {
                    Some(clauses) => clauses,
                    none => none.insert(Clauses::none()?),
                };
                if !clauses.store(text, token)? {
                    let (hint, at) = unknown_word(bytes);
                    return Err(text.own(hint, token.skip(at)));
                }
            }
        }
        Ok(())
    }
}

/// Returns the hint for an unknown token without `=`, and the byte of the token that the caret goes
/// under.
fn unknown_word(bytes: &[u8]) -> (HintText, usize) {
    let comma = bytes.iter().position(|&byte| byte == b',');
    let is_flag = |word: &[u8]| {
        let flags: [&[u8]; 6] = [
            b"nohitcount",
            b"NOHC",
            b"pause",
            b"cont",
            b"continue",
            b"clear",
        ];
        flags.contains(&word)
    };
    match comma {
        _ if bytes.is_empty() => (HintText::EmptyAttribute, 0),
        // Only a surplus action gets here.
        _ if HandlerName::of(bytes).is_some() => (HintText::TooManyActions, 0),
        Some(comma) if is_flag(&bytes[..comma]) => (HintText::AttributeComma, comma),
        _ if !bytes.contains(&b'(') => (HintText::UnknownAttribute, 0),
        _ if bytes.starts_with(b"on") || contains(bytes, b").") => (HintText::UnknownHandler, 0),
        _ => (HintText::NoHandler, 0),
    }
}

/// Parses a number, or `A..B`. C reads a number up to its first other character, which gives the
/// errno for both.
fn map_size(text: &SourceText, size: Span) -> Result<MapSize, Error> {
    let bits = |number: u64| number.checked_next_power_of_two().map(u64::ilog2);
    let bytes = text.bytes(size);
    let whole = number(bytes);
    let (hint, sizes) = match find(bytes, b"..") {
        None => (
            HintText::BadSize,
            whole.ok().and_then(bits).map(|bits| (bits, None)),
        ),
        Some(at) => {
            let end = |bytes| number(bytes).ok().and_then(bits);
            let sizes = end(&bytes[..at]).zip(end(&bytes[at + 2..]).map(Some));
            (HintText::BadRange, sizes)
        }
    };
    match sizes {
        Some((bits @ MAP_BITS_MIN..=MAP_BITS_MAX, bits_max))
            if bits_max.is_none_or(|max| (bits + 1..=MAP_BITS_GROWN).contains(&max)) =>
        {
            Ok(MapSize {
                text: size,
                bits,
                bits_max,
            })
        }
        _ => {
            let error = text.own(hint, size);
            Err(whole.err().map_or(error, |errno| error.with(errno)))
        }
    }
}

#[inline(never)]
fn vals(
    text: &SourceText,
    given: Option<Span>,
    nohitcount: bool,
) -> Result<ParsedList<Expr>, AllocError> {
    let mut vals = ParsedList::new(given);
    let mut hitcount = false;
    let mut rest = given;
    for n in 0.. {
        // C takes no more values here, other than the word `hitcount`, which it ignores.
        let beyond = n >= C_VALS_MAX || vals.items.len() + 1 >= C_VALS_MAX;
        if vals.items.len() + 1 >= VALS_MAX {
            break;
        }
        let Some(val) = text.next(&mut rest, b',') else {
            break;
        };
        let is_hitcount = text.bytes(val) == b"hitcount";
        if !is_hitcount || (!beyond && replace(&mut hitcount, true)) {
            vals.items.push(value(text, val)?, GFP_KERNEL)?;
        }
    }
    if let Some(surplus) = rest.filter(|&rest| text.bytes(rest) != b"hitcount") {
        vals.fail(text.own(HintText::TooManyVals, surplus), rest);
    }
    if vals.items.is_empty() && nohitcount {
        vals.fail(Error::new(ErrorText::NeedNohcVal, 0), None);
    }
    Ok(vals)
}

/// Parses the variables. Returns also the error that C reports before it checks the values.
///
/// Of more than 16 variables in one token, C silently ignores those after the 16th. Here that is an
/// error.
fn vars(
    text: &SourceText,
    tokens: &[Span],
) -> Result<(ParsedList<Assignment>, Option<Error>), AllocError> {
    let mut vars = ParsedList::new(tokens.last().copied());
    for &token in tokens {
        let mut rest = Some(token);
        while let Some(assignment) = text.next(&mut rest, b',') {
            let mut right = Some(assignment);
            let name = text.next(&mut right, b'=').unwrap_or(assignment);
            let (error, right) = match right {
                None => (ErrorText::MalformedAssignment, assignment),
                Some(right) => (ErrorText::TooManyVars, right),
            };
            if error == ErrorText::MalformedAssignment || vars.items.len() >= VARS_MAX {
                vars.rest = Some(assignment);
                return Ok((vars, Some(text.error(error, name))));
            }
            let expr = expr(text, right, Place::Variable)?;
            vars.items.push(
                Assignment {
                    text: assignment,
                    name,
                    expr,
                },
                GFP_KERNEL,
            )?;
        }
    }
    Ok((vars, None))
}

fn keys(text: &SourceText, given: Span) -> Result<ParsedList<Expr>, AllocError> {
    let mut keys = ParsedList::new(Some(given));
    let mut rest = Some(given);
    for _ in 0..KEYS_MAX {
        let Some(key) = text.next(&mut rest, b',') else {
            break;
        };
        let key = match text.bytes(key) {
            b"stacktrace" => Expr::Stacktrace { text: key },
            _ => expr(text, key, Place::Key)?,
        };
        keys.items.push(key, GFP_KERNEL)?;
    }
    if let Some(surplus) = rest {
        keys.fail(text.own(HintText::TooManyKeys, surplus), rest);
    }
    Ok(keys)
}

// These are out of line, so that the parser does not have all of their expressions on the stack at
// once.

/// Parses the fields in `on()`.
#[inline(never)]
fn clauses(text: &SourceText, given: Option<KBox<Clauses>>) -> Result<KBox<Clauses>, AllocError> {
    let mut clauses = match given {
        Some(clauses) => clauses,
        None => Clauses::none()?,
    };
    if let Some(on) = clauses.on.text {
        clauses.on = keys(text, on)?;
    }
    Ok(clauses)
}

#[inline(never)]
fn sort(text: &SourceText, given: Option<Span>) -> Result<ParsedList<SortField>, AllocError> {
    let mut sort = ParsedList::new(given);
    let mut rest = given;
    for left in (0..SORT_KEYS_MAX).rev() {
        let before = rest;
        let Some(piece) = text.next(&mut rest, b',') else {
            break;
        };
        let mut order = Some(piece);
        let name = text.next(&mut order, b'.').unwrap_or(piece);
        let error = if piece.is_empty() {
            ErrorText::EmptySortField
        } else if left == 0 && rest.is_some() {
            ErrorText::TooManySortFields
        } else if name.is_empty() {
            ErrorText::EmptySortField
        } else {
            let order = match order.map(|order| (order, text.bytes(order))) {
                None | Some((_, b"ascending")) => Ok(Order::Ascending),
                Some((_, b"descending")) => Ok(Order::Descending),
                Some((order, _)) => Err(text.error(ErrorText::InvalidSortModifier, order)),
            };
            let key = SortField {
                text: piece,
                name,
                order,
                number: order.is_err().then(|| sort_number(text, piece)),
            };
            sort.items.push(key, GFP_KERNEL)?;
            continue;
        };
        sort.fail(Error::new(error, text.caret(b"sort=")), before);
        break;
    }
    Ok(sort)
}

/// Splits an order off a sort field.
fn sort_number(text: &SourceText, piece: Span) -> (Span, Order) {
    let bytes = text.bytes(piece);
    let orders = [
        (&b".ascending"[..], Order::Ascending),
        (b".descending", Order::Descending),
    ];
    let mut orders = orders.into_iter();
    let split = orders.find_map(|(word, order)| Some((bytes.strip_suffix(word)?.len(), order)));
    let (len, order) = split.unwrap_or((bytes.len(), Order::Ascending));
    (piece.first(len), order)
}
