// SPDX-License-Identifier: GPL-2.0

//! One predicate: `field operator value`.

use kernel::prelude::*;

use super::{
    cpus::CpuSet,
    parser::{
        FilterScope,
        FilterText, //
    },
    pattern::Pattern,
    range::NumberRange,
    FilterError,
    FilterErrorText::{
        self,
        *, //
    },
    Memory, //
};
use crate::{
    event::{
        number::Numbers,
        pointed::read_text,
        AddressField,
        EventField,
        FilterType,
        Hit,
        Network,
        Number,
        NumberType,
        Record, //
    },
    limits::{
        FILTER_NUMBER_MAX,
        POINTED_MAX,
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

/// An operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Glob,
    NotEqual,
    Equal,
    LessOrEqual,
    Less,
    GreaterOrEqual,
    Greater,
    And,
}

/// The operators. One that is a prefix of another comes after it.
const OPS: [(&[u8], Op); 8] = [
    (b"~", Op::Glob),
    (b"!=", Op::NotEqual),
    (b"==", Op::Equal),
    (b"<=", Op::LessOrEqual),
    (b"<", Op::Less),
    (b">=", Op::GreaterOrEqual),
    (b">", Op::Greater),
    (b"&", Op::And),
];

/// A compiled predicate: the value of a hit to read, and how to compare it (`struct filter_pred`).
/// The first `u32` of a variant is an offset in the record, the second one of `Array` a length.
pub(super) enum Predicate {
    /// Always true, or always false.
    Constant(bool),
    /// The number is in a range.
    Range(Number, NumberRange),
    /// Any of these bits of the number is set.
    Bits(Number, u64),
    /// The number is a CPU in the mask.
    Member(Number, CpuSet),
    Cpu(NumberRange),
    CpuMember(CpuSet),
    /// The mask in the record equals this one, or does not.
    CpusEqual(u32, CpuSet, bool),
    CpusIntersect(u32, CpuSet),
    Array(u32, u32, Pattern),
    DataLoc(u32, Pattern),
    RelLoc(u32, Pattern),
    Comm(Pattern),
    /// The address is in the network, or is not.
    Address(AddressField, Network, bool),
    /// A string in the kernel's memory, with its pointer in the record.
    Kernel(u32, Pattern),
    /// A string in the running task's memory, with its pointer in the record.
    User(u32, Pattern),
}

/// A number of the record, of one of the commonest types, and the range that is accepted.
#[derive(Clone, Copy)]
pub struct FieldRange {
    number: Number,
    range: NumberRange,
}

impl FieldRange {
    /// A range that no record is in.
    pub const NONE: Self = Self {
        number: Number::new(NumberType::U8, 0),
        range: NumberRange::EMPTY,
    };

    /// Returns whether the number of this record is in the range. Any context.
    #[inline(always)]
    pub fn has(&self, record: Record<'_>) -> bool {
        let number = record.common_number(self.number);
        number.is_some_and(|number| self.range.contains(number))
    }
}

impl Predicate {
    /// Evaluates the predicate.
    #[inline(always)]
    pub(super) fn holds(&self, hit: &Hit<'_>, memory: &impl Memory) -> bool {
        // Fast path for the most common predicate.
        if let Self::Range(number, range) = self {
            if let Some(number) = hit.record().common_number(*number) {
                return range.contains(number);
            }
        }
        self.another_holds(hit, memory)
    }

    #[inline(never)]
    fn another_holds(&self, hit: &Hit<'_>, memory: &impl Memory) -> bool {
        let record = hit.record();
        match self {
            Self::Constant(result) => *result,
            Self::Range(number, range) => range.contains(number.read(&record)),
            Self::Bits(number, bits) => number.read(&record) & bits != 0,
            // CPU numbers have 32 bits; the upper half of a wider field is ignored.
            Self::Member(number, cpus) => cpus.contains(number.read(&record) as u32 as usize),
            Self::Cpu(range) => range.contains(hit.cpu() as u64),
            Self::CpuMember(cpus) => cpus.contains(hit.cpu()),
            Self::CpusEqual(at, cpus, equal) => cpus.equals(record.data_loc(*at)) == *equal,
            Self::CpusIntersect(at, cpus) => cpus.intersects(record.data_loc(*at)),
            Self::Array(at, len, pattern) => {
                pattern.matches(record.bytes(*at as usize, *len as usize))
            }
            Self::DataLoc(at, pattern) => pattern.matches(record.data_loc(*at)),
            Self::RelLoc(at, pattern) => pattern.matches(record.rel_loc(*at)),
            Self::Comm(pattern) => pattern.matches(&hit.context().comm()),
            Self::Address(field, network, inside) => {
                network.contains(field.read(record)) == *inside
            }
            Self::Kernel(at, pattern) => pointed(pattern, pointer(hit, *at), |to, address| {
                memory.read_kernel(to, address)
            }),
            Self::User(at, pattern) => pointed(pattern, pointer(hit, *at), |to, address| {
                memory.read_user(to, address)
            }),
        }
    }

    /// Returns the number of the record and its range, if the predicate is just that and the number
    /// has one of the commonest types.
    pub(super) fn field_range(&self) -> Option<FieldRange> {
        match *self {
            Self::Range(number, range)
                if matches!(number.type_(), NumberType::U32 | NumberType::U64) =>
            {
                Some(FieldRange { number, range })
            }
            _ => None,
        }
    }

    /// Returns the offset in the record that it reads, if any; and whether it reads nothing else:
    /// false if it follows a pointer.
    pub(super) fn access(&self) -> (Option<u32>, bool) {
        match self {
            Self::Constant(_) | Self::Cpu(_) | Self::CpuMember(_) | Self::Comm(_) => (None, true),
            Self::Range(number, _) | Self::Bits(number, _) | Self::Member(number, _) => {
                (Some(number.offset()), true)
            }
            Self::Address(field, ..) => (Some(field.offset()), true),
            Self::CpusEqual(at, _, _)
            | Self::CpusIntersect(at, _)
            | Self::Array(at, _, _)
            | Self::DataLoc(at, _)
            | Self::RelLoc(at, _) => (Some(*at), true),
            Self::Kernel(at, _) | Self::User(at, _) => (Some(*at), false),
        }
    }

    /// A predicate that is true if the number in `field` is in `range`. False without a range.
    fn range(field: &EventField, range: Option<NumberRange>) -> Self {
        Self::number(field, |number| Some(Self::Range(number, range?)))
    }

    /// Creates a predicate for the number in `field`, read as unsigned. If `field` does not have
    /// the size of a number, the predicate is always false.
    fn number(field: &EventField, ask: impl FnOnce(Number) -> Option<Self>) -> Self {
        NumberType::new(field.size, false)
            .map(|type_| Number::new(type_, field.offset))
            .and_then(ask)
            .unwrap_or(Self::Constant(false))
    }
}

fn pointer(hit: &Hit<'_>, at: u32) -> usize {
    match size_of::<usize>() {
        4 => hit.record().u32(at) as usize,
        _ => hit.record().u64(at) as usize,
    }
}

/// Compares a string behind a pointer, up to [`POINTED_MAX`] bytes. False for any pattern if the
/// string cannot be read.
// Not inlined, so that the other predicates do not get its large stack frame.
#[inline(never)]
fn pointed(pattern: &Pattern, address: usize, read: impl Fn(&mut [u8], usize) -> bool) -> bool {
    let mut string = [0; POINTED_MAX];
    read_text(&mut string, address, read) && pattern.matches(&string[..POINTED_MAX - 1])
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

impl Predicate {
    /// Parses the predicate at `start`. Returns it with its end (`parse_pred()`).
    pub(super) fn parse(
        text: FilterText<'_>,
        start: usize,
        scope: &FilterScope<'_>,
    ) -> Result<(Self, usize), FilterError> {
        let mut at = text.skip(start, |byte| is_alnum(byte) || byte == b'_');
        if at == start {
            let error = FilterError::from(EPERM);
            return Err(error.hinted(HintText::FilterTerm, start));
        }
        let Some(field) = scope.event.find(text.piece(start, at))? else {
            return Err(error(FieldNotFound, at));
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
        let mut ops = OPS.iter();
        let Some((sign, op)) = ops.find(|(sign, _)| text.from(at).starts_with(sign)) else {
            return Err(error(InvalidOp, at));
        };
        let mut parser = PredicateParser {
            text,
            scope,
            field,
            op: *op,
            at: text.skip(at + sign.len(), is_space),
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
