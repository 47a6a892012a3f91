// SPDX-License-Identifier: GPL-2.0

//! Compiles the text of a filter to its program.
//!
//! As in C, two passes go over the text: the first one counts, and its counts limit the second.

use kernel::prelude::*;

use super::{
    error::{
        FilterError,
        FilterErrorText::*, //
    },
    program::{
        FilterProgram,
        ProgramBuilder, //
    },
    term::{
        self,
        FilterScope,
        Symbols, //
    },
    text::FilterText, //
};
use crate::{
    event::EventDesc,
    text::{
        is_space,
        until_nul, //
    },
    trigger::HintText, //
};

pub(super) fn parse(
    text: &[u8],
    event: &EventDesc,
    cpus: usize,
    symbols: &dyn Symbols,
) -> Result<FilterProgram, FilterError> {
    let text = FilterText::new(until_nul(text));
    let scope = FilterScope {
        event,
        cpus,
        symbols,
    };
    let counts = count(text)?;
    if counts.predicates == 0 {
        let error = FilterError::from(EINVAL);
        return Err(error.hinted(HintText::FilterTerm, text.len()));
    }
    compile(text, &counts, &scope)
}

/// Result of the first pass.
struct Counts {
    /// Nesting depth of the parentheses; 1 without parentheses.
    depth: usize,
    predicates: usize,
}

/// Counts parentheses and predicates (`calc_stack()`).
fn count(text: FilterText<'_>) -> Result<Counts, FilterError> {
    let mut counts = Counts {
        depth: 1,
        predicates: 0,
    };
    let mut in_predicate = false;
    let mut open = 1usize;
    let mut quote = None;
    for (index, &byte) in text.from(0).iter().enumerate() {
        if is_space(byte) {
            continue;
        }
        if let Some((_, mark)) = quote {
            if byte == mark {
                quote = None;
            }
            continue;
        }
        match byte {
            b'\'' | b'"' => quote = Some((index, byte)),
            b'|' | b'&' if text.at(index + 1) == byte => {
                in_predicate = false;
                continue;
            }
            b'(' => {
                in_predicate = false;
                open += 1;
                counts.depth = counts.depth.max(open);
                continue;
            }
            b')' => {
                in_predicate = false;
                if open == 1 {
                    return Err(FilterError::new(TooManyClose, index).with(EPERM));
                }
                open -= 1;
                continue;
            }
            _ => {}
        }
        if !in_predicate {
            counts.predicates += 1;
            in_predicate = true;
        }
    }
    if let Some((start, _)) = quote {
        let error = FilterError::new(MissingQuote, start).with(ESRCH);
        return Err(error.hinted(HintText::FilterQuote, start));
    }
    if open != 1 {
        return Err(FilterError::new(TooManyOpen, unclosed(text)).with(ENOENT));
    }
    Ok(counts)
}

/// Position of the last parenthesis that is not closed, searched from the end.
fn unclosed(text: FilterText<'_>) -> usize {
    let mut closed = 0usize;
    let mut quote = None;
    for (index, &byte) in text.from(0).iter().enumerate().skip(1).rev() {
        if let Some(mark) = quote {
            if byte == mark {
                quote = None;
            }
            continue;
        }
        match byte {
            b'(' if closed == 0 => return index,
            b'(' => closed -= 1,
            b')' => closed += 1,
            b'\'' | b'"' => quote = Some(byte),
            _ => {}
        }
    }
    0
}

/// The incomplete operators inside a pair of parentheses.
#[derive(Clone, Copy)]
struct Level {
    /// An odd number of `!` precedes the parenthesis.
    invert: bool,
    /// An `&&` is waiting for its right operand.
    and: bool,
    /// An `||` is waiting for its right operand.
    or: bool,
}

impl Level {
    fn new(invert: bool) -> Self {
        Self {
            invert,
            and: false,
            or: false,
        }
    }
}

/// Second pass: compiles predicates and operators (`predicate_parse()`).
fn compile(
    text: FilterText<'_>,
    counts: &Counts,
    scope: &FilterScope<'_>,
) -> Result<FilterProgram, FilterError> {
    let mut outer = KVec::with_capacity(counts.depth, GFP_KERNEL)?;
    let mut level = Level::new(false);
    let mut builder = ProgramBuilder::with_capacity(counts.predicates)?;
    let mut invert = false;
    let mut at = 0;
    'text: loop {
        let start = at;
        at += 1;
        match text.at(start) {
            0 => {
                // Only text after a predicate can complete an expression.
                let error = if builder.len() == 0 {
                    NoFilter
                } else {
                    InvalidFilter
                };
                return Err(FilterError::new(error, start));
            }
            space if is_space(space) => continue,
            b'(' => {
                if outer.len() + 1 >= counts.depth {
                    return Err(EINVAL.into());
                }
                outer.push(level, GFP_KERNEL)?;
                level = Level::new(invert);
                continue;
            }
            b'!' if !matches!(text.at(start + 1), b'=' | b'~') => {
                invert = !invert;
                continue;
            }
            _ => {}
        }
        if builder.len() >= counts.predicates {
            return Err(FilterError::new(TooManyPreds, start).with(EPERM));
        }
        let predicate;
        (predicate, at) = term::parse(text, start, scope)?;
        builder.push(predicate, invert)?;

        loop {
            let operator = at;
            at += 1;
            let byte = text.at(operator);
            match byte {
                space if is_space(space) => continue,
                b')' | 0 => {}
                b'&' | b'|' if text.at(at) == byte => at += 1,
                _ => {
                    let error = FilterError::new(TooManyPreds, operator).with(EPERM);
                    return Err(error.hinted(HintText::FilterOperator, operator));
                }
            }
            invert = level.invert;
            if level.and {
                builder.decide(invert)?;
                level.and = false;
            }
            if byte == b'&' {
                level.and = true;
                break;
            }
            if level.or {
                builder.decide(!invert)?;
                level.or = false;
            }
            if byte == b'|' {
                level.or = true;
                break;
            }
            match (byte, outer.pop()) {
                (0, None) => break 'text,
                (0, Some(_)) => return Err(FilterError::new(TooManyOpen, at).with(EPERM)),
                (_, None) => return Err(FilterError::new(TooManyClose, at).with(EPERM)),
                (_, Some(around)) => level = around,
            }
        }
    }
    Ok(builder.finish()?)
}
