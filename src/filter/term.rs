// SPDX-License-Identifier: GPL-2.0

//! Compiles the text of one predicate.

use kernel::prelude::*;

use super::{
    cpus::CpuSet,
    error::{
        FilterError,
        FilterErrorText::{
            self,
            *, //
        },
    },
    op::{
        Op,
        OPS, //
    },
    pattern::Pattern,
    predicate::Predicate,
    range::NumberRange,
    text::FilterText, //
};
use crate::{
    event::{
        AddressField,
        EventDesc,
        EventField,
        FilterType,
        GroupPlace,
        Network,
        NumberType, //
    },
    limits::{
        FILTER_NUMBER_MAX,
        STRING_MAX, //
    },
    text::{
        is_alnum,
        is_space, //
    },
    trigger::{
        number,
        HintText, //
    },
};

/// Lookup of functions and control groups in the running kernel, for the compilation of a filter.
pub trait Symbols {
    /// Address of the function `name`, which may be any bytes. Called in task context; may sleep.
    fn address(&self, name: &[u8]) -> Option<usize>;

    /// Start and size of the function that contains `address`. Called in task context; may sleep.
    fn function(&self, address: usize) -> Option<(usize, usize)>;

    /// Finds the control group with this path, which may be any bytes. Called in task context; may
    /// sleep.
    fn group(&self, path: &[u8]) -> Option<GroupPlace>;
}

/// The names that predicates may use: event fields, CPUs and functions.
pub(super) struct FilterScope<'a> {
    pub(super) event: &'a EventDesc,
    pub(super) cpus: usize,
    pub(super) symbols: &'a dyn Symbols,
}

/// Parses a predicate.
struct PredicateParser<'a> {
    text: FilterText<'a>,
    scope: &'a FilterScope<'a>,
    field: EventField,
    op: Op,
    /// Position in the text.
    at: usize,
}

/// Parses the predicate at `start`. Returns it with its end (`parse_pred()`).
pub(super) fn parse(
    text: FilterText<'_>,
    start: usize,
    scope: &FilterScope<'_>,
) -> Result<(Predicate, usize), FilterError> {
    let mut at = text.skip(start, |byte| is_alnum(byte) || byte == b'_');
    if at == start {
        let error = FilterError::from(EPERM);
        return Err(error.hinted(HintText::FilterTerm, start));
    }
    let name = text.piece(start, at);
    let Some(field) = scope.event.find(name)? else {
        return match name {
            b"common_cgroup" => group(text, at, scope),
            _ => Err(error(FieldNotFound, at)),
        };
    };
    let mut suffix = |suffix: &[u8]| {
        let given = text.from(at).starts_with(suffix);
        if given {
            at += suffix.len();
        }
        given
    };
    let ustring = suffix(b".ustring");
    let function = suffix(b".function");
    // C lacks this suffix: for other fields, the error is C's.
    let address = AddressField::new(&field).filter(|_| suffix(b".ip"));
    at = text.skip(at, is_space);
    let (op, at) = operator(text, at)?;
    let mut parser = PredicateParser {
        text,
        scope,
        field,
        op,
        at,
    };
    let predicate = match text.from(parser.at) {
        _ if function => parser.function()?,
        _ if address.is_some() => parser.address(address)?,
        [b'C', b'P', b'U', b'S', ..] => parser.cpus()?,
        [b'\'' | b'"', ..] => parser.string(ustring)?,
        [b'0'..=b'9' | b'-', ..] => parser.number()?,
        _ => return Err(parser.error(InvalidValue)),
    };
    Ok((predicate, parser.at))
}

/// Parses the operator at `at`. Returns it with the begin of the value behind it.
fn operator(text: FilterText<'_>, at: usize) -> Result<(Op, usize), FilterError> {
    let mut ops = OPS.iter();
    match ops.find(|(sign, _)| text.from(at).starts_with(sign)) {
        Some((sign, op)) => Ok((*op, text.skip(at + sign.len(), is_space))),
        None => Err(error(InvalidOp, at)),
    }
}

