// SPDX-License-Identifier: MIT OR Apache-2.0

//! Filters: comparisons of fields, with `&&`, `||`, `!` and parentheses.

use std::iter::Peekable;
use std::net::IpAddr;
use std::ops::Range;
use std::vec::IntoIter;

use super::names;
use super::names::Place;
use super::token;
use super::token::Token;
use super::token::TokenKind;
use crate::problem::Problem;
use crate::tracefs::format::Field;
use crate::tracefs::format::FieldKind;
use crate::tracefs::format::Format;

/// Maximum length of a string in a filter, in bytes.
const STRING_MAX: usize = 255;

/// Comparison operators.
const COMPARISONS: [&str; 8] = ["==", "!=", "<=", ">=", "<", ">", "&", "~"];

/// Checks a filter, as `--where` takes it.
pub fn check_filter(format: &Format, text: &str) -> Result<(), Problem> {
    let tokens = token::tokens(text).into_iter().peekable();
    Parser { format, text, tokens }.all()
}

struct Parser<'a> {
    format: &'a Format,
    text: &'a str,
    tokens: Peekable<IntoIter<Token<'a>>>,
}

/// Left side of a comparison.
struct Subject<'a> {
    name: &'a str,
    at: Range<usize>,
    kind: FieldKind,
    suffix: Suffix,
}

/// Modifier of the field in a comparison.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Suffix {
    /// Plain field.
    None,
    /// `.ustring`: a string of user space.
    Ustring,
    /// `.function`: an address in a kernel function.
    Function,
    /// `.ip`: an address of the internet protocol.
    Ip,
}

impl<'a> Parser<'a> {
    fn all(mut self) -> Result<(), Problem> {
        // Places of open parentheses. A list instead of recursion, so that nesting uses no stack.
        let mut open: Vec<Range<usize>> = Vec::new();
        loop {
            // Operand, after any number of `!` and `(`.
            while let Some(token) = self.tokens.next_if(|token| matches!(token.text, "!" | "(")) {
                if token.text == "(" {
                    open.push(token.at);
                }
            }
            self.comparison()?;
            // Closing parentheses, then an operator or the end.
            while let Some(close) = self.tokens.next_if(|token| token.text == ")") {
                if open.pop().is_none() {
                    return Err(Problem::new(close.at, "unmatched )"));
                }
            }
            let Some(token) = self.tokens.next() else { break };
            let problem = Problem::new(token.at.clone(), format!("{} is not expected here", token.text));
            match token.text {
                "&&" | "||" => {}
                "and" | "AND" | "&" => return Err(problem.label("did you mean &&?")),
                "or" | "OR" | "|" => return Err(problem.label("did you mean ||?")),
                _ => return Err(problem.label("expected && or ||")),
            }
        }
        match open.pop() {
            Some(at) => Err(Problem::new(at, "unmatched (")),
            None => Ok(()),
        }
    }

    /// Parses `field operator value`.
    fn comparison(&mut self) -> Result<(), Problem> {
        let subject = self.subject()?;
        let operator = self.operator(&subject)?;
        self.value(&subject, &operator)
    }

