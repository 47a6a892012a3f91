// SPDX-License-Identifier: MIT OR Apache-2.0

//! Keys and values: fields with modifiers, and expressions.

use std::iter::Peekable;
use std::ops::Range;
use std::vec::IntoIter;

use super::modifier::Fits;
use super::modifier::MODIFIERS;
use super::modifier::Modifier;
use super::modifier::NumberRule;
use super::names;
use super::names::Place;
use super::token;
use super::token::Token;
use super::token::TokenKind;
use crate::problem::Problem;
use crate::suggest;
use crate::tracefs::format::Field;
use crate::tracefs::format::FieldKind;
use crate::tracefs::format::Format;

/// Limit of nested parentheses.
const DEPTH_MAX: usize = 16;

/// Limit of keys of a histogram.
const KEYS_MAX: usize = 8;

/// Checks a list of keys, as `--by` takes it.
pub fn check_keys(format: &Format, text: &str) -> Result<(), Problem> {
    let parts = token::split_list(text);
    for at in &parts {
        let part = text.get(at.clone()).unwrap_or_default();
        check_key(format, part).map_err(|problem| problem.moved(at.start))?;
    }
    match parts.get(KEYS_MAX) {
        Some(at) => Err(Problem::new(
            at.start..text.len(),
            format!("a histogram has at most {KEYS_MAX} keys"),
        )),
        None => Ok(()),
    }
}

/// Checks one key: a field with a modifier, or an expression.
pub fn check_key(format: &Format, text: &str) -> Result<(), Problem> {
    Parser::new(format, text, Place::Key).all().map(|_| ())
}

/// Checks one value, as `--sum`, `--stat` and `--dist` take it. Refuses modifiers, since the option
/// says how it is shown.
pub fn check_plain_value(format: &Format, text: &str) -> Result<(), Problem> {
    check_value(format, text)?;
    match token::tokens(text).into_iter().find(|token| token.text == ".") {
        Some(dot) => Err(
            Problem::new(dot.at.start..text.trim_end().len(), "a value has no modifier here")
                .label("the option says how it is shown")
                .help("--sum shows the sum, --stat the smallest, average and largest value, --dist the distribution"),
        ),
        None => Ok(()),
    }
}

/// Checks one value of a trigger: a number.
pub fn check_value(format: &Format, text: &str) -> Result<(), Problem> {
    let kind = Parser::new(format, text, Place::Value).all()?;
    match kind {
        FieldKind::Number | FieldKind::TextPointer => Ok(()),
        _ => {
            let at =
                text.len() - text.trim_start().len()..text.trim_end().len().max(text.len() - text.trim_start().len());
            Err(Problem::new(at, format!("{} is {}", text.trim(), kind.noun())).label("a value has to be a number"))
        }
    }
}