/// Parses the rest of a predicate about the control group of the running task, behind the name,
/// which C lacks. Returns it with its end.
fn group(
    text: FilterText<'_>,
    at: usize,
    scope: &FilterScope<'_>,
) -> Result<(Predicate, usize), FilterError> {
    let (op, at) = operator(text, text.skip(at, is_space))?;
    if !matches!(op, Op::Equal | Op::NotEqual | Op::Glob) {
        return Err(error(IllegalFieldOp, at));
    }
    let quote = text.at(at);
    if !matches!(quote, b'\'' | b'"') {
        return Err(error(ExpectString, at).hinted(HintText::FilterGroup, at));
    }
    let start = at + 1;
    let end = text.skip(start, |byte| byte != quote);
    if text.at(end) != quote {
        return Err(error(MissingQuote, end));
    }
    let path = text.piece(start, end);
    let refuse = |hint| Err(error(InvalidValue, start).hinted(hint, start));
    if op == Op::Glob && path.contains(&b'*') {
        return refuse(HintText::FilterGroupPattern);
    }
    let found = match path {
        [b'/', ..] => scope.symbols.group(path),
        _ => None,
    };
    let Some(group) = found else {
        return refuse(HintText::FilterGroup);
    };
    let predicate = match op {
        Op::Glob => Predicate::GroupBelow(group),
        op => Predicate::Group(group.id, op == Op::Equal),
    };
    Ok((predicate, end + 1))
}

/// An error at `at`. As in C, the caret is one to the right.
fn error(text: FilterErrorText, at: usize) -> FilterError {
    FilterError::new(text, at + 1)
}