    fn subject(&mut self) -> Result<Subject<'a>, Problem> {
        let end = self.text.len();
        let Some(token) = self.tokens.next() else {
            return Err(Problem::new(end..end, "a comparison is missing").label("expected here, as in prev_pid == 1"));
        };
        match token.kind {
            TokenKind::Word if token.text == "not" => {
                return Err(Problem::new(token.at, "not is not an operator").label("did you mean !?"));
            }
            TokenKind::Word if token.text.starts_with('$') => {
                return Err(Problem::new(token.at, "a filter cannot use variables"));
            }
            TokenKind::Word => {}
            TokenKind::Number | TokenKind::Quoted => {
                let problem = Problem::new(token.at, format!("{} is not a field", token.text));
                return Err(problem.label("the field comes first, as in prev_pid == 1"));
            }
            _ => {
                let problem = Problem::new(token.at, format!("{} is not expected here", token.text));
                return Err(problem.label("a field is expected"));
            }
        }
        let kind = names::kind(self.format, token.text, token.at.clone(), Place::Filter)?;
        if matches!(kind, FieldKind::Other | FieldKind::Stack) {
            let problem = Problem::new(token.at, format!("{} is {}", token.text, kind.noun()));
            return Err(problem.label("a filter cannot use it"));
        }
        let suffix = match self.tokens.next_if(|token| token.text == ".") {
            Some(dot) => self.suffix(dot.at)?,
            None => Suffix::None,
        };
        let field = self.format.field(token.text);
        let is_ipv4 = field.is_some_and(|field| field.size == 4 && !field.signed && kind == FieldKind::Number);
        let is_number = kind != FieldKind::Bytes || field.is_some_and(Field::is_filtered);
        let problem = || Problem::new(token.at.clone(), format!("{} is {}", token.text, kind.noun()));
        match suffix {
            Suffix::Ip if kind == FieldKind::Bytes && field.is_some_and(Field::is_elsewhere) => {
                return Err(problem().label("a filter cannot use it"));
            }
            Suffix::Ip if kind != FieldKind::Bytes && !is_ipv4 => {
                return Err(problem().label("an address has 4 or 16 bytes"));
            }
            Suffix::None | Suffix::Ustring if !is_number => {
                let problem = problem().label("a filter cannot use it");
                return Err(match field.is_some_and(Field::is_elsewhere) {
                    true => problem,
                    false => problem.help(format!("if it is an address: {}.ip == 2001:db8::1", token.text)),
                });
            }
            _ => (),
        }
        Ok(Subject {
            name: token.text,
            at: token.at,
            kind,
            suffix,
        })
    }

    /// Parses the word after the dot of a field.
    fn suffix(&mut self, dot: Range<usize>) -> Result<Suffix, Problem> {
        let help = "filters have three modifiers: .function for kernel addresses, .ip for internet addresses, and \
                    .ustring for strings in user space";
        match self.tokens.next_if(|token| token.kind == TokenKind::Word) {
            Some(word) if word.text == "function" => Ok(Suffix::Function),
            Some(word) if word.text == "ip" => Ok(Suffix::Ip),
            Some(word) if word.text == "ustring" => Ok(Suffix::Ustring),
            Some(word) => {
                let title = format!("{} is not a modifier for filters", word.text);
                Err(Problem::new(word.at, title)
                    .label("only keys and values have it")
                    .help(help))
            }
            None => Err(Problem::new(dot, "a modifier is missing")
                .label("expected behind this dot")
                .help(help)),
        }
    }

    fn operator(&mut self, subject: &Subject<'_>) -> Result<Token<'a>, Problem> {
        let end = self.text.len();
        let Some(token) = self.tokens.next() else {
            let problem = Problem::new(end..end, format!("{} is not compared with anything", subject.name));
            return Err(problem.label("expected ==, !=, <, <=, >, >=, & or ~"));
        };
        let problem = Problem::new(token.at.clone(), format!("{} is not a comparison", token.text));
        let problem = match token.text {
            "=" => problem.label("did you mean ==?"),
            "=<" => problem.label("did you mean <=?"),
            "=>" => problem.label("did you mean >=?"),
            "<>" => problem.label("did you mean !=?"),
            text if !COMPARISONS.contains(&text) => problem.label("expected ==, !=, <, <=, >, >=, & or ~"),
            text => return self.fitting(subject, text, token),
        };
        Err(problem)
    }

    fn fitting(&self, subject: &Subject<'_>, text: &str, token: Token<'a>) -> Result<Token<'a>, Problem> {
        let Subject { name, kind, suffix, .. } = *subject;
        let problem = |title: String| Problem::new(token.at.clone(), title);
        match text {
            "==" | "!=" => Ok(token),
            _ if suffix == Suffix::Function => {
                Err(problem(format!("a function is compared by == and !=, not by {text}")))
            }
            _ if suffix == Suffix::Ip => Err(problem(format!("an address is compared by == and !=, not by {text}"))),
            "~" if kind == FieldKind::Number => {
                Err(problem("~ compares strings".to_owned()).label(format!("{name} is a number")))
            }
            "~" => Ok(token),
            _ if kind == FieldKind::Text => {
                let problem = problem(format!("{text} compares numbers")).label(format!("{name} is a string"));
                Err(problem.help("strings are compared by ==, != and ~, which takes a pattern"))
            }
            _ => Ok(token),
        }
    }

    fn value(&mut self, subject: &Subject<'_>, operator: &Token<'_>) -> Result<(), Problem> {
        let end = self.text.len();
        let Some(token) = self.tokens.next() else {
            return Err(
                Problem::new(end..end, format!("{} is not compared with anything", subject.name))
                    .label("expected a value"),
            );
        };
        let Subject { name, kind, .. } = *subject;
        if subject.suffix == Suffix::Ip {
            return self.address(token);
        }
        match token.kind {
            TokenKind::OpenQuote => Err(Problem::new(token.at, "unterminated string").label("a quote is missing")),
            TokenKind::Quoted if kind == FieldKind::Number => {
                Err(Problem::new(token.at, format!("{name} is a number")).label("and this is a string"))
            }
            TokenKind::Quoted if token.text.len() - 2 > STRING_MAX => Err(Problem::new(
                token.at,
                format!("a string in a filter has at most {STRING_MAX} bytes"),
            )),
            // Without .ustring, the kernel would read kernel memory at an address in user space.
            TokenKind::Quoted if subject.suffix == Suffix::None => {
                names::check_address(self.format, name, subject.at.clone(), "")
            }
            TokenKind::Quoted => Ok(()),
            TokenKind::Word if token.text == "CPUS" => self.cpus(token.at),
            TokenKind::Word if subject.suffix == Suffix::Function => Ok(()),
            TokenKind::Word => Err(self.word(subject, operator, token)),
            TokenKind::Number => self.number(subject, token),
            TokenKind::Sign if token.text == "-" => match self.tokens.next_if(|next| next.kind == TokenKind::Number) {
                Some(number) => self.number(subject, number),
                None => Err(Problem::new(token.at, "a number is missing").label("expected behind this minus")),
            },
            _ => {
                Err(Problem::new(token.at, format!("{} is not expected here", token.text)).label("a value is expected"))
            }
        }
    }

    /// Explains why a word is wrong as a value, and suggests the right form.
    fn word(&self, subject: &Subject<'_>, operator: &Token<'_>, token: Token<'_>) -> Problem {
        let Subject { name, kind, .. } = *subject;
        let (operator, text) = (operator.text, token.text);
        if kind != FieldKind::Number {
            let problem = Problem::new(token.at, "a string needs quotes");
            return problem.label(format!("did you mean {name} {operator} \"{text}\"?"));
        }
        let problem = Problem::new(token.at, format!("{text} is not a number"));
        if let Some(symbols) = self.format.symbols(name)
            && let Some(value) = symbols.value(text)
        {
            let number = if symbols.are_flags() {
                format!("{value:#x}")
            } else {
                value.to_string()
            };
            return problem.label(format!("{text} of {name} is {number}"));
        }
        if self.format.field(text).is_some() {
            return problem.label("a filter compares a field to a number, not to another field");
        }
        match self.format.field(name) {
            Some(field) if field.size == 8 && !field.signed => {
                let problem = problem.label("a number is expected");
                problem.help(format!("if it is a function: {name}.function {operator} {text}"))
            }
            _ => problem.label("a number is expected"),
        }
    }

    fn number(&self, subject: &Subject<'_>, token: Token<'_>) -> Result<(), Problem> {
        let text = token.text;
        if subject.kind == FieldKind::Text {
            let problem = Problem::new(token.at, format!("{} is a string", subject.name));
            return Err(problem.label(format!("did you mean \"{text}\"?")));
        }
        let parsed = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None if text.len() > 1 && text.starts_with('0') => u64::from_str_radix(text, 8).ok(),
            None => text.parse().ok(),
        };
        if parsed.is_some() {
            return Ok(());
        }
        let problem = Problem::new(token.at, format!("{text} is not a number"));
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        Err(match (digits, text.starts_with('0')) {
            (true, true) => problem.label("a 0 in front makes it octal"),
            (true, false) => problem.label("it has more than 64 bits"),
            (false, _) => problem.label("digits are expected, without a unit"),
        })
    }

    /// Parses an address or a network. It ends at the first blank.
    fn address(&mut self, first: Token<'a>) -> Result<(), Problem> {
        let mut at = first.at;
        let is_part = |token: &Token<'_>| {
            let is_sign = matches!(token.text, "." | ":" | "/");
            is_sign || matches!(token.kind, TokenKind::Word | TokenKind::Number)
        };
        while let Some(token) = self.tokens.next_if(|token| token.at.start == at.end && is_part(token)) {
            at.end = token.at.end;
        }
        let text = self.text.get(at.clone()).unwrap_or_default();
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let problem = Problem::new(at, format!("{text} is not an address"));
        let Ok(address) = address.parse::<IpAddr>() else {
            return Err(problem.label("as 192.0.2.1, 2001:db8::1 or 10.0.0.0/8"));
        };
        let most = if address.is_ipv4() { 32 } else { 128 };
        match bits.is_none_or(|bits| bits.parse().is_ok_and(|bits: u8| bits <= most)) {
            true => Ok(()),
            false => Err(problem.label(format!("behind / is a number of bits, up to {most}"))),
        }
    }

    /// Parses `{list}` after `CPUS`.
    fn cpus(&mut self, at: Range<usize>) -> Result<(), Problem> {
        let problem = |at| Problem::new(at, "CPUS needs a list of CPUs").label("as in CPUS{0-3,8}");
        if self.tokens.next_if(|token| token.text == "{").is_none() {
            return Err(problem(at));
        }
        let mut last = at.end + 1;
        for token in self.tokens.by_ref() {
            match (token.kind, token.text) {
                (_, "}") if last > at.end + 1 => return Ok(()),
                (TokenKind::Number, _) | (_, "-" | "," | ":" | "/") => last = token.at.end,
                _ => return Err(problem(at.start..token.at.end)),
            }
        }
        Err(problem(at.start..last.min(self.text.len())))
    }
}