struct Parser<'a> {
    format: &'a Format,
    text: &'a str,
    place: Place,
    tokens: Peekable<IntoIter<Token<'a>>>,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn new(format: &'a Format, text: &'a str, place: Place) -> Self {
        let tokens = token::tokens(text).into_iter().peekable();
        Self {
            format,
            text,
            place,
            tokens,
            depth: 0,
        }
    }

    /// Parses the whole text. Returns the kind of its value.
    fn all(mut self) -> Result<FieldKind, Problem> {
        let kind = self.expression()?;
        match self.tokens.next() {
            None => Ok(kind),
            Some(token) if token.text == ")" => Err(Problem::new(token.at, "unmatched )")),
            Some(token) => Err(Problem::new(token.at, format!("{} is not expected here", token.text))
                .label("an operator is missing, or a comma")),
        }
    }

    /// Rejects a key that is the address of a string which the event also carries as text.
    fn check_address(&mut self, field: &Token<'_>) -> Result<(), Problem> {
        // For such a key the kernel would read kernel memory at an address in user space.
        let rest = self.text.trim().strip_prefix(field.text);
        match self.place == Place::Key && matches!(rest, Some("" | ".string")) {
            true => names::check_address(self.format, field.text, field.at.clone(), ".hex"),
            false => Ok(()),
        }
    }

    fn take(&mut self, text: &str) -> Option<Token<'a>> {
        self.tokens.next_if(|token| token.text == text)
    }

    fn expression(&mut self) -> Result<FieldKind, Problem> {
        let start = self.tokens.peek().map_or(self.text.len(), |token| token.at.start);
        let mut kind = self.operand()?;
        let mut end = self.tokens.peek().map_or(self.text.len(), |token| token.at.start);
        while let Some(operator) = self.tokens.next_if(|token| matches!(token.text, "+" | "-" | "*" | "/")) {
            self.number(kind, start..end, operator.text)?;
            let start = self.tokens.peek().map_or(self.text.len(), |token| token.at.start);
            let right = self.operand()?;
            end = self.tokens.peek().map_or(self.text.len(), |token| token.at.start);
            self.number(right, start..end, operator.text)?;
            kind = FieldKind::Number;
        }
        Ok(kind)
    }

    /// Requires that an operand is a number.
    fn number(&self, kind: FieldKind, at: Range<usize>, operator: &str) -> Result<(), Problem> {
        let text = self.text.get(at.clone()).unwrap_or_default();
        let at = at.start..at.start + text.trim_end().len();
        match kind {
            FieldKind::Number | FieldKind::TextPointer => Ok(()),
            _ => Err(Problem::new(at, format!("{} is {}", text.trim_end(), kind.noun()))
                .label(format!("{operator} needs numbers"))),
        }
    }

    fn operand(&mut self) -> Result<FieldKind, Problem> {
        let end = self.text.len();
        let Some(token) = self.tokens.next() else {
            return Err(Problem::new(end..end, "a field is missing").label("expected here"));
        };
        match token.kind {
            TokenKind::Word => {
                let kind = names::kind(self.format, token.text, token.at.clone(), self.place)?;
                if kind == FieldKind::Other || kind == FieldKind::CpuMask {
                    let title = format!("{} is {}", token.text, kind.noun());
                    return Err(Problem::new(token.at, title).label("a histogram cannot use it"));
                }
                // A field named like an address (such as `saddr`) prints as one without the
                // modifier.
                let is_bytes = kind == FieldKind::Bytes && !self.tokens.peek().is_some_and(|next| next.text == ".");
                if is_bytes && !self.format.field(token.text).is_some_and(Field::is_address) {
                    let title = format!("{} is {}", token.text, kind.noun());
                    let problem = Problem::new(token.at, title).label("a histogram cannot use it");
                    return Err(problem.help(format!("if it is an address: {}.ip", token.text)));
                }
                self.check_address(&token)?;
                self.modifier(Some(token.text), kind)
            }
            TokenKind::Number if token.text.parse::<u64>().is_ok() || is_hexadecimal(token.text) => {
                Ok(FieldKind::Number)
            }
            TokenKind::Number => Err(Problem::new(token.at, format!("{} is not a number", token.text))),
            _ if token.text == "(" => self.parentheses(token.at),
            _ if token.text == "-" => match self.take("(") {
                Some(open) => self.parentheses(open.at),
                None => Err(Problem::new(token.at, "a negative needs parentheses").label("as in -(field)")),
            },
            TokenKind::Quoted | TokenKind::OpenQuote => {
                Err(Problem::new(token.at, "expected a field or a number, not a string"))
            }
            _ if matches!(token.text, "," | ")") => {
                Err(Problem::new(token.at.clone(), "a field is missing")
                    .label(format!("expected before {}", token.text)))
            }
            _ => {
                Err(Problem::new(token.at, format!("{} is not expected here", token.text)).label("a field is expected"))
            }
        }
    }

    /// Parses up to the closing parenthesis; `open` is the place of the opening one.
    fn parentheses(&mut self, open: Range<usize>) -> Result<FieldKind, Problem> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Problem::new(open, "parentheses are nested too deeply"));
        }
        let kind = self.expression()?;
        if self.take(")").is_none() {
            return Err(Problem::new(open, "unmatched ("));
        }
        self.depth -= 1;
        self.modifier(None, kind)
    }

    /// Parses an optional modifier after the field `name`, or after an expression in parentheses.
    fn modifier(&mut self, name: Option<&str>, kind: FieldKind) -> Result<FieldKind, Problem> {
        let Some(dot) = self.take(".") else { return Ok(kind) };
        let Some(word) = self.tokens.next_if(|token| token.kind == TokenKind::Word) else {
            return Err(Problem::new(dot.at, "a modifier is missing").label("expected behind this dot"));
        };
        let mut at = word.at;
        if word.text == "sym" && self.text.get(at.end..).is_some_and(|rest| rest.starts_with("-offset")) {
            self.tokens.next();
            at.end = self.tokens.next().map_or(at.end, |token| token.at.end);
        }
        let text = self.text.get(at.clone()).unwrap_or_default();
        let modifier = self.find(text, &at, name, kind)?;
        self.check_place(modifier, &at)?;
        self.check_fit(modifier, &at, name, kind)?;
        self.check_number(modifier, at)?;
        Ok(kind)
    }

    fn find(
        &self,
        text: &str,
        at: &Range<usize>,
        name: Option<&str>,
        kind: FieldKind,
    ) -> Result<&'static Modifier, Problem> {
        if let Some(modifier) = Modifier::find(text) {
            return Ok(modifier);
        }
        let problem = Problem::new(at.clone(), format!("unknown modifier {text}"));
        let nearest = suggest::near(text, MODIFIERS.iter().filter(|m| self.allows(m)).map(|m| m.name));
        Err(match nearest.is_empty() {
            true => problem.help(self.possible(name, kind)),
            false => problem.near(&nearest),
        })
    }

    fn allows(&self, modifier: &Modifier) -> bool {
        match self.place {
            Place::Key => modifier.key,
            Place::Value => modifier.value,
            Place::Filter => false,
        }
    }

    /// Lists the modifiers that fit, for messages.
    fn possible(&self, name: Option<&str>, kind: FieldKind) -> String {
        let fitting = MODIFIERS
            .iter()
            .filter(|modifier| self.allows(modifier) && modifier.fits(name, kind));
        let examples: Vec<String> = fitting.map(Modifier::example).collect();
        let name = name.unwrap_or("this expression");
        match examples.is_empty() {
            true => format!("{name} takes no modifier"),
            false => format!("{name} takes {}", examples.join(", ")),
        }
    }

    fn check_place(&self, modifier: &Modifier, at: &Range<usize>) -> Result<(), Problem> {
        let text = modifier.name;
        match self.place {
            _ if self.allows(modifier) => Ok(()),
            Place::Key => {
                Err(Problem::new(at.clone(), format!("{text} is for values, not for keys"))
                    .label("a key cannot have it"))
            }
            _ => {
                Err(Problem::new(at.clone(), format!("{text} is for keys, not for values"))
                    .label("a value cannot have it"))
            }
        }
    }

    fn check_fit(
        &self,
        modifier: &Modifier,
        at: &Range<usize>,
        name: Option<&str>,
        kind: FieldKind,
    ) -> Result<(), Problem> {
        if modifier.fits(name, kind) || name.is_some_and(|name| name.starts_with('$')) {
            return Ok(());
        }
        // Accepts any unsigned number of 4 bytes: it may be an IPv4 address.
        let is_ipv4 = |field: &Field| field.kind == FieldKind::Number && field.size == 4 && !field.signed;
        if modifier.fits == Fits::Address && name.and_then(|name| self.format.field(name)).is_some_and(is_ipv4) {
            return Ok(());
        }
        let subject = name.unwrap_or("this expression");
        let text = modifier.name;
        let problem = match modifier.fits {
            Fits::Field(field) => Problem::new(at.clone(), format!("{text} is for {field} only")),
            Fits::Number => Problem::new(at.clone(), format!("{text} is for numbers"))
                .label(format!("{subject} is {}", kind.noun())),
            Fits::Task => Problem::new(at.clone(), format!("{text} is for fields with the number of a thread")),
            Fits::Address => Problem::new(at.clone(), format!("{text} is for addresses of the internet protocol"))
                .label(format!("{subject} is {}", kind.noun())),
            Fits::TextPointer => Problem::new(at.clone(), format!("{text} is for fields with the type const char *"))
                .label(format!("{subject} is {}", kind.noun())),
            Fits::Stack => {
                Problem::new(at.clone(), format!("{text} is for stacks")).label(format!("{subject} is {}", kind.noun()))
            }
        };
        Err(problem.help(self.possible(name, kind)))
    }

    /// Parses `=n` after a modifier.
    fn check_number(&mut self, modifier: &Modifier, at: Range<usize>) -> Result<(), Problem> {
        let name = modifier.name;
        let Some(equals) = self.take("=") else {
            return match modifier.number {
                NumberRule::Width => Err(Problem::new(at, format!("{name} needs a width")).label("as in .buckets=10")),
                NumberRule::Never | NumberRule::Scale => Ok(()),
            };
        };
        let number = self.tokens.next_if(|token| token.kind == TokenKind::Number);
        let end = number.as_ref().map_or(equals.at.end, |token| token.at.end);
        let value = number.and_then(|token| token.text.parse::<u64>().ok());
        let at = equals.at.start..end;
        match (modifier.number, value) {
            (NumberRule::Never, _) => Err(Problem::new(at, format!("{name} takes no number"))),
            (NumberRule::Scale, Some(0..=5)) | (NumberRule::Width, Some(1..)) => Ok(()),
            (NumberRule::Scale, _) => {
                Err(Problem::new(at, format!("{name} takes a scale from 0 to 5")).label(format!("as in .{name}=3")))
            }
            (NumberRule::Width, _) => {
                Err(Problem::new(at, format!("{name} takes a width of at least 1")).label("as in .buckets=10"))
            }
        }
    }
}

fn is_hexadecimal(text: &str) -> bool {
    text.strip_prefix("0x")
        .is_some_and(|digits| u64::from_str_radix(digits, 16).is_ok())
}