impl PredicateParser<'_> {
    fn error(&self, text: FilterErrorText) -> FilterError {
        error(text, self.at)
    }

    /// Reads letters and digits, at most [`FILTER_NUMBER_MAX`].
    fn digits(&mut self, start: usize) -> Result<&[u8], FilterError> {
        self.at = self.text.skip(self.at, is_alnum);
        if self.at - start > FILTER_NUMBER_MAX {
            return Err(self.error(OperandTooLong));
        }
        Ok(self.text.piece(start, self.at))
    }

    fn function(&mut self) -> Result<Predicate, FilterError> {
        if self.field.size as usize != size_of::<usize>() {
            return Err(self.error(IllegalFieldOp));
        }
        if !matches!(self.op, Op::Equal | Op::NotEqual) {
            return Err(self.error(InvalidOp));
        }
        let start = self.at;
        let address = if self.text.at(start).is_ascii_digit() {
            let address = number(self.digits(start)?).ok();
            let address = address.and_then(|address| usize::try_from(address).ok());
            address.ok_or(self.error(InvalidValue))?
        } else {
            self.at = self.text.skip(start, |byte| !is_space(byte));
            let name = self.text.piece(start, self.at);
            let address = self.scope.symbols.address(name);
            address.ok_or(self.error(NoFunction))?
        };
        let function = self.scope.symbols.function(address);
        let (start, len) = function.ok_or(self.error(NoFunction))?;
        let end = start.wrapping_add(len);
        let inside = NumberType::new(self.field.size, false)
            .and_then(|type_| NumberRange::between(start as u64, end as u64, type_));
        Ok(match (self.op, inside) {
            (Op::Equal, inside) => Predicate::range(&self.field, inside),
            (_, None) => Predicate::Constant(true),
            (_, Some(inside)) => Predicate::range(&self.field, inside.others()),
        })
    }

    fn address(&mut self, field: Option<AddressField>) -> Result<Predicate, FilterError> {
        let inside = match self.op {
            Op::Equal => true,
            Op::NotEqual => false,
            _ => return Err(self.error(InvalidOp)),
        };
        let start = self.at;
        self.at = self.text.skip(start, |byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b':' | b'/')
        });
        let network = Network::parse(self.text.piece(start, self.at));
        match (field, network) {
            (Some(field), Some(network)) => Ok(Predicate::Address(field, network, inside)),
            _ => Err(error(InvalidValue, start).hinted(HintText::FilterAddress, start)),
        }
    }

    fn cpus(&mut self) -> Result<Predicate, FilterError> {
        let kind = self.field.filter;
        let kinds = [FilterType::CpuMask, FilterType::Cpu, FilterType::Other];
        let ops = [Op::Equal, Op::NotEqual, Op::And];
        if !kinds.contains(&kind) || !ops.contains(&self.op) {
            return Err(self.error(IllegalFieldOp));
        }
        self.at += b"CPUS{".len();
        if self.text.at(self.at - 1) != b'{' {
            return Err(self.error(MissingBraceOpen));
        }
        let start = self.at;
        self.at = self.text.skip(start, |byte| byte != b'}');
        if self.text.at(self.at) != b'}' {
            return Err(self.error(MissingBraceClose));
        }
        if self.at == start {
            return Err(self.error(InvalidCpulist));
        }
        let cpus = match CpuSet::parse(self.text.piece(start, self.at), self.scope.cpus) {
            Ok(cpus) => cpus,
            Err(ENOMEM) => return Err(ENOMEM.into()),
            Err(_) => return Err(self.error(InvalidCpulist)),
        };
        self.at += 1;

        if kind == FilterType::CpuMask {
            return Ok(match self.op {
                Op::And => Predicate::CpusIntersect(self.field.offset, cpus),
                op => Predicate::CpusEqual(self.field.offset, cpus, op == Op::Equal),
            });
        }
        // A mask of one CPU is compared like a number.
        if let Some(cpu) = cpus.single() {
            let op = match self.op {
                Op::And => Op::Equal,
                op => op,
            };
            return Ok(self.compare(op, cpu as u64, false));
        }
        Ok(match (self.op, kind) {
            (Op::And, FilterType::Cpu) => Predicate::CpuMember(cpus),
            (Op::And, _) => self.member(cpus),
            // A CPU never equals a mask of several. `!=` is true for any valid CPU.
            (Op::NotEqual, FilterType::Cpu) => Predicate::Constant(true),
            (Op::NotEqual, _) => self.member(CpuSet::all(self.scope.cpus)?),
            _ => Predicate::Constant(false),
        })
    }

    fn string(&mut self, ustring: bool) -> Result<Predicate, FilterError> {
        if !matches!(self.op, Op::Equal | Op::NotEqual | Op::Glob) {
            return Err(self.error(IllegalFieldOp));
        }
        if !self.field.filter.is_string() {
            return Err(self.error(ExpectDigit));
        }
        let quote = self.text.at(self.at);
        let start = self.at + 1;
        self.at = self.text.skip(start, |byte| byte != quote);
        if self.text.at(self.at) != quote {
            return Err(self.error(MissingQuote));
        }
        let string = self.text.piece(start, self.at);
        if string.len() >= STRING_MAX as usize {
            return Err(self.error(OperandTooLong));
        }
        self.at += 1;
        let pattern = match self.op {
            Op::Glob => Pattern::wildcards(string)?,
            op => Pattern::literal(string, op == Op::NotEqual)?,
        };
        let at = self.field.offset;
        Ok(match self.field.filter {
            FilterType::Comm => Predicate::Comm(pattern),
            // An array of size 0 is the last field and extends to the end of the record
            // (`ftrace:print`).
            FilterType::StaticString if self.field.size == 0 => {
                Predicate::Array(at, u32::MAX, pattern)
            }
            FilterType::StaticString => Predicate::Array(at, self.field.size, pattern),
            FilterType::DynString => Predicate::DataLoc(at, pattern),
            FilterType::RelDynString => Predicate::RelLoc(at, pattern),
            _ if ustring => Predicate::User(at, pattern),
            _ => Predicate::Kernel(at, pattern),
        })
    }

    fn number(&mut self) -> Result<Predicate, FilterError> {
        if self.field.filter.is_string() {
            return Err(self.error(ExpectString));
        }
        if self.op == Op::Glob {
            return Err(self.error(IllegalFieldOp));
        }
        let start = self.at;
        if self.text.at(start) == b'-' {
            self.at += 1;
        }
        let signed = self.field.signed;
        let value = match (signed, self.digits(start)?) {
            (true, digits) => signed_number(digits),
            (false, digits) => number(digits).ok(),
        };
        let value = value.ok_or(error(IllegalIntval, start))?;
        Ok(self.compare(self.op, value, signed))
    }

    /// Tests whether the field, a number, is a CPU in the mask.
    fn member(&self, cpus: CpuSet) -> Predicate {
        Predicate::number(&self.field, |number| Some(Predicate::Member(number, cpus)))
    }

    /// Compares the field, a number or the CPU.
    fn compare(&self, op: Op, value: u64, signed: bool) -> Predicate {
        match (self.field.filter, op) {
            (FilterType::Cpu, op) => match NumberRange::new(op, value, NumberType::S32) {
                Some(range) => Predicate::Cpu(range),
                None => Predicate::Constant(false),
            },
            (_, Op::And) => Predicate::number(&self.field, |n| Some(Predicate::Bits(n, value))),
            (_, op) => {
                let type_ = NumberType::new(self.field.size, signed);
                let range = type_.and_then(|type_| NumberRange::new(op, value, type_));
                Predicate::range(&self.field, range)
            }
        }
    }
}

/// Parses a signed number (`kstrtoll()`).
fn signed_number(digits: &[u8]) -> Option<u64> {
    match digits {
        [b'-', digits @ ..] => number(digits)
            .ok()
            .filter(|&value| value <= i64::MIN.unsigned_abs())
            .map(u64::wrapping_neg),
        digits => number(digits)
            .ok()
            .filter(|&value| value <= i64::MAX as u64),
    }
}
